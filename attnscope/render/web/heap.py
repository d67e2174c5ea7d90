"""Numbers of one kind in a page as a heap of dots on one axis, and the number that they are held against."""

import numpy as np

from attnscope.render.sheet.drawings import Heap
from attnscope.render.web.blocks import escape
from attnscope.render.web.marks import ticks

_WIDE, _RADIUS, _EDGE = 352, 3.6, 12  # pixels
_BINS = int((_WIDE - 2 * _EDGE) / (2 * _RADIUS))  # dots that have room beside one another
_MOST = 24  # dots one above the other; where there are more each stands for several
_ABOVE, _BELOW = 16, 34


def heap(block: Heap) -> str:
    """The dots, the line of the one that is meant, and the numbers of the axis."""
    values = np.array([*block.values, block.own])
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    high = high if high > low else low + 1.0

    def x(value: float) -> float:
        return round(_EDGE + (value - low) / (high - low) * (_WIDE - 2 * _EDGE), 1)

    places = np.minimum(((np.array(block.values) - low) / (high - low) * _BINS).astype(int), _BINS - 1)
    count = np.bincount(places, minlength=_BINS)
    each = -(-int(count.max(initial=1)) // _MOST)
    stacks = -(-count // each)
    base = _ABOVE + 2 * _RADIUS * max(int(stacks.max()), 3)
    dots = "".join(
        f'<circle cx="{_EDGE + (place + 0.5) * (_WIDE - 2 * _EDGE) / _BINS:.1f}" '
        f'cy="{base - (2 * i + 1) * _RADIUS:.1f}" r="{_RADIUS - 0.4}"/>'
        for place in range(_BINS)
        for i in range(int(stacks[place]))
    )
    own, named = x(block.own), f"{block.name} {block.form(block.own)}"
    right = own > 0.7 * _WIDE
    line = f'<path d="M{own} 2V{base}" class="own"/><text x="{own + (-6 if right else 6)}" y="12" '
    line += f'text-anchor="{"end" if right else "start"}" class="own">{escape(named)}</text>'
    axis = f'<path d="M{_EDGE} {base:.1f}H{_WIDE - _EDGE}" class="rule"/>'
    axis += "".join(
        f'<text x="{x(value)}" y="{base + 13:.1f}" text-anchor="middle" class="small">{escape(text)}</text>'
        for value, text in ticks(low, high)
    )
    below = f'x="{_WIDE / 2}" y="{base + 28:.1f}" text-anchor="middle" class="small"'
    axis += f"<text {below}>{escape(block.measured)}</text>"
    ends = f"{block.form(min(block.values))} to {block.form(max(block.values))}"
    told = escape(f"{named}; the dots from {ends}")
    several = f"; a dot is up to {each} of them" if each > 1 else ""
    dot = '<svg width="12" height="12" class="heap" aria-hidden="true"><circle cx="6" cy="7" r="3.2"/></svg>'
    key = f'<p class="marks"><span>{dot} {escape(block.dots + several)}</span></p>'
    drawn = f'<svg width="{_WIDE}" height="{base + _BELOW:.0f}" class="heap" role="img" aria-label="{told}">'
    return f"<h2>{escape(block.title)}</h2>{key}{drawn}{axis}{dots}{line}</svg>"
