"""What other programs read: JSON, CSV and npz, full precision, the verdict and the provenance in each.

`FORMATS` is the table of them by suffix. JSON and npz are written, and read again, in
`attnscope.results.stored`; CSV in `table`, of what has no sheet
yet in the `csv` module of its room. A further format is a function from a
result to bytes and a line in the table, which may name the only results that it is for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attnscope.errors import InputError
from attnscope.render.head import csv as head
from attnscope.render.media import csv as media
from attnscope.render.table import as_csv
from attnscope.render.terms import csv as terms
from attnscope.render.web.page import PAGED, as_page
from attnscope.results import Result
from attnscope.results.stored.document import as_json, as_npz

# modules whose import registers the rows of their results
ROWS = (
    head,
    media,
    terms,
)


@dataclass(frozen=True)
class Format:
    """A file of numbers: its suffix, what writes it, and for which results (all, where none are named)."""

    suffix: str
    write: Callable[[Any], str | bytes]
    of: tuple[type, ...] = (object,)


FORMATS = (
    Format(".npz", as_npz),
    Format(".csv", as_csv),
    Format(".json", as_json),
    Format(".html", as_page, PAGED),
)


def suffixes(kind: type) -> tuple[str, ...]:
    """The suffixes of the files of numbers that there are of one kind of result."""
    return tuple(each.suffix for each in FORMATS if issubclass(kind, each.of))


def numbers(result: Result, suffix: str) -> bytes:
    """The file of a result that `suffix` names; `InputError` where there is none of this kind of result."""
    for each in FORMATS:
        if each.suffix == suffix and isinstance(result, each.of):
            content = each.write(result)
            return content.encode() if isinstance(content, str) else content
    raise InputError(f"no '{suffix}' of this result: {', '.join(suffixes(type(result)))}")


__all__ = ["FORMATS", "Format", "as_csv", "as_json", "as_npz", "numbers", "suffixes"]
