"""Counts, means and scatter of texts in groups: halves of a corpus, or texts of about one length.

Those of parts are merged by the rule of Chan, Golub and LeVeque (1979): in the same tree the same bits.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.claims.lengths import LengthClass

Statistic = Float[np.ndarray, "measure layer head"]
Grouped = Float[np.ndarray, "group measure layer head"]
_ROUNDING = 1e-6  # of a mean: texts that scatter by less are equal but for how weights in float32 are rounded
_CLASSES = 60  # half octaves: texts of up to a billion tokens
# the least tokens of each class, from 1; of two classes with the same whole numbers there is one
EDGES = np.unique(np.ceil(2.0 ** (np.arange(_CLASSES) / 2) - 1e-9).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Moments:
    """How many texts count in each group, the mean of their values and the sum of squares around it."""

    count: Grouped
    mean: Grouped
    squares: Grouped

    @classmethod
    def of(
        cls, values: Float[np.ndarray, "text measure layer head"], groups: Int[np.ndarray, " text"], size: int
    ) -> "Moments":
        """Those of some texts, each in one of `size` groups."""
        each = [_moments(values[groups == group]) for group in range(size)]
        if not each:
            return cls(*(np.zeros((0, *values.shape[1:])) for _ in range(3)))
        return cls(*(np.stack(parts) for parts in zip(*each, strict=True)))

    def merged(self, later: "Moments") -> "Moments":
        """With those of texts that come later."""
        count = self.count + later.count
        some = np.maximum(count, 1)
        apart = later.mean - self.mean
        return Moments(
            count,
            np.where(later.count == 0, self.mean, self.mean + apart * (later.count / some)),
            self.squares + later.squares + apart**2 * (self.count * later.count / some),
        )

    def each(self) -> tuple[Grouped, Grouped, Grouped]:
        """Count, mean and standard error of each group; the latter NaN where fewer than two texts count.

        It is 0 where these scatter by no more than rounding makes.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = np.where(self.count > 1, self.squares / (self.count - 1), np.nan)
            variance = np.where(variance <= (_ROUNDING * self.mean) ** 2, 0.0, variance)
            error = np.sqrt(variance / self.count)
        return self.count, np.where(self.count > 0, self.mean, np.nan), error

    def whole(self) -> tuple[Statistic, Statistic, Statistic]:
        """Count, mean and standard error of all groups together."""
        first, *others = (
            Moments(*(part[group : group + 1] for part in (self.count, self.mean, self.squares)))
            for group in range(len(self.count))
        )
        for other in others:
            first = first.merged(other)
        count, mean, error = first.each()
        return count[0], mean[0], error[0]

    def spread(self, places: Int[np.ndarray, " group"], size: int) -> "Moments":
        """The same groups at these places of so many; no text counts in the others."""
        wide = [np.zeros((size, *self.count.shape[1:])) for _ in range(3)]
        for own, part in zip(wide, (self.count, self.mean, self.squares), strict=True):
            own[places] = part
        return Moments(*wide)


def _moments(values: Float[np.ndarray, "text measure layer head"]) -> tuple[Statistic, Statistic, Statistic]:
    there = ~np.isnan(values)
    count = there.sum(axis=0).astype(np.float64)
    mean = np.where(there, values, 0.0).sum(axis=0) / np.maximum(count, 1)
    return count, mean, (np.where(there, values - mean, 0.0) ** 2).sum(axis=0)


@dataclass(frozen=True, eq=False)
class ByLength:
    """Texts by the class of their length: its number, how many they are and their tokens, and their moments.

    Classes have fixed ends (`EDGES`), half an octave apart, so that every corpus has the same; those that
    hold no text are left out.
    """

    classes: Int[np.ndarray, " group"]
    texts: Int[np.ndarray, " group"]
    tokens: Int[np.ndarray, " group"]
    moments: Moments

    @classmethod
    def of(
        cls, values: Float[np.ndarray, "text measure layer head"], tokens: Int[np.ndarray, " text"]
    ) -> "ByLength":
        """Those of some texts by the tokens of each."""
        number = np.searchsorted(EDGES, tokens, side="right") - 1
        classes, groups = np.unique(number, return_inverse=True)
        size = len(classes)
        texts = np.bincount(groups, minlength=size).astype(np.int64)
        summed = np.zeros(size, np.int64)
        np.add.at(summed, groups, tokens)
        return cls(classes.astype(np.int64), texts, summed, Moments.of(values, groups, size))

    def merged(self, later: "ByLength") -> "ByLength":
        """With those of texts that come later."""
        classes = np.union1d(self.classes, later.classes)
        size = len(classes)
        texts, tokens = (np.zeros(size, np.int64) for _ in range(2))
        parts = []
        for each in (self, later):
            places = np.searchsorted(classes, each.classes)
            texts[places] += each.texts
            tokens[places] += each.tokens
            parts.append(each.moments.spread(places, size))
        return ByLength(classes, texts, tokens, parts[0].merged(parts[1]))

    def described(self) -> tuple[LengthClass, ...]:
        """Each class by its ends."""
        counted = zip(self.classes, self.texts, self.tokens, strict=True)
        return tuple(
            LengthClass(int(EDGES[number]), int(EDGES[number + 1]) - 1, int(texts), int(tokens))
            for number, texts, tokens in counted
        )
