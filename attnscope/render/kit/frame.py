"""What stands around bars: the names of their rows, and the edges of the frame that are left."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from attnscope.render.kit.palette import FAINT, INK


def only_spines(axes: Axes, *kept: str) -> None:
    """Of the frame around `axes` only the `kept` edges."""
    for name, spine in axes.spines.items():
        spine.set_visible(name in kept)
        spine.set_color(FAINT)


def named_rows(axes: Axes, names: Sequence[str], places: Sequence[int], measured: str, size: float) -> None:
    """One row below the other, at its place and by its name, over one axis that says what is measured."""
    axes.set_ylim((places[-1] if places else 0) + 0.6, -0.6)
    axes.set_yticks(places, names, size=size)
    axes.tick_params(axis="y", length=0, pad=5, colors=INK)  # clear of a ring at 0
    axes.tick_params(axis="x", labelsize=size, length=2, colors=INK)
    axes.set_xlabel(measured, size=size, color=INK)
    only_spines(axes, "bottom")
