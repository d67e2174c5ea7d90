"""From counts to claims: the best head of each relation, beside the best offset and on sentences left out.

The best of many heads is good partly by luck. So a head is also chosen on every other sentence and judged by
the sentences between, and the reverse; what both halves give together is `held_out`. The offset it is held
against keeps the advantage of having been chosen on all sentences.
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attnscope.analysis.relations.tally import OFFSETS, Half, Tally
from attnscope.results.claims.relations import Direction, Finder, HeldOut, Offset, Relation

_Z = 1.959963984540054  # of a 95 % interval
ALL = "all but punct"

Heads = tuple[tuple[int, ...], tuple[int, ...]]  # the layers, and the heads in each
Place = tuple[int, int, int]  # of a head in the counts: layer, head, direction


def ranked(tally: Tally, heads: Heads) -> tuple[tuple[Relation, ...], Relation]:
    """Every relation that occurs, most frequent first, and all of them but punctuation as one."""
    whole = tally.halves[0] + tally.halves[1]
    every = [_relation(tally.halves, whole, i, name, heads) for i, name in enumerate((*tally.names, ALL))]
    return tuple(every[:-1]), every[-1]


def accuracies(whole: Half) -> Float[np.ndarray, "layer head direction relation"]:
    """How many of the edges of each relation each head finds; NaN where there is no edge."""
    return _shares(whole.right, whole.count)


def offset_accuracies(whole: Half) -> Float[np.ndarray, "offset relation"]:
    """The same of fixed offsets."""
    return _shares(whole.offset_right, whole.count)


def _shares(right: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.asarray(np.divide(right, count, out=np.full(right.shape, np.nan), where=count > 0))


def _relation(halves: Sequence[Half], whole: Half, i: int, name: str, heads: Heads) -> Relation:
    place, fixed = _best_head(whole, i), _best_offset(whole, i)
    count, sentences = float(whole.count[i]), float(whole.sentences[i])
    of_head = whole.right[place][i], whole.squares[place][i], whole.products[place][i]
    of_offset = whole.offset_right[fixed, i], whole.offset_squares[fixed, i], whole.offset_products[fixed, i]
    return Relation(
        name=name,
        count=int(count),
        sentences=int(sentences),
        before=float(whole.before[i]) / count if count else math.nan,
        best=Finder(*_share(whole, i, *of_head), *named(place, heads)),
        baseline=Offset(*_share(whole, i, *of_offset), OFFSETS[fixed]),
        held_out=_held_out(halves, i, fixed, heads),
    )


def named(place: Place, heads: Heads) -> tuple[int, int, Direction]:
    """Layer, head and direction of a place in the counts."""
    return heads[0][place[0]], heads[1][place[1]], tuple(Direction)[place[2]]


def _best_head(half: Half, i: int) -> Place:
    """The one with most right; of several the first."""
    right = half.right[..., i]
    layer, head, direction = np.unravel_index(int(right.argmax()), right.shape)
    return int(layer), int(head), int(direction)


def _best_offset(half: Half, i: int) -> int:
    return int(half.offset_right[:, i].argmax())


def _share(whole: Half, i: int, right: float, squares: float, products: float) -> tuple[float, float, float]:
    """Accuracy and its interval (Wilson's, for as many trials as the sentences are worth)."""
    count, sentences = float(whole.count[i]), float(whole.sentences[i])
    if not count:
        return math.nan, math.nan, math.nan
    share = float(right) / count
    scatter = float(squares) - 2 * share * float(products) + share**2 * float(whole.counts_squared[i])
    variance = _variance(scatter, sentences, count)
    worth = share * (1 - share) / variance if variance > 0 else sentences
    return share, *wilson(share, min(worth, count))


def _variance(scatter: float, sentences: float, count: float) -> float:
    """Of a share of `count` edges, from the sum over sentences of (right - share · edges)²; 0 of one."""
    return max(scatter, 0.0) * sentences / (sentences - 1) / count**2 if sentences > 1 else 0.0


def wilson(share: float, trials: float) -> tuple[float, float]:
    """The 95 % interval of a share of so many independent trials (Wilson 1927)."""
    squared = _Z**2 / trials
    middle = (share + squared / 2) / (1 + squared)
    reach = _Z / (1 + squared) * math.sqrt(share * (1 - share) / trials + squared / (4 * trials))
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


def _held_out(halves: Sequence[Half], i: int, fixed: int, heads: Heads) -> HeldOut | None:
    """The head of the one half on the other, both ways, beside one offset; None where a half has no edge."""
    if not all(half.count[i] for half in halves):
        return None
    chosen = [_best_head(half, i) for half in halves]
    count = sentences = 0.0
    sums = np.zeros(
        5
    )  # right, offset right; of their difference by sentence squares, products with the count
    for half, place in zip(halves, reversed(chosen), strict=True):
        right, offset_right = half.right[place][i], half.offset_right[fixed, i]
        squares = half.squares[place][i] - 2 * half.both[place][fixed, i] + half.offset_squares[fixed, i]
        products = half.products[place][i] - half.offset_products[fixed, i]
        sums += (right, offset_right, squares, products, half.counts_squared[i])
        count, sentences = count + float(half.count[i]), sentences + float(half.sentences[i])
    right, offset_right, squares, products, counts_squared = map(float, sums)
    gain = (right - offset_right) / count
    scatter = squares - 2 * gain * products + gain**2 * counts_squared
    error = math.sqrt(_variance(scatter, sentences, count))
    reach = _Z * error if error else 1.0  # sentences that are all alike say nothing of their scatter
    return HeldOut(
        accuracy=right / count,
        difference=gain,
        low=max(gain - reach, -1.0),
        high=min(gain + reach, 1.0),
        heads=tuple(named(place, heads) for place in chosen),
    )
