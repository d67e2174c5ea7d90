"""Direct paths from what one head writes to what a later head reads: found norm by norm, and verified.

`read_circuits` does it for all heads of a tower in one short run.

What makes the queries, keys and values of an attention, and what reads its output, are four matrices a head.
No names and no list of architectures: of the modules with a matrix for a weight that run before an attention,
those count whose columns are what the attention was given, head by head. Rotary positions stand between the
two: then the first token, which they leave as it is, tells which columns these are, and every product of two
heads at one token must be the same before and after, which only one rotation for all heads keeps. That the
module multiplies by its matrix, adds its offset and does nothing else is read back; with heads exchanged
nothing of it may hold. Where norms or products of several matrices come between there is none.

What is not on the path: whatever other heads and feed-forward parts make of the one on the way, the number by
which a norm divides each token, and offsets. What is: residual additions, the weights of norms, and their
taking away of the mean. The path is what the model's own code does to something that is put in where heads
write (`skeleton`); that it is the norms that were found, one after the other, and nothing else, is read back.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.attention import AttentionCall, Capture
from attnscope.capture.circuits.skeleton import Gain, Passed, Skeleton, Turn, Walked
from attnscope.capture.following.projected import ModuleRun, OutputProjections, another_column, matrix_seen
from attnscope.capture.run import Labels, Selection, record
from attnscope.capture.running import evaluating, hooked
from attnscope.errors import AttnscopeError, is_out_of_memory, one_line
from attnscope.model.anatomy.sites import Site
from attnscope.reference import exact, widest

_OF_NUMBERS, _TURNED = 4, 32  # machine epsilons of a number, and of a product of two rotated rows
_WORDS = {"query": "queries", "key": "keys", "value": "values"}
_TOLERANCE = 1e-6  # of the largest number: in float64, with room for what a model does in float32
_ROUNDINGS = 2**10  # machine epsilons of the type that the way was run in, where that is coarser
SIDES = ("query", "key", "value")
NO_PATH = "nothing that an earlier head writes comes there"


@dataclass(frozen=True, eq=False)
class Factor:
    """A projection module, with each head's part of its matrix.

    A head's columns (of an output projection: rows) follow one another from its place in `firsts`.
    `turn` is how often the module had run before in the pass. `turned` says that rotary positions come after
    it, `offset` that it adds one.
    """

    part: nn.Module
    turn: int
    matrix: Float[Tensor, "head read dim"]
    firsts: tuple[int, ...]
    turned: bool = False
    offset: bool = False


@dataclass(frozen=True, eq=False)
class Factors:
    """Query, key, value and output matrices of one layer, each None where not proved; `reasons` say why."""

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
    """Columns of a module's output that are one attention input, head by head; `plain` if at every token."""

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
    """Finds each attention's query, key, value and output matrices in a run; results in `of_layer`."""

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
            reasons = dict.fromkeys((*_WORDS, "output"), "the layer attends several times for one input")
            self.of_layer[call.layer] = Factors(
                call.layer, call.heads, call.key_heads, None, None, None, None, reasons
            )
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


def _made(runs: Sequence[ModuleRun], call: AttentionCall) -> dict[str, _Match | str]:
    """The projections that make queries, keys and values; for an unproved one the reason."""
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
    """Matches of `wanted` in the output of `run`, for consecutive rows, up to a factor for each head."""
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
    """The block of each head at the first token, the scaled blocks, and whether they fit at every token.

    None where one is missing, or where exchanged heads would fit as well.
    """
    first, asked = blocks[:, 0], wanted[:, 0]
    factors = (asked @ first.T) / first.square().sum(-1)
    made = factors[..., None] * first  # head block dim
    fits = ((asked[:, None] - made).abs() <= _OF_NUMBERS * epsilon * made.abs()).all(-1) & (factors > 0)
    if not fits.any(1).all():
        return None
    places = fits.int().argmax(1)
    scaled = blocks[places] * factors[torch.arange(len(places)), places][:, None, None]
    alike = bool((wanted == wanted[:1]).all())  # of one key head that was written out for all
    if not alike and _same(scaled, wanted.roll(1, 0), epsilon):
        return None
    return places.tolist(), scaled, _same(scaled, wanted, epsilon)


def _same(made: Tensor, wanted: Tensor, epsilon: float) -> bool:
    return bool(((made - wanted).abs() <= _OF_NUMBERS * epsilon * made.abs()).all())


def _one_rotation(call: AttentionCall, query: _Match | str, key: _Match | str) -> bool:
    """Whether queries and keys are the projections' outputs, each token rotated alike in all heads."""
    if isinstance(query, str) or isinstance(key, str) or call.q.shape[1:] != call.k.shape[1:]:
        return False
    epsilon = max(call.epsilon, torch.finfo(call.q.dtype).eps)
    seen = exact(torch.cat([call.q, call.k]))

    lengths = seen.norm(dim=-1).T  # token head
    most = _TURNED * epsilon * lengths[:, :, None] * lengths[:, None]

    def keeps(queries: Tensor, keys: Tensor) -> bool:
        before = torch.cat([queries, keys])
        first, second = (each.transpose(0, 1) @ each.permute(1, 2, 0) for each in (before, seen))
        return bool(((first - second).abs() <= most).all())

    heads = query.made.roll(1, 0) if len(query.made) > 1 else query.made.roll(1, -1)
    exchanged = keeps(heads, key.made), keeps(query.made.roll(1, -1), key.made)
    return keeps(query.made, key.made) and not any(exchanged)


@dataclass(frozen=True, eq=False)
class Paths:
    """The norms before each layer's reading, and on the direct path from an earlier layer to a later one.

    `reader[layer, side]` is the norm before what makes the query, key or value, None for none.
    `way[early, late, side]` are the norms between what a layer writes and the later reader, in their order; a
    missing one has no direct path that could be proved, `reasons` say why.
    """

    reader: dict[tuple[int, str], Gain | None]
    way: dict[tuple[int, int, str], tuple[Gain, ...]]
    reasons: dict[tuple[int, int, str], str]


@torch.enable_grad()  # type: ignore[untyped-decorator]
def paths_between(model: nn.Module, inputs: Mapping[str, Any], layers: Sequence[Factors]) -> Paths:
    """The direct paths from every layer to every later one, as far as they can be proved."""
    sides = {(each.layer, side): getattr(each, side) for each in layers for side in SIDES}
    reads = {_turn(factor) for factor in sides.values() if factor is not None}
    try:
        seen = Skeleton(model, inputs, reads).run()
    except Exception as error:
        if isinstance(error, AttnscopeError) or is_out_of_memory(error):
            raise
        why = f"what lies between its heads cannot be followed ({one_line(error)})"
        return Paths({}, {}, {(early.layer, late.layer, side): why for early, late, side in _places(layers)})
    readers = {place: _reader(seen, _turn(factor)) for place, factor in sides.items() if factor is not None}
    way, reasons = dict[tuple[int, int, str], tuple[Gain, ...]](), dict[tuple[int, int, str], str]()
    known: dict[tuple[int, int], tuple[Gain, ...] | str] = {}
    for early, late, side in _places(layers):
        if early.output is None or (factor := sides[late.layer, side]) is None:
            continue
        read = seen.read[_turn(factor)][1]
        if (early.layer, id(read)) not in known:
            reader = readers[late.layer, side]
            known[early.layer, id(read)] = _way(seen, _turn(early.output), read, reader)
        found, place = known[early.layer, id(read)], (early.layer, late.layer, side)
        if isinstance(found, str):
            reasons[place] = found
        else:
            way[place] = found
    return Paths(
        {place: None if each is None else each.gain for place, each in readers.items()}, way, reasons
    )


def _places(layers: Sequence[Factors]) -> Iterator[tuple[Factors, Factors, str]]:
    return (
        (early, late, side)
        for late in layers
        for early in layers
        if early.layer < late.layer
        for side in SIDES
    )


def _turn(factor: Factor | None) -> Turn:
    assert factor is not None, "only of matrices that were found"
    return factor.part, factor.turn


def _reader(seen: Walked, turn: Turn) -> Passed | None:
    """The norm whose output is read here and does not flow on otherwise; None where there is none."""
    order, read = seen.read[turn]
    made = [each for each in seen.passed if each.order < order and _equal(each.made, read)]
    return made[-1] if made and not _goes_on(seen, made[-1]) else None


def _goes_on(seen: Walked, passed: Passed) -> bool:
    later = [each.given for each in seen.passed if each.order > passed.order]
    later += [read for order, read in seen.read.values() if order > passed.order]
    later = [each for each in later if each.requires_grad and not _equal(each, passed.made)]
    if not later:
        return False
    there = passed.made.device
    total = torch.stack([(each * _random(each)).sum().to(there) for each in later]).sum()
    (grown,) = torch.autograd.grad(total, passed.made, retain_graph=True, allow_unused=True)
    return grown is not None and bool((grown != 0).any())


def _random(like: Tensor) -> Tensor:
    """Random normal numbers in the shape of `like`, always the same; torch's own generator is untouched."""
    random = torch.Generator().manual_seed(1)
    return torch.randn(like.shape, generator=random, dtype=widest(like.device)).to(like.device)


def _equal(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers in the same order, on any device and in any shape."""
    same = one.numel() == other.numel()
    return one is other or (same and torch.equal(one.flatten(), other.to(one.device).flatten()))


def _way(seen: Walked, start: Turn, read: Tensor, reader: Passed | None) -> tuple[Gain, ...] | str:
    """The norms from a head's output to `read`, without `reader`; or why there is more than norms."""
    put = seen.put[start]
    if not read.requires_grad:
        return NO_PATH
    probe = _random(read)
    passed: list[Passed] = []
    with hooked(
        each.made.register_hook(lambda _grown, each=each: passed.append(each))  # type: ignore[no-untyped-call]
        for each in seen.passed
        if each.made.requires_grad
    ):
        (grown,) = torch.autograd.grad((read * probe).sum(), put, retain_graph=True, allow_unused=True)
    if grown is None or not bool((grown != 0).any()):
        return NO_PATH
    passed.sort(key=lambda each: each.order)
    expected = probe
    for each in reversed(passed):
        expected = each.gain.backward(expected)
    if not _parallel(grown, expected):
        return "what lies on the way is more than residuals and norms, or more than one way"
    return tuple(each.gain for each in passed if each is not reader)


def _parallel(grown: Tensor, expected: Tensor) -> bool:
    if grown.numel() != expected.numel() or grown.shape[-1] != expected.shape[-1]:
        return False
    first, second = exact(grown.flatten()), exact(expected.to(grown.device).flatten())
    factor = (first @ second) / (second @ second)
    off = (first - factor * second).abs().max()
    tolerance = max(_TOLERANCE, _ROUNDINGS * torch.finfo(widest(grown.device)).eps)
    return bool(off <= tolerance * (factor * second).abs().max())


@dataclass(frozen=True, eq=False)
class Circuits:
    """The captured run, the matrices of every layer, and the direct paths between layers."""

    captured: Capture
    layers: tuple[Factors, ...]
    paths: Paths


def read_circuits(
    model: nn.Module, inputs: Mapping[str, Any], selection: Selection, labels: Labels
) -> Circuits:
    """Capture `selection` in a run over `inputs`, with the matrices and direct paths that it proves."""
    captured, layers = read_factors(model, inputs, selection, labels)
    with evaluating(model):
        return Circuits(captured, layers, paths_between(model, inputs, layers))


def read_factors(
    model: nn.Module, inputs: Mapping[str, Any], selection: Selection, labels: Labels
) -> tuple[Capture, tuple[Factors, ...]]:
    """Capture `selection` in a run over `inputs`, with the matrices of every layer of it."""
    sought: list[FactorSeeker] = []

    def seek(model: nn.Module, watched: Sequence[Site], wanted: set[int]) -> FactorSeeker:
        sought.append(FactorSeeker(model, [site for site in watched if wanted.intersection(site.layers)]))
        return sought[-1]

    captured = record(model, inputs, selection, labels, seek)
    found = sought[-1].of_layer  # of the way of reading that saw every layer
    return captured, tuple(found[layer] for layer in sorted(found))
