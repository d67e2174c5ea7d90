"""How strong each number is drawn in a terminal: weights by their scale, signed numbers around 0."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.numbers import significant
from attnscope.render.kit.palette import diverging, sequential
from attnscope.render.kit.scale import Scale
from attnscope.render.kit.stage import Panel


@dataclass(frozen=True, eq=False)
class Shading:
    """`shares` are 0 to 1, or -1 to 1 around 0 where `signed`, NaN where a pair is masked.

    `plain` are the same without a sign, 0 for the least number; `ends` and `plain_ends` the numbers that the
    least and the largest share stand for, `scale` that of weights. `told` has to be said beside them.
    """

    shares: Float[np.ndarray, "row column"]
    plain: Float[np.ndarray, "row column"]
    ends: tuple[str, str]
    plain_ends: tuple[str, str]
    signed: bool = False
    scale: Scale | None = None
    told: str = ""

    def style(self, row: int, column: int) -> str:
        share = float(self.shares[row, column])
        return diverging(share, 1.0) if self.signed else sequential(share)


def shading(shown: Panel) -> Shading:
    """That of one panel."""
    values = np.where(shown.visible, shown.values, np.nan)
    return _of_weights(shown.scale, values) if shown.show == "weights" else _around_0(shown, values)


def _of_weights(scale: Scale, values: Float[np.ndarray, "row column"]) -> Shading:
    shares = scale.shades(values)
    (_, low), *_, (_, high) = scale.ticks
    told = f"shades: {scale.told}" if scale.told else ""
    return Shading(shares, shares, (low, high), (low, high), scale=scale, told=told)


def _around_0(shown: Panel, values: Float[np.ndarray, "row column"]) -> Shading:
    extent = shown.extent or 1.0
    seen = values[np.isfinite(values)]
    low, high = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 0.0)
    return Shading(
        shares=values / extent,
        plain=(values - low) / ((high - low) or 1.0),
        ends=(significant(-extent), significant(extent)),
        plain_ends=(significant(low), significant(high)),
        signed=True,
    )
