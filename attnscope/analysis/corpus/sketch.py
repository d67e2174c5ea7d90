"""How often each rounded value occurs: counts that no order of adding up can change, and quantiles from them.

Values are rounded to eight binary digits (their double's sign, exponent and first seven digits of its
fraction): a quantile is off by at most `ROUNDED` of itself (0.8 %).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

_DROPPED = 45  # of the 52 binary digits of a double's fraction
ROUNDED = 2.0**-7
_APART = 1 << 20  # between two statistics: more than there are rounded values


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

    def growth(self, factor: float) -> float:
        """About how many times as many entries so many times as many texts have.

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
