"""`attnscope tsne`: the queries and keys of one head in one map."""

from typing import Annotated

import typer

from attnscope.cli import options
from attnscope.cli.groups import (
    ArticleHead,
    ArticleRead,
    MapOptions,
    PictureDelivery,
    Request,
    Writing,
)
from attnscope.cli.output import Output, check_delivery, or_default
from attnscope.errors import InputError

CompareQuery = Annotated[
    str | None,
    typer.Option(
        "--compare-query", metavar="TOKEN", help="A second query beside --query, in a panel of its own."
    ),
]


def tsne(
    read: ArticleRead,
    wanted: ArticleHead,
    query: options.Query = None,
    compare_query: CompareQuery = None,
    key: options.Key = None,
    *,
    delivery: PictureDelivery,
    mapping: MapOptions,
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
    check_delivery(delivery, "Projection")
    inputs = read.inputs(writing)
    from attnscope.render.focus import Focus
    from attnscope.session.heads import read_head
    from attnscope.session.maps import map_head
    from attnscope.session.reading import open_chosen

    reading, chosen = open_chosen(request, inputs, wanted, output)
    head = read_head(reading, chosen)
    queries = [head.query_tokens.position(name) for name in (query, compare_query) if name is not None]
    place = None if key is None else head.key_tokens.position(key)
    delivery = or_default(delivery, "tsne", head)
    output.deliver(map_head(head, settings, output), delivery, Focus(queries=tuple(queries), key=place))
