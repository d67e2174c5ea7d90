"""`attnscope report`: one head and one of its queries on one page."""

from typing import TYPE_CHECKING

from attnscope.cli.asking import Answer, Question
from attnscope.cli.naming import own_place
from attnscope.cli.options.delivery import PictureDelivery
from attnscope.cli.options.inputs import ArticleRead, Writing
from attnscope.cli.options.model import ArticleHead, Request
from attnscope.cli.options.shown import Looking, MapOptions, Query
from attnscope.cli.output import Output, check_delivery

if TYPE_CHECKING:
    from attnscope.render.web.room import Beside
    from attnscope.results import Report, Result
    from attnscope.session.choosing import Chosen
    from attnscope.session.reading import Reading


def report(
    read: ArticleRead,
    wanted: ArticleHead,
    query: Query = None,
    *,
    delivery: PictureDelivery,
    looking: Looking,
    mapping: MapOptions,
    writing: Writing,
    request: Request,
    output: Output,
) -> None:
    """Put one head on one page, for a talk or a paper.

    Prediction, scores, weights, map, contributions and certificate; a PDF has one panel a page. Without
    --query the page is about the first [MASK], in a decoder about the last token, else about the token that
    is most sure of one key.
    """
    settings = mapping.settings()
    check_delivery(delivery, "Report")
    inputs = read.inputs(writing)
    from attnscope.session.looking import single_named
    from attnscope.session.opening import Purpose

    with output.importing():
        from attnscope.session.questions.heads import OpenedHeads
        from attnscope.session.questions.prediction import ONE_QUERY, check_looking, report_head

    check_looking(looking)
    names = single_named(query, ONE_QUERY)

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        assert chosen is not None, "a head is wanted"
        head = OpenedHeads(reading, chosen).head()
        result = report_head(reading, head, query, looking, settings)
        place = own_place("report", head, (looking, settings, result.query), read.media)
        return Answer(
            result, every_head=lambda: [result], place=place, page=lambda: _page(reading, chosen, result)
        )

    question = Question(ask, request, read, wanted, delivery, output, names=names)
    question.put(inputs, Purpose.ATTENTION_AND_ANSWER)


def _page(reading: "Reading", chosen: "Chosen", report: "Report") -> "tuple[Result, Beside]":
    from attnscope.render.web.room import Beside
    from attnscope.session.questions.media import laid_over

    laid = laid_over(reading, report.head, report.query) if reading.lies_over_medium(chosen) else None
    return report, Beside(laid=laid)
