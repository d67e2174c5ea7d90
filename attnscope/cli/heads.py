"""`attnscope heads`: one head in full, or an overview of several."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli import options
from attnscope.cli.groups import Looking, Request, Wanted
from attnscope.cli.media import Media, SparedTexts, check_media, show_media
from attnscope.cli.output import NUMBERS, PICTURES, Output, check_targets, finish, save
from attnscope.cli.reading import one_head, several_heads
from attnscope.cli.session import Session, open_session
from attnscope.cli.terms import Terms, check_terms, show_terms
from attnscope.cli.writing import Writing
from attnscope.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnscope.results import HeadView, HeadWeights, Overview


class Show(StrEnum):
    """What of a head is tabulated."""

    WEIGHTS = "weights"
    SCORES = "scores"
    SCALED = "scaled"
    Q = "q"
    K = "k"
    V = "v"
    OUTPUT = "output"


Shown = Annotated[
    Show,
    typer.Option(
        "--show",
        help="What to tabulate; scores are q.k, scaled is what enters the softmax.",
    ),
]


def heads(
    texts: SparedTexts,
    media: Media,
    wanted: Wanted,
    query: options.QueryOverFile = None,
    show: Shown = Show.WEIGHTS,
    terms: Terms = False,
    key: options.Key = None,
    out: options.Out = None,
    json: options.Json = False,
    *,
    looking: Looking,
    writing: Writing,
    request: Request,
    output: Output,
) -> None:
    """Show what attention heads look at, recomputed and certified.

    With one --layer and one --head that head in full; otherwise an overview of the chosen heads.
    """
    if query is not None and show is not Show.WEIGHTS:
        raise InputError("--query shows the weights and scaled scores of one token: leave --show out")
    if looking.changes and show is not Show.WEIGHTS:
        raise InputError(
            f"--words and --special are about weights: --show {show.value} belongs to single tokens"
        )
    others = [f"--show {show.value}"] if show is not Show.WEIGHTS else []
    others += ["--words and --special"] if looking.changes else []
    check_terms(terms, key=key, query=query, others=others)
    targets = list(out or [])
    check_targets(targets, PICTURES + NUMBERS)
    if media.given:
        check_media([*others, *(["--terms"] if terms else []), *(["--generate"] if writing.generate else [])])
        show_media(media, texts, wanted, request, output, targets, query=query, json=json)
        return
    session = open_session(request, texts, wanted, output, writing=writing)
    if terms:
        show_terms(session, output, targets, query=query, key=key, json=json)
    elif len(session.layers) == len(session.heads) == 1:
        _one(session, output, targets, looking, query=query, show=show, json=json)
    else:
        if query is not None or show is not Show.WEIGHTS:
            raise InputError("--query and --show need one head: give one --layer and one --head")
        _several(session, output, targets, looking, json=json)


def _one(
    session: Session,
    output: Output,
    targets: list[Path],
    looking: Looking,
    *,
    query: str | None,
    show: Show,
    json: bool,
) -> None:
    with output.working("reading the attention"):
        head = one_head(session, output, show=show.value)
        result = looking.at(head) or head
    position = None if query is None else result.query_tokens.position(query)
    save(output, targets, result, lambda: _heatmap(result, show))
    if json:
        output.document(result)
    else:
        from attnscope.render import screen as terminal

        body = (
            terminal.matrix(result, show.value, output.width)
            if position is None
            else terminal.query_bars(result, position, output.width)
        )
        output.show(terminal.header(head), terminal.certificate_line(head.certificate), "", body)
    finish(head.certificate.verdict)


def _several(session: Session, output: Output, targets: list[Path], looking: Looking, *, json: bool) -> None:
    with output.working("reading the attention"):
        result = several_heads(session, output)
    if looking.changes:
        from attnscope.analysis.views import viewed_overview

        result = viewed_overview(result, words=looking.words, special=looking.special)
    save(output, targets, result, lambda: _overview_figure(result))
    if json:
        output.document(result)
    else:
        from attnscope.render import screen as terminal

        output.show(terminal.header(result), "", terminal.overview(result, output.width))
    finish(
        max((each.verdict for row in result.certificates for each in row), key=lambda verdict: verdict.rank)
    )


def _heatmap(result: "HeadWeights | HeadView", show: Show) -> "Figure":
    from attnscope.render.figure import heatmap

    return heatmap(result, show.value)


def _overview_figure(result: "Overview") -> "Figure":
    from attnscope.render.figure import overview_figure

    return overview_figure(result)
