"""A result as CSV: comment lines with verdict and provenance, one heading line, then one row per fact."""

import csv
import io
from collections.abc import Iterator, Mapping
from functools import singledispatch
from typing import Any

from attnscope.render.kit.words.certificate import certificate_words
from attnscope.render.kit.words.weights import special_words
from attnscope.results import HeadWeights, Overview, Result
from attnscope.results.stored.document import document
from attnscope.tokens import Tokens, printable

Row = tuple[object, ...]
# ends of columns that are names, even where they look like numbers or are empty
CALLED = ("token", "tokens", "label", "name", "tower", "side")


def as_csv(result: Result) -> str:
    """Long form: a row per query and key, or per layer and head; floats as Python's shortest exact form."""
    buffer = io.StringIO()
    buffer.writelines(f"# {key}: {printable(str(value))}\n" for key, value in comments(result))
    csv.writer(buffer, lineterminator="\n").writerows(rows(result))
    return buffer.getvalue()


@singledispatch
def comments(result: Result) -> Iterator[tuple[str, object]]:
    """What stands above the heading line: what this is, what proves it, where it comes from."""
    record = document(result)
    for key in ("schema", "name", "kind", "tower", "layer", "head", "block", "module", "verdict"):
        if key in record and not isinstance(record[key], list):
            yield key, record[key]
    if isinstance(result, HeadWeights | Overview) and (special := special_words(result.special_mass)):
        yield "special tokens", special
    if isinstance(result, HeadWeights):
        yield "certificate", certificate_words(result.certificate)
    if isinstance(result, HeadWeights | Overview):
        yield from (("note", note) for note in result.notes)
    if isinstance(result, Overview):
        yield from ((name, each.absent) for name, each in result.scores.items() if each.absent)
    yield from provenance_comments(record)
    texts = [tuple(record[key]) for key in ("texts", "query_texts", "key_texts") if key in record]
    for text in dict.fromkeys(texts):
        yield from (("text", each) for each in text)


def provenance_comments(record: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Where the numbers of a document come from, as comments."""
    for key, value in record["provenance"].items():
        if isinstance(value, dict):
            value = ", ".join(f"{name} {version}" for name, version in sorted(value.items()))
        elif isinstance(value, list | tuple):
            value = " ".join(map(str, value))
        yield key, "" if value is None else value


@singledispatch
def rows(result: Result) -> Iterator[Row]:
    """The heading line and the rows below it. One registration a result."""
    raise NotImplementedError(type(result))


def place(tokens: Tokens, position: int) -> Row:
    """Position and label, both empty where there is none."""
    return ("", "") if position < 0 else (position, tokens.labels[position])


def exact(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(float(value))
