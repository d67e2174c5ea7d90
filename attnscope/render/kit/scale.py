"""How dark a weight is drawn: the rule of pictures and of terminals, and the words that say which it is.

A shade is a number from 0, white, to 1, dark. Whoever draws shades says `legend` or `label` beside them.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Bool, Float

from attnscope.errors import InputError
from attnscope.render.kit.numbers import parameter
from attnscope.vocabulary import Scaling

SEEN = 0.2  # a shade that is told from white at a glance
_end = partial(parameter, digits=2)
_MOST_SEEN, _LEAST_AREA = 1 / 3, 1 / 64  # of the weight, and of the pairs, that a linear scale has to show
_MOST_ROWS = 1 / 2  # that are not given to one key of all: these have to show another
_DECADES = 5  # that a logarithmic scale has at most
_OF_EVEN = 0.1  # of the weight that a key of an even row has: what is less is white on a logarithmic scale
_APART = 0.08  # of a colour bar, between two of its numbers at least
_FAINTEST = 0.01  # quantile of the weights at which it begins


@dataclass(frozen=True, eq=False)
class Scale:
    """The shades of one panel of weights. `kind` is never AUTO.

    `tops` are the weights of the darkest shade, row by row; `least` is the weight that is white, and all
    below it: 0 but on a logarithmic scale.
    """

    kind: Scaling
    tops: Float[np.ndarray, " row"]
    least: float = 0.0

    @property
    def top(self) -> float:
        """The weight of the darkest shade of any row."""
        return float(self.tops.max(initial=0.0)) or 1.0

    def shades(
        self, weights: Float[np.ndarray, "row key"], rows: slice | list[int] = slice(None)
    ) -> Float[np.ndarray, "row key"]:
        """Every weight as a shade from 0 to 1, NaN where it is; `rows` where not all rows are given."""
        tops = self.tops[rows, None]
        if self.kind is not Scaling.LOG:
            return np.asarray(np.clip(weights / tops, 0.0, 1.0))
        raised = np.maximum(weights, self.least)
        return np.asarray(np.clip(np.log(raised / self.least) / np.log(tops / self.least), 0.0, 1.0))

    @property
    def legend(self) -> str:
        """What white and dark stand for, one phrase."""
        match self.kind:
            case Scaling.ONE:
                return "white 0 to dark 1"
            case Scaling.MAX:
                return f"white 0 to dark {_end(self.top)}, the largest weight"
            case Scaling.ROW:
                return "white 0 to dark the largest weight of each row"
        return f"logarithmic: white {_end(self.least)} or less, dark {_end(self.top)}"

    @property
    def label(self) -> str:
        """What a colour bar measures, and on what scale."""
        match self.kind:
            case Scaling.ONE:
                return "attention weight: 0 to 1"
            case Scaling.MAX:
                return f"attention weight: 0 to {_end(self.top)}, the largest"
            case Scaling.ROW:
                return "attention weight: share of the row's largest"
        return "attention weight: logarithmic"

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Weights to mark on a colour bar, with their texts; of a logarithmic one ends and decades."""
        if self.kind is not Scaling.LOG:
            top = 1.0 if self.kind is Scaling.ROW else self.top
            return [(share * top, _end(share * top)) for share in (0.0, 0.5, 1.0)]
        low, high = math.log10(self.least), math.log10(self.top)
        decades = range(math.ceil(low), math.floor(high) + 1)
        apart = [each for each in decades if min(each - low, high - each) > _APART * (high - low)]
        return [(10.0**each, _end(10.0**each)) for each in (low, *apart, high)]


def scale_of(
    weights: Float[np.ndarray, "row key"],
    visible: Bool[np.ndarray, "row key"],
    asked: Scaling = Scaling.AUTO,
) -> Scale:
    """The scale that is asked for; of AUTO the first of 1, max and log on which the weights can be seen.

    They can where at least a third of all weight, and of all visible pairs one in 64, is visibly tinted, and
    where a row is seen to look elsewhere than at the key that draws the most of all, unless it gives that one
    half. So a short text is on the scale that compares with other heads, and no text is ever a white page, or
    a white page with one dark column.
    """
    shown = np.where(visible & np.isfinite(weights), weights, 0.0)
    if asked is not Scaling.AUTO:
        return _scaled(shown, visible, asked)
    linear = (_scaled(shown, visible, kind) for kind in (Scaling.ONE, Scaling.MAX))
    return next(
        (scale for scale in linear if _shows(scale, shown, visible)), _scaled(shown, visible, Scaling.LOG)
    )


def scaling(name: str) -> Scaling:
    """The scale called `name`; `InputError` where none is."""
    found = next((each for each in Scaling if each == name.casefold()), None)
    if found is None:
        raise InputError(f"no scale is called '{name}': {', '.join(Scaling)}")
    return found


def _scaled(
    shown: Float[np.ndarray, "row key"], visible: Bool[np.ndarray, "row key"], kind: Scaling
) -> Scale:
    rows = len(shown)
    largest = float(shown.max(initial=0.0)) or 1.0
    match kind:
        case Scaling.ONE:
            return Scale(kind, np.ones(rows))
        case Scaling.ROW:
            own = shown.max(axis=1, initial=0.0)
            return Scale(kind, np.where(own > 0, own, 1.0))
        case Scaling.LOG:
            return Scale(kind, np.full(rows, largest), _least(shown, visible, largest))
    return Scale(kind, np.full(rows, largest))


def _least(
    shown: Float[np.ndarray, "row key"], visible: Bool[np.ndarray, "row key"], largest: float
) -> float:
    """Where a logarithmic scale begins: near the smallest weights worth a look, within five decades."""
    positive = shown[visible & (shown > 0)]
    faintest = float(np.quantile(positive, _FAINTEST, method="lower")) if positive.size else 0.0
    even = float(shown.sum()) / max(int(visible.sum()), 1)
    return _rounded_down(min(max(faintest, _OF_EVEN * even, largest / 10**_DECADES), largest / 10))


def _rounded_down(value: float) -> float:
    """One significant digit."""
    unit = 10.0 ** math.floor(math.log10(value))
    return float(f"{max(math.floor(value / unit), 1) * unit:.0e}")


def _shows(scale: Scale, shown: Float[np.ndarray, "row key"], visible: Bool[np.ndarray, "row key"]) -> bool:
    whole = shown.sum(axis=1)
    if not whole.any():
        return True
    seen = (scale.shades(shown) >= SEEN) & visible
    if shown[seen].sum() < _MOST_SEEN * whole.sum() or seen.sum() < _LEAST_AREA * visible.sum():
        return False
    favourite = int(shown.sum(axis=0).argmax())
    elsewhere = shown[:, favourite] < whole / 2
    beside = np.delete(seen[elsewhere], favourite, axis=1).any(axis=1)
    return bool(beside.sum() >= _MOST_ROWS * elsewhere.sum())
