"""`attnscope heads`: one head in full, an overview of several, or either over a picture or a sound."""

from typing import TYPE_CHECKING, Annotated

from attnscope.cli.asking import PAGE, Answer, Question, with_heads
from attnscope.cli.naming import is_of_each_head
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.heads import HeadOptions, Long
from attnscope.cli.options.inputs import Read, Writing, decoded
from attnscope.cli.options.model import Request, Wanted
from attnscope.cli.options.shown import Looking
from attnscope.cli.output import Output, check_delivery
from attnscope.errors import InputError
from attnscope.session.wanted import MEANS
from attnscope.vocabulary import Pool, Stage

_ONE_QUERY = "scores and vectors are those of single tokens"

if TYPE_CHECKING:
    from attnscope.render.focus import Focus
    from attnscope.render.web.room import Beside
    from attnscope.results import HeadView, HeadWeights, Overview, Result
    from attnscope.session.choosing import Chosen
    from attnscope.session.questions.heads import OpenedHeads
    from attnscope.session.reading import Reading


def heads(
    read: Read,
    wanted: Annotated[Wanted, MEANS],
    asked: HeadOptions,
    delivery: Delivery,
    *,
    looking: Looking,
    long: Long,
    writing: Writing,
    request: Request,
    output: Output,
) -> None:
    """Show what heads look at: one in full, several at a glance.

    All is recomputed and certified. With one --layer and one --head that head in full; otherwise an
    overview of the chosen heads.
    """
    asked.check(looking, read, writing, wanted.kind)
    if wanted.mean:
        _check_mean(asked, delivery)
    check_delivery(delivery, "HeadWeights")
    inputs, measures = read.inputs(writing), asked.measures
    from attnscope.session.looking import link_named, single_named
    from attnscope.session.opening import Purpose

    answers = asked.of_an_answer

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        from attnscope.session.questions.heads import OpenedHeads

        assert chosen is not None, "heads are wanted"
        if (in_tiles := _in_tiles(reading, chosen, long, asked, looking, delivery)) is not None:
            return in_tiles
        if reading.lies_over_medium(chosen) and not asked.grid and measures is None:
            asked.check_over_medium(looking, writing)
            if chosen.one or asked.key is None:
                return _over_medium(reading, chosen, asked)
        if asked.grid and question.paged:
            return _grid_on_a_page(reading, chosen, asked, looking)
        heads = OpenedHeads(reading, chosen)
        if asked.grid:
            from attnscope.render.focus import Focus

            return Answer(heads.thumbnails(looking), Focus(scale=asked.scale))
        if asked.in_full(heads.one):
            return _in_full(heads, asked, looking)
        if answers:
            overview = _of_an_answer(reading, chosen, asked, looking)
        else:
            if question.paged:
                from attnscope.session.questions import pages

                heads = OpenedHeads(pages.kept(reading, chosen, measures or ()), chosen)
            overview = _at_a_glance(heads, asked, looking)
        return Answer(
            overview,
            _measured_as(asked),
            every_head=lambda: heads.one_by_one(looking),
            page=lambda: _page(heads.reading, chosen, overview),
        )

    asks, looked = asked.query, asked.key
    single = asked.terms or asked.dims or asked.show is not Stage.WEIGHTS
    names = single_named(asks, _ONE_QUERY) if single else link_named(asks, looked, looking)
    question = Question(ask, request, read, wanted, delivery, output, whole=answers, names=names)
    question.put(inputs, Purpose.ANSWER_OR_CLASS if answers else Purpose.ATTENTION)


def _check_mean(asked: HeadOptions, delivery: Delivery) -> None:
    others = {
        f"--show {asked.show}": asked.show is not Stage.WEIGHTS,
        "--terms": asked.terms,
        "--dims": asked.dims,
        "--grid": asked.grid,
        "--measure": asked.measure is not None,
    }
    if there := [name for name, given in others.items() if given]:
        raise InputError(f"--head mean has weights alone: leave {' and '.join(there)} out")
    if any(target.suffix.lower() in (PAGE, ".py") or is_of_each_head(target) for target in delivery.targets):
        raise InputError("--head mean has no page, no script and no file of each head: name another file")


def _over_medium(reading: "Reading", chosen: "Chosen", asked: HeadOptions) -> Answer:
    from attnscope.render.focus import Focus
    from attnscope.session.questions.media import lay_over

    found = lay_over(reading, chosen, decoded(asked.query or "") or None)
    if asked.key is None:
        return Answer(found, Focus(scale=asked.scale))
    head = found.head  # type: ignore[union-attr] # with a key there is one
    return Answer(found, Focus(key=head.key_tokens.position(decoded(asked.key)), scale=asked.scale))


def _in_full(heads: "OpenedHeads", asked: HeadOptions, looking: Looking) -> Answer:
    from attnscope.render.focus import Focus, listed
    from attnscope.results import HeadTerms
    from attnscope.session.looking import aim_at

    if asked.dims:
        pair = heads.dimensions(asked.query, asked.key)
        return Answer(pair, Focus(rows=listed(asked.rows)), every_head=lambda: [pair])
    result: HeadTerms | HeadWeights | HeadView
    if not asked.terms and asked.show is Stage.WEIGHTS:
        seen = aim_at(heads.weights(asked.show), looking, asked.query, asked.key)
        result, query, key = seen.shown, seen.query, seen.key
    else:
        result = heads.terms() if asked.terms else heads.weights(asked.show)
        head = result.head if isinstance(result, HeadTerms) else result
        keys = head.key_tokens
        queries = keys if asked.show in (Stage.K, Stage.V) else head.query_tokens  # whose vectors these are
        query = None if asked.query is None else queries.position(asked.query)
        key = None if asked.key is None else keys.position(asked.key)
    asks = () if query is None else (query,)
    focus = Focus(asked.show.value, asks, key, scale=asked.scale, rows=listed(asked.rows))
    return Answer(result, focus, every_head=lambda: [result])


def _measured_as(asked: HeadOptions) -> "Focus":
    from attnscope.render.focus import Focus

    return Focus(in_nats=asked.measures is not None)


def _at_a_glance(heads: "OpenedHeads", asked: HeadOptions, looking: Looking) -> "Overview":
    from attnscope.session.looking import ENTROPY, overview_aimed

    overview = heads.overview(asked.measures or ENTROPY, looking)
    if asked.query is None:
        return overview
    return overview_aimed(overview, asked.query, asked.key, asked.measures or (), looking)


def _of_an_answer(reading: "Reading", chosen: "Chosen", asked: HeadOptions, looking: Looking) -> "Overview":
    from attnscope.session.effects import Attributing
    from attnscope.session.questions.claims.answers import read_measured

    answer = None if asked.answer is None else decoded(asked.answer)
    return read_measured(reading, chosen, asked.measures or (), looking, Attributing(answer))


def _grid_on_a_page(reading: "Reading", chosen: "Chosen", asked: HeadOptions, looking: Looking) -> Answer:
    from attnscope.render.focus import Focus
    from attnscope.session.questions.pages import read_small

    small, held = read_small(reading, chosen, looking)
    return Answer(small, Focus(scale=asked.scale), page=lambda: with_heads(small, held))


def _page(reading: "Reading", chosen: "Chosen", overview: "Overview") -> "tuple[Result, Beside]":
    from attnscope.render.web.room import Beside
    from attnscope.session.questions.pages import heads_in_full, most_telling

    found = overview.tokens or overview
    opening = most_telling(reading, chosen, found) if overview.aim is None else None
    full = heads_in_full(reading, chosen, found, None if opening is None else opening.link)
    return overview, Beside(full, opening=opening)


def _in_tiles(
    reading: "Reading", chosen: "Chosen", long: Long, asked: HeadOptions, looking: Looking, delivery: Delivery
) -> Answer | None:
    """The answer in tiles where that is worth it or asked for; None where all pairs are to be held.

    Raises `InputError` for what is asked for and cannot be had so, `DoesNotFitError` where nothing fits.
    """
    from attnscope.render.focus import Focus, listed
    from attnscope.session.questions.long import in_tiles, read_long, read_long_overview

    window = long.zoom is not None or long.pool is not None
    if chosen.mean:
        if window or long.tiled:
            raise InputError("--tiled, --zoom and --pool show one head: leave --head mean out")
        return None
    if window and not chosen.one:
        raise InputError("--zoom and --pool show one head: give one --layer and one --head")
    if window and long.tiled is False:
        raise InputError("--zoom and --pool are of tiles: leave --dense out")
    against = _against(chosen, asked, looking, delivery)
    if not in_tiles(reading, chosen, True if window else long.tiled, against):
        return None
    if chosen.one:
        pool = long.pool or Pool.MEAN
        head = read_long(reading, chosen, zoom=long.zoom, query=asked.query, pool=pool)
        return Answer(head, Focus(scale=asked.scale, rows=listed(asked.rows)))
    return Answer(read_long_overview(reading, chosen, asked.measures or ("entropy",), looking))


def _against(chosen: "Chosen", asked: HeadOptions, looking: Looking, delivery: Delivery) -> str:
    if asked.show is not Stage.WEIGHTS:
        return f"--show {asked.show} lists every pair"
    others = {
        "--terms": asked.terms,
        "--dims": asked.dims,
        "--grid": asked.grid,
        "--answer": asked.answer is not None or asked.of_an_answer,
        "--by, --words and --special": looking.changes,
        "--query of several heads": asked.query is not None and not chosen.one,
        "--measure of one head": asked.measure is not None and chosen.one,
        "--key": asked.key is not None,
        "a page": any(file.suffix.lower() == PAGE for file in delivery.targets),
        "a file of each head": any(map(is_of_each_head, delivery.targets)),
    }
    named = next((name for name, there in others.items() if there), "")
    return f"{named} needs all queries by all keys" if named else ""
