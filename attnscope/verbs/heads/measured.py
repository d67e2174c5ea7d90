"""Heads measured by what they do to the answer of the model, beside other answers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from attnscope.analysis.answers.attribution import attributed
from attnscope.analysis.answers.experiment import check_heads, head_counts
from attnscope.analysis.answers.question import Question, log_chances, other_answers, probability, runner_up
from attnscope.capture.intervening.experiments import Experiments, experiments_on
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.results import HeadScores, Overview
from attnscope.results.claims.effect import Asks
from attnscope.session.choosing import Chosen
from attnscope.session.opening import ENTROPY
from attnscope.session.questions.answers import of_answers, question_of
from attnscope.session.questions.heads import OpenedHeads
from attnscope.session.reading import Reading
from attnscope.verbs.heads.question import AtAGlance, ShowHeads
from attnscope.vocabulary import Route

_SURE = 0.99  # where ln p is nearly flat: all gradients shrink with 1 - p


def read_measured(heads: OpenedHeads, asked: AtAGlance | ShowHeads) -> Overview:
    """The chosen heads by all measures, those that are about the model's answer among them.

    The reading has what the decoder reads in full. Raises `InputError` where none of them has a meaning, and
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
