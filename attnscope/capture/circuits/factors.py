"""What makes the queries, keys and values of an attention, and what reads its output: four matrices a head.

No names and no list of architectures: of the modules with a matrix for a weight that run before an attention,
those count whose columns are what the attention was given, head by head. Rotary positions stand between the
two: then the first token, which they leave as it is, tells which columns these are, and every product of two
heads at one token must be the same before and after, which only one rotation for all heads keeps. That the
module multiplies by its matrix, adds its offset and does nothing else is read back; with heads exchanged
nothing of it may hold. Where norms or products of several matrices come between there is none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.attention import AttentionCall
from attnscope.capture.following.projected import ModuleRun, OutputProjections, another_column, matrix_seen
from attnscope.model.anatomy.sites import Site
from attnscope.reference import exact

_ROUNDINGS, _TURNED = 4, 32  # machine epsilons of a number, and of a product of two rotated rows
_WORDS = {"query": "queries", "key": "keys", "value": "values"}


@dataclass(frozen=True, eq=False)
class Factor:
    """A module and the columns (of an output projection: rows) of its matrix that belong to each head.

    Those of a head follow one another from its place in `firsts`.
    `turn` is how often it had run before in the pass. `turned` says that rotary positions come after it,
    `offset` that it adds one.
    """

    part: nn.Module
    turn: int
    matrix: Float[Tensor, "head read dim"]
    firsts: tuple[int, ...]
    turned: bool = False
    offset: bool = False


@dataclass(frozen=True, eq=False)
class Factors:
    """The matrices of one layer, each None where it is not proved; `reasons` say of each why."""

    layer: int
    heads: int
    key_heads: int
    query: Factor | None
    key: Factor | None
    value: Factor | None
    output: Factor | None
    reasons: dict[str, str] = field(default_factory=dict)

    def key_head(self, head: int) -> int:
        """The key/value head that query head `head` reads."""
        return head // (self.heads // self.key_heads)


@dataclass(frozen=True, eq=False)
class _Match:
    """Columns of what a module made that are what an attention was given; `plain` at every token."""

    run: ModuleRun
    columns: tuple[int, ...]
    made: Float[Tensor, "head token dim"]
    matrix: Float[Tensor, "head read dim"]
    plain: bool

    @property
    def factor(self) -> Factor:
        offset = getattr(self.run.part, "bias", None) is not None
        return Factor(self.run.part, self.run.turn, self.matrix, self.columns, not self.plain, offset)


class FactorSeeker(OutputProjections):
    """Finds all four while their model runs; `of_layer` has them afterwards."""

    def __init__(self, model: nn.Module, sites: Iterable[Site]) -> None:
        super().__init__(model, sites, values=True)
        self.made: dict[int, dict[str, _Match | str]] = {}
        self.of_layer: dict[int, Factors] = {}

    def answered(self, module: nn.Module, calls: Iterable[AttentionCall]) -> None:
        self.values = False
        calls = list(calls)
        super().answered(module, calls)
        self.values = True
        with torch._C.DisableTorchFunction():
            for call in calls:
                self.made[id(call.output)] = _made(self.runs[self.around[module]], call)

    def of(self, call: AttentionCall, first: AttentionCall | None = None) -> AttentionCall:
        projected = super().of(call, first)
        if call.block == 0:
            self.of_layer[call.layer] = self._factors(projected)
        else:
            self.of_layer[call.layer] = _none(call)
        return projected

    def _factors(self, call: AttentionCall) -> Factors:
        answer, made = self.found[id(call.output)], self.made[id(call.output)]
        output = None
        if call.projection is not None:
            part, turn = answer.by[0]
            heads, size, _ = call.projection.shape
            firsts = tuple(range(0, heads * size, size))
            output = Factor(
                part, turn, call.projection, firsts, offset=getattr(part, "bias", None) is not None
            )
        found = {name: each.factor for name, each in made.items() if isinstance(each, _Match)}
        reasons = {name: each for name, each in made.items() if isinstance(each, str)}
        if output is None:
            reasons["output"] = "no matrix alone reads its heads' outputs"
        query, key, value = (found.get(name) for name in _WORDS)
        return Factors(call.layer, call.heads, call.key_heads, query, key, value, output, reasons)


def _none(call: AttentionCall) -> Factors:
    reasons = dict.fromkeys((*_WORDS, "output"), "the layer attends several times for one input")
    return Factors(call.layer, call.heads, call.key_heads, None, None, None, None, reasons)


def _made(runs: Sequence[ModuleRun], call: AttentionCall) -> dict[str, _Match | str]:
    """What makes queries, keys and values; of what is not proved, why."""
    given = {"query": call.q, "key": call.k, "value": call.v}
    found: dict[str, _Match | str] = {}
    for name, wanted in given.items():
        matches = [match for each in runs for match in _matches(each, wanted, call.epsilon)]
        plain = [match for match in matches if match.plain]
        best = (plain or ([] if name == "value" else matches))[:1]
        found[name] = best[0] if best else f"no matrix alone makes its {_WORDS[name]}"
    query, key = found["query"], found["key"]
    turned = [each for each in (query, key) if isinstance(each, _Match) and not each.plain]
    if turned and not _one_rotation(call, query, key):
        why = "what its queries and keys pass after their matrix is more than rotary positions"
        found |= {"query": why, "key": why}
    return found


def _matches(run: ModuleRun, wanted: Float[Tensor, "head token dim"], epsilon: float) -> list[_Match]:
    """Where `run` made these, row by row of what it read, up to a factor for each head."""
    _, tokens, dim = wanted.shape
    made, given = run.made.detach(), run.given.detach()
    if made.ndim < 2 or given.shape[:-1] != made.shape[:-1] or made.shape[-1] % dim or dim == 1:
        return []
    there, read = made.flatten(0, -2).cpu(), given.flatten(0, -2).cpu()
    if len(there) % tokens or there.shape[1] < dim:
        return []
    epsilon, found = max(epsilon, torch.finfo(there.dtype).eps), []
    for start in range(0, len(there), tokens):
        mine = slice(start, start + tokens)
        blocks = exact(there[mine]).reshape(tokens, -1, dim).transpose(0, 1)  # block token dim
        match = _columns(blocks, exact(wanted), epsilon)
        if match is None:
            continue
        matrix = matrix_seen(run.part, read[mine], there[mine], epsilon, another_column)
        if matrix is None:
            continue
        places, scaled, plain = match
        columns = tuple(place * dim for place in places)
        by_head = torch.stack([matrix[:, first : first + dim] for first in columns])
        found.append(_Match(run, columns, scaled, by_head, plain))
    return found


def _columns(
    blocks: Float[Tensor, "block token dim"], wanted: Float[Tensor, "head token dim"], epsilon: float
) -> tuple[list[int], Float[Tensor, "head token dim"], bool] | None:
    """Which block is which head at the first token, what they are by head, and whether at every token.

    None where one is not there, or where exchanged heads would do as well.
    """
    first, asked = blocks[:, 0], wanted[:, 0]
    factors = (asked @ first.T) / first.square().sum(-1)
    made = factors[..., None] * first  # head block dim
    fits = ((asked[:, None] - made).abs() <= _ROUNDINGS * epsilon * made.abs()).all(-1) & (factors > 0)
    if not fits.any(1).all():
        return None
    places = fits.int().argmax(1)
    scaled = blocks[places] * factors[torch.arange(len(places)), places][:, None, None]
    alike = bool((wanted == wanted[:1]).all())  # of one key head that was written out for all
    if not alike and _same(scaled, wanted.roll(1, 0), epsilon):
        return None
    return places.tolist(), scaled, _same(scaled, wanted, epsilon)


def _same(made: Tensor, wanted: Tensor, epsilon: float) -> bool:
    return bool(((made - wanted).abs() <= _ROUNDINGS * epsilon * made.abs()).all())


def _one_rotation(call: AttentionCall, query: _Match | str, key: _Match | str) -> bool:
    """Whether queries and keys are what was made, turned at each token by one rotation for all heads."""
    if isinstance(query, str) or isinstance(key, str) or call.q.shape[1:] != call.k.shape[1:]:
        return False
    epsilon = max(call.epsilon, torch.finfo(call.q.dtype).eps)
    seen = exact(torch.cat([call.q, call.k]))

    def keeps(queries: Tensor, keys: Tensor) -> bool:
        return _products_kept(torch.cat([queries, keys]), seen, _TURNED * epsilon)

    heads = query.made.roll(1, 0) if len(query.made) > 1 else query.made.roll(1, -1)
    exchanged = keeps(heads, key.made), keeps(query.made.roll(1, -1), key.made)
    return keeps(query.made, key.made) and not any(exchanged)


def _products_kept(
    before: Float[Tensor, "head token dim"], after: Float[Tensor, "head token dim"], tolerance: float
) -> bool:
    first, second = (each.transpose(0, 1) @ each.permute(1, 2, 0) for each in (before, after))
    lengths = after.norm(dim=-1).T  # token head
    return bool(((first - second).abs() <= tolerance * lengths[:, :, None] * lengths[:, None]).all())
