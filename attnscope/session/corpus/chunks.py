"""The texts of all files of a corpus, numbered, in chunks of so many; and what there is of them in all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from attnscope.errors import InputError
from attnscope.session.corpus.engine.interface import Chunk, SetAside, Text
from attnscope.session.corpus.source import Form, Source

CHUNK = 128


@dataclass(frozen=True)
class Census:
    """How many texts, blanks and unreadable ones the files hold, the hash of each, and the tags of words."""

    texts: int
    blanks: int
    unreadable: int
    digests: tuple[str, ...]
    tags: tuple[str, ...] = ()

    @property
    def chunks(self) -> int:
        return -(-self.texts // CHUNK)


def census(sources: Sequence[Source], limit: int | None) -> Census:
    """What there is, in one walk through all files; `InputError` where nothing can be read."""
    texts = blanks = unreadable = 0
    tags: dict[str, None] = {}
    first: SetAside | None = None
    for item in _items(sources, limit):
        if isinstance(item, SetAside):
            first, unreadable = first or item, unreadable + 1
        elif item is None:
            blanks += 1
        else:
            texts += 1
            tags |= dict.fromkeys(item.tags or ())
    if not texts:
        names = ", ".join(f"'{source.name}'" for source in sources)
        why = (
            f": {first.place}: {first.why.removeprefix(f'{first.place}: ')}"
            if first
            else ": nothing but blank lines"
            if blanks
            else ""
        )
        raise InputError(f"no text in {names}{why or ': empty'}")
    return Census(texts, blanks, unreadable, tuple(source.digest for source in sources), tuple(tags))


def _items(sources: Sequence[Source], limit: int | None) -> Iterator[Text | SetAside | None]:
    """Every item of every file, texts with their numbers, up to the last of the first `limit` texts."""
    number = 0
    for source in sources:
        for item in source.items():
            if isinstance(item, Text):
                if number == limit:
                    return
                yield replace(item, number=number)
                number += 1
            else:
                yield item


def chunks(sources: Sequence[Source], limit: int | None) -> Iterator[Chunk]:
    """Texts by `CHUNK`; what cannot be read goes with the text behind it, what comes last with the last."""
    texts: list[Text] = []
    aside: list[SetAside] = []
    number = 0
    for item in _items(sources, limit):
        if isinstance(item, SetAside):
            aside.append(item)
        elif item is not None:
            if len(texts) == CHUNK:
                yield Chunk(number, tuple(texts), tuple(aside))
                texts, aside, number = [], [], number + 1
            texts.append(item)
    yield Chunk(number, tuple(texts), tuple(aside))


def tagged(sources: Sequence[Source]) -> bool:
    """Whether every file says what part of speech a word is."""
    return all(source.form is Form.CONLLU for source in sources)
