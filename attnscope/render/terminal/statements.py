"""Sentences in a terminal: the question, the sentence, its figures, and the command that shows more."""

from collections.abc import Iterator

from rich.style import Style
from rich.text import Text

from attnscope.render.kit.cells import DIM
from attnscope.render.kit.words.command import continued
from attnscope.render.sheet.drawings import Statement, Statements
from attnscope.render.terminal.ranking import folded

_INDENT = "  "


def statements(block: Statements, width: int) -> list[Text]:
    """One below the other; a command keeps its lines, which a shell takes as one, where they have room."""
    return [line for each in block.statements for line in _lines(each, width)]


def _lines(told: Statement, width: int) -> Iterator[Text]:
    yield from folded(Text(told.question, style="bold"), width)
    yield from _indented(told.sentence, "", width)
    yield from _indented(told.figures, DIM, width)
    for line in continued(told.command) if told.command else ():
        yield from (Text(line, style=DIM),) if len(line) <= width else folded(Text(line, style=DIM), width)


def _indented(text: str, style: str | Style, width: int) -> Iterator[Text]:
    for line in folded(Text(text), width - len(_INDENT)) if text else ():
        yield Text(_INDENT + line.plain, style=style)
