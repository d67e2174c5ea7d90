"""Which answer of a model is meant, and heads measured by what they do to it, beside other answers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from attnscope.analysis.claims.ablation.attribution import OF_ANSWERS, attributed
from attnscope.analysis.claims.ablation.experiment import check_heads, head_counts
from attnscope.analysis.claims.ablation.question import (
    Question,
    class_of_text,
    log_chances,
    other_answers,
    pooled,
    probability,
    runner_up,
    text_written,
    vector_of_text,
    verdict_on_pair,
    word_at,
)
from attnscope.analysis.prediction import last_of, masks_of
from attnscope.capture import Selection
from attnscope.capture.evaluation_mode import evaluating
from attnscope.capture.faults import if_it_runs
from attnscope.capture.intervening.experiments import Experiments
from attnscope.capture.intervening.reached import experiments_on
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.model.inputs.numbered import Numbered
from attnscope.model.loading.answering import class_names, judging
from attnscope.results import HeadScores, Overview
from attnscope.results.claims.effect import Asks
from attnscope.session.choosing import Chosen
from attnscope.session.effects import Attributing
from attnscope.session.entering import encode_inputs
from attnscope.session.looking import ENTROPY
from attnscope.session.opening import Opened
from attnscope.session.questions.heads import TOKENS, OpenedHeads
from attnscope.session.reading import Reading
from attnscope.session.wanted import Looking
from attnscope.vocabulary import Route

FOLLOWS = ("follows", "does not follow")


def question_of(
    reading: Reading, answer: str | None, against: str | None = None, *, vectors: bool = False
) -> Question:
    """What this model answers to what it read, or what of it `answer` names, held `against` another answer.

    With `vectors` a model without a head to answer with is asked for the vector that it makes of the text,
    held against that of another text. Raises `InputError` for a model that answers nothing, and for an answer
    that it cannot give.
    """
    if vectors and reading.task is None and judging(type(reading.model.module)) is None:
        return _of_vector(reading, answer, against)
    question = _alone(reading, answer)
    return question if against is None else _held_against(reading, question, against)


def _of_vector(reading: Reading, answer: str | None, against: str | None) -> Question:
    """The mean of the last vectors, and that of another text."""
    name = reading.model.name
    if answer is not None:
        raise InputError(f"{name} has no head that answers: its vector is measured, leave --answer out")
    question = vector_of_text(_there(reading), "its vector")
    if against is None:
        return question
    if reading.asked.sensed or reading.asked.ids is not None:
        raise InputError("--against is a second text: what is read here is none")
    inputs = replace(reading.asked, text=against, words=None, split=False)
    other = encode_inputs(Opened(reading.model, None), inputs, reading.listener)
    with evaluating(reading.model.module), if_it_runs(reading.model.module, other.inputs, name):
        vector = pooled(reading.model.module(**other.inputs), _there(other))[0]
    return replace(question, beside=vector, against_text=against)


def _there(reading: Reading) -> list[int] | None:
    """The positions that are no padding; None where they are no tokens of a text."""
    if reading.perceived is not None:
        return None
    return [i for i, token in enumerate(reading.encoded.tokens.items) if not token.padding]


def _held_against(reading: Reading, question: Question, against: str) -> Question:
    """The same question, its answer held against another one at the same place."""
    if question.asks is Asks.WRITTEN:
        raise InputError("--against sets one answer against another: a whole text that is written has none")
    ids: tuple[int, ...]
    if question.asks in (Asks.MASK, Asks.NEXT):
        ids = (_token(reading, against, "--against"),)
    elif question.asks is Asks.PAIR:
        ids = _chosen(against, FOLLOWS)
    else:
        ids = _chosen(against, class_names(reading.model.module))
    if question.ids == ids:
        raise InputError(f"--against '{against}' is the answer itself: name another one")
    return replace(question, against=ids, against_text=question.name(ids[0]))


def meant_at(reading: Reading, question: Question, answer: str | None, against: str | None) -> Question:
    """The same question of the answer that is named, set against another one; both are single tokens."""
    if answer is not None:
        question = replace(question, ids=(_token(reading, answer),))
    if against is None:
        return question
    return _held_against(reading, question, against)


def _chosen(name: str, names: Sequence[str]) -> tuple[int, ...]:
    number = _named(name, names)
    assert number is not None, "a name was given"
    return (number,)


def _alone(reading: Reading, answer: str | None) -> Question:
    if reading.task is None:
        return _of_classes(reading, answer)
    if reading.target is not None:
        if answer is not None:
            raise InputError("an encoder-decoder's answer is the text that it writes: name one with --target")
        written = reading.target.tokens
        return text_written(written.ids, written.sentence.strip(), reading.model.spell)
    tokens = reading.encoded.tokens
    if reading.task == "next":
        return _word(reading, Asks.NEXT, last_of(tokens), answer)
    masks = masks_of(tokens, reading.model.tokenizer.mask_token_id)
    if masks:
        if len(masks) > 1:
            reading.listener.notice(f"the text has {len(masks)} masks: the answer is the word of the first")
        return _word(reading, Asks.MASK, masks[0], answer)
    if reading.asked.paired:
        return verdict_on_pair(_named(answer, FOLLOWS), lambda one: FOLLOWS[min(one, 1)])
    raise InputError("the text has no [MASK] to fill: put one in, or judge a second text with --pair")


def _word(reading: Reading, asks: Asks, position: int, answer: str | None) -> Question:
    ids = None if answer is None else (_token(reading, answer),)
    return word_at(asks, position, len(reading.encoded.tokens), ids, reading.model.spell)


def _token(reading: Reading, word: str, option: str = "--answer") -> int:
    """The one token that `word` is; `InputError` where it is none."""
    found = spoken_token(reading, word, option)
    if found is not None:
        return found
    tokenizer, name = reading.model.tokenizer, reading.model.name
    parts = [reading.model.spell(id) for id in tokenizer(word, add_special_tokens=False)["input_ids"]]
    how = f": it would write {' '.join(parts)}" if len(parts) > 1 else ""
    if how and reading.task == "next":
        how += " (ablate, flow and predict --answer multiply several tokens)"
    raise InputError(f"the vocabulary of {name} has no token '{word}'{how}")


def spoken_token(reading: Reading, word: str, option: str = "--answer") -> int | None:
    """The one token that is called `word`; None where it is several, or none that is known."""
    model = reading.model
    found = model.token(word)
    if isinstance(model.tokenizer, Numbered):
        if found is None:
            raise InputError(f"{model.name} has no tokenizer here: {option} takes the number of a token")
        model.check_numbers((found,), option)
    return found


def _of_classes(reading: Reading, answer: str | None) -> Question:
    """A class by its name in the model's config; `InputError` for a model that answers nothing at all."""
    module = reading.model.module
    if judging(type(module)) is None:
        raise InputError(f"{reading.model.name} has no head that predicts words, and none that tells classes")
    labels = class_names(module)
    return class_of_text(_named(answer, labels), lambda one: labels[one])


def _named(answer: str | None, names: Sequence[str]) -> int | None:
    """The number of the choice that is called `answer`; None where none is named."""
    if answer is None:
        return None
    folded = [name.casefold() for name in names]
    if answer.casefold() not in folded:
        raise InputError(f"no answer '{answer}': {', '.join(names)}")
    return folded.index(answer.casefold())


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
    description = f"{_of_the_answer(reading, question, answer.text)}, probability {likely:.3g}"
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


def _of_the_answer(reading: Reading, question: Question, text: str) -> str:
    if question.position is None:
        return f"of the answer “{text}”"
    where = "after" if question.asks is Asks.NEXT else "at"
    return f"of the answer “{text}” {where} {reading.encoded.tokens.named(question.position)}"
