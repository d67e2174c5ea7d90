"""What a console shows of one head, from its header to its last row."""

from rich.console import RenderableType

from attnscope.render.focus import Focus
from attnscope.render.head.bars import query_bars
from attnscope.render.head.matrix import matrix
from attnscope.render.head.vector import vector
from attnscope.render.kit.stage import VECTORS, only, panel
from attnscope.render.kit.words.certificate import certificate_line
from attnscope.render.kit.words.header import header
from attnscope.render.kit.words.weights import head_of
from attnscope.results import HeadView, HeadWeights

Lines = list[RenderableType]


def introduced(head: HeadWeights, focus: Focus, *body: RenderableType) -> Lines:
    """What is shown of a head below its header and its certificate."""
    return [header(head), certificate_line(head.certificate, focus.verbose), "", *body]


def head_shown(result: HeadWeights | HeadView, width: int, focus: Focus) -> Lines:
    """The matrix of one stage, or of one query its bars or its vector."""
    if focus.query is not None and focus.stage in VECTORS:
        head, row = head_of(result), only(panel(result, focus.stage), focus.query)
        return introduced(head, focus, vector(head, row, focus.query, width))
    if focus.query is None:
        return introduced(head_of(result), focus, matrix(result, focus.stage, width, focus.scale, focus.rows))
    return introduced(head_of(result), focus, query_bars(result, focus.query, width, focus.key))
