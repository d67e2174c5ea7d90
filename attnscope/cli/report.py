"""`attnscope report`: one head and one of its queries on one page."""

from typing import TYPE_CHECKING

from attnscope.cli import options
from attnscope.cli.groups import ArticleHead, ArticleTexts, Looking, Mapping, Request
from attnscope.cli.output import NUMBERS, PICTURES, Output, check_targets, finish, or_default, save
from attnscope.cli.predict import answer
from attnscope.cli.session import Session, open_session, read_target
from attnscope.cli.tsne import mapped
from attnscope.cli.writing import Writing
from attnscope.errors import InputError

if TYPE_CHECKING:
    from attnscope.results import Prediction, Report

TOP = 5  # guesses of the prediction


def report(
    texts: ArticleTexts,
    wanted: ArticleHead,
    query: options.Query = None,
    out: options.Picture = None,
    json: options.Json = False,
    *,
    looking: Looking,
    mapping: Mapping,
    writing: Writing,
    request: Request,
    output: Output,
) -> None:
    """Put one head on a page: prediction, scores, weights, map, contributions and certificate.

    A PDF has one panel a page. Without --query the page is about the first [MASK], in a decoder
    about the last token, else about the token that is most sure of one key.
    """
    settings = mapping.settings()
    targets = list(out or [])
    check_targets(targets, PICTURES + NUMBERS)
    session = open_session(request, texts, wanted, output, answering=True, writing=writing)
    head = session.head()
    targets = or_default(targets, "report", head, json=json)
    from attnscope.analysis import report as analysis

    mask_id = session.encoded.mask_id
    view = looking.at(head)
    position = analysis.default_query(head, mask_id) if query is None else head.query_tokens.position(query)
    projection = mapped(head, settings, output)
    result = analysis.report(projection, position, _predicted(session, texts, output), view)
    from attnscope.render.report import page as report_page

    save(
        output,
        targets,
        result,
        lambda: report_page.report_figure(result),
        lambda: report_page.report_pages(result),
    )
    if json:
        output.document(result)
    else:
        _show(result, output)
    finish(head.certificate.verdict)


def _predicted(session: Session, texts: ArticleTexts, output: Output) -> "Prediction | None":
    """What the model predicts for the text, where it has a head for that and the text asks for something."""
    if session.task is None:
        return None
    target = session.target
    if session.kind == "encoder":
        target = read_target(session.model, session.encoded, None, output)
    try:
        return answer(
            session.model, session.task, session.encoded, target, TOP, output, pair=texts.pair is not None
        )
    except InputError as error:
        output.notice(f"no prediction: {error}")
        return None


def _show(result: "Report", output: Output) -> None:
    from attnscope.render import screen as terminal

    head = result.head
    output.show(terminal.header(head), terminal.certificate_line(head.certificate), "")
    if result.prediction is not None:
        output.show(terminal.prediction(result.prediction, output.width), "")
    output.show(terminal.report_lines(result, output.width))
