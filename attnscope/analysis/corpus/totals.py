"""What is kept of so many texts: counts, means, scatter and a sketch of where values lie; merged in order.

Means and scatter are those of Chan, Golub and LeVeque (1979), apart for every other text, so that a head can
be chosen on one half and judged by the other. The sketch counts values rounded to eight binary digits (their
double's sign, exponent and first seven digits of its fraction), which no order of adding up can change: a
quantile is off by at most `ROUNDED` of itself (0.8 %); least and largest value are exact. A text without the
value (NaN) does not count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

_DROPPED = 45  # of the 52 binary digits of a double's fraction
ROUNDED = 2.0**-7
_APART = 1 << 20  # between two statistics: more than there are rounded values
HALVES = 2
Statistic = Float[np.ndarray, "measure layer head"]


@dataclass(frozen=True, eq=False)
class Moments:
    """How many texts count in each half, the mean of their values and the sum of squares around it."""

    count: Float[np.ndarray, "half measure layer head"]
    mean: Float[np.ndarray, "half measure layer head"]
    squares: Float[np.ndarray, "half measure layer head"]

    @classmethod
    def of(
        cls, values: Float[np.ndarray, "text measure layer head"], halves: Int[np.ndarray, " text"]
    ) -> "Moments":
        """Those of some texts, each in its half."""
        each = [_moments(values[halves == half]) for half in range(HALVES)]
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

    def half(self, half: int) -> tuple[Statistic, Statistic, Statistic]:
        """Count, mean and standard error of one half."""
        return _moments_of(self.count[half], self.mean[half], self.squares[half])

    def whole(self) -> tuple[Statistic, Statistic, Statistic]:
        """Count, mean and standard error of the mean; NaN of the latter where fewer than two texts count."""
        first, second = (
            Moments(*(part[half : half + 1] for part in (self.count, self.mean, self.squares)))
            for half in range(HALVES)
        )
        return first.merged(second).half(0)


def _moments(values: Float[np.ndarray, "text measure layer head"]) -> tuple[Statistic, Statistic, Statistic]:
    there = ~np.isnan(values)
    count = there.sum(axis=0).astype(np.float64)
    mean = np.where(there, values, 0.0).sum(axis=0) / np.maximum(count, 1)
    return count, mean, (np.where(there, values - mean, 0.0) ** 2).sum(axis=0)


def _moments_of(
    count: Statistic, mean: Statistic, squares: Statistic
) -> tuple[Statistic, Statistic, Statistic]:
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(np.where(count > 1, squares / (count - 1) / count, np.nan))
    return count, np.where(count > 0, mean, np.nan), error


@dataclass(frozen=True, eq=False)
class Sketch:
    """How often each rounded value occurs in each statistic.

    `entry` are statistic and value in one number, sorted; two sketches are merged in one walk along both.
    """

    entry: Int[np.ndarray, " entry"]
    times: Int[np.ndarray, " entry"]

    @classmethod
    def of(cls, values: Float[np.ndarray, "text statistic"]) -> "Sketch":
        """That of some texts."""
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
        """With the counts of others, in whatever order."""
        return self._counted(
            np.concatenate([self.entry, other.entry]), np.concatenate([self.times, other.times])
        )

    def quantiles(self, levels: Sequence[float], statistics: int) -> Float[np.ndarray, "level statistic"]:
        """The least value that such a share of the texts does not exceed."""
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
        """How often a whole number below 256 occurs in each statistic."""
        wanted = np.arange(statistics) * _APART + keys_of(np.array([value])) + _APART // 2
        places = np.searchsorted(self.entry, wanted).clip(max=max(len(self.entry) - 1, 0))
        if not len(self.entry):
            return np.zeros(statistics)
        return np.asarray(np.where(self.entry[places] == wanted, self.times[places], 0), np.float64)


def keys_of(values: Float[np.ndarray, " value"]) -> Int[np.ndarray, " value"]:
    """Whole numbers in the order of the values, the same for values that agree in eight binary digits."""
    bits = np.ascontiguousarray(np.abs(values), np.float64).view(np.int64) >> _DROPPED
    return np.asarray(np.where(values < 0, -bits, bits))


def values_of(keys: Int[np.ndarray, " value"]) -> Float[np.ndarray, " value"]:
    """The middle of the values that have such a key; whole numbers up to 256 come back as they were."""
    low = np.abs(keys) << _DROPPED
    exact = low.view(np.float64)
    middle = (low | (1 << (_DROPPED - 1))).view(np.float64)
    whole = (exact == np.round(exact)) & (exact < 257)
    found = np.where(whole, exact, middle)
    return np.asarray(np.where(keys < 0, -found, found))


@dataclass(frozen=True, eq=False)
class Totals:
    """All that is kept of the values of some texts; `statistic` is measure, layer, head."""

    moments: Moments
    sketch: Sketch
    least: Float[np.ndarray, "measure layer head"]
    largest: Float[np.ndarray, "measure layer head"]

    @classmethod
    def of(
        cls,
        values: Float[np.ndarray, "text measure layer head"],
        numbers: Int[np.ndarray, " text"],
    ) -> "Totals":
        """Those of texts by their numbers in the corpus."""
        none = values.shape[0] == 0
        shape = values.shape[1:]
        with np.errstate(all="ignore"):
            least = np.full(shape, np.nan) if none else np.fmin.reduce(values)
            largest = np.full(shape, np.nan) if none else np.fmax.reduce(values)
        flat = values.reshape(len(values), least.size)
        return cls(Moments.of(values, numbers % HALVES), Sketch.of(flat), least, largest)

    def merged(self, later: "Totals") -> "Totals":
        """With those of texts that come later."""
        return Totals(
            self.moments.merged(later.moments),
            self.sketch.merged(later.sketch),
            np.fmin(self.least, later.least),
            np.fmax(self.largest, later.largest),
        )

    def quantiles(self, levels: Sequence[float]) -> Float[np.ndarray, "level measure layer head"]:
        """Those of every statistic, between its least and its largest value."""
        found = self.sketch.quantiles(levels, self.least.size).reshape(len(levels), *self.least.shape)
        return np.asarray(np.clip(found, self.least, self.largest))

    def arrays(self) -> dict[str, np.ndarray]:
        """By name, for a file."""
        return {
            **{name: getattr(self.moments, name) for name in ("count", "mean", "squares")},
            "steps": _narrow(np.diff(self.sketch.entry, prepend=0)),
            "times": _narrow(self.sketch.times),
            "least": self.least,
            "largest": self.largest,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Totals":
        """The same again."""
        moments = Moments(*(arrays[name] for name in ("count", "mean", "squares")))
        sketch = Sketch(np.cumsum(arrays["steps"], dtype=np.int64), arrays["times"].astype(np.int64))
        return cls(moments, sketch, arrays["least"], arrays["largest"])


def _narrow(whole: Int[np.ndarray, " n"]) -> np.ndarray:
    """The same numbers, none of them negative, in as few bytes as hold the largest."""
    return whole.astype(np.min_scalar_type(int(whole.max(initial=0))))


__all__ = ["HALVES", "ROUNDED", "Moments", "Sketch", "Totals"]
