"""A matrix of a sheet as the panel that a terminal and a picture draw."""

from typing import cast

import numpy as np

from attnscope.render.kit.scale import Scale as Weights
from attnscope.render.kit.stage import Panel
from attnscope.render.sheet.blocks import Dimensions, Matrix
from attnscope.tokens import Tokens


def as_panel(block: Matrix) -> Panel:
    """Rows and columns under their names; weights on their scale, all else around 0.

    What draws a panel asks of its tokens names, positions and labels, which `Names` have too.
    """
    visible = ~np.isnan(block.values)
    vectors = isinstance(block.columns, Dimensions)
    weights = block.scale if isinstance(block.scale, Weights) else None
    return Panel(
        show="scaled" if weights is None else "weights",
        row_word=block.words[0],
        row_tokens=cast("Tokens", block.rows),
        column_tokens=None if vectors else cast("Tokens", block.columns),
        values=block.values,
        visible=visible,
        answered=visible.any(axis=1) | (not block.unanswered),
        unanswered=block.unanswered,
        limit=None if isinstance(block.scale, Weights) else block.scale.high,
        common=weights,
        form=block.form,
        columns=block.words[1],
    )
