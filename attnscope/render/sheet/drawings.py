"""What a page draws of any result beside rankings, curves and grids: a text as it reads, a heap of dots."""

from dataclasses import dataclass
from typing import cast

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.scale import Scale as Weights
from attnscope.render.kit.stage import Panel
from attnscope.render.sheet.blocks import Dimensions, Drawing, Matrix
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.table import Form
from attnscope.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Passage(Drawing):
    """A text as it reads, each token on the shade of its number; NaN where it has none.

    The `chosen` tokens have a frame. `says` is told below the title.
    """

    title: str
    tokens: Tokens
    values: Float[np.ndarray, " token"]
    scale: Scale | Weights
    form: Form
    chosen: frozenset[int] = frozenset()
    says: str = ""


@dataclass(frozen=True, eq=False)
class Heap(Drawing):
    """Numbers of one kind as dots on one axis, and among them the one that they are held against.

    `dots` says what a dot is, `name` whose number `own` is, `measured` what all of them are in.
    """

    title: str
    dots: str
    values: tuple[float, ...]
    name: str
    own: float
    measured: str
    form: Form


@dataclass(frozen=True)
class Tie:
    """A line between a word on the left and one on the right, as strong as its share of 1.

    It is `broken` where only one side sees it; `told` is what is read at it.
    """

    left: int
    right: int
    strength: float
    broken: bool
    told: str


@dataclass(frozen=True, eq=False)
class Linked(Drawing):
    """Two columns of words with lines between those that belong together, under the name of each side."""

    title: str
    sides: tuple[str, str]
    left: tuple[str, ...]
    right: tuple[str, ...]
    ties: tuple[Tie, ...]
    says: str = ""


@dataclass(frozen=True)
class Statement:
    """One sentence under the question that it answers, its figures, and the command that shows more."""

    question: str
    sentence: str
    figures: str = ""
    command: str = ""


@dataclass(frozen=True, eq=False)
class Statements(Drawing):
    """Sentences that belong together, in their order; a terminal has figures and commands of them `whole`."""

    title: str
    statements: tuple[Statement, ...]
    whole: bool = False


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
