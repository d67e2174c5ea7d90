"""How clear of its own controls the clearest head of each control stands, a dot each, and that of the text.

It is what heads of a finding are judged by: how often luck alone is as good. Nothing of it needs a script.
"""

import numpy as np

from attnscope.render.kit.numbers import cell
from attnscope.render.sheet.said import named
from attnscope.render.sheets.finding_words import control_texts
from attnscope.render.web.blocks import escape
from attnscope.results import Finding

_WIDE, _RADIUS, _EDGE, _BINS = 560, 3.6, 10, 70  # pixels, and dots that have room beside one another


def spread(result: Finding) -> str:
    """A heap of dots on one axis from 0; nothing where a finding has no first head or no controls."""
    best = result.controls.best_excess
    best = np.maximum(best[np.isfinite(best)], 0.0)
    if not result.ranking or not len(best):
        return ""
    place = result.ranking[0]
    own = max(float(result.evidence.excess[place]), 0.0)
    most = max(1.0, own, float(best.max()))
    bins = np.minimum((best / most * _BINS).astype(int), _BINS - 1)
    count = np.bincount(bins, minlength=_BINS)
    high = 2 * _RADIUS * max(int(count.max()), 3) + 22
    base = high - 18 - _RADIUS
    dots = "".join(
        f'<circle cx="{_x((one + 0.5) / _BINS)}" cy="{base - 2 * _RADIUS * i:.1f}" r="{_RADIUS - 0.4}"/>'
        for one in range(_BINS)
        for i in range(int(count[one]))
    )
    x, name = _x(own / most), f"{named(result, place)} {cell(own, 1)}"
    side = "end" if own > 0.8 * most else "start"
    line = f'<path d="M{x} 0V{high - 16}" class="own"/><text x="{x + (-6 if side == "end" else 6)}" y="11" '
    line += f'text-anchor="{side}" class="own">{escape(name)}</text>'
    ticks = "".join(
        f'<text x="{_x(at)}" y="{high - 3}" text-anchor="middle" class="small">{cell(at * most, 1)}</text>'
        for at in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    axis = f'<path d="M{_EDGE} {high - 16}H{_EDGE + _WIDE}" class="rule"/>'
    of = control_texts(result, len(best))
    title = f"How clear of its own controls a head stands, in its spread: the clearest of each of {of}, and "
    title += named(result, place)
    told = escape(f"{title}: {name}, controls {cell(float(best.min()), 1)} to {cell(float(best.max()), 1)}")
    drawn = f'<svg width="{_WIDE + 2 * _EDGE}" height="{high}" class="spread" role="img" aria-label="{told}">'
    return f'<h2>{escape(title)}</h2><div class="wide">{drawn}{axis}{dots}{line}{ticks}</svg></div>'


def _x(share: float) -> float:
    return round(_EDGE + share * _WIDE, 1)
