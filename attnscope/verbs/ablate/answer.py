"""Ablates heads, or patches their outputs from another text, and measures the model's answer."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.answers import replacing
from attnscope.analysis.answers.experiment import (
    Head,
    check_heads,
    estimated,
    head_counts,
    held_against,
    measured_estimates,
    taken_away,
)
from attnscope.analysis.answers.question import log_chances
from attnscope.analysis.prompts import NONE, OnePrompt, Seen, Spans, of_head
from attnscope.capture.intervening.changes import Change, Variant
from attnscope.capture.intervening.experiments import experiments_on
from attnscope.errors import InputError
from attnscope.results.claims.effect import Choice, HeadEffect, Measured, Place, Predicted, Without
from attnscope.results.claims.prompts import Asked, Figure
from attnscope.session.choosing import Chosen, path_of, with_senders
from attnscope.session.questions.answers import GIVEN, question_of, read_behind, with_answer
from attnscope.session.questions.rows import fused_where_long
from attnscope.session.reading import Reading, read_other
from attnscope.verbs.ablate.places import (
    Run,
    ablated_places,
    along,
    asked_of,
    beside_all_ways,
    beside_other_receivers,
    cut_link,
    instead_of,
    same_place,
)
from attnscope.verbs.ablate.question import PATCHING, TAKEN, Ablate
from attnscope.verbs.ablate.result import Ablation
from attnscope.vocabulary import Route

_LISTED = 5  # likeliest of each run


def ablate(reading: Reading, chosen: Chosen, asked: Ablate) -> Ablation:
    """Ablates or patches heads or layer parts, alone and together, and measures how the answer changes.

    `reading` includes the decoder's full input. Raises `InputError` for an answer, a link or a text that is
    impossible here.
    """
    if chosen.route is Route.RETURNED:
        raise InputError("--route returned has weights alone: nothing can be put in the place of an output")
    if chosen.block:
        raise InputError("a head is changed in all blocks of its layer: leave --block out")
    asked = replace(asked, **reading.filled(vars(asked)))
    path = None if asked.via is None else path_of(chosen, asked.via)
    chosen = chosen if path is None else with_senders(chosen, asked.part, path)
    other = None if asked.text is None else read_other(reading, asked.text)
    reading, question, behind = with_answer(
        reading, asked.answer, asked.against, vectors=True, query=asked.query
    )
    if other is not None and behind:
        kept = range(len(reading.encoded.tokens) - len(behind))
        other = read_behind(other, other.encoded.tokens.only(kept), behind, GIVEN)
    elif other is not None:
        other = replace(other, target=reading.target)
    if asked.patch_from is not None and other is not None and not same_place(question, reading, other):
        there = "" if question.position is None else other.encoded.tokens.named(question.position)
        mine = "" if question.position is None else reading.encoded.tokens.named(question.position)
        needs = "--patch-from needs the answer at the same place in both texts"
        raise InputError(f"{needs}: {mine} here, {there} there")
    receivers = [] if path is None else [(each.layer, each.head) for each in path.receivers]
    layers = sorted({*chosen.layers, *(layer for layer, _ in receivers)})
    selection = chosen.selection(layers)
    with reading.running("ablating heads"), fused_where_long(reading) as told:
        experiments = experiments_on(reading.model.module, reading.inputs, selection, question.asked)
        check_heads(receivers, head_counts(experiments))
        answer = ablated_places if asked.places else _ablated
        made = answer(Run(reading, chosen, asked, question, experiments, other, path))
        return replace(made, provenance=told(made.provenance))


def _ablated(run: Run) -> Ablation:
    chosen, asked, question, experiments, path = (
        run.chosen,
        run.asked,
        run.question,
        run.experiments,
        run.path,
    )
    answer = question.answered(experiments.untouched)
    link = cut_link(run) if asked.method == "link" else None
    replacement = instead_of(run) if link is None else replacing.without_link(*link)
    every = [(layer, head) for layer in chosen.layers for head in chosen.heads]
    heads: Sequence[Head] = chosen.apart or every
    check_heads(heads, head_counts(experiments))
    if asked.rank and question.measured is not Measured.CHANCE:
        raise InputError("--rank foretells a probability, and this model answers with none: leave it out")
    predicted: tuple[Predicted, ...] = ()
    if asked.rank:
        if asked.by in (None, PATCHING):
            every_one = estimated(experiments, answer.ids, replacement.what)
        else:
            every_one = measured_estimates(experiments, answer.ids, asked.by, heads)
        predicted = tuple(each for each in every_one if (each.layer, each.head) in set(heads))
        heads = [(each.layer, each.head) for each in predicted[: asked.top or TAKEN]]
    together = not (asked.each or asked.rank or asked.patch_from is not None)
    tell = question.telling(experiments.untouched, answer.ids)
    removals = taken_away(
        along(experiments, path),
        answer.ids,
        heads,
        replacement.what,
        together=together,
        seed=asked.seed,
        name=question.name,
        tell=tell,
    )
    effects, correlation = removals.heads, None
    if asked.rank:
        effects, correlation = held_against(effects, predicted)

    def made(one: HeadEffect) -> Variant:
        return (Change(one.layer, one.head, replacement.what),)

    effects = beside_all_ways(experiments, path, effects, made, tell)
    most = max(effects, key=lambda one: abs(one.change))
    path = beside_other_receivers(experiments, path, made(most), tell, asked.seed)
    return Ablation(
        **asked_of(run, answer, replacement, link),
        heads=effects,
        group=removals.group,
        floor=removals.floor,
        predicted=predicted,
        rank_correlation=correlation,
        predicted_by=asked.by or PATCHING,
        path=path,
    )


def answer_without(reading: Reading, chosen: Chosen, heads: Sequence[Head]) -> Without:
    """Compares the likeliest answers with and without those heads; `InputError` where the model gives none.

    `reading` includes the decoder's full input.
    """
    if chosen.route is Route.RETURNED:
        raise InputError("--route returned has weights alone: nothing can be put in the place of an output")
    question = question_of(reading, None)
    module, selection = reading.model.module, chosen.selection()
    with reading.running("running without heads"):
        experiments = experiments_on(module, reading.inputs, selection, question.asked)
        check_heads(heads, head_counts(experiments))
        answer = question.answered(experiments.untouched)
        zeros = replacing.zeros().what
        (outcome,) = experiments.run([tuple(Change(layer, head, zeros) for layer, head in heads)])
    before, after = log_chances(experiments.untouched[0]), log_chances(outcome.scores[0])
    places = tuple(
        _place(before[row], after[row], number, question.name) for row, number in enumerate(answer.ids)
    )
    return Without(tuple(heads), answer.asks, answer.position, places)


def _place(
    before: Float[Tensor, " choice"], after: Float[Tensor, " choice"], meant: int, name: Callable[[int], str]
) -> Place:
    likeliest = [chances.topk(min(_LISTED, len(chances))).indices.tolist() for chances in (before, after)]
    numbers = sorted({meant, *likeliest[0], *likeliest[1]}, key=lambda number: -float(before[number]))
    choices = tuple(
        Choice(name(number), float(before[number].exp()), float(after[number].exp())) for number in numbers
    )
    return Place(choices, numbers.index(meant))


def figures(result: Ablation, spans: Spans) -> OnePrompt:
    """Change and control of each head, measured or predicted, to be counted over many prompts."""
    if result.predicted:
        return OnePrompt(Asked.RANK, dict(_foretold(result)))
    return OnePrompt(Asked.ABLATE, dict(_removed(result)))


def _removed(result: Ablation) -> Iterator[tuple[Figure, Seen]]:
    if result.places:
        raise InputError("parts and tokens are not counted over prompts: ask each of them")
    floor, unit = result.floor.rounding, result.unit.removeprefix("of ")
    for each in result.heads:
        control = floor if each.typical is None else each.typical
        first = each.rank == 1 and each.controls > 0 and abs(each.change) > floor
        yield of_head(each.layer, each.head, unit), Seen(each.change, control, stands=first)
    if (group := result.group) is not None and len(group.heads) > 1:
        change = group.effect.change
        control = floor if group.typical is None else group.typical
        first = group.below == group.controls > 0 and abs(change) > floor
        yield Figure("all at once", unit), Seen(change, control, stands=first)


def _foretold(result: Ablation) -> Iterator[tuple[Figure, Seen]]:
    really = {(each.layer, each.head): each for each in result.heads}
    by_layer = dict[int, list[tuple[int, float]]]()
    for each in result.predicted:
        by_layer.setdefault(each.layer, []).append((each.head, abs(each.change)))
    for each in result.predicted:
        others = [size for head, size in by_layer[each.layer] if head != each.head]
        typical = float(np.median(others)) if others else result.floor.rounding
        taken = really.get((each.layer, each.head))
        effect, first = (NONE, False) if taken is None else (taken.change, taken.rank == 1)
        seen = Seen(each.change, typical, effect, first and abs(effect) > result.floor.rounding)
        yield of_head(each.layer, each.head, f"foretold {result.unit.removeprefix('of ')}"), seen
