"""One number per head, and the description of its measure."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float

from attnscope.results.base.presented import Value, fits


@dataclass(frozen=True, kw_only=True)
class MeasureDescription:
    """The description of a measure, stored with its numbers.

    `label` says more than its name, if needed. `unit`, `meaning` and `paper` are those of its numbers.
    `least` and `most` are the ends of its range, `most` perhaps in terms of the number of keys; `low` and
    `high` say what a head at these ends does. `strong` is the end that is shaded dark and searched for,
    `strongest` names the head of a layer that is nearest to it. A `signed` measure is centred at 0; one with
    `classes` is an index of them. `apart` names its input where that is not the text.
    """

    name: str
    unit: str
    meaning: str
    paper: str = ""
    label: str = ""
    least: str = "0"
    most: str = "1"
    low: str = "none"
    high: str = "all of it"
    strong: Literal["low", "high"] = "high"
    strongest: str = "strongest head of each layer"
    signed: bool = False
    classes: tuple[str, ...] = ()
    apart: str = ""

    @property
    def range(self) -> str:
        """The range of values as text: `0 to ln keys`."""
        return f"{self.least} to {self.most}"

    @property
    def title(self) -> str:
        """The title of the measure: `entropy in nats` or `confidence, largest weight`."""
        return f"{self.name}, {self.label}" if self.label else f"{self.name} in {self.unit}"

    @property
    def scale(self) -> str:
        """A short title for a colour bar."""
        return self.name if self.label else self.title


@dataclass(frozen=True, eq=False)
class HeadScores:
    """One number per head: `values[i, j]` belongs to `layers[i]` and `heads[j]`.

    `limits` are the smallest and largest possible value. `even_attention` is the value of uniform attention
    in each head, None where it was not computed. All values are NaN where the measure has no meaning, and
    `absent` then says why in one phrase. `control` is the median size of each head's values for other
    answers, None where no answer is measured.
    """

    description: MeasureDescription = field(metadata={"spread": True})
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    values: Float[np.ndarray, "layer head"]
    limits: tuple[float, float] = (0.0, 1.0)
    even_attention: Float[np.ndarray, "layer head"] | None = None
    absent: str = ""
    control: Float[np.ndarray, "layer head"] | None = None

    @property
    def measure(self) -> str:
        """The name of the measure, as `attnscope measures` lists it."""
        return self.description.name

    @property
    def unit(self) -> str:
        """The unit of the values: `nats`, `tokens`, or `weight` (a share of a row)."""
        return self.description.unit

    def class_of(self, i: int, j: int) -> str | None:
        """The class name of a head, empty for NaN; None where the measure is a number."""
        if not self.description.classes:
            return None
        value = float(self.values[i, j])
        return "" if np.isnan(value) else self.description.classes[int(value)]

    def check_parts(self) -> None:
        classes = self.description.classes
        numbers = self.values[self.values == self.values]  # without NaN
        right = not classes or all(
            value == int(value) and 0 <= value < len(classes) for value in numbers.flat
        )
        fits(right, "'values' has a class that there is not")

    def derived(self) -> dict[str, Value]:
        one = {"value": float(self.values.flat[0])} if self.values.size == 1 else {}
        return {"measure": self.measure, "range": self.description.range} | one

    def value_of(self, i: int, j: int) -> Value:
        """The number, or the name of its class (None for NaN)."""
        named = self.class_of(i, j)
        return float(self.values[i, j]) if named is None else named or None


def ordered(values: Float[np.ndarray, "layer head"]) -> list[tuple[int, int]]:
    """Places (layer, head index) of all values that are not NaN, largest first, ties in order."""
    order = np.argsort(-values, axis=None, kind="stable")
    places = ((int(i), int(j)) for i, j in zip(*np.unravel_index(order, values.shape), strict=True))
    return [place for place in places if not np.isnan(values[place])]
