"""Heads of a text that is too long to hold all queries by all keys, shown in tiles."""

from attnscope.analysis.heads.long import measure_long, read_long_head
from attnscope.measures import MEASURES
from attnscope.measures.registry import needs_norms
from attnscope.results import LongHead, Overview
from attnscope.session.choosing import Chosen
from attnscope.session.opening import ENTROPY
from attnscope.session.questions.heads import with_apart
from attnscope.session.questions.rows import captured_long, in_tiles
from attnscope.session.reading import Reading
from attnscope.session.selection import window
from attnscope.verbs.heads.question import AtAGlance, Long, ShowHeads
from attnscope.vocabulary import Pool


def read_long(reading: Reading, chosen: Chosen, asked: Long | ShowHeads) -> LongHead:
    """The one chosen head, in blocks; with a `zoom` ("1000-1063:900-1100") that window of it."""
    layer, head = chosen.only()
    queries, keys = reading.sides(chosen.kind)
    seen = None if asked.zoom is None else window(asked.zoom, len(queries), len(keys))
    row = None if asked.query is None else queries.position(asked.query)
    pool = Pool(asked.pool or Pool.MEAN)
    with reading.listener.working("reading the attention in tiles"):
        captured = captured_long(reading, chosen)
        return read_long_head(captured, layer, head, block=chosen.block, zoom=seen, query=row, pool=pool)


def long_head(reading: Reading, chosen: Chosen, asked: Long) -> LongHead:
    """As `read_long`, whatever all pairs cost; `InputError` where there are no tiles."""
    in_tiles(reading, chosen, True)
    return read_long(reading, chosen, asked)


def read_long_overview(reading: Reading, chosen: Chosen, asked: AtAGlance | ShowHeads) -> Overview:
    """The chosen heads in the chosen layers, each by all measures of this text."""
    measures = asked.measures or ENTROPY
    of_text = tuple(name for name in measures if not MEASURES[name].description.apart) or ENTROPY
    with reading.listener.working("reading the attention in tiles"):
        captured = captured_long(reading, chosen, projections=needs_norms(of_text))
        among_all = asked.looking.links_among_all
        overview = measure_long(captured, chosen.heads, chosen.block, of_text, among_all=among_all)
    return with_apart(reading, chosen, overview, measures)
