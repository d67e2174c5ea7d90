"""A figure that a notebook shows by itself, and that is written as large as it was asked to be."""

import io
import re
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_pdf import Op, PdfFile, PdfPages
from matplotlib.figure import Figure

from attnscope.render.kit.typesetting import drawing

_SIDES = re.compile(r'(?<=\swidth=")([\d.]+)(pt"\s+height=")([\d.]+)(?=pt")')


class ShownFigure(Figure):
    """As any other; without pyplot nothing else would show it where it is the last thing in a cell.

    `zoom` is how large it is written, letters, lines and all: it was drawn 1 / `zoom` times as large.
    """

    zoom = 1.0

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with drawing():
            self.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()

    def savefig(self, fname: Any, **kwargs: Any) -> None:
        """As matplotlib's, `zoom` times as large."""
        if self.zoom == 1.0 or isinstance(fname, PdfPages):
            super().savefig(fname, **kwargs)
            return
        named = Path(fname).suffix[1:] if isinstance(fname, str | Path) else ""
        format = (kwargs.pop("format", None) or named or "png").lower()
        if format == "pdf":
            with ZoomedPages(fname, metadata=kwargs.pop("metadata", None)) as pages:
                pages.savefig(self, **kwargs)
        elif format == "svg":
            drawn = io.BytesIO()
            super().savefig(drawn, format=format, **kwargs)
            content = _SIDES.sub(self._larger, drawn.getvalue().decode(), count=1).encode()
            if hasattr(fname, "write"):
                fname.write(content)
            else:
                Path(fname).write_bytes(content)
        else:
            dpi = kwargs.pop("dpi", "figure")
            dots = self.dpi if dpi in (None, "figure") else float(dpi)
            super().savefig(fname, format=format, dpi=self.zoom * dots, **kwargs)

    def _larger(self, sides: re.Match[str]) -> str:
        width, height = (f"{self.zoom * float(side):.6g}" for side in (sides[1], sides[3]))
        return f"{width}{sides[2]}{height}"


class ZoomedPages(PdfPages):
    """The pages of a PDF, each as large as its figure is to be written."""

    def savefig(self, figure: Any = None, **kwargs: Any) -> None:
        self._ensure_file().zoom = getattr(figure, "zoom", 1.0)
        super().savefig(figure, **kwargs)  # type: ignore[no-untyped-call]

    def _ensure_file(self) -> "_ZoomedFile":
        if self._file is None:
            self._file = _ZoomedFile(self._filename, metadata=self._metadata)  # type: ignore[no-untyped-call]
        return self._file


class _ZoomedFile(PdfFile):
    zoom = 1.0

    def newPage(self, width: float, height: float) -> None:
        super().newPage(self.zoom * width, self.zoom * height)  # type: ignore[no-untyped-call]
        if self.zoom != 1.0:
            self.output(self.zoom, 0, 0, self.zoom, 0, 0, Op.concat_matrix)  # type: ignore[no-untyped-call]
