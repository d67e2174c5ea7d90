"""How numbers other than weights become colours, the same in every medium."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from attnscope.render.kit.numbers import largest_magnitude
from attnscope.render.kit.palette import (
    FAINT,
    RAMPS,
    SIGNED,
    WEIGHT,
    Ground,
    between,
    diverging,
    readable_on,
    sequential,
)


@dataclass(frozen=True)
class Scale:
    """Numbers as colours: `rising` is dark at its high end, `falling` at its low one, `signed` around 0.

    One rule for both sides of 0 everywhere: red is what is taken from an answer, blue what is given to it. So
    changes and shares are `signed`, red below 0, and what something `costs` is red above it.

    `ends` say what the least and the largest value mean.
    """

    low: float
    high: float
    kind: Literal["rising", "falling", "signed", "costs"] = "rising"
    ends: tuple[str, str] = ("", "")

    @classmethod
    def around(cls, values: Any, ends: tuple[str, str] = ("", ""), *, costs: bool = False) -> "Scale":
        """Red below 0, blue above it, as far as the values go; the other way round for what is lost."""
        extent = largest_magnitude(np.asarray(values, float)) or 1.0
        return cls(-extent, extent, "costs" if costs else "signed", ends)

    @property
    def around_0(self) -> bool:
        return self.kind in ("signed", "costs")

    def share(self, value: float) -> float:
        """Where a value lies from the low end, 0, to the high one, 1; NaN where there is none."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return math.nan if math.isnan(share) else min(max(share, 0.0), 1.0)

    @property
    def anchors(self) -> tuple[str, ...]:
        """The colours from the low end to the high one, as `#rrggbb`."""
        return self._anchors("light")

    def _anchors(self, on: Ground) -> tuple[str, ...]:
        named = RAMPS[on][SIGNED if self.around_0 else WEIGHT]
        return named[::-1] if self.kind in ("falling", "costs") else named

    @property
    def shades(self) -> tuple[str, str]:
        """How its low and its high end look, in a word."""
        named = {"rising": ("light", "dark"), "falling": ("dark", "light")}
        return named.get(self.kind, self._sides)

    @property
    def _sides(self) -> tuple[str, str]:
        return ("blue", "red") if self.kind == "costs" else ("red", "blue")

    def strength(self, value: float) -> float:
        """How strong it is shown, from 0, faint, to 1; around 0 below it for what is red."""
        share = self.share(value)
        share = 1 - share if self.kind in ("falling", "costs") else share
        return 2 * share - 1 if self.around_0 else share

    def style(self, value: float) -> str:
        """The name of a terminal's shade; none for no number."""
        strength = self.strength(value)
        return diverging(strength, 1.0) if self.around_0 else sequential(strength)

    def meaning(self, form: Callable[[float], str]) -> str:
        """What its ends mean in a terminal, where more may be brighter; "" where nothing is said of them."""
        shades = {"rising": ("faint", "strong"), "falling": ("strong", "faint")}
        ends = zip((self.low, self.high), self.ends, shades.get(self.kind, self._sides), strict=True)
        told = (
            " ".join(filter(None, (form(value) if value else "0", meant, f"({shade})")))
            for value, meant, shade in ends
        )
        return ", ".join(told) if any(self.ends) else ""

    def paper(self, value: float, on: Ground = "light") -> tuple[str, str]:
        """The colour of a cell and of the ink on it; white and faint where there is no number."""
        share = self.share(value)
        if math.isnan(share):
            return "#ffffff", FAINT
        ground = between(self._anchors(on), share)
        return ground.hex, readable_on(ground).hex


def missing(value: object) -> bool:
    """Whether a row has no such value."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))
