"""`attnscope heads --terms`: the scores of one head taken apart."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.output import Output, finish, save
from attnscope.cli.session import Session
from attnscope.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnscope.results import HeadTerms

Terms = Annotated[
    bool,
    typer.Option(
        "--terms",
        help="Take the scores of one head apart: product, scale, cap, positions, mask; with --query for "
        "every key of one query, and with --key for one pair.",
        show_default=False,
    ),
]


def check_terms(terms: bool, *, key: str | None, query: str | None, others: list[str]) -> None:
    """Refuse what does not go with --terms, and --key without what it needs."""
    if key is not None and (query is None or not terms):
        raise InputError("--key needs --terms and --query: the score of one pair is taken apart")
    if terms and others:
        raise InputError(f"--terms is about the scores of single tokens: leave {' and '.join(others)} out")


def show_terms(
    session: Session, output: Output, targets: list[Path], *, query: str | None, key: str | None, json: bool
) -> None:
    """One head's scores taken apart, on the screen and in files; `InputError` for several heads."""
    layer, head = session.only()
    with output.working("reading the attention"):
        from attnscope.analysis.terms import head_terms

        result = head_terms(session.capture(), layer, head, session.block)
    shown = result.head
    position = None if query is None else shown.query_tokens.position(query)
    key_position = None if key is None else shown.key_tokens.position(key)
    save(output, targets, result, lambda: _figure(result))
    if json:
        output.document(result)
    else:
        from attnscope.render import screen as terminal

        body = (
            terminal.terms(result)
            if position is None
            else terminal.query_terms(result, position, key_position, output.width)
        )
        output.show(terminal.header(shown), terminal.certificate_line(shown.certificate), "", body)
    finish(shown.certificate.verdict)


def _figure(result: "HeadTerms") -> "Figure":
    from attnscope.render.terms.figure import terms_figure

    return terms_figure(result)
