"""What other programs read: JSON, CSV and npz, full precision, the verdict and the provenance in each; and of
claims a program that computes them again (`attnscope.render.script`).

`FORMATS` is the table of them by suffix. JSON and npz are written, and read again, in
`attnscope.results.stored`; CSV in `table`. A further format is a function from a result to text or bytes
and its entry in the table.
"""

from collections.abc import Callable

from attnscope.render.script.figures import SCRIPTS
from attnscope.render.script.written import as_script
from attnscope.render.table import as_csv
from attnscope.results import Result
from attnscope.results.stored.document import as_json, as_npz

FORMATS: dict[str, Callable[[Result], str | bytes]] = {".npz": as_npz, ".csv": as_csv, ".json": as_json}
SCRIPT = ".py"


def formats(kind: type[Result]) -> tuple[str, ...]:
    """Which of these there are of one kind of result, by their suffixes."""
    return (*FORMATS, SCRIPT) if kind in SCRIPTS else tuple(FORMATS)


def numbers(result: Result, suffix: str) -> bytes:
    """The file of a result that `suffix` names, one of its `formats`."""
    content = as_script(result) if suffix == SCRIPT else FORMATS[suffix](result)
    return content.encode() if isinstance(content, str) else content


__all__ = ["FORMATS", "SCRIPT", "as_csv", "as_json", "as_npz", "formats", "numbers"]
