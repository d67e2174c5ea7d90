"""Computes composition scores from low-rank factors, their chance levels, and what they leave out.

Scores are of low-rank factors: no matrix of hidden by hidden is made.
What an earlier head writes is x W_V W_O; a later one reads its queries by W_Q, its keys by W_K, its values by
W_V. Elhage et al. 2021, A Mathematical Framework for Transformer Circuits: the Frobenius norm of the product
of both circuits over the product of their norms, with the later circuit W_Q W_K' entered from its queries
(Q-composition) or its keys (K), or W_V W_O from its values (V). A factor that only stands at the end of a
product counts by its triangular part, which has the same lengths: |X W D'| = |X W R'| with D = Q R.

By chance, circuits have the same singular values in random directions. With directions drawn evenly
(Haar) the square of a score is p' E q: p and q are the squared singular values of both circuits over their
sums, E the squares of the cosines between random directions, which is a block of a random rotation of the
hidden space. Its mean is 1 / hidden, whatever the circuits are; how far single draws lie from it depends on
how many directions they use.

Of many pairs the best lies far above its own draws by chance. `limits` says how far. The cosines are taken
as independent normal numbers, which reach farther than those of a rotation: so the square of a score is a
weighted sum of chi-squares, and its tail is read off a saddlepoint approximation (Barndorff-Nielsen 1986,
Inference on full or partial parameters based on the standardized signed log likelihood ratio; Kuonen 1999,
Saddlepoint approximations for distributions of quadratic forms in normal variables).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnscope.capture.circuits.paths import NO_PATH, SIDES, Circuits, Factors
from attnscope.capture.circuits.skeleton import Gain
from attnscope.model.anatomy.placed import weight_of
from attnscope.reference import EXACT, exact
from attnscope.verbs.compose.result import BY_CHANCE, HeadMatrix, Norm, Through, Way

Written = Float[Tensor, "head value_dim hidden"]
Reads = Float[Tensor, "head hidden dim"]


def written(layer: Factors, reader: Gain | None, way: Sequence[Gain], heads: Sequence[int]) -> Written:
    """W_V W_O of an earlier layer's heads after the norms on the way.

    The side that reads is folded: only its triangular (QR) factor is kept, so norms of products stay.
    """
    assert layer.value is not None, "asked of layers that have it"
    assert layer.output is not None, "asked of layers that have it"
    values = _triangular(_folded(layer.value.matrix, reader))
    output = exact(layer.output.matrix)[list(heads)]
    for each in way:
        output = each.forward(output)
    return values[[layer.key_head(head) for head in heads]] @ output


def reads(layer: Factors, through: Through, readers: dict[str, Gain | None], heads: Sequence[int]) -> Reads:
    """The later heads' circuits, entered through queries, keys or values; the far side folded likewise."""
    shared, own = [layer.key_head(head) for head in heads], list(heads)
    if through is Through.VALUE:
        assert layer.value is not None, "asked of layers that have it"
        assert layer.output is not None, "asked of layers that have it"
        end = _triangular(exact(layer.output.matrix).transpose(1, 2))[own]
        return _folded(layer.value.matrix, readers["value"])[shared] @ end.transpose(1, 2)
    assert layer.query is not None, "asked of layers that have it"
    assert layer.key is not None, "asked of layers that have it"
    queries = _folded(layer.query.matrix, readers["query"])
    keys = _folded(layer.key.matrix, readers["key"])
    if through is Through.QUERY:
        return queries[own] @ _triangular(keys)[shared].transpose(1, 2)
    return keys[shared] @ _triangular(queries)[own].transpose(1, 2)


def scores(
    early: Float[Tensor, "early value_dim hidden"], late: Float[Tensor, "late hidden dim"]
) -> Float[Tensor, "early late"]:
    """Scores of every earlier head with every later one, 0 to 1; NaN where a circuit is zero."""
    (first, dim, hidden), (second, _, width) = early.shape, late.shape
    product = early.reshape(-1, hidden) @ late.transpose(0, 1).reshape(hidden, -1)
    lengths = product.reshape(first, dim, second, width).square().sum((1, 3)).sqrt()
    found: Tensor = lengths / (early.flatten(1).norm(dim=1)[:, None] * late.flatten(1).norm(dim=1))
    return found


def _folded(matrix: Float[Tensor, "head read dim"], reader: Gain | None) -> Float[Tensor, "head read dim"]:
    """The matrix with the norm before it: times its weight, and centred where the norm centres."""
    matrix = exact(matrix)
    return matrix if reader is None else reader.backward(matrix.transpose(1, 2)).transpose(1, 2)


def _triangular(matrix: Float[Tensor, "head read dim"]) -> Float[Tensor, "head rank dim"]:
    triangle: Tensor = torch.linalg.qr(matrix, mode="r").R
    return triangle


_TERMS = 96  # of the series in the sums of powers
_PLACES = torch.logspace(-2, 1.5, 80, dtype=EXACT)  # of saddlepoints x, as -log(1 - x)


def spectrum(circuit: Float[Tensor, "head row column"]) -> Float[Tensor, "head rank"]:
    """The squared singular values of each circuit over their sum."""
    thin = circuit if circuit.shape[1] <= circuit.shape[2] else circuit.transpose(1, 2)
    squares: Tensor = torch.linalg.eigvalsh(thin @ thin.transpose(1, 2)).clamp(min=0)
    return squares / squares.sum(-1, keepdim=True)


def cosines(ranks: tuple[int, int], hidden: int, draws: int, seed: int) -> Float[Tensor, "draw early late"]:
    """Squared cosines between fixed and random directions in `hidden` dimensions, one matrix each draw."""
    first, second = (min(rank, hidden) for rank in ranks)
    random = torch.Generator().manual_seed(seed)
    drawn = torch.empty(draws, first, second, dtype=EXACT)
    for draw in drawn:
        normal = torch.randn(hidden, second, generator=random, dtype=EXACT)
        triangle = torch.linalg.cholesky(normal.T @ normal)  # its frame is normal / triangle', drawn evenly
        frame = torch.linalg.solve_triangular(triangle, normal[:first].T, upper=False).T
        draw[:] = frame.square()
    return drawn


def beside_chance(
    real: Float[Tensor, "early late"],
    early: Float[Tensor, "early early_rank"],
    late: Float[Tensor, "late late_rank"],
    squares: Float[Tensor, "draw early_rank late_rank"],
) -> tuple[Float[Tensor, "early late"], Float[Tensor, "early late"], Float[Tensor, "early late"]]:
    """Mean and deviation of random scores, and how many lie below the real one (ties count half).

    `early` and `late` are spectra. All pairs share each draw.
    """
    drawn = (early @ squares @ late.T).sqrt()
    below = exact(drawn < real).sum(0) + exact(drawn == real).sum(0) / 2
    return drawn.mean(0), drawn.std(0, correction=0), below


def limits(
    early: Float[Tensor, "early early_rank"],
    late: Float[Tensor, "late late_rank"],
    hidden: int,
    share: float,
) -> Float[Tensor, "early late"]:
    """The score that a random pair exceeds in at most `share` of draws; `early` and `late` are spectra.

    NaN where a circuit is nothing.
    """
    aim = -float(torch.special.ndtri(torch.tensor(share, dtype=EXACT)))
    deviates, sums = _tails(_sums_of_powers(early), _sums_of_powers(late))
    after = (deviates < aim).sum(0).clamp(1, len(_PLACES) - 1)[None]
    low, high = (deviates.gather(0, place)[0] for place in (after - 1, after))
    below, above = (sums.log().gather(0, place)[0] for place in (after - 1, after))
    size = torch.exp(below + (above - below) * (aim - low) / (high - low))
    return (early.amax(1)[:, None] * late.amax(1) / hidden * size).sqrt()


def _sums_of_powers(spectra: Float[Tensor, "head rank"]) -> Float[Tensor, "head term"]:
    """Power sums (first, second, third ...) of each spectrum divided by its largest value."""
    parts = spectra / spectra.amax(1, keepdim=True)
    return torch.stack([(parts**power).sum(1) for power in range(1, _TERMS + 1)], 1)


def _tails(
    early: Float[Tensor, "early term"], late: Float[Tensor, "late term"]
) -> tuple[Float[Tensor, "place early late"], Float[Tensor, "place early late"]]:
    """At every saddlepoint the normal deviate of a tail, and the sum beyond which that tail lies.

    All are series in x with the products of both sums of powers as factors. These come near one, since the
    largest value of all stays, and a series of ones has a closed form; only what goes beyond one is added up.
    """
    k = torch.arange(1, _TERMS + 1, dtype=EXACT)
    x = -torch.expm1(-_PLACES)
    odds = x / (1 - x)
    powers = x[:, None] ** k

    def series(
        factors: Float[Tensor, " term"], ones: Float[Tensor, " place"]
    ) -> Float[Tensor, "place early late"]:
        weights = powers * factors
        added: Tensor = (early * weights[:, None]) @ late.T
        return added + (ones - weights.sum(1))[:, None, None]

    first = series(torch.ones_like(k), odds)
    entropy = series((k - 1) / k, odds - _PLACES)
    curvature = series(k - 1, odds.square())
    root = entropy.sqrt()
    return root + (curvature / 2 / entropy).log() / 2 / root, first / x[:, None, None]


class Parts:
    """Module paths and weights behind the scores; `norms` are the norms in use, in order of first use."""

    def __init__(self, model: nn.Module) -> None:
        self.path = {part: path for path, part in model.named_modules()}
        self.norms: dict[str, Norm] = {}

    def matrices(self, circuits: Circuits) -> tuple[HeadMatrix, ...]:
        """The place of every proved matrix in the model."""
        found = []
        for layer in circuits.layers:
            for side in (*SIDES, "output"):
                if (factor := getattr(layer, side)) is not None:
                    size = factor.matrix.shape[1 if side == "output" else 2]
                    reader = circuits.paths.reader.get((layer.layer, side))
                    place = None if reader is None else self._place(reader)
                    path = self.path[factor.part]
                    found.append(HeadMatrix(layer.layer, side, path, factor.firsts, size, place))
        return tuple(found)

    def ways(self, circuits: Circuits, through: Sequence[Through]) -> tuple[Way, ...]:
        """The ways between layers that pass a norm, through these inputs."""
        return tuple(
            Way(early, late, Through(side), tuple(map(self._place, gains)))
            for (early, late, side), gains in circuits.paths.way.items()
            if gains and side in through
        )

    def _place(self, gain: Gain) -> int:
        path = self.path[gain.part]
        if path not in self.norms:
            self.norms[path] = _norm(gain, path)
        return list(self.norms).index(path)


def _norm(gain: Gain, path: str) -> Norm:
    for name, _ in gain.part.named_parameters(recurse=False):
        own = weight_of(gain.part, name)
        if own is not None and own.shape == gain.weight.shape:
            values = exact(own.detach().cpu())
            for one in (False, True):
                if torch.equal(values + one, gain.weight):
                    return Norm(path, name, one, gain.centred)
    return Norm(path, "", False, gain.centred)


Head = tuple[int, int]
_NEEDS = {
    Through.QUERY: ("query", "key"),
    Through.KEY: ("query", "key"),
    Through.VALUE: ("value", "output"),
}

_NUMBERS = 5  # of each pair: its score, and four that say what chance makes of it


@dataclass(frozen=True, eq=False)
class Pairs:
    """Scores and chance levels; a pair is layer and head of the earlier and of the later head."""

    pairs: Int[np.ndarray, "pair place"]
    scores: Float[np.ndarray, "through pair"]
    chance: Float[np.ndarray, "through pair"]
    spread: Float[np.ndarray, "through pair"]
    below: Float[np.ndarray, "through pair"]
    limit: Float[np.ndarray, "through pair"]
    reasons: tuple[str, ...]
    hidden: int


@dataclass(eq=False)
class Composing:
    """Computes the scores of one model's pairs of heads; of `head` with every other where it is given."""

    circuits: Circuits
    through: Sequence[Through]
    draws: int
    seed: int
    head: Head | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def __post_init__(self) -> None:
        self.by_layer = {each.layer: each for each in self.circuits.layers}
        self.reasons: dict[str, list[str]] = {}
        self._written: dict[tuple[object, ...], tuple[Written, Tensor]] = {}
        self._read: dict[tuple[int, Through], tuple[Reads, Tensor]] = {}
        self._cosines: dict[tuple[int, int], Tensor] = {}
        self.hidden = max(
            (each.output.matrix.shape[2] for each in self.by_layer.values() if each.output), default=0
        )

    def pairs(self) -> Pairs:
        """Scores of every pair, in order of layers and heads."""
        names, values = list[np.ndarray](), list[np.ndarray]()
        todo = list(self._layers())
        count = sum(
            len(self._heads(early)) * len(self._heads(late))
            for early, late in todo
            for through in self.through
            if not self._lacking(through, early, late)
        )
        share = BY_CHANCE / max(1, count)
        for early, late in todo:
            first, second = self._heads(early), self._heads(late)
            found = np.stack([self._of(through, early, late, share) for through in self.through], 1)
            grid = np.stack(np.meshgrid(first, second, indexing="ij"), -1).reshape(-1, 2)
            names.append(np.insert(grid, [0, 1], [early.layer, late.layer], axis=1))
            values.append(found.reshape(_NUMBERS, len(self.through), -1))
        pairs = np.concatenate(names) if names else np.empty((0, 4), int)
        numbers = np.concatenate(values, -1) if values else np.empty((_NUMBERS, len(self.through), 0))
        order = np.lexsort(pairs.T[::-1])
        told = tuple(
            f"{', '.join(at[:3])}{f' and {len(at) - 3} more' if len(at) > 3 else ''}: {why}"
            for why, at in self.reasons.items()
        )
        real, mean, spread, below, limit = numbers[..., order]
        return Pairs(pairs[order], real, mean, spread, below, limit, told, self.hidden)

    def _layers(self) -> Iterator[tuple[Factors, Factors]]:
        """Pairs of an earlier and a later layer; with `head` only pairs with its layer.

        Where layers share their weights, pairs with the same matrices and path come once.
        """
        own, seen = None if self.head is None else self.head[0], set[tuple[object, ...]]()
        for late in self.circuits.layers:
            for early in self.circuits.layers:
                if early.layer < late.layer and own in (None, early.layer, late.layer):
                    if (made_of := self._made_of(early, late)) not in seen:
                        yield early, late
                    seen.add(made_of)

    def _made_of(self, early: Factors, late: Factors) -> tuple[object, ...]:
        """Key of the modules that two layers' scores depend on; unproved ones count as not shared."""
        paths, made = self.circuits.paths, list[object]()
        for layer in (early, late):
            sides = [getattr(layer, side) for side in (*SIDES, "output")]
            made += [(each.part, each.firsts) if each else layer.layer for each in sides]
            made += [_norm_of(paths.reader.get((layer.layer, side))) for side in SIDES]
            made.append(tuple(self._heads(layer)))
        for side in SIDES:
            way = paths.way.get((early.layer, late.layer, side))
            made.append((early.layer, late.layer) if way is None else tuple(map(_norm_of, way)))
        return tuple(made)

    def _heads(self, layer: Factors) -> list[int]:
        mine = self.head is not None and self.head[0] == layer.layer
        return [self.head[1]] if mine and self.head else list(range(layer.heads))

    def _of(
        self, through: Through, early: Factors, late: Factors, share: float
    ) -> Float[np.ndarray, "number early late"]:
        """Score, chance, spread, below and limit of each pair; NaN where a matrix or path is not proved."""
        first, second = self._heads(early), self._heads(late)
        why = self._lacking(through, early, late)
        if why:
            for name, place in why.items():
                if place not in self.reasons.setdefault(name, []):
                    self.reasons[name].append(place)
            return np.full((_NUMBERS, len(first), len(second)), np.nan)
        way = self.circuits.paths.way[early.layer, late.layer, through.value]
        key = early.layer, *map(id, way)
        if key not in self._written:
            reader = self.circuits.paths.reader.get((early.layer, "value"))
            made = written(early, reader, way, first).to(self.device)
            if len(self._written) > len(self.by_layer):
                self._written.clear()  # of paths that are all different none comes again
            self._written[key] = made, spectrum(made).cpu()
        writes, written_by = self._written[key]
        enters, read_by = self._late(late, through, second)
        real = scores(writes, enters).cpu()
        ranks = writes.shape[1], enters.shape[2]
        if ranks not in self._cosines:
            self._cosines[ranks] = cosines(ranks, self.hidden, self.draws, self.seed)
        found = beside_chance(real, written_by, read_by, self._cosines[ranks])
        limit = limits(written_by, read_by, self.hidden, share)
        return torch.stack([real, *found, limit]).numpy()

    def _lacking(self, through: Through, early: Factors, late: Factors) -> dict[str, str]:
        """Reasons why two layers have no score, with the layers; empty where they have one."""
        lacks = {}
        for layer, needs in ((early, ("value", "output")), (late, _NEEDS[through])):
            for need in needs:
                if getattr(layer, need) is None:
                    lacks[layer.reasons[need]] = f"L{layer.layer}"
        if lacks:
            return lacks
        place = early.layer, late.layer, through.value
        if place in self.circuits.paths.reasons:
            why = self.circuits.paths.reasons[place]
            if why == NO_PATH:
                why = f"through {through.plural}: {why}"
            return {why: f"L{early.layer} to L{late.layer}"}
        assert early.output is not None, "looked for above"
        assert early.value is not None, "looked for above"
        entered = getattr(late, through.value)
        if not early.value.matrix.shape[1] == early.output.matrix.shape[2] == entered.matrix.shape[1]:
            return {"its matrices are not of one size": f"L{early.layer} to L{late.layer}"}
        return {}

    def _late(
        self, layer: Factors, through: Through, heads: Sequence[int]
    ) -> tuple[Reads, Float[Tensor, "head rank"]]:
        """Circuits and spectra of a later layer, cached until another layer comes."""
        if any(kept != layer.layer for kept, _ in self._read):
            self._read.clear()
        if (layer.layer, through) not in self._read:
            readers = {side: self.circuits.paths.reader.get((layer.layer, side)) for side in SIDES}
            made = reads(layer, through, readers, heads).to(self.device)
            self._read[layer.layer, through] = made, spectrum(made).cpu()
        return self._read[layer.layer, through]


def _norm_of(gain: Gain | None) -> nn.Module | None:
    return None if gain is None else gain.part


def facts(circuits: Circuits) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Words for what the scores include beside the matrices, and for what they leave out."""
    layers = circuits.layers
    factors = [part for each in layers for part in (each.query, each.key, each.value, each.output) if part]
    readers = [gain for gain in circuits.paths.reader.values() if gain is not None]
    ways = list(circuits.paths.way.values())
    between = [gain for way in ways for gain in way]
    inside = ["residual additions"]
    if _norm_words(readers):
        inside.append(f"{_norm_words(readers)} before what the heads read")
    if _norm_words(between):
        counts = sorted({len(way) for way in ways})
        many = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        inside.append(f"{_norm_words(between)} on the way ({many} from head to head)")
    left = ["other heads and feed-forward parts between them"]
    if any(gain.scales for gain in (*readers, *between)):
        left.append("what norms divide each token by")
    if any(part.offset for part in factors) or any(gain.offset for gain in (*readers, *between)):
        left.append("offsets")
    if any(part.turned for part in factors):
        left.append("rotary positions (queries and keys as at one position)")
    added = dict.fromkeys(term.name for call in circuits.captured.calls for term in call.terms)
    if added:
        left.append(f"what is added to scores ({', '.join(added)})")
    return tuple(inside), tuple(left)


def _norm_words(gains: Sequence[Gain]) -> str:
    centred = any(gain.centred for gain in gains)
    weighed = any(bool((gain.weight != gain.weight[0]).any()) for gain in gains)
    parts = (["the weights"] if weighed else []) + (["the centring"] if centred else [])
    return f"{' and '.join(parts)} of norms" if parts else ""
