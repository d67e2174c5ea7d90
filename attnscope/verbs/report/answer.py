"""The report on one query of a head."""

from typing import Any

from attnscope.session.choosing import Chosen
from attnscope.session.opening import look_at, map_head
from attnscope.session.question import Answer
from attnscope.session.questions.heads import OpenedHeads, laid_over
from attnscope.session.reading import Reading
from attnscope.session.which import Name
from attnscope.tokens import Tokens
from attnscope.verbs.predict.answer import predict_beside
from attnscope.verbs.report import composing as analysis
from attnscope.verbs.report.question import ReportHead
from attnscope.verbs.report.result import Report

ONE_QUERY = "a report is of one query, whose scores and output it takes apart"


def report(reading: Reading, chosen: Chosen, asked: ReportHead) -> Answer[Report]:
    """The report on one query of the head, by default the `default_query` of its weights."""
    head = OpenedHeads(reading, chosen).head()
    view, query = look_at(head, asked.looking), _position(head.query_tokens, asked.query)
    if query is None:
        query = analysis.default_query(head, reading.encoded.mask_id)
    projection = map_head(head, asked.settings, reading.listener)
    result = analysis.compose_report(projection, query, predict_beside(reading, head.kind), view)

    def laid() -> dict[str, Any]:
        over = reading.lies_over_medium(chosen)
        return {"laid": laid_over(reading, result.head, result.query) if over else None}

    drawn_by = asked.looking, asked.settings, result.query
    return Answer(result, every_head=lambda: [result], beside=laid, drawn_by=drawn_by)


def check_query(chosen: Chosen, queries: Tokens | None, keys: Tokens, asked: ReportHead) -> None:
    """`InputError` for a query that is not there, or is several tokens."""
    if queries is not None:
        _position(queries, asked.query)


def _position(tokens: Tokens, query: Name | None) -> int | None:
    return None if query is None else tokens.span(query).one(f"{ONE_QUERY}, choose one of these")
