"""How dark a weight is drawn: one rule for every medium, and the words that say another that was asked for.

A shade is a number from 0, faint, to 1, strong: the square root of the weight, which shows what is small and
compares every head with every other.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Bool, Float

from attnscope.errors import InputError
from attnscope.render.kit.numbers import parameter
from attnscope.vocabulary import Scaling

TICKS = (0.0, 0.01, 0.1, 0.5, 1.0)  # on the colour bar of the square root
_end = partial(parameter, digits=2)
_DECADES = 5  # that a logarithmic scale has at most
_OF_EVEN = 0.1  # of the weight that a key of an even row has: what is less is 0 on a logarithmic scale
_APART = 0.08  # of a colour bar, between two of its numbers at least
_FAINTEST = 0.01  # quantile of the weights at which it begins


@dataclass(frozen=True, eq=False)
class Scale:
    """The shades of one panel of weights.

    `tops` are the weights of the strongest shade, row by row; `least` is the weight that is the faintest, and
    all below it: 0 but on a logarithmic scale.
    """

    kind: Scaling
    tops: Float[np.ndarray, " row"]
    least: float = 0.0

    @property
    def top(self) -> float:
        """The weight of the strongest shade of any row."""
        return float(self.tops.max(initial=0.0)) or 1.0

    def shades(
        self, weights: Float[np.ndarray, "row key"], rows: slice | list[int] = slice(None)
    ) -> Float[np.ndarray, "row key"]:
        """Every weight as a shade from 0 to 1, NaN where it is; `rows` where not all rows are given."""
        tops = self.tops[rows, None]
        if self.kind is not Scaling.LOG:
            shares = np.clip(weights / tops, 0.0, 1.0)
            return np.asarray(np.sqrt(shares) if self.kind is Scaling.SQRT else shares)
        raised = np.maximum(weights, self.least)
        return np.asarray(np.clip(np.log(raised / self.least) / np.log(tops / self.least), 0.0, 1.0))

    def shade(self, weight: float) -> float:
        """The shade of one weight, in the row with the largest; of rows by themselves that of a share."""
        alone = Scale(self.kind, np.array([1.0 if self.kind is Scaling.ROW else self.top]), self.least)
        return float(alone.shades(np.array([[weight]]))[0, 0])

    def weight(self, shade: float) -> float:
        """The weight that has a shade, of rows on a scale of their own the share of the largest."""
        match self.kind:
            case Scaling.SQRT:
                return self.top * shade * shade
            case Scaling.LOG:
                return float(self.least * (self.top / self.least) ** shade)
            case Scaling.ROW:
                return shade
        return shade * self.top

    @property
    def told(self) -> str:
        """What is said of a scale that was asked for; nothing of the square root."""
        match self.kind:
            case Scaling.SQRT:
                return ""
            case Scaling.ONE:
                return "in proportion, 0 to 1"
            case Scaling.MAX:
                return f"in proportion, 0 to {_end(self.top)}, the largest weight"
            case Scaling.ROW:
                return "in proportion, 0 to the largest weight of each row"
        return f"logarithmic, {_end(self.least)} or less to {_end(self.top)}, the largest weight"

    @property
    def legend(self) -> str:
        """What shades stand for where no colour bar shows it, one phrase."""
        return self.told or f"the square root of the weight, 0 to {_end(self.top)}"

    @property
    def label(self) -> str:
        """What a colour bar measures, and on what scale where one was asked for."""
        match self.kind:
            case Scaling.SQRT:
                return "attention weight"
            case Scaling.ONE:
                return "attention weight: in proportion"
            case Scaling.MAX:
                return f"attention weight: 0 to {_end(self.top)}, the largest"
            case Scaling.ROW:
                return "attention weight: share of the row's largest"
        return "attention weight: logarithmic"

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Weights to mark on a colour bar, with their texts; of a logarithmic one ends and decades."""
        if self.kind is Scaling.SQRT:
            return [(share * self.top, _end(share * self.top)) for share in TICKS]
        if self.kind is not Scaling.LOG:
            return [(self.weight(share), _end(self.weight(share))) for share in (0.0, 0.5, 1.0)]
        low, high = math.log10(self.least), math.log10(self.top)
        decades = range(math.ceil(low), math.floor(high) + 1)
        apart = [each for each in decades if min(each - low, high - each) > _APART * (high - low)]
        return [(10.0**each, _end(10.0**each)) for each in (low, *apart, high)]


def by_root(rows: int = 1) -> Scale:
    """The square root from 0 to 1, on which weights are drawn unless another scale is asked for."""
    return Scale(Scaling.SQRT, np.ones(rows))


def scale_of(
    weights: Float[np.ndarray, "row key"],
    visible: Bool[np.ndarray, "row key"],
    asked: Scaling = Scaling.SQRT,
) -> Scale:
    """The scale that is asked for; some of them go as far as the visible weights do."""
    shown = np.where(visible & np.isfinite(weights), weights, 0.0)
    rows, largest = len(shown), float(shown.max(initial=0.0)) or 1.0
    match asked:
        case Scaling.SQRT:
            return by_root(rows)
        case Scaling.ONE:
            return Scale(asked, np.ones(rows))
        case Scaling.ROW:
            own = shown.max(axis=1, initial=0.0)
            return Scale(asked, np.where(own > 0, own, 1.0))
        case Scaling.LOG:
            return Scale(asked, np.full(rows, largest), _least(shown, visible, largest))
    return Scale(asked, np.full(rows, largest))


def scaling(name: str) -> Scaling:
    """The scale called `name`; `InputError` where none is."""
    found = next((each for each in Scaling if each == name.casefold()), None)
    if found is None:
        raise InputError(f"no scale is called '{name}': {', '.join(Scaling)}")
    return found


def _least(
    shown: Float[np.ndarray, "row key"], visible: Bool[np.ndarray, "row key"], largest: float
) -> float:
    """Where a logarithmic scale begins: near the smallest weights worth a look, within five decades."""
    positive = shown[visible & (shown > 0)]
    faintest = float(np.quantile(positive, _FAINTEST, method="lower")) if positive.size else 0.0
    even = float(shown.sum()) / max(int(visible.sum()), 1)
    value = min(max(faintest, _OF_EVEN * even, largest / 10**_DECADES), largest / 10)
    unit = 10.0 ** math.floor(math.log10(value))
    return float(f"{max(math.floor(value / unit), 1) * unit:.0e}")
