"""Heads measured by what they do to the model's answer, beside other answers that it could have given."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from attnscope.analysis.claims.ablation.experiment import check_heads, head_counts
from attnscope.analysis.claims.ablation.question import Question, log_chances, probability
from attnscope.analysis.claims.attribution.answers import other_answers, runner_up
from attnscope.analysis.claims.attribution.heads import OF_ANSWERS, attributed
from attnscope.capture import Selection
from attnscope.capture.faults import if_it_runs
from attnscope.capture.intervening.experiments import Experiments, experiments_on
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.results import HeadScores, Overview
from attnscope.results.claims.ablation import Asks
from attnscope.session.choosing import Chosen
from attnscope.session.effects import Attributing
from attnscope.session.looking import ENTROPY
from attnscope.session.questions.claims.answers import question_of
from attnscope.session.questions.heads import TOKENS, OpenedHeads
from attnscope.session.reading import Reading
from attnscope.session.request import Looking
from attnscope.vocabulary import Route

_SURE = 0.99  # where ln p is nearly flat: all gradients shrink with 1 - p


def of_answers(measures: Sequence[str]) -> tuple[str, ...]:
    """Those of `measures` that are about the model's answer."""
    return tuple(name for name in measures if OF_ANSWERS & MEASURES[name].needs)


def read_measured(
    reading: Reading,
    chosen: Chosen,
    measures: Sequence[str],
    looking: Looking = TOKENS,
    asked: Attributing | None = None,
) -> Overview:
    """The chosen heads by all of `measures`, those that are about the model's answer among them.

    `reading` has what the decoder reads in full. Raises `InputError` where none of them has a meaning, and
    for an answer that the model cannot give.
    """
    mine = of_answers(measures)
    if not mine:
        if asked is not None and asked.answer is not None:
            named = ", ".join(of_answers(tuple(MEASURES)))
            raise InputError(f"an answer is what {named} are about: name one of these measures")
        return OpenedHeads(reading, chosen).overview(measures, looking)
    _check(reading, chosen, mine[0])
    others = tuple(name for name in measures if name not in mine)
    question = question_of(reading, None if asked is None else asked.answer)
    measured, description = _attributed(reading, chosen, mine, question, asked or Attributing())
    if not others and all(score.absent for score in measured.values()):
        reasons = dict.fromkeys(score.absent for score in measured.values())
        raise InputError(f"no {', '.join(mine)} here: {'; '.join(reasons)}")
    overview = OpenedHeads(reading, chosen).overview(others or ENTROPY, looking)
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
    reading: Reading, chosen: Chosen, names: Sequence[str], question: Question, asked: Attributing
) -> tuple[Mapping[str, HeadScores], str]:
    """The measures of the answer, and in words which answer it is and what it is held against."""
    module, inputs, name = reading.model.module, reading.inputs, reading.model.name
    selection = Selection(
        kind=chosen.kind, tower=chosen.tower.pattern, route=chosen.route, layers=chosen.layers
    )
    with reading.listener.working("asking for gradients"), if_it_runs(module, inputs, name):
        experiments = experiments_on(module, inputs, selection, question.asked)
        heads = [(layer, head) for layer in chosen.layers for head in chosen.heads]
        check_heads(heads, head_counts(experiments))
        answer = question.answered(experiments.untouched)
        chances = log_chances(experiments.untouched[0])
        second = runner_up(chances, answer.ids)
        others = _others(reading, experiments, question, answer.ids, asked)
        measured = attributed(experiments, (answer.ids, second, *others), names, chosen.layers, chosen.heads)
    likely = probability(chances, answer.ids)
    description = f"{_named(reading, question, answer.text)}, probability {likely:.3g}"
    description += ", so near 1 that gradients of it say little" if likely > _SURE else ""
    named = f" “{question.name(second[0])}”" if len(second) == 1 else ", at every token the next likeliest,"
    description += f", beside the runner-up{named} {probability(chances, second):.3g}"
    return measured, description + (
        f" and {len(others)} others drawn with seed {asked.seed}" if others else ""
    )


def _others(
    reading: Reading, experiments: Experiments, question: Question, ids: tuple[int, ...], asked: Attributing
) -> tuple[tuple[int, ...], ...]:
    """Other answers: words of the vocabulary that are not special, or the other classes."""
    choices, never = experiments.untouched.shape[-1], set[int]()
    if question.asks not in (Asks.CLASS, Asks.PAIR):
        tokenizer = reading.model.tokenizer
        choices = min(choices, getattr(tokenizer, "vocab_size", None) or choices)
        never = {*(getattr(tokenizer, "all_special_ids", None) or ())}
    return other_answers(ids, choices, never, asked.others, asked.seed)


def _named(reading: Reading, question: Question, text: str) -> str:
    if question.position is None:
        return f"of the answer “{text}”"
    where = "after" if question.asks is Asks.NEXT else "at"
    return f"of the answer “{text}” {where} {reading.encoded.tokens.named(question.position)}"
