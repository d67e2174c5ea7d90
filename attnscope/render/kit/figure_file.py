"""A figure as a file: the same bytes every time."""

import io
from collections.abc import Sequence
from typing import Literal

from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from attnscope.render.kit.page import DPI
from attnscope.render.kit.typesetting import drawing

Format = Literal["png", "svg", "pdf"]
FORMATS: tuple[Format, ...] = ("png", "svg", "pdf")
_NO_TIME = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def figure_bytes(figure: Figure | Sequence[Figure], format: Format) -> bytes:
    """The file of `figure`: the same bytes for the same result, without any time or random name in it.

    Several figures are the pages of one PDF.
    """
    buffer = io.BytesIO()
    with drawing():
        if isinstance(figure, Figure):
            figure.savefig(buffer, format=format, dpi=DPI, metadata=_NO_TIME[format])
        else:
            with PdfPages(buffer, metadata=_NO_TIME["pdf"]) as pages:
                for page_figure in figure:
                    pages.savefig(page_figure, dpi=DPI)
    return buffer.getvalue()
