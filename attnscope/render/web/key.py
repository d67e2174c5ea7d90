"""What the shades of numbers mean: a strip of them from the low end to the high one, with both numbers."""

from attnscope.render.kit.palette import Ground
from attnscope.render.kit.scale import Scale as Weights
from attnscope.render.sheet.scale import Scale
from attnscope.render.web.blocks import escape

_STOPS = 8  # colours of a strip, between which a browser mixes
_WHOLE = Scale(0.0, 1.0)


def strip(scale: Scale | Weights, low: str, high: str) -> str:
    """A line that is read as `0 none [strip] .98 all of it`."""
    parts = [i / _STOPS for i in range(_STOPS + 1)]
    if isinstance(scale, Weights):
        paper, values = _WHOLE, [scale.shade(part * scale.top) for part in parts]
    else:
        paper, values = scale, [scale.low + part * (scale.high - scale.low) for part in parts]
    grounds: tuple[tuple[str, Ground], ...] = (("l", "light"), ("d", "dark"))
    style = ";".join(
        f"--{name}:linear-gradient(90deg,{','.join(paper.paper(each, ground)[0] for each in values)})"
        for name, ground in grounds
    )
    return f'<span class="ends">{escape(low)} <i class="strip" style="{style}"></i> {escape(high)}</span>'
