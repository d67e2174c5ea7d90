"""An answer of several tokens: each given those before it, so that their probabilities are multiplied.

The model reads the answer behind its text, but for the last token of it (teacher forcing); the sum of the log
probabilities at these rows is the answer's own.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from attnscope.analysis.answers.question import Question
from attnscope.analysis.prediction import last_of
from attnscope.errors import InputError
from attnscope.model.inputs.generation import tokens_behind
from attnscope.session.questions.answers import question_of, spoken_token
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens

GIVEN = "given"
Ids = tuple[int, ...]


def ids_behind(reading: Reading, prompt: Tokens, answer: str, option: str = "--answer") -> Ids:
    """The tokens of a text that is read right behind the prompt, a blank between them where it has none."""
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
    """The same model with the prompt read, or in its decoder, and these tokens behind it."""
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
    """What is asked, what the model reads for it, and the tokens of the answer that it reads behind its text.

    `query` is the token whose tag is meant, of a model that tags them.
    What an encoder-decoder is asked about is the text that it writes.
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
    """The question of two answers, alike up to their last token: the difference of their sums."""
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
    """The same tokens; `InputError` where the vocabulary lacks what they stand for."""
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
