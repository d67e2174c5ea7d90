"""Every pair of heads that is asked for: its scores beside chance, and what of the model is in them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnscope.capture.circuits.paths import NO_PATH, SIDES, Circuits, Factors
from attnscope.capture.circuits.skeleton import Gain
from attnscope.model.anatomy.placed import weight_of
from attnscope.reference import exact
from attnscope.verbs.compose.result import BY_CHANCE, HeadMatrix, Norm, Through, Way
from attnscope.verbs.compose.scores import (
    Reads,
    Written,
    beside_chance,
    cosines,
    limits,
    reads,
    scores,
    spectrum,
    written,
)


class Parts:
    """The modules of one model by their paths; `norms` are those that were asked for, in their order."""

    def __init__(self, model: nn.Module) -> None:
        self.path = {part: path for path, part in model.named_modules()}
        self.norms: dict[str, Norm] = {}

    def matrices(self, circuits: Circuits) -> tuple[HeadMatrix, ...]:
        """Every matrix that was proved."""
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
        """The ways that pass a norm, through these inputs."""
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
_PLURAL = {Through.QUERY: "queries", Through.KEY: "keys", Through.VALUE: "values"}


@dataclass(frozen=True, eq=False)
class Pairs:
    """What was found: a pair is the layer and head of the earlier and of the later head."""

    pairs: Int[np.ndarray, "pair place"]
    scores: Float[np.ndarray, "through pair"]
    chance: Float[np.ndarray, "through pair"]
    spread: Float[np.ndarray, "through pair"]
    below: Float[np.ndarray, "through pair"]
    limits: Float[np.ndarray, "through pair"]
    reasons: tuple[str, ...]
    hidden: int


@dataclass(eq=False)
class Composing:
    """All scores of one model; `head` alone, with every other, where it is named."""

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

    def pairs(self, tell: Callable[[int, int], None] = lambda done, total: None) -> Pairs:
        """Every pair; `tell` hears how many pairs of layers are done, and of how many."""
        names, values = list[np.ndarray](), list[np.ndarray]()
        todo = list(self._layers())
        share = BY_CHANCE / max(1, sum(self._count(early, late) for early, late in todo))
        for done, (early, late) in enumerate(todo):
            tell(done, len(todo))
            first, second = self._heads(early), self._heads(late)
            found = np.stack([self._of(through, early, late, share) for through in self.through], 1)
            grid = np.stack(np.meshgrid(first, second, indexing="ij"), -1).reshape(-1, 2)
            names.append(np.insert(grid, [0, 1], [early.layer, late.layer], axis=1))
            values.append(found.reshape(_NUMBERS, len(self.through), -1))
        pairs = np.concatenate(names) if names else np.empty((0, 4), int)
        numbers = np.concatenate(values, -1) if values else np.empty((_NUMBERS, len(self.through), 0))
        order = np.lexsort(pairs.T[::-1])
        told = tuple(f"{_layers_named(places)}: {why}" for why, places in self.reasons.items())
        real, mean, spread, below, limit = numbers[..., order]
        return Pairs(pairs[order], real, mean, spread, below, limit, told, self.hidden)

    def _count(self, early: Factors, late: Factors) -> int:
        inputs = sum(not self._lacking(through, early, late) for through in self.through)
        return inputs * len(self._heads(early)) * len(self._heads(late))

    def _layers(self) -> Iterator[tuple[Factors, Factors]]:
        """Earlier and later layers; with one head only those that it is of.

        Where layers share their weights, two of them that have the matrices and the path of others come once.
        """
        own, seen = None if self.head is None else self.head[0], set[tuple[object, ...]]()
        for late in self.circuits.layers:
            for early in self.circuits.layers:
                if early.layer < late.layer and own in (None, early.layer, late.layer):
                    if (made_of := self._made_of(early, late)) not in seen:
                        yield early, late
                    seen.add(made_of)

    def _made_of(self, early: Factors, late: Factors) -> tuple[object, ...]:
        """What their scores come of; of what is not proved the layers, as nothing tells that it is shared."""
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
        """Score; mean, spread, below, limit by chance. NaN where a matrix or the path is not proved."""
        first, second = self._heads(early), self._heads(late)
        why = self._lacking(through, early, late)
        if why:
            for name, place in why.items():
                if place not in self.reasons.setdefault(name, []):
                    self.reasons[name].append(place)
            return np.full((_NUMBERS, len(first), len(second)), np.nan)
        way = self.circuits.paths.way[early.layer, late.layer, through.value]
        writes, written_by = self._early(early, way, first)
        enters, read_by = self._late(late, through, second)
        real = scores(writes, enters).cpu()
        squares = self._random((writes.shape[1], enters.shape[2]))
        found = beside_chance(real, written_by, read_by, squares)
        limit = limits(written_by, read_by, self.hidden, share)
        return torch.stack([real, found.mean, found.spread, found.below, limit]).numpy()

    def _lacking(self, through: Through, early: Factors, late: Factors) -> dict[str, str]:
        """Why there is no such score, by layer; nothing where there is one."""
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
                why = f"through {_PLURAL[through]}: {why}"
            return {why: f"L{early.layer} to L{late.layer}"}
        assert early.output is not None, "looked for above"
        assert early.value is not None, "looked for above"
        entered = getattr(late, through.value)
        if not early.value.matrix.shape[1] == early.output.matrix.shape[2] == entered.matrix.shape[1]:
            return {"its matrices are not of one size": f"L{early.layer} to L{late.layer}"}
        return {}

    def _early(
        self, layer: Factors, way: tuple[Gain, ...], heads: Sequence[int]
    ) -> tuple[Written, Float[Tensor, "head rank"]]:
        key = layer.layer, *map(id, way)
        if key not in self._written:
            reader = self.circuits.paths.reader.get((layer.layer, "value"))
            made = written(layer, reader, way, heads).to(self.device)
            if len(self._written) > len(self.by_layer):
                self._written.clear()  # of paths that are all different none comes again
            self._written[key] = made, spectrum(made).cpu()
        return self._written[key]

    def _late(
        self, layer: Factors, through: Through, heads: Sequence[int]
    ) -> tuple[Reads, Float[Tensor, "head rank"]]:
        """What a later layer reads, kept until the next one comes."""
        if any(kept != layer.layer for kept, _ in self._read):
            self._read.clear()
        if (layer.layer, through) not in self._read:
            readers = {side: self.circuits.paths.reader.get((layer.layer, side)) for side in SIDES}
            made = reads(layer, through, readers, heads).to(self.device)
            self._read[layer.layer, through] = made, spectrum(made).cpu()
        return self._read[layer.layer, through]

    def _random(self, ranks: tuple[int, int]) -> Float[Tensor, "draw early late"]:
        if ranks not in self._cosines:
            self._cosines[ranks] = cosines(ranks, self.hidden, self.draws, self.seed)
        return self._cosines[ranks]


def _norm_of(gain: Gain | None) -> nn.Module | None:
    return None if gain is None else gain.part


def _layers_named(places: Sequence[str]) -> str:
    return ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")


def facts(circuits: Circuits) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is in the scores beside the matrices, and what is left out of them, in words."""
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
