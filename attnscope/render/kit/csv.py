"""Numbers and names as the rows of a table have them, and texts as a cell of a file can hold them."""

import re

from attnscope.printable import printable

Row = tuple[object, ...]
# ends of columns that are names, even where they look like numbers or are empty
CALLED = ("token", "tokens", "label", "name", "tower", "side")
# a cell's first character that is a formula's, and what follows up to where the next one could begin
_FORMULA = re.compile(r"""((?:^|[,;])[\s"]*)([=+\-@＝＋－＠][^,;]+)""")


def exact(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(float(value))


def cell(text: str) -> str:
    """`text` harmless on a screen and in a spreadsheet, which runs what begins with one of `= + - @`.

    An apostrophe before it keeps it a text: wherever a cell could begin in `text`, at its start and behind a
    comma or semicolon. A single such character is no formula, nor is a number.
    """
    return _FORMULA.sub(_kept_a_text, printable(text))


def _kept_a_text(begun: re.Match[str]) -> str:
    return begun[0] if _is_number(begun[2]) else f"{begun[1]}'{begun[2]}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
