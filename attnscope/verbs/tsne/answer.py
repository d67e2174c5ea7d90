"""Answers `tsne`: a t-SNE map of the queries and keys of one head."""

from attnscope.results import HeadView, Projection
from attnscope.session.choosing import Chosen
from attnscope.session.opening import aim_at, map_head
from attnscope.session.question import Answer
from attnscope.session.questions.heads import OpenedHeads
from attnscope.session.reading import Reading
from attnscope.verbs.tsne.question import Map


def map_of(reading: Reading, chosen: Chosen, asked: Map) -> Answer[Projection]:
    """Map the queries and keys of one head; several tokens that are named together are one point."""
    head = OpenedHeads(reading, chosen).head()
    seen = aim_at(head, asked.looking, asked.query, asked.key, asked.compare_query)
    view = seen.shown if isinstance(seen.shown, HeadView) else None
    queries = [each for each in (seen.query, seen.beside) if each is not None]
    result = map_head(head, asked.settings, reading.listener, view)
    return Answer(
        result,
        {"queries": tuple(queries), "key": seen.key},
        every_head=lambda: [result],
        drawn_by=(asked.looking, asked.settings, queries, seen.key),
    )
