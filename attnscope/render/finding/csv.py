"""Heads ranked, as CSV: a row per head, the best first."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.finding.words import best_words, controls_words, remarks, subject
from attnscope.render.kit.csv import Row, comments, exact, provenance_comments, rows
from attnscope.results import Finding
from attnscope.results.stored.document import document

_OWN = ("weights", "ranks", "norms", "shares", "even")
_CONTROLS = ("mean", "low", "high", "percentile")


@rows.register
def _(result: Finding) -> Iterator[Row]:
    names = "weight", "rank", "norm", "norm_share", "even"
    control = *(f"control_{name}" for name in _CONTROLS), "difference", "followed"
    yield "layer", "head", *names, *control, "account", "verdict"
    for i, j in result.ranking:
        own = (_cell(getattr(result, name), i, j) for name in _OWN)
        beside = (_cell(getattr(result.controls, name), i, j) for name in _CONTROLS)
        rest = _cell(result.difference, i, j), _cell(result.followed, i, j)
        account = result.account((i, j)) or ""
        yield result.layers[i], result.heads[j], *own, *beside, *rest, account, result.verdicts[i][j].value


def _cell(values: np.ndarray | None, i: int, j: int) -> str:
    return "" if values is None or np.isnan(values[i, j]) else exact(values[i, j])


@comments.register
def _(result: Finding) -> Iterator[tuple[str, object]]:
    record = document(result)
    yield from ((key, record[key]) for key in ("schema", "kind", "tower", "verdict"))
    yield "subject", subject(result)
    yield "best", best_words(result)
    yield "controls", controls_words(result)
    yield from (("note", told) for told in (*remarks(result), *result.notes))
    yield from provenance_comments(record)
    texts = dict.fromkeys((*record["query_texts"], *record["key_texts"]))
    yield from (("text", each) for each in texts)
