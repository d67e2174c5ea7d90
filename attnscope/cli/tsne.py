"""`attnscope tsne`: the queries and keys of one head in one map."""

from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli import options
from attnscope.cli.groups import ArticleHead, ArticleTexts, Mapping, Request
from attnscope.cli.output import NUMBERS, PICTURES, Output, check_targets, finish, or_default, save
from attnscope.cli.session import open_session
from attnscope.cli.writing import Writing
from attnscope.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnscope.results import HeadAttention, MapSettings, Projection

CompareQuery = Annotated[
    str | None,
    typer.Option(
        "--compare-query", metavar="TOKEN", help="A second query beside --query, in a panel of its own."
    ),
]


def tsne(
    texts: ArticleTexts,
    wanted: ArticleHead,
    query: options.Query = None,
    compare_query: CompareQuery = None,
    key: options.Key = None,
    out: options.Picture = None,
    json: options.Json = False,
    *,
    mapping: Mapping,
    writing: Writing,
    request: Request,
    output: Output,
) -> None:
    """Map the queries and keys of one head, and say how far the map can be trusted.

    Distance in the map is not attention: the figures beside it say for which heads the two agree.
    """
    if query is None and (compare_query is not None or key is not None):
        raise InputError("--compare-query and --key go with --query: name a query")
    settings = mapping.settings()
    targets = list(out or [])
    check_targets(targets, PICTURES + NUMBERS)
    session = open_session(request, texts, wanted, output, writing=writing)
    head = session.head()
    queries = [head.query_tokens.position(name) for name in (query, compare_query) if name is not None]
    place = None if key is None else head.key_tokens.position(key)
    targets = or_default(targets, "tsne", head, json=json)
    result = mapped(head, settings, output)
    save(output, targets, result, lambda: _figure(result, queries, place))
    if json:
        output.document(result)
    else:
        from attnscope.render import screen as terminal

        certificate = terminal.certificate_line(head.certificate)
        body = terminal.projection(result, queries, place, output.width)
        output.show(terminal.header(head), certificate, "", body)
    finish(head.certificate.verdict)


def mapped(head: "HeadAttention", settings: "MapSettings", output: Output) -> "Projection":
    """The map of a head; what was done other than asked is said."""
    from attnscope.analysis.projection import projection

    with output.working("drawing the map"):
        result = projection(head, settings)
    if result.perplexity < result.wanted_perplexity:
        points = len(result.queries) + len(result.keys)
        lowered = f"perplexity lowered from {result.wanted_perplexity:g} to {result.perplexity:.3g}"
        output.notice(f"{lowered}, a third of the {points} points less one")
    if not result.settled:
        output.notice(
            f"the map had not settled after {result.iterations} iterations: --max-iter goes on for longer"
        )
    return result


def _figure(result: "Projection", queries: list[int], key: int | None) -> "Figure":
    from attnscope.render.figure import map_figure

    return map_figure(result, queries, key)
