"""Sentences in a terminal: the question and the sentence; with -v its figures, and the command for more."""

from collections.abc import Iterator

from rich.style import Style
from rich.text import Text

from attnscope.render.kit.cells import DIM
from attnscope.render.kit.words.command import continued
from attnscope.render.sheet.drawings import Statement, Statements
from attnscope.render.terminal.ranking import folded, parted

_INDENT = "  "
_MORE = "-v has the figures of each sentence, and the command that shows more"


def statements(block: Statements, width: int) -> list[Text]:
    """One below the other, each behind its question, or with all that belongs to it."""
    if block.whole:
        return [line for each in block.statements for line in _lines(each, width)]
    told = [line for each in block.statements for line in _brief(each, width)]
    return [*told, *folded(Text(_MORE, style=DIM), width)]


def _brief(told: Statement, width: int) -> Iterator[Text]:
    yield from parted(Text.assemble((told.question, "bold"), f" {told.sentence}"), width)
    yield from () if told.command else _indented(told.figures, DIM, width)


def _lines(told: Statement, width: int) -> Iterator[Text]:
    yield from folded(Text(told.question, style="bold"), width)
    yield from _indented(told.sentence, "", width)
    yield from _indented(told.figures, DIM, width)
    for line in continued(told.command) if told.command else ():
        yield from (Text(line, style=DIM),) if len(line) <= width else folded(Text(line, style=DIM), width)


def _indented(text: str, style: str | Style, width: int) -> Iterator[Text]:
    for line in folded(Text(text), width - len(_INDENT)) if text else ():
        yield Text(_INDENT + line.plain, style=style)
