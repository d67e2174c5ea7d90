"""Which answer of a model is meant: a token, a tag, a class, a span, or a text of several tokens.

The probability of an answer of several tokens is the product of theirs, each given those before it. The model
reads the answer behind its text, but for the last token of it (teacher forcing); the sum of the log
probabilities at these rows is the answer's own.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from attnscope.analysis.answers.attribution import OF_ANSWERS
from attnscope.analysis.answers.question import (
    Question,
    class_of_text,
    ends,
    log_chances,
    pooled,
    span_of_text,
    text_written,
    vector_of_text,
    verdict_on_pair,
    word_at,
)
from attnscope.analysis.prediction import last_of, likeliest_spans, masks_of, span_at, tagged_places
from attnscope.capture.running import evaluating
from attnscope.errors import InputError, nearest
from attnscope.measures import MEASURES
from attnscope.model.inputs.generation import tokens_behind
from attnscope.model.inputs.given import Numbered
from attnscope.model.loading.answering import Judging, class_names, judging
from attnscope.model.loading.config import saved_class
from attnscope.model.loading.load import Plan
from attnscope.results.claims.effect import Asks
from attnscope.results.prediction import NO_ANSWER
from attnscope.session.choosing import Chosen
from attnscope.session.opening import Opened
from attnscope.session.question import verb_of
from attnscope.session.reading import Reading, encode_inputs
from attnscope.session.which import SurestTag
from attnscope.tokens import Token, Tokens

GIVEN = "given"
Ids = tuple[int, ...]


def ids_behind(reading: Reading, prompt: Tokens, answer: str, option: str = "--answer") -> Ids:
    """Token ids of an answer read right behind the prompt, with a blank between them where needed."""
    tokenizer, before = reading.model.tokenizer, prompt.texts[-1] if prompt.texts else ""
    apart = " " if before[-1:].strip() and not prompt.sections and not answer[:1].isspace() else ""
    ends = [i for i, token in enumerate(prompt.items) if token.span is not None]
    name = "text" if reading.target is None else "text_target"

    def read(text: str) -> list[int]:
        found: list[int] = tokenizer(**{name: text}, add_special_tokens=False)["input_ids"]
        return found

    both, alone = read(before + apart + answer), read(before)
    ids = both[len(alone) :] if ends and both[: len(alone)] == alone else read(answer)
    if not ids:
        raise InputError(f"the answer has no tokens for {reading.model.name}")
    return spellable(reading, tuple(ids), answer, option)


def read_behind(reading: Reading, prompt: Tokens, ids: Ids, how: str) -> Reading:
    """The reading with `ids` behind the prompt, in its decoder where it has one."""
    model = reading.model
    length, limit = len(prompt) + len(ids), model.limit()
    if limit is not None and length > limit:
        raise InputError(
            f"the text and the answer have {length} tokens together, {model.name} reads at most {limit}: "
            "give a shorter text"
        )
    read = tokens_behind(model.tokenizer, prompt, ids, how)
    if reading.target is not None:
        every = reading.target.ids.new_tensor([read.ids])
        return replace(reading, target=replace(reading.target, ids=every, tokens=read))
    before = reading.encoded.inputs["input_ids"]
    every = before.new_tensor([read.ids])
    inputs = {"input_ids": every, "attention_mask": every.new_ones(every.shape)}
    known = {name: value for name, value in inputs.items() if name in reading.encoded.inputs}
    return replace(reading, encoded=replace(reading.encoded, inputs=known, tokens=read))


def with_answer(
    reading: Reading,
    answer: str | None,
    against: str | None,
    *,
    vectors: bool = False,
    query: str | int | None = None,
) -> tuple[Reading, Question, Ids]:
    """The reading with the answer behind its text, the question about it, and the answer's ids in it.

    `query` is the token whose tag is meant, of a model that tags them. An encoder-decoder's answer is the
    text that its decoder writes.
    """
    asks: dict[str, Any] = {"vectors": vectors, "query": query}
    if query is None and reading.target is not None and answer is not None and reading.task is not None:
        return _written(reading, answer, against)
    if reading.task != "next" or reading.perceived is not None:
        return reading, question_of(reading, answer, against, **asks), ()
    named = [each for each in (answer, against) if each is not None]
    single = answer is None or all(spoken_token(reading, each) is not None for each in named)
    if query is not None or single:
        return reading, question_of(reading, answer, against, **asks), ()
    assert answer is not None, "one of several tokens is named"
    tokens = reading.encoded.tokens
    prompt = tokens.only(range(last_of(tokens) + 1))
    question = question_of(reading, None)
    return behind(reading, prompt, question, answer, against)


def behind(
    reading: Reading, prompt: Tokens, question: Question, answer: str, against: str | None
) -> tuple[Reading, Question, Ids]:
    ids = ids_behind(reading, prompt, answer)
    whole = read_behind(reading, prompt, ids[:-1], GIVEN)
    first = len(prompt) - 1
    asked = replace(
        question.asked, rows=tuple(range(first, first + len(ids))), length=len(prompt) + len(ids) - 1
    )
    question = replace(question, asked=asked, ids=ids, text=answer.strip())
    if against is not None:
        rival = ids_behind(reading, prompt, against, "--against")
        question = _held(reading, question, rival, against)
    return replace(_telling(whole, ids), said=prompt), question, ids[:-1]


def _written(reading: Reading, answer: str, against: str | None) -> tuple[Reading, Question, Ids]:
    if reading.asked.target not in (None, answer):
        raise InputError("--target says what is written already: leave it out beside --answer")
    model = reading.model
    target = model.target(reading.encoded, answer)
    whole = replace(reading, target=target)
    question = question_of(whole, None)
    spellable(reading, question.ids or (), answer)
    if against is not None:
        rival = (other := model.target(reading.encoded, against)).tokens.ids[other.first :]
        spellable(reading, rival, against, "--against")
        question = _held(reading, question, rival, against)
    return _telling(whole, question.ids or ()), question, ()


def _held(reading: Reading, question: Question, rival: Sequence[int], against: str) -> Question:
    """The question of two answers alike but for their last token: the difference of log probabilities."""
    ids = question.ids or ()
    if tuple(rival) == ids:
        raise InputError(f"--against '{against}' is the answer itself: name another one")
    if tuple(rival[:-1]) != ids[:-1]:
        own, other = (" ".join(map(reading.model.spell, each)) for each in (ids, rival))
        raise InputError(
            f"--against needs two answers that differ in their last token alone, for one run reads both: "
            f"{own} and {other} do not: ask about each of them with --answer"
        )
    return replace(question, against=tuple(rival), against_text=against.strip())


def spellable(reading: Reading, ids: Ids, answer: str, option: str = "--answer") -> Ids:
    """`ids` unchanged; `InputError` where the vocabulary cannot spell the answer."""
    if reading.model.tokenizer.unk_token_id in ids and reading.model.tokenizer.unk_token not in answer:
        raise InputError(f"{option} '{answer}': the vocabulary of {reading.model.name} cannot spell it")
    return ids


def _telling(reading: Reading, ids: Sequence[int]) -> Reading:
    if len(ids) < 2:
        return reading
    parts = " · ".join(map(reading.model.spell, ids))
    told = f"the answer has {len(ids)} tokens ({parts}): their probabilities are multiplied, "
    told += "each given those before it"
    return replace(reading, told=(*reading.told, told))


FOLLOWS = ("follows", "does not follow")
_NO_QUERY = "no --from: {0} takes --from TOKEN, as --from '[MASK]'"
_FEW = 12  # most names of choices in a message
_APART = {  # problem types in which classes have no probability among all
    "multi_label_classification": "judges each class by itself",
    "regression": "answers with numbers, not classes",
}


def question_of(
    reading: Reading,
    answer: str | None,
    against: str | None = None,
    *,
    vectors: bool = False,
    query: str | int | None = None,
) -> Question:
    """The question of the model's own answer, or of `answer`, compared `against` another one.

    A tagger's answer is the tag of the token `query`, by default the surest tag. With `vectors` a model
    without a head is asked for its vector of the text, compared with that of another text. Raises
    `InputError` for a model that answers nothing, and for an answer that it cannot give.
    """
    if vectors and reading.task is None and judging(type(reading.model.module)) is None:
        return _of_vector(reading, answer, against)
    question = _alone(reading, answer, query)
    return question if against is None else _held_against(reading, question, against)


def tags(read: Reading | Opened) -> bool:
    """True where the model answers with a tag at every token of a text."""
    return read.task is None and judging(type(read.model.module)) is Judging.TAGS


def finds(reading: Reading) -> bool:
    """True where the model answers with a span of its text."""
    return reading.task is None and judging(type(reading.model.module)) is Judging.SPAN


def has_no_one_chance(opened: Opened) -> bool:
    """True where the answer is no single probability: tags, bare scores, independent classes."""
    module = opened.model.module
    alone = module.config.num_labels == 1 or module.config.problem_type in _APART
    scores = judging(type(module)) is Judging.CLASS and alone
    return tags(opened) or (opened.task is None and scores)


def _of_vector(reading: Reading, answer: str | None, against: str | None) -> Question:
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
    with evaluating(reading.model.module), other.running():
        vector = pooled(reading.model.module(**other.inputs), _there(other))[0]
    return replace(question, beside=vector, against_text=against)


def _there(reading: Reading) -> list[int] | None:
    if reading.perceived is not None:
        return None
    return [i for i, token in enumerate(reading.encoded.tokens.items) if not token.padding]


def _held_against(reading: Reading, question: Question, against: str) -> Question:
    if question.asks is Asks.WRITTEN:
        raise InputError("--against sets one answer against another: a whole text that is written has none")
    ids = _choice(reading, question, against, "--against")
    if question.ids == ids:
        raise InputError(f"--against '{against}' is the answer itself: name another one")
    named = question.name(ids[0]) if len(ids) == 1 else against.strip()
    return replace(question, against=ids, against_text=named)


def meant_at(reading: Reading, question: Question, answer: str | None, against: str | None) -> Question:
    """The question about `answer`, compared `against` another one; both are single choices."""
    if answer is not None:
        question = replace(question, ids=_choice(reading, question, answer))
    if against is None:
        return question
    return _held_against(reading, question, against)


def _choice(reading: Reading, question: Question, name: str, option: str = "--answer") -> tuple[int, ...]:
    if question.asks in (Asks.MASK, Asks.NEXT):
        return (_token(reading, name, option),)
    if question.asks is Asks.SPAN:
        return _ends_of(reading, name, option)
    names = FOLLOWS if question.asks is Asks.PAIR else class_names(reading.model.module)
    return (_named(name, names),)


def _alone(reading: Reading, answer: str | None, query: str | int | None) -> Question:
    if tags(reading):
        return _of_tags(reading, answer, query)
    if query is not None:
        raise InputError(
            f"--from names the token whose tag is meant, and {reading.model.name} tags none: leave it out"
        )
    if finds(reading):
        return _of_span(reading, answer)
    if reading.task is None:
        return _of_classes(reading, answer)
    if reading.target is not None:
        if answer is not None:
            raise InputError("an encoder-decoder's answer is the text that it writes: name one with --target")
        written, first = reading.target.tokens, reading.target.first
        return text_written(written.ids, first, written.sentence.strip(), reading.model.spell)
    tokens = reading.encoded.tokens
    if reading.task == "next":
        return _word(reading, Asks.NEXT, last_of(tokens), answer)
    masks = masks_of(tokens, reading.model.tokenizer.mask_token_id)
    if masks:
        if len(masks) > 1:
            reading.listener.notice(f"the text has {len(masks)} masks: the answer is the word of the first")
        return _word(reading, Asks.MASK, masks[0], answer)
    if reading.asked.paired:
        chosen = None if answer is None else _named(answer, FOLLOWS)
        return verdict_on_pair(chosen, lambda one: FOLLOWS[min(one, 1)])
    raise InputError("the text has no [MASK] to fill: put one in, or judge a second text with --pair")


def _word(reading: Reading, asks: Asks, position: int, answer: str | None) -> Question:
    ids = None if answer is None else (_token(reading, answer),)
    return word_at(asks, position, len(reading.encoded.tokens), ids, reading.model.spell)


def _token(reading: Reading, word: str, option: str = "--answer") -> int:
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
    """Id of the one token called `word`; None where none or several are."""
    model = reading.model
    found = model.token(word)
    if isinstance(model.tokenizer, Numbered):
        if found is None:
            raise InputError(f"{model.name} has no tokenizer here: {option} takes the number of a token")
        model.check_numbers((found,), option)
    return found


def _of_classes(reading: Reading, answer: str | None) -> Question:
    module = reading.model.module
    if judging(type(module)) is None:
        raise InputError(f"{reading.model.name} has no head that predicts words, and none that tells classes")
    if (how := _APART.get(module.config.problem_type or "")) is not None:
        raise InputError(f"{reading.model.name} {how}: it has no one answer to change (predict shows all)")
    labels = class_names(module)
    return class_of_text(None if answer is None else _named(answer, labels), lambda one: labels[one])


def _of_tags(reading: Reading, answer: str | None, query: str | int | None) -> Question:
    """The question of a token's tag; without `query`, at the token with the surest tag (or `answer`)."""
    labels, tokens = class_names(reading.model.module), reading.encoded.tokens
    ids = None if answer is None else (_named(answer, labels),)
    position = tagged_token(reading, answer) if query is None else _tagged(tokens, query)
    return word_at(Asks.TAG, position, len(tokens), ids, labels.__getitem__)


def _of_span(reading: Reading, answer: str | None) -> Question:
    model, tokens = reading.model, reading.encoded.tokens
    if answer is not None:
        return span_of_text(_ends_of(reading, answer), lambda one: tokens.names[one], answer.strip())
    with evaluating(model.module), reading.running():
        chances = log_chances(ends(model.module(**reading.inputs))[0]).exp()
    (best,) = likeliest_spans(chances, tokens, 1)
    return span_of_text((best.first, best.last), lambda one: tokens.names[one], best.name)


def _ends_of(reading: Reading, answer: str, option: str = "--answer") -> tuple[int, int]:
    tokens, words = reading.encoded.tokens, answer.strip()
    if words == NO_ANSWER and tokens.items[0].added:
        return 0, 0
    where = [each.start() for each in re.finditer(re.escape(words), tokens.texts[-1])] if words else []
    for begin in where:
        inside = [i for i, each in enumerate(tokens.items) if each.part == 1 and _within(each, begin, words)]
        if inside and span_at(tokens, inside[0], inside[-1], 0.0).text == words:
            if len(where) > 1:
                reading.listener.notice(
                    f"“{words}” stands {len(where)} times in the text: the first is meant"
                )
            return inside[0], inside[-1]
    raise InputError(f"{option} '{answer}' is no answer: it takes words of the text that --pair gives")


def _within(token: Token, begin: int, words: str) -> bool:
    return token.span is not None and begin <= token.span[0] < token.span[1] <= begin + len(words)


def tagged_token(reading: Reading, answer: str | None) -> int:
    """Position of the token with the surest tag, or where `answer` is surest; the listener is told."""
    model, tokens = reading.model, reading.encoded.tokens
    number = None if answer is None else _named(answer, class_names(model.module))
    places = tagged_places(tokens)
    if not places:
        raise InputError("the text has no token of its own that could have a tag")
    asked = word_at(Asks.TAG, places[0], len(tokens), None, str).asked
    with evaluating(model.module), reading.running():
        chances = log_chances(replace(asked, rows=tuple(places)).of(model.module(**reading.inputs))[0])
    sure = chances.amax(-1) if number is None else chances[:, number]
    position = places[int(sure.argmax())]
    reading.listener.notice(
        f"the answer is the tag of {tokens.named(position)}, the surest of {len(places)} tokens: --from "
        "names another one"
    )
    return position


def query_of(reading: Reading, asked: SurestTag) -> str | int:
    """The query that is named, or a tagger's surest token; `InputError` without either."""
    if asked.query is not None:
        return asked.query
    if not tags(reading):
        raise InputError(_NO_QUERY.format(verb_of(asked)))
    return tagged_token(reading, asked.answer)


def check_tags(planned: Plan, chosen: Chosen, *, asked: SurestTag, code: bool) -> None:
    """Raises `InputError` for a model that tags no tokens, before weights are read."""
    if judging(saved_class(planned.config)) is not Judging.TAGS:
        raise InputError(_NO_QUERY.format(verb_of(asked)))


def _tagged(tokens: Tokens, query: str | int) -> int:
    position = tokens.span(query).one("a tag is of one token, choose one of these")
    if position not in tagged_places(tokens):
        raise InputError(f"{tokens.named(position)} is no token of the text and has no tag")
    return position


def _named(answer: str, names: Sequence[str]) -> int:
    """The number of the choice called `answer`; case counts only where it tells several apart."""
    if answer in names:
        return names.index(answer)
    alike = [number for number, name in enumerate(names) if name.casefold() == answer.casefold()]
    if len(alike) != 1:
        which = [names[number] for number in alike] or nearest(answer, names, _FEW, 0.4) or names[:_FEW]
        of = f" ({len(names)} in all)" if len(which) < len(names) else ""
        if len(names) <= _FEW:
            which, of = list(names), ""
        raise InputError(f"no answer '{answer}': {', '.join(which)}{of}")
    return alike[0]


def of_answers(measures: Sequence[str]) -> tuple[str, ...]:
    """The measures that depend on the model's answer."""
    return tuple(name for name in measures if OF_ANSWERS & MEASURES[name].needs)
