"""`attnscope report`: one head and one of its queries on one page."""

from attnscope.cli import options
from attnscope.cli.groups import (
    ArticleHead,
    ArticleRead,
    Looking,
    MapOptions,
    PictureDelivery,
    Request,
    Writing,
)
from attnscope.cli.output import Output, check_delivery, or_default


def report(
    read: ArticleRead,
    wanted: ArticleHead,
    query: options.Query = None,
    *,
    delivery: PictureDelivery,
    looking: Looking,
    mapping: MapOptions,
    writing: Writing,
    request: Request,
    output: Output,
) -> None:
    """Put one head on a page: prediction, scores, weights, map, contributions and certificate.

    A PDF has one panel a page. Without --query the page is about the first [MASK], in a decoder
    about the last token, else about the token that is most sure of one key.
    """
    settings = mapping.settings()
    check_delivery(delivery, "Report")
    inputs = read.inputs(writing)
    from attnscope.session.entering import open_chosen
    from attnscope.session.opening import Purpose
    from attnscope.session.questions.heads import read_head
    from attnscope.session.questions.report import report_head

    reading, chosen = open_chosen(request, inputs, wanted, output, Purpose.ATTENTION_AND_ANSWER)
    head = read_head(reading, chosen)
    delivery = or_default(delivery, "report", head)
    output.deliver(report_head(reading, head, query, looking, settings), delivery)
