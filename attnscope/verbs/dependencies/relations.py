"""Counts right pairs by head; picks the best head and fixed distance of each relation, with held-out tests.

The best of many heads is good partly by luck. So a head is also chosen on every other sentence and tested on
the sentences between, and the reverse: `held_out` pools both. The fixed distance that it is compared with
keeps the advantage of having been chosen on all sentences.

Counts of right pairs are kept as sums only, for even and for odd sentences, so that no treebank is too long.
Words of one sentence are not independent trials, so errors are estimated over sentences, from sums of squares
and products of their counts (variance of a ratio estimate over clusters, Cochran 1977, Section 6.3).
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.analysis.controls import wilson
from attnscope.analysis.treebank import Sentence
from attnscope.results.claims.ranking import Z
from attnscope.verbs.dependencies.result import Direction, Example, Finder, FixedDistance, HeldOut, Relation

FIXED_DISTANCES = (-3, -2, -1, 1, 2, 3)
PUNCTUATION = "punct"
_HALVES = 2

Edges = Sequence[tuple[int, int, str]]  # dependent, head, relation

ALL = "all but punct"
Heads = tuple[tuple[int, ...], tuple[int, ...]]  # numbers of the layers, and of the heads in each
Place = tuple[int, int, int]  # index into the counts: layer, head, direction


@dataclass(frozen=True, eq=False)
class Half:
    """Sums over even or odd sentences. The last index of `relation` is all relations but punctuation.

    `count` are edges, `before` those whose head stands before its dependent, `sentences` those that have one.
    `right` are heads that were found, `squares` sums over sentences of their squares and `products` of their
    product with the sentence's count; `distance_*` the same of fixed distances, `both` of head times
    distance, and `counts_squared` of the counts.
    """

    count: Float[np.ndarray, " relation"]
    before: Float[np.ndarray, " relation"]
    sentences: Float[np.ndarray, " relation"]
    counts_squared: Float[np.ndarray, " relation"]
    right: Float[np.ndarray, "layer head direction relation"]
    squares: Float[np.ndarray, "layer head direction relation"]
    products: Float[np.ndarray, "layer head direction relation"]
    distance_right: Float[np.ndarray, "fixed_distance relation"]
    distance_squares: Float[np.ndarray, "fixed_distance relation"]
    distance_products: Float[np.ndarray, "fixed_distance relation"]
    both: Float[np.ndarray, "layer head direction fixed_distance relation"]

    def __add__(self, other: "Half") -> "Half":
        return Half(**{name: value + getattr(other, name) for name, value in vars(self).items()})


class Tally:
    """Accumulates counts sentence by sentence; `names` are the relations, without the root."""

    def __init__(self, layers: int, heads: int, names: Sequence[str]) -> None:
        self.names = tuple(names)
        one, fixed = (len(names) + 1,), (len(FIXED_DISTANCES), len(names) + 1)
        by_head = (layers, heads, len(Direction))
        shapes = [one] * 4 + [(*by_head, *one)] * 3 + [fixed] * 3 + [(*by_head, *fixed)]
        self.halves = tuple(Half(*map(np.zeros, shapes)) for _ in range(_HALVES))

    def add(self, number: int, edges: Edges, answered: Int[np.ndarray, "layer head way word"]) -> None:
        """Count one sentence; `answered` holds the word that every head picks for every word."""
        dependents, heads = (np.array([edge[i] for edge in edges]) for i in (0, 1))
        places, member = self._members([name for _, _, name in edges])
        half = self.halves[number % _HALVES]
        right = (taken(answered, dependents, heads) == [heads, heads, dependents]) @ member
        fixed = np.array([dependents + distance == heads for distance in FIXED_DISTANCES]) @ member
        count = member.sum(0)
        half.count[places] += count
        half.before[places] += (heads < dependents) @ member
        half.sentences[places] += 1
        half.counts_squared[places] += count**2
        half.right[..., places] += right
        half.squares[..., places] += right**2
        half.products[..., places] += right * count
        half.distance_right[:, places] += fixed
        half.distance_squares[:, places] += fixed**2
        half.distance_products[:, places] += fixed * count
        half.both[..., places] += right[..., None, :] * fixed

    def _members(
        self, names: Sequence[str]
    ) -> tuple[Int[np.ndarray, " present"], Float[np.ndarray, "edge present"]]:
        own = np.array([self.names.index(name) for name in names])
        places = np.unique(own)
        member = (own[:, None] == places).astype(float)
        counts: Bool[np.ndarray, " edge"] = np.array([name != PUNCTUATION for name in names])
        if counts.any():
            places = np.append(places, len(self.names))
            member = np.column_stack([member, counts])
        return places, member


def taken(
    answered: Int[np.ndarray, "layer head way word"],
    dependents: Int[np.ndarray, " edge"],
    heads: Int[np.ndarray, " edge"],
) -> Int[np.ndarray, "layer head direction edge"]:
    """Word that every head picks in each `Direction`, for each edge: a governor; in the last, a dependent.

    The last is the word that the governor attends to most. A fixed distance finds as many pairs from the
    governor as from the dependent, so that one control serves every direction.
    """
    return np.concatenate([answered[..., dependents], answered[..., :1, heads]], axis=-2)


def ranked(tally: Tally, heads: Heads) -> tuple[tuple[Relation, ...], Relation]:
    """Results of every relation, most frequent first, and of all but punctuation as one relation."""
    whole = tally.halves[0] + tally.halves[1]
    every = [_relation(tally.halves, whole, i, name, heads) for i, name in enumerate((*tally.names, ALL))]
    return tuple(every[:-1]), every[-1]


def shares(right: Float[np.ndarray, "... relation"], count: Float[np.ndarray, " relation"]) -> np.ndarray:
    """Share of the edges of each relation that are right; NaN where there is no edge."""
    return np.asarray(np.divide(right, count, out=np.full(right.shape, np.nan), where=count > 0))


def _relation(halves: Sequence[Half], whole: Half, i: int, name: str, heads: Heads) -> Relation:
    place, fixed = _best_head(whole, i), int(whole.distance_right[:, i].argmax())
    count, sentences = float(whole.count[i]), float(whole.sentences[i])
    of_head = whole.right[place][i], whole.squares[place][i], whole.products[place][i]
    of_distance = (
        whole.distance_right[fixed, i],
        whole.distance_squares[fixed, i],
        whole.distance_products[fixed, i],
    )
    return Relation(
        name=name,
        count=int(count),
        sentences=int(sentences),
        before=float(whole.before[i]) / count if count else math.nan,
        best=Finder(*_share(whole, i, *of_head), *named(place, heads)),
        baseline=FixedDistance(*_share(whole, i, *of_distance), FIXED_DISTANCES[fixed]),
        held_out=_held_out(halves, i, fixed, heads),
    )


def named(place: Place, heads: Heads) -> tuple[int, int, Direction]:
    """Layer number, head number and direction at an index of the counts."""
    return heads[0][place[0]], heads[1][place[1]], tuple(Direction)[place[2]]


def _best_head(half: Half, i: int) -> Place:
    right = half.right[..., i]
    layer, head, direction = np.unravel_index(int(right.argmax()), right.shape)
    return int(layer), int(head), int(direction)


def _share(whole: Half, i: int, right: float, squares: float, products: float) -> tuple[float, float, float]:
    """Accuracy with its Wilson interval, for the effective number of independent trials."""
    count, sentences = float(whole.count[i]), float(whole.sentences[i])
    if not count:
        return math.nan, math.nan, math.nan
    share = float(right) / count
    scatter = float(squares) - 2 * share * float(products) + share**2 * float(whole.counts_squared[i])
    variance = _variance(scatter, sentences, count)
    worth = share * (1 - share) / variance if variance > 0 else sentences
    return share, *wilson(share, min(worth, count))


def _variance(scatter: float, sentences: float, count: float) -> float:
    """Variance of a share of `count` edges; `scatter` sums (right - share · edges)² over sentences."""
    return max(scatter, 0.0) * sentences / (sentences - 1) / count**2 if sentences > 1 else 0.0


def _held_out(halves: Sequence[Half], i: int, fixed: int, heads: Heads) -> HeldOut | None:
    """Test the best head of each half on the other half; None where a half has no such pair."""
    if not all(half.count[i] for half in halves):
        return None
    chosen = [_best_head(half, i) for half in halves]
    count = sentences = 0.0
    sums = np.zeros(
        5
    )  # right, distance right; of their difference by sentence: squares, products with the count
    for half, place in zip(halves, reversed(chosen), strict=True):
        right, distance_right = half.right[place][i], half.distance_right[fixed, i]
        squares = half.squares[place][i] - 2 * half.both[place][fixed, i] + half.distance_squares[fixed, i]
        products = half.products[place][i] - half.distance_products[fixed, i]
        sums += (right, distance_right, squares, products, half.counts_squared[i])
        count, sentences = count + float(half.count[i]), sentences + float(half.sentences[i])
    right, distance_right, squares, products, counts_squared = map(float, sums)
    gain = (right - distance_right) / count
    scatter = squares - 2 * gain * products + gain**2 * counts_squared
    error = math.sqrt(_variance(scatter, sentences, count))
    reach = Z * error if error else 1.0  # identical sentences give no estimate of the variance
    return HeldOut(
        accuracy=right / count,
        above_control=gain,
        low=max(gain - reach, -1.0),
        high=min(gain + reach, 1.0),
        heads=tuple(named(place, heads) for place in chosen),
    )


_KEPT = 40  # most pairs kept of a relation
_LONGEST = 30  # most words of an example sentence


class Pairs:
    """Candidate examples: the first pairs of each relation; `sentences` by their index in the file."""

    def __init__(self, sentences: Mapping[int, Sentence]) -> None:
        self.sentences = sentences
        self.wanted: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for index in sorted(sentences):
            if len(sentences[index].words) <= _LONGEST:
                for dependent, governor, name in sentences[index].edges:
                    self.wanted[name].append((index, dependent, governor))
        self.wanted = {name: pairs[:_KEPT] for name, pairs in self.wanted.items()}
        self._by_sentence: dict[int, set[int]] = defaultdict(set)
        for pairs in self.wanted.values():
            for index, dependent, _ in pairs:
                self._by_sentence[index].add(dependent)
        self._taken: dict[tuple[int, int], Int[np.ndarray, "layer head direction"]] = {}

    def add(self, index: int, edges: Edges, answered: Int[np.ndarray, "layer head way word"]) -> None:
        """Keep the words that every head picks for the wanted pairs of one sentence."""
        for dependent, head, _ in edges:
            if dependent in self._by_sentence.get(index, ()):
                pair = np.array([dependent]), np.array([head])
                self._taken[index, dependent] = taken(answered, *pair)[..., 0].astype(np.int16)

    def examples(self, relation: Relation, heads: Heads) -> tuple[Example, ...]:
        """First pair that the relation's best head gets right, and first that it misses."""
        best, ways = relation.best, tuple(Direction)
        place = heads[0].index(best.layer), heads[1].index(best.head), ways.index(best.direction)
        every = [
            Example(self.sentences[index].words, dependent, governor, int(found[place]), best.direction)
            for index, dependent, governor in self.wanted.get(relation.name, ())
            if (found := self._taken.get((index, dependent))) is not None
        ]
        firsts = ([each for each in every if each.right == right][:1] for right in (True, False))
        return tuple(chain(*firsts))
