"""One head and one of its queries, with everything that goes on its page."""

from attnscope.analysis import report as analysis
from attnscope.results import HeadAttention, MapSettings, Report
from attnscope.session.looking import look_at
from attnscope.session.questions.maps import map_head
from attnscope.session.questions.prediction import predict_beside
from attnscope.session.reading import Reading
from attnscope.session.request import Looking


def report_head(
    reading: Reading,
    head: HeadAttention,
    query: str | None = None,
    looking: Looking = Looking(),  # noqa: B008 - frozen
    settings: MapSettings = MapSettings(),  # noqa: B008
) -> Report:
    """The report on one query of `head`, by default the one that `analysis.report.default_query` finds."""
    view, tokens = look_at(head, looking), head.query_tokens
    position = (
        analysis.default_query(head, reading.encoded.mask_id) if query is None else tokens.position(query)
    )
    projection = map_head(head, settings, reading.listener)
    return analysis.compose_report(projection, position, predict_beside(reading, head.kind), view)
