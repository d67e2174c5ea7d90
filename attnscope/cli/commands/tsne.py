"""`attnscope tsne`: the queries and keys of one head in one map."""

from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.asking import Answer, Question
from attnscope.cli.naming import own_place
from attnscope.cli.options.delivery import PictureDelivery
from attnscope.cli.options.inputs import ArticleRead, Writing
from attnscope.cli.options.model import ArticleHead, Request
from attnscope.cli.options.shown import Key, Looking, MapOptions, Query
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import Brief
from attnscope.errors import InputError

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.reading import Reading

CompareQuery = Annotated[
    str | None,
    typer.Option(
        "--compare-query", metavar="TOKEN", help="A second query beside --query, in a panel of its own."
    ),
    Brief("a second query beside --query, in its own panel"),
]


def tsne(
    read: ArticleRead,
    wanted: ArticleHead,
    query: Query = None,
    compare_query: CompareQuery = None,
    key: Key = None,
    *,
    delivery: PictureDelivery,
    looking: Looking,
    mapping: MapOptions,
    writing: Writing,
    request: Request,
    output: Output,
) -> None:
    """Map a head's queries and keys, and say how far to trust it.

    Distance in the map is not attention: the figures beside it say for which heads the two agree.
    With --words a point is a word, the mean of its pieces; --query, --compare-query and --key name words.
    """
    if query is None and (compare_query is not None or key is not None):
        raise InputError("--compare-query and --key go with --query: name a query")
    settings = mapping.settings()
    check_delivery(delivery, "Projection")
    inputs = read.inputs(writing)
    from attnscope.render.focus import Focus
    from attnscope.results import HeadView
    from attnscope.session.looking import aim_at, link_named, map_head
    from attnscope.session.opening import Purpose
    from attnscope.session.questions.heads import OpenedHeads

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        assert chosen is not None, "a head is wanted"
        head = OpenedHeads(reading, chosen).head()
        seen = aim_at(head, looking, query, key, compare_query)
        view = seen.shown if isinstance(seen.shown, HeadView) else None
        queries = [each for each in (seen.query, seen.beside) if each is not None]
        focus = Focus(queries=tuple(queries), key=seen.key)
        place = own_place("tsne", head, (looking, settings, queries, focus.key), read.media)
        result = map_head(head, settings, output, view)
        return Answer(result, focus, every_head=lambda: [result], place=place)

    names = link_named(query, key, looking, compare_query)
    question = Question(ask, request, read, wanted, delivery, output, names=names)
    question.put(inputs, Purpose.ATTENTION)
