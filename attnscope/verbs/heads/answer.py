"""Answers `heads`: one head in full, several as overview or thumbnails, in tiles, over a picture or sound.

A text too long for whole attention matrices is read in tiles. Measures about the model's answer come from its
gradients, beside those of other answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from attnscope.analysis.answers.attribution import attributed
from attnscope.analysis.answers.experiment import check_heads, head_counts
from attnscope.analysis.answers.question import Question, log_chances, other_answers, probability, runner_up
from attnscope.analysis.heads.long import measure_long, read_long_head
from attnscope.capture.intervening.experiments import Experiments, experiments_on
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.measures.registry import needs_norms
from attnscope.results import HeadScores, HeadTerms, HeadView, HeadWeights, LongHead, Overview
from attnscope.results.claims.effect import Asks
from attnscope.session.choosing import Chosen
from attnscope.session.opening import ENTROPY, aim_at, overview_aimed
from attnscope.session.question import Answer
from attnscope.session.questions import pages
from attnscope.session.questions.answers import of_answers, question_of
from attnscope.session.questions.heads import OpenedHeads, lay_over, with_apart
from attnscope.session.questions.rows import captured_long, in_tiles
from attnscope.session.reading import Reading
from attnscope.session.selection import window
from attnscope.verbs.heads.question import AtAGlance, Long, ShowHeads
from attnscope.vocabulary import Pool, Route, Stage


def at_a_glance(reading: Reading, chosen: Chosen, asked: AtAGlance) -> Overview:
    """Overview of the chosen heads, read in tiles for long texts or on request, else as whole matrices."""
    if not asked.whole and asked.query is None:
        against = "words and special tokens need all queries by all keys" if asked.looking.changes else ""
        if in_tiles(reading, chosen, asked.tiled, against):
            return read_long_overview(reading, chosen, asked)
    return _overview(OpenedHeads(reading, chosen), asked)


def show(reading: Reading, chosen: Chosen, asked: ShowHeads) -> Answer[Any]:
    """Show the chosen heads in the view that the options and the length of the text call for.

    Raises `InputError` for options that exclude each other, `DoesNotFitError` where nothing fits.
    """
    if _is_tiled(reading, chosen, asked):
        if not chosen.one:
            return Answer(read_long_overview(reading, chosen, asked))
        return Answer(read_long(reading, chosen, asked), {"scale": asked.scale, **asked.listed})
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


def read_long(reading: Reading, chosen: Chosen, asked: Long | ShowHeads) -> LongHead:
    """Read the one chosen head in tiles, or the window `zoom` ("1000-1063:900-1100") of it."""
    layer, head = chosen.only()
    queries, keys = reading.sides(chosen.kind)
    seen = None if asked.zoom is None else window(asked.zoom, len(queries), len(keys))
    row = None if asked.query is None else queries.position(asked.query)
    pool = Pool(asked.pool or Pool.MEAN)
    with reading.listener.working("reading the attention in tiles"):
        captured = captured_long(reading, chosen)
        return read_long_head(captured, layer, head, block=chosen.block, zoom=seen, query=row, pool=pool)


def long_head(reading: Reading, chosen: Chosen, asked: Long) -> LongHead:
    """Read the one chosen head in tiles even for short texts; `InputError` where tiles are impossible."""
    in_tiles(reading, chosen, True)
    return read_long(reading, chosen, asked)


def read_long_overview(reading: Reading, chosen: Chosen, asked: AtAGlance | ShowHeads) -> Overview:
    """Overview of the chosen heads by all requested measures, read in tiles."""
    measures = asked.measures or ENTROPY
    of_text = tuple(name for name in measures if not MEASURES[name].description.apart) or ENTROPY
    with reading.listener.working("reading the attention in tiles"):
        captured = captured_long(reading, chosen, projections=needs_norms(of_text))
        among_all = asked.looking.links_among_all
        overview = measure_long(captured, chosen.heads, chosen.block, of_text, among_all=among_all)
    return with_apart(reading, chosen, overview, measures)


_SURE = 0.99  # where ln p is nearly flat: all gradients shrink with 1 - p


def read_measured(heads: OpenedHeads, asked: AtAGlance | ShowHeads) -> Overview:
    """Overview of the chosen heads by all requested measures, with those about the model's answer.

    The reading holds the whole decoder input. Raises `InputError` where no such measure has a meaning, and
    for an answer that the model cannot give.
    """
    reading, chosen, measures = heads.reading, heads.chosen, asked.measures or ENTROPY
    mine = of_answers(measures)
    if not mine:
        named = ", ".join(of_answers(tuple(MEASURES)))
        raise InputError(f"an answer is what {named} are about: name one of these measures")
    _check(reading, chosen, mine[0])
    others = tuple(name for name in measures if name not in mine)
    question = question_of(reading, asked.answer)
    measured, description = _attributed(reading, chosen, mine, question, asked)
    if not others and all(score.absent for score in measured.values()):
        reasons = dict.fromkeys(score.absent for score in measured.values())
        raise InputError(f"no {', '.join(mine)} here: {'; '.join(reasons)}")
    overview = heads.overview(others or ENTROPY, asked.looking)
    scores = {name: measured[name] if name in measured else overview.scores[name] for name in measures}
    notes = [f"{name}: {score.description.apart}" for name, score in measured.items() if not score.absent]
    return replace(overview, scores=scores, notes=(*overview.notes, description, *notes))


def _check(reading: Reading, chosen: Chosen, name: str) -> None:
    if chosen.route is Route.RETURNED:
        raise InputError(f"--route returned has weights alone: {name} needs the outputs of heads")
    if chosen.block:
        raise InputError(f"{name} is of all blocks of a layer: leave --block out")
    if reading.asked.goes_on:
        raise InputError(f"{name} is about one answer: leave --generate out")


def _attributed(
    reading: Reading, chosen: Chosen, names: Sequence[str], question: Question, asked: AtAGlance | ShowHeads
) -> tuple[Mapping[str, HeadScores], str]:
    module, selection = reading.model.module, chosen.selection()
    with reading.running("asking for gradients"):
        experiments = experiments_on(module, reading.inputs, selection, question.asked)
        heads = [(layer, head) for layer in chosen.layers for head in chosen.heads]
        check_heads(heads, head_counts(experiments))
        answer = question.answered(experiments.untouched)
        chances = log_chances(experiments.untouched[0])
        second = runner_up(chances, answer.ids)
        others = _others(reading, experiments, question, answer.ids, asked)
        measured = attributed(experiments, (answer.ids, second, *others), names, chosen.layers, chosen.heads)
    likely = probability(chances, answer.ids)
    description = f"{_of_the_answer(reading, question, answer.text)}, probability {likely:.3g}"
    description += ", so near 1 that gradients of it say little" if likely > _SURE else ""
    named = f" “{question.name(second[0])}”" if len(second) == 1 else ", at every token the next likeliest,"
    description += f", beside the runner-up{named} {probability(chances, second):.3g}"
    return measured, description + (
        f" and {len(others)} others drawn with seed {asked.seed}" if others else ""
    )


def _others(
    reading: Reading,
    experiments: Experiments,
    question: Question,
    ids: tuple[int, ...],
    asked: AtAGlance | ShowHeads,
) -> tuple[tuple[int, ...], ...]:
    choices, never = experiments.untouched.shape[-1], set[int]()
    if question.asks not in (Asks.CLASS, Asks.PAIR, Asks.TAG, Asks.SPAN):
        tokenizer = reading.model.tokenizer
        choices = min(choices, getattr(tokenizer, "vocab_size", None) or choices)
        never = {*(getattr(tokenizer, "all_special_ids", None) or ())}
    return other_answers(ids, choices, never, asked.others, asked.seed)


def _of_the_answer(reading: Reading, question: Question, text: str) -> str:
    if question.position is None:
        return f"of the answer “{text}”"
    where = "after" if question.asks is Asks.NEXT else "at"
    return f"of the answer “{text}” {where} {reading.encoded.tokens.named(question.position)}"
