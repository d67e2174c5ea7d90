"""The texts that lie outermost: of every statistic those with its lowest values, and those with its highest.

Of equal values the text that comes first counts, so that parts may be merged in whatever order and grouping.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.claims.lengths import CorpusText

KEPT = 3  # at either end: so the three that are furthest from the mean are among them
EXCERPT = 300  # characters of a text
_NONE = np.int64(-1)  # the number of no text
_LAST = np.iinfo(np.int64).max
Ends = Float[np.ndarray, "end place measure layer head"]


@dataclass(frozen=True, eq=False)
class Outer:
    """The `KEPT` lowest and highest values with their texts' numbers, the outermost first, and these texts.

    NaN and -1 stand where there are fewer. Texts have their first `EXCERPT` characters.
    """

    values: Ends
    numbers: Int[np.ndarray, "end place measure layer head"]
    texts: Mapping[int, CorpusText]

    @classmethod
    def of(
        cls,
        values: Float[np.ndarray, "text measure layer head"],
        numbers: Int[np.ndarray, " text"],
        texts: Sequence[CorpusText],
    ) -> "Outer":
        """Those of some texts by their numbers in the corpus, in whatever order."""
        shape, order = values.shape[1:], np.argsort(numbers)
        flat = np.ascontiguousarray(values[order].reshape(len(values), int(np.prod(shape))).T)
        ends = [_lowest(sign * flat, numbers[order]) for sign in (1, -1)]
        lowest, highest = (found.reshape(KEPT, *shape) for found, _ in ends)
        named = np.stack([found.reshape(KEPT, *shape) for _, found in ends])
        every = dict(zip(map(int, numbers), texts, strict=True))
        return cls(np.stack([lowest, -highest]), named, _named(named, every))

    def merged(self, other: "Outer") -> "Outer":
        """With those of other texts."""
        values, numbers = (
            np.concatenate([getattr(self, name), getattr(other, name)], axis=1)
            for name in ("values", "numbers")
        )
        away = np.stack([values[0], -values[1]])
        late = np.where(numbers == _NONE, _LAST, numbers)
        order = np.lexsort((late, np.where(np.isnan(away), np.inf, away)), axis=1)[:, :KEPT]
        values, numbers = (np.take_along_axis(each, order, axis=1) for each in (values, numbers))
        return Outer(values, numbers, _named(numbers, {**self.texts, **other.texts}))

    def places(self) -> Int[np.ndarray, "end place measure layer head"]:
        """Which of the texts, in their order, each of them is; -1 for none."""
        every = np.array([_NONE, *self.texts])
        return np.searchsorted(every, self.numbers) - 1


def _lowest(
    values: Float[np.ndarray, "statistic text"], numbers: Int[np.ndarray, " text"]
) -> tuple[np.ndarray, np.ndarray]:
    """Of each statistic the `KEPT` lowest values and the numbers of their texts, as `place statistic`."""
    found = np.full((KEPT, len(values)), np.nan)
    named = np.full(found.shape, _NONE)
    if not len(numbers):
        return found, named
    left, rows = np.where(np.isnan(values), np.inf, values), np.arange(len(values))
    for place in range(KEPT):
        text = left.argmin(axis=1)  # the first of several
        lowest = left[rows, text]
        there = ~np.isinf(lowest)
        found[place, there], named[place, there] = lowest[there], numbers[text][there]
        left[rows, text] = np.inf
    return found, named


def _named(numbers: np.ndarray, texts: Mapping[int, CorpusText]) -> dict[int, CorpusText]:
    return {each: _short(texts[each]) for each in map(int, np.unique(numbers)) if each != _NONE}


def _short(text: CorpusText) -> CorpusText:
    if len(text.text) <= EXCERPT:
        return text
    return replace(text, text=text.text[:EXCERPT], whole=False)
