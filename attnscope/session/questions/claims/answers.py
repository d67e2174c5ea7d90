"""Which answer of a model is meant: the word of its mask, the next token, a verdict, a text, a class."""

from collections.abc import Sequence

from attnscope.analysis.claims.ablation.question import (
    Question,
    class_of_text,
    text_written,
    verdict_on_pair,
    word_at,
)
from attnscope.errors import InputError
from attnscope.model.inputs.numbered import Numbered
from attnscope.model.loading.answering import tells_classes
from attnscope.results.claims.ablation import Asks
from attnscope.session.reading import Reading

FOLLOWS = ("follows", "does not follow")


def question_of(reading: Reading, answer: str | None) -> Question:
    """What this model answers to what it read, or what of it `answer` names.

    Raises `InputError` for a model without a head to answer with, and for an answer that it cannot give.
    """
    if reading.task is None:
        return _of_classes(reading, answer)
    if reading.target is not None:
        if answer is not None:
            raise InputError("an encoder-decoder's answer is the text that it writes: name one with --target")
        written = reading.target.tokens
        return text_written(written.ids, written.sentence.strip(), reading.model.spell)
    tokens = reading.encoded.tokens
    if reading.task == "next":
        spoken = [i for i, token in enumerate(tokens.items) if not token.added]
        position = spoken[-1] if spoken else len(tokens) - 1
        return _word(reading, Asks.NEXT, position, answer)
    masks = [i for i, token in enumerate(tokens.items) if token.id == reading.model.tokenizer.mask_token_id]
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


def _token(reading: Reading, word: str) -> int:
    """The one token that `word` is, as it stands after a blank where the vocabulary tells these apart."""
    tokenizer, name = reading.model.tokenizer, reading.model.name
    if isinstance(tokenizer, Numbered):
        if not word.isdigit():
            raise InputError(f"{name} has no tokenizer here: --answer takes the number of a token")
        reading.model.check_numbers((int(word),), "--answer")
        return int(word)
    special = dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
    if word in special:
        return int(special[word])
    pieces: list[Sequence[int]] = [
        tokenizer(written, add_special_tokens=False)["input_ids"] for written in (f" {word}", word)
    ]
    for ids in pieces:
        if len(ids) == 1 and ids[0] != tokenizer.unk_token_id:
            return int(ids[0])
    parts = " ".join(reading.model.spell(id) for id in pieces[-1])
    how = f": it would write {parts}" if len(pieces[-1]) > 1 else ""
    raise InputError(f"the vocabulary of {name} has no token '{word}'{how}")


def _of_classes(reading: Reading, answer: str | None) -> Question:
    """A class by its name in the model's config; `InputError` for a model that answers nothing at all."""
    module = reading.model.module
    if not tells_classes(type(module)):
        raise InputError(f"{reading.model.name} has no head that predicts words, and none that tells classes")
    names = getattr(module.config, "id2label", None) or {}
    labels = [str(names.get(number, number)) for number in range(int(module.config.num_labels))]
    return class_of_text(_named(answer, labels), lambda one: labels[one])


def _named(answer: str | None, names: Sequence[str]) -> int | None:
    """The number of the choice that is called `answer`; None where none is named."""
    if answer is None:
        return None
    folded = [name.casefold() for name in names]
    if answer.casefold() not in folded:
        raise InputError(f"no answer '{answer}': {', '.join(names)}")
    return folded.index(answer.casefold())
