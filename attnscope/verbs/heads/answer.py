"""Heads as they are shown: one in full, several at a glance or in small, in tiles, over a medium."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from attnscope.errors import InputError
from attnscope.results import HeadTerms, HeadView, HeadWeights, Overview
from attnscope.session.choosing import Chosen
from attnscope.session.opening import ENTROPY, aim_at, overview_aimed
from attnscope.session.question import Answer
from attnscope.session.questions import pages
from attnscope.session.questions.heads import OpenedHeads, lay_over
from attnscope.session.questions.rows import in_tiles
from attnscope.session.reading import Reading
from attnscope.verbs.heads.long import read_long, read_long_overview
from attnscope.verbs.heads.measured import read_measured
from attnscope.verbs.heads.question import AtAGlance, ShowHeads
from attnscope.vocabulary import Stage


def at_a_glance(reading: Reading, chosen: Chosen, asked: AtAGlance) -> Overview:
    """The chosen heads in tiles where that is worth it or asked for, else with all pairs held."""
    if not asked.whole and asked.query is None:
        against = "words and special tokens need all queries by all keys" if asked.looking.changes else ""
        if in_tiles(reading, chosen, asked.tiled, against):
            return read_long_overview(reading, chosen, asked)
    return _overview(OpenedHeads(reading, chosen), asked)


def show(reading: Reading, chosen: Chosen, asked: ShowHeads) -> Answer[Any]:
    """What is shown of the chosen heads.

    Raises `InputError` for what is asked for and cannot be had so, `DoesNotFitError` where nothing fits.
    """
    if _is_tiled(reading, chosen, asked):
        return _in_tiles(reading, chosen, asked)
    if reading.lies_over_medium(chosen) and not asked.grid and asked.measure is None:
        asked.check_over_medium()
        if chosen.one or asked.key is None:
            return _over_medium(reading, chosen, asked)
    heads = OpenedHeads(reading, chosen)
    if asked.grid:
        return _in_small(heads, asked)
    if asked.in_full(heads.one):
        return _in_full(heads, asked)
    if asked.files.paged and not asked.whole:
        heads = OpenedHeads(pages.kept(reading, chosen, asked.measures), chosen)
    overview = _overview(heads, asked)
    return Answer(
        overview,
        {"in_nats": asked.measure is not None},
        every_head=lambda: heads.one_by_one(asked.looking),
        beside=partial(_beside, heads, overview),
    )


def _is_tiled(reading: Reading, chosen: Chosen, asked: ShowHeads) -> bool:
    window = asked.zoom is not None or asked.pool is not None
    if chosen.mean:
        if window or asked.tiled:
            raise InputError("--tiled, --zoom and --pool show one head: leave --head mean out")
        return False
    if window and not chosen.one:
        raise InputError("--zoom and --pool show one head: give one --layer and one --head")
    if window and asked.tiled is False:
        raise InputError("--zoom and --pool are of tiles: leave --dense out")
    return in_tiles(reading, chosen, True if window else asked.tiled, asked.against_tiles(chosen.one))


def _in_tiles(reading: Reading, chosen: Chosen, asked: ShowHeads) -> Answer[Any]:
    if not chosen.one:
        return Answer(read_long_overview(reading, chosen, asked))
    return Answer(read_long(reading, chosen, asked), {"scale": asked.scale, **asked.listed})


def _over_medium(reading: Reading, chosen: Chosen, asked: ShowHeads) -> Answer[Any]:
    found = lay_over(reading, chosen, asked.query or None)
    key = None
    if asked.key is not None:
        key = found.head.key_tokens.position(asked.key)  # type: ignore[union-attr] # with a key there is one
    return Answer(found, {"key": key, "scale": asked.scale})


def _in_small(heads: OpenedHeads, asked: ShowHeads) -> Answer[Any]:
    focus = {"scale": asked.scale}
    if not asked.files.paged:
        return Answer(heads.thumbnails(asked.looking), focus)
    small, beside = pages.read_small(heads.reading, heads.chosen, asked.looking)
    return Answer(small, focus, beside=lambda: beside)


def _in_full(heads: OpenedHeads, asked: ShowHeads) -> Answer[Any]:
    if asked.dims:
        pair = heads.dimensions(asked.query, asked.key)
        return Answer(pair, asked.listed, every_head=lambda: [pair])
    result: HeadTerms | HeadWeights | HeadView
    if not asked.terms and asked.show == Stage.WEIGHTS:
        seen = aim_at(heads.weights(asked.show), asked.looking, asked.query, asked.key)
        result, query, key = seen.shown, seen.query, seen.key
    else:
        result = heads.terms() if asked.terms else heads.weights(asked.show)
        head = result.head if isinstance(result, HeadTerms) else result
        keys = head.key_tokens
        queries = keys if asked.show in (Stage.K, Stage.V) else head.query_tokens  # whose vectors these are
        query = None if asked.query is None else queries.position(asked.query)
        key = None if asked.key is None else keys.position(asked.key)
    focus = {
        "stage": asked.show.value,
        "queries": () if query is None else (query,),
        "key": key,
        "scale": asked.scale,
        **asked.listed,
    }
    return Answer(result, focus, every_head=lambda: [result])


def _overview(heads: OpenedHeads, asked: AtAGlance | ShowHeads) -> Overview:
    measures, looking = asked.measures, asked.looking
    if asked.whole:
        return read_measured(heads, asked)
    overview = heads.overview(measures or ENTROPY, looking)
    if asked.query is None:
        return overview
    return overview_aimed(overview, asked.query, asked.key, measures, looking)


def _beside(heads: OpenedHeads, overview: Overview) -> Mapping[str, Any]:
    reading, chosen, found = heads.reading, heads.chosen, overview.tokens or overview
    opening = pages.most_telling(reading, chosen, found) if overview.aim is None else None
    full = pages.heads_in_full(reading, chosen, found, None if opening is None else opening.link)
    return {"full": full, "opening": opening}
