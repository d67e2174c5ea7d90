"""A result as a matplotlib figure, and a figure as the same bytes every time.

Figures are made without pyplot, on a light page that is as large as its labels need. The `plot` modules of
the rooms draw the same on any Axes.
"""

from attnscope.render.comparison.figure import comparison_figure
from attnscope.render.head.figure import heatmap
from attnscope.render.kit.figure_file import FORMATS, Format, figure_bytes
from attnscope.render.kit.typesetting import missing_glyphs
from attnscope.render.map.figure import map_figure
from attnscope.render.overview.figure import overview_figure

__all__ = [
    "FORMATS",
    "Format",
    "comparison_figure",
    "figure_bytes",
    "heatmap",
    "map_figure",
    "missing_glyphs",
    "overview_figure",
]
