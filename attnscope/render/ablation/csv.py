"""Heads taken away, as CSV: a row per head, the largest difference first; then those that were drawn."""

from collections.abc import Iterator

from attnscope.render.ablation.words import answer_words, rounding_words
from attnscope.render.kit.csv import Row, comments, exact, provenance_comments, rows
from attnscope.results import Ablation
from attnscope.results.claims.ablation import HeadEffect
from attnscope.results.stored.document import document

_NUMBERS = ("before", "after", "difference", "kl")


@rows.register
def _(result: Ablation) -> Iterator[Row]:
    yield "layer", "head", *_NUMBERS, "others_median", "beaten", "others", "estimate", "drawn"
    for one in result.heads:
        yield (*_row(one), "")
    for one in result.floor.random:
        yield (*_row(one), "random")
    ran = {(one.layer, one.head) for one in result.heads}
    for each in result.estimates:
        if (each.layer, each.head) not in ran:
            yield each.layer, each.head, "", "", "", "", "", "", "", exact(each.difference), ""


def _row(one: HeadEffect) -> tuple[object, ...]:
    beside = (_cell(one.chance), one.beaten, one.others) if one.others else ("", "", "")
    return (
        one.layer,
        one.head,
        *(exact(getattr(one, name)) for name in _NUMBERS),
        *beside,
        _cell(one.estimate),
    )


def _cell(value: float | None) -> str:
    return "" if value is None else exact(value)


@comments.register
def _(result: Ablation) -> Iterator[tuple[str, object]]:
    record = document(result)
    yield from ((key, record[key]) for key in ("schema", "kind", "tower", "verdict", "method", "how"))
    yield "answer", answer_words(result)
    yield "rounding", rounding_words(result)
    yield from (("note", told) for told in result.notes)
    yield from provenance_comments(record)
    yield from (("text", each) for each in record["texts"])
