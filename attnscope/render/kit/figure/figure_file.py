"""A figure as a file: the same bytes every time."""

import io
from collections.abc import Sequence
from typing import Literal

from matplotlib.figure import Figure

from attnscope.errors import InputError
from attnscope.printable import printable
from attnscope.render.kit.figure.shown_figure import ZoomedPages
from attnscope.render.kit.typesetting import drawing
from attnscope.render.look import DPI

Format = Literal["png", "svg", "pdf"]
FORMATS: tuple[Format, ...] = ("png", "svg", "pdf")
_NO_TIME = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
_TOLD_AS = {"png": "Description", "svg": "Description", "pdf": "Subject"}  # where a file has room for words
_MOST_DOTS = 2**16 - 1  # of a side


def figure_bytes(
    figure: Figure | Sequence[Figure], format: Format, dpi: int = DPI, described: str = ""
) -> bytes:
    """The file of `figure`: the same bytes for the same result, without any time or random name in it.

    Several figures are the pages of one PDF. The file's metadata hold what is `described`. Raises
    `InputError` for more dots than a picture can have.
    """
    buffer = io.BytesIO()
    metadata = {**_NO_TIME[format], **({_TOLD_AS[format]: printable(described)} if described else {})}
    with drawing():
        if not isinstance(figure, Figure):
            with ZoomedPages(buffer, metadata=metadata) as pages:
                for page_figure in figure:
                    pages.savefig(page_figure, dpi=dpi)
        else:
            if format == "png":
                _check_dots(figure, dpi)
            figure.savefig(buffer, format=format, dpi=dpi, metadata=metadata)
    return buffer.getvalue()


def _check_dots(figure: Figure, dpi: int) -> None:
    zoom = getattr(figure, "zoom", 1.0)
    widest = zoom * max(figure.get_size_inches())
    if widest * dpi > _MOST_DOTS:
        most = int(_MOST_DOTS / widest)
        raise InputError(f"a PNG of {widest:.1f} inches has no room for {dpi} dots per inch: at most {most}")
