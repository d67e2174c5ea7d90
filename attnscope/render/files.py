"""What other programs read: JSON, CSV and npz, full precision, the verdict and the provenance in each; and of
claims a program that computes them again (`attnscope.render.script`). What one kind alone has, as subtitles
of words that are timed, is in `attnscope.render.subtitles`.

`FORMATS` is the table of them by suffix. JSON and npz are written, and read again, in
`attnscope.results.stored`; CSV in `table`. A further format is a function from a result to text or bytes
and its entry in the table.
"""

from collections.abc import Callable, Mapping

from attnscope.render.script.figures import SCRIPTS
from attnscope.render.script.written import as_script
from attnscope.render.sheets import sheet_of
from attnscope.render.subtitles import OWN
from attnscope.render.table import as_csv
from attnscope.results import Result
from attnscope.results.stored import document
from attnscope.results.stored.document import as_npz


def said(result: Result) -> dict[str, str]:
    """The sentence that answers and the command that leads on, as the screen has them."""
    sheet = sheet_of(result)
    told = {"answer": sheet.answer, "next": sheet.next.command if sheet.next else ""}
    return {key: words for key, words in told.items() if words}


def as_json(result: Result) -> str:
    """One document, one key a line."""
    return document.as_json(result, said(result))


def as_json_line(result: Result, first: Mapping[str, object]) -> str:
    """One document on one line, behind what comes `first`."""
    return document.as_json_line(result, said(result), first)


FORMATS: dict[str, Callable[[Result], str | bytes]] = {".npz": as_npz, ".csv": as_csv, ".json": as_json}
SCRIPT = ".py"


def formats(kind: type[Result]) -> tuple[str, ...]:
    """Which of these there are of one kind of result, by their suffixes."""
    return *FORMATS, *OWN.get(kind, ()), *([SCRIPT] if kind in SCRIPTS else [])


def numbers(result: Result, suffix: str) -> bytes:
    """The file of a result that `suffix` names, one of its `formats`."""
    own = FORMATS | OWN.get(type(result), {})
    content = as_script(result) if suffix == SCRIPT else own[suffix](result)
    return content.encode() if isinstance(content, str) else content


__all__ = ["FORMATS", "SCRIPT", "as_csv", "as_json", "as_json_line", "as_npz", "formats", "numbers"]
