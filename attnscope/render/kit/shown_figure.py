"""A figure that a notebook shows by itself."""

import io

from matplotlib.figure import Figure

from attnscope.render.kit.typesetting import drawing


class ShownFigure(Figure):
    """As any other; without pyplot nothing else would show it where it is the last thing in a cell."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with drawing():
            self.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()
