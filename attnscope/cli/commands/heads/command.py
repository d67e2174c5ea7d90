"""`attnscope heads`: one head in full, an overview of several, or either over a picture or a sound."""

from typing import TYPE_CHECKING

from attnscope.cli import options
from attnscope.cli.asking import Answer, Question, with_heads
from attnscope.cli.commands.heads.asked import HeadOptions
from attnscope.cli.groups import Delivery, Looking, Read, Request, Wanted, Writing, decoded
from attnscope.cli.long import Long, answered_in_tiles
from attnscope.cli.output import Output, check_delivery
from attnscope.errors import InputError
from attnscope.vocabulary import Scaling, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attnscope.cli.asking import OfHead
    from attnscope.render.focus import Focus
    from attnscope.render.web.beside import Beside
    from attnscope.results import Result
    from attnscope.session.choosing import Chosen
    from attnscope.session.reading import Reading


def heads(
    read: Read,
    wanted: Wanted,
    asked: HeadOptions,
    delivery: Delivery,
    *,
    looking: Looking,
    long: Long,
    writing: Writing,
    request: Request,
    output: Output,
    no_cache: options.NoCache = False,
) -> None:
    """Show what attention heads look at, recomputed and certified.

    With one --layer and one --head that head in full; otherwise an overview of the chosen heads.
    """
    asked.check(looking, read, writing)
    check_delivery(delivery, "HeadWeights")
    inputs, measures = read.inputs(writing), asked.measures
    from attnscope.session.opening import Purpose

    answers = asked.of_an_answer

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        assert chosen is not None, "heads are wanted"
        if (in_tiles := answered_in_tiles(reading, chosen, long, asked, looking, delivery)) is not None:
            return in_tiles
        if inputs.sensed and not asked.grid and measures is None:
            from attnscope.session.questions.media import lay_over

            return Answer(lay_over(reading, chosen, decoded(asked.query or "") or None))
        if asked.grid:
            return _grid(reading, chosen, asked, looking, paged=question.paged)
        if chosen.one or asked.terms or asked.dims:
            if measures is not None:
                raise InputError("--measure is about several heads: leave --head out, or name several")
            result, focus = _one(reading, chosen, asked, looking)
            return Answer(result, focus, each=lambda: [result])
        if asked.show is not Stage.WEIGHTS:
            raise InputError("--show needs one head: give one --layer and one --head")
        if asked.scale is not Scaling.AUTO:
            raise InputError("--scale needs one head: give one --layer and one --head")
        if question.paged and not answers:
            from attnscope.session.questions import pages

            reading = pages.kept(reading, chosen, measures or ())
        several = _several(reading, chosen, asked, looking)
        return Answer(
            several,
            each=lambda: _each(reading, chosen, looking),
            page=lambda: _page(reading, chosen, several),
        )

    cached = not no_cache and not long.asked
    question = Question(ask, request, read, wanted, delivery, output, whole=answers, cached=cached)
    question.put(inputs, Purpose.ANSWER_OR_CLASS if answers else Purpose.ATTENTION)


def _grid(
    reading: "Reading", chosen: "Chosen", asked: HeadOptions, looking: Looking, *, paged: bool
) -> Answer:
    """Every head in small; what a page shows of them is read at the same time."""
    from attnscope.render.focus import Focus

    focus = Focus(scale=asked.scale)
    if not paged:
        from attnscope.session.cache.answers import read_thumbnails

        return Answer(read_thumbnails(reading, chosen, looking), focus)
    from attnscope.session.questions.pages import read_small

    small, held = read_small(reading, chosen, looking)
    return Answer(small, focus, page=lambda: with_heads(small, held))


def _page(reading: "Reading", chosen: "Chosen", several: "Result") -> "tuple[Result, Beside]":
    """What a page of several heads is made of: the weights of all, and queries and keys of some."""
    from attnscope.render.web.beside import Beside
    from attnscope.results import Overview
    from attnscope.session.questions.pages import heads_in_full

    assert isinstance(several, Overview), "several heads are an overview"
    return several, Beside(heads_in_full(reading, chosen, several.tokens or several))


def _each(reading: "Reading", chosen: "Chosen", looking: Looking) -> "Iterator[OfHead]":
    """Every head as it is looked at, for a file of its own."""
    from attnscope.session.questions.heads import each_head

    return each_head(reading, chosen, looking)


def _several(reading: "Reading", chosen: "Chosen", asked: HeadOptions, looking: Looking) -> "Result":
    """The heads at a glance, by their measures or by what one query gives to a key in each."""
    from attnscope.session.cache.answers import ENTROPY, read_aimed, read_overview

    if asked.of_an_answer:
        from attnscope.session.attributing import Attributing
        from attnscope.session.questions.claims.attribution import read_measured

        answer = None if asked.answer is None else decoded(asked.answer)
        return read_measured(reading, chosen, asked.measures or (), looking, Attributing(answer))
    if asked.query is None:
        return read_overview(reading, chosen, asked.measures or ENTROPY, looking)
    return read_aimed(reading, chosen, asked.query, asked.key, asked.measures or (), looking)


def _one(
    reading: "Reading", chosen: "Chosen", asked: HeadOptions, looking: Looking
) -> "tuple[OfHead, Focus]":
    """One head as it is looked at, or its scores taken apart, and which query of it is meant."""
    from attnscope.render.focus import Focus, listed
    from attnscope.session.cache.answers import look_at, read_dimensions, read_terms, read_weights

    if asked.dims:
        pair = read_dimensions(reading, chosen, asked.query, asked.key)
        return pair, Focus(rows=listed(asked.rows))
    if asked.terms:
        terms = read_terms(reading, chosen)
        queries, keys = terms.head.query_tokens, terms.head.key_tokens
        result: OfHead = terms
    else:
        head = read_weights(reading, chosen, asked.show)
        shown = look_at(head, looking) or head
        queries, keys = shown.query_tokens, shown.key_tokens
        result = shown
        if asked.show in (Stage.K, Stage.V):
            queries = keys  # whose vectors these are
    query = () if asked.query is None else (queries.position(asked.query),)
    key = None if asked.key is None else keys.position(asked.key)
    return result, Focus(asked.show.value, query, key, scale=asked.scale, rows=listed(asked.rows))
