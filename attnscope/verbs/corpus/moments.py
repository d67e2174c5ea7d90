"""Mergeable statistics of texts: moments, counts of rounded values, outermost texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from jaxtyping import Float, Int

from attnscope.verbs.corpus.result import CorpusText, LengthClass

Statistic = Float[np.ndarray, "measure layer head"]
Grouped = Float[np.ndarray, "group measure layer head"]
_ROUNDING = 1e-6  # of a mean: texts that scatter by less are equal but for how weights in float32 are rounded
_CLASSES = 60  # half octaves: texts of up to a billion tokens
# the least tokens of each class, from 1; of two classes with the same whole numbers there is one
EDGES = np.unique(np.ceil(2.0 ** (np.arange(_CLASSES) / 2) - 1e-9).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, mean and sum of squared deviations of the values in each group of texts."""

    count: Grouped
    mean: Grouped
    squares: Grouped

    @classmethod
    def of(
        cls, values: Float[np.ndarray, "text measure layer head"], groups: Int[np.ndarray, " text"], size: int
    ) -> "Moments":
        """Moments of some texts, each in one of `size` groups."""
        each = np.array([_moments(values[groups == group]) for group in range(size)])
        return cls(*each.reshape(size, 3, *values.shape[1:]).swapaxes(0, 1))

    def merged(self, later: "Moments") -> "Moments":
        """Moments with those of later texts added."""
        count = self.count + later.count
        some = np.maximum(count, 1)
        apart = later.mean - self.mean
        return Moments(
            count,
            np.where(later.count == 0, self.mean, self.mean + apart * (later.count / some)),
            self.squares + later.squares + apart**2 * (self.count * later.count / some),
        )

    def each(self) -> tuple[Grouped, Grouped, Grouped]:
        """Count, mean and standard error of each group; the error is NaN for fewer than two texts.

        It is 0 where these scatter by no more than rounding makes.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = np.where(self.count > 1, self.squares / (self.count - 1), np.nan)
            variance = np.where(variance <= (_ROUNDING * self.mean) ** 2, 0.0, variance)
            error = np.sqrt(variance / self.count)
        return self.count, np.where(self.count > 0, self.mean, np.nan), error

    def whole(self) -> tuple[Statistic, Statistic, Statistic]:
        """Count, mean and standard error of all groups together."""
        parts = zip(self.count[:, None], self.mean[:, None], self.squares[:, None], strict=True)
        count, mean, error = reduce(Moments.merged, (Moments(*each) for each in parts)).each()
        return count[0], mean[0], error[0]

    def spread(self, places: Int[np.ndarray, " group"], size: int) -> "Moments":
        """The same groups at indices `places` of `size`; the others are empty."""
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
    """Texts by length class: the class numbers, their texts and tokens, and their moments.

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
        """Statistics of some texts by length class, from the `tokens` of each."""
        number = np.searchsorted(EDGES, tokens, side="right") - 1
        classes, groups = np.unique(number, return_inverse=True)
        size = len(classes)
        texts = np.bincount(groups, minlength=size).astype(np.int64)
        summed = np.zeros(size, np.int64)
        np.add.at(summed, groups, tokens)
        return cls(classes.astype(np.int64), texts, summed, Moments.of(values, groups, size))

    def merged(self, later: "ByLength") -> "ByLength":
        """Statistics with those of later texts added."""
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
        """The length classes with their least and most tokens."""
        counted = zip(self.classes, self.texts, self.tokens, strict=True)
        return tuple(
            LengthClass(int(EDGES[number]), int(EDGES[number + 1]) - 1, int(texts), int(tokens))
            for number, texts, tokens in counted
        )


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
        """The outermost of some texts, given by their numbers in the corpus, in any order."""
        shape, order = values.shape[1:], np.argsort(numbers)
        flat = np.ascontiguousarray(values[order].reshape(len(values), int(np.prod(shape))).T)
        ends = [_lowest(sign * flat, numbers[order]) for sign in (1, -1)]
        lowest, highest = (found.reshape(KEPT, *shape) for found, _ in ends)
        named = np.stack([found.reshape(KEPT, *shape) for _, found in ends])
        every = dict(zip(map(int, numbers), texts, strict=True))
        return cls(np.stack([lowest, -highest]), named, _named(named, every))

    def merged(self, other: "Outer") -> "Outer":
        """The outermost of these and other texts."""
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
        """Index in `texts` of each outermost value's text; -1 for none."""
        every = np.array([_NONE, *self.texts])
        return np.searchsorted(every, self.numbers) - 1


def _lowest(
    values: Float[np.ndarray, "statistic text"], numbers: Int[np.ndarray, " text"]
) -> tuple[np.ndarray, np.ndarray]:
    """The `KEPT` lowest values of each statistic and the numbers of their texts, as `place statistic`."""
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


_DROPPED = 45  # of the 52 binary digits of a double's fraction
ROUNDED = 2.0**-7
_APART = 1 << 20  # between two statistics: more than there are rounded values


@dataclass(frozen=True, eq=False)
class Sketch:
    """Count of each rounded value in each statistic.

    `entry` are statistic and value in one number, sorted; two sketches are merged in one walk along both.
    """

    entry: Int[np.ndarray, " entry"]
    times: Int[np.ndarray, " entry"]

    @classmethod
    def of(cls, values: Float[np.ndarray, "text statistic"]) -> "Sketch":
        """The sketch of some texts' values."""
        text, statistic = np.nonzero(~np.isnan(values))
        entry = statistic.astype(np.int64) * _APART + keys_of(values[text, statistic]) + _APART // 2
        return cls._counted(entry, np.ones(len(entry), np.int64))

    @classmethod
    def _counted(cls, entry: Int[np.ndarray, " n"], times: Int[np.ndarray, " n"]) -> "Sketch":
        if not len(entry):
            return cls(entry, times)
        order = np.argsort(entry, kind="stable")
        entry = entry[order]
        first = np.flatnonzero(np.concatenate([[True], entry[1:] != entry[:-1]]))
        return cls(entry[first], np.add.reduceat(times[order], first))

    def merged(self, other: "Sketch") -> "Sketch":
        """Sketch with the counts of another one added."""
        return self._counted(
            np.concatenate([self.entry, other.entry]), np.concatenate([self.times, other.times])
        )

    def growth(self, factor: float) -> float:
        """Estimated growth in the number of entries when texts grow by `factor`.

        Each statistic is taken as a normal distribution below zero and one above it, of the deviation of what
        is there, as a whole number: among `n` values one of a share `p` occurs but for `exp(-n p)`.
        """
        if not len(self.entry):
            return 1.0
        statistic, key = np.divmod(self.entry, _APART)
        key = key - _APART // 2
        side = 3 * statistic + np.sign(key) + 1  # no whole number is near that of zero
        count = np.bincount(side, self.times)
        mean = np.bincount(side, self.times * key) / np.maximum(count, 1)
        squares = np.bincount(side, self.times * (key - mean[side]) ** 2)
        spread = np.sqrt(squares / np.maximum(count, 1)).clip(1e-9)
        places = np.linspace(-8, 8, 161)
        density = np.exp(-(places**2) / 2) / np.sqrt(2 * np.pi) / spread[:, None]

        def occurring(times: Float[np.ndarray, " side"]) -> float:
            found = spread * -np.expm1(-times[:, None] * density).sum(axis=1) * (places[1] - places[0])
            return float(np.maximum(found, np.minimum(times, 1)).sum())

        return occurring(factor * count) / occurring(count)

    def quantiles(self, levels: Sequence[float], statistics: int) -> Float[np.ndarray, "level statistic"]:
        """Quantiles of each statistic: the least rounded value that such a share of texts does not exceed."""
        found = np.full((len(levels), statistics), np.nan)
        starts = np.searchsorted(self.entry, np.arange(statistics + 1) * _APART)
        for i in range(statistics):
            mine = slice(starts[i], starts[i + 1])
            if starts[i] == starts[i + 1]:
                continue
            below = np.cumsum(self.times[mine])
            places = np.searchsorted(below, np.ceil(np.array(levels) * below[-1]).clip(1))
            found[:, i] = values_of(self.entry[mine][places] - i * _APART - _APART // 2)
        return found

    def times_of(self, value: float, statistics: int) -> Float[np.ndarray, " statistic"]:
        """Count of a whole number below 256 in each statistic."""
        wanted = np.arange(statistics) * _APART + keys_of(np.array([value])) + _APART // 2
        places = np.searchsorted(self.entry, wanted).clip(max=max(len(self.entry) - 1, 0))
        if not len(self.entry):
            return np.zeros(statistics)
        return np.asarray(np.where(self.entry[places] == wanted, self.times[places], 0), np.float64)


def keys_of(values: Float[np.ndarray, " value"]) -> Int[np.ndarray, " value"]:
    """Integer keys in the order of the values, equal for values that agree in eight binary digits."""
    bits = np.ascontiguousarray(np.abs(values), np.float64).view(np.int64) >> _DROPPED
    return np.asarray(np.where(values < 0, -bits, bits))


def values_of(keys: Int[np.ndarray, " value"]) -> Float[np.ndarray, " value"]:
    """The middle of the values with such a key; whole numbers up to 256 come back exactly."""
    low = np.abs(keys) << _DROPPED
    exact = low.view(np.float64)
    middle = (low | (1 << (_DROPPED - 1))).view(np.float64)
    whole = (exact == np.round(exact)) & (exact < 257)
    found = np.where(whole, exact, middle)
    return np.asarray(np.where(keys < 0, -found, found))
