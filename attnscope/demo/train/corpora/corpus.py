"""The finite, seeded stream of training documents, and the rules that keep the test material out of it.

Three things never enter a training document, wherever in it they might stand:

1. the sentences of the articles that the program shows, whatever word stands in the place of their mask;
2. both words of a held-out verb-noun pair, in any of their forms, related or not;
3. a held-out sentence: one sentence in 25 of all that the grammar can say, chosen by a checksum of its text.

The rules look at nothing but the text, so a test proves them by generating the stream again.
"""

from __future__ import annotations

import hashlib
import random
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from attnscope.demo.train.english import lexicon as lex
from attnscope.demo.train.english.inflection import gerund, past, plural, third
from attnscope.demo.train.english.phrases import Speaker, plain
from attnscope.demo.train.english.sentences import sentence
from attnscope.demo.train.english.stories import story

DOCUMENTS = 400_000
LENGTH = 64  # the longest document in tokens: every position embedding is trained
HELD_OUT_SHARE = 25  # one sentence in so many
PAIR_SHARE = 25  # one verb-noun pair in so many

FOLLOWS, FOREIGN, UNLABELLED = 0, 1, -100  # next-sentence labels as transformers numbers them

ARTICLES = re.compile(
    r"\bi was watching the \w+ when it opened\b"
    r"|\bi was watching the door when \w+ opened\b"
    r"|\bi \w+ a person\b"
    r"|\bi am going to the supermarket\b"
    r"|\bi would like to buy apples\b"
    r"|\band that is how i met your mother\b"
    r"|\bbill is going to the theatre to watch a new movie\b"
    r"|\bi sat on the bank of the river\b"
    r"|\bi put my money in the bank\b"
    r"|\bi have to water the plant in the yard\b"
    r"|\bhe works in the plant with the big machines\b"
)


@dataclass(frozen=True)
class Document:
    """What the model reads at once: one or two segments and whether the second follows from the first."""

    first: str
    second: str = ""
    label: int = UNLABELLED
    negative: str = ""  # "hard" or "random" when the second is foreign

    @property
    def words(self) -> int:
        return len(self.first.split()) + len(self.second.split())


def sentences(text: str) -> list[str]:
    """The sentences of a plain text without their final mark."""
    return [piece.strip() for piece in re.split("[.?]", text) if piece.strip()]


def spaced(text: str) -> str:
    """An ordinary sentence in the form of the stream: lower case, every mark a word of its own."""
    return " ".join(re.findall(r"\[mask\]|\w+|[^\w\s]", text.lower())).replace("[mask]", "[MASK]")


def is_held_out(one: str) -> bool:
    """Whether this sentence belongs to the held-out share."""
    return zlib.crc32(one.encode()) % HELD_OUT_SHARE == 0


@cache
def held_out_pairs() -> tuple[tuple[str, str], ...]:
    """Verb and noun of every held-out pair: a checksum's choice among all that the classes allow."""
    pairs = (
        (verb, noun)
        for kind in lex.THINGS + lex.ANIMALS
        for noun in kind.nouns
        for verb in kind.does + kind.done
    )
    return tuple(sorted({pair for pair in pairs if zlib.crc32(" ".join(pair).encode()) % PAIR_SHARE == 0}))


@cache
def _forbidden() -> dict[str, frozenset[str]]:
    """For each form of a noun the verb forms that must not stand in the same document."""
    forbidden: dict[str, set[str]] = {}
    for verb, noun in held_out_pairs():
        forms = {form(verb).split()[0] for form in (str, past, third, gerund)}
        for name in (noun, plural(noun)):
            forbidden.setdefault(name, set()).update(forms)
    return {noun: frozenset(verbs) for noun, verbs in forbidden.items()}


def has_held_out_pair(text: str) -> bool:
    """Whether both words of a held-out pair stand anywhere in a plain text."""
    words, forbidden = set(text.split()), _forbidden()
    return any(not forbidden[word].isdisjoint(words) for word in words & forbidden.keys())


def is_allowed(document: Document) -> bool:
    """Whether a document may be trained on."""
    text = f"{document.first} . {document.second}"
    if ARTICLES.search(text) or has_held_out_pair(text):
        return False
    return not any(is_held_out(one) for one in sentences(text))


def single(s: Speaker) -> Document:
    """One sentence, or two in one segment, now and then without the final stop."""
    tale = story(s) if s.chance(0.15) else None
    text = f"{tale.first} {tale.second}" if tale else sentence(s)
    return Document(plain(text).removesuffix(" .") if s.chance(0.1) else plain(text))


def pair(s: Speaker) -> Document:
    """Two segments: half of them belong together, the others are hard (3 in 5) or random (2 in 5)."""
    tale = story(s)
    draw = s.generator.random()
    if draw < 0.5:
        return Document(plain(tale.first), plain(tale.second), FOLLOWS)
    if draw < 0.8:
        return Document(plain(tale.first), plain(tale.wrong), FOREIGN, "hard")
    return Document(plain(tale.first), plain(story(s).second), FOREIGN, "random")


def pack(s: Speaker) -> Document:
    """A pair with other sentences before and behind it, cut so that it fills every position."""
    middle, room = pair(s), LENGTH - 3
    before = ""
    while len(before.split()) + middle.words < s.generator.randrange(room):
        before += plain(sentence(s)) + " "
    first = (before + middle.first).split()[-(room - 12) :]
    second = middle.second.split()
    while len(first) + len(second) < room:
        second += plain(sentence(s)).split()
    return Document(" ".join(first), " ".join(second[: room - len(first)]), middle.label, middle.negative)


def documents(seed: int = 0, count: int = DOCUMENTS) -> Iterator[Document]:
    """The training stream: the same for the same seed, finite, free of everything held out."""
    generator = random.Random(seed)
    made = 0
    while made < count:
        s = Speaker(generator)
        draw = generator.random()
        document = single(s) if draw < 0.5 else pair(s) if draw < 0.92 else pack(s)
        if is_allowed(document):
            made += 1
            yield document


def vocabulary_of(stream: Iterable[Document]) -> set[str]:
    """Every word of some documents."""
    return {word for document in stream for word in f"{document.first} {document.second}".split()}


class Digest:
    """A checksum of documents in their order: it tells whether the grammar still makes the same stream."""

    def __init__(self) -> None:
        self._sums = hashlib.sha256()

    def add(self, document: Document) -> None:
        self._sums.update(f"{document.first}|{document.second}|{document.label}\n".encode())

    def hex(self) -> str:
        return self._sums.hexdigest()


def digest(stream: Iterable[Document]) -> str:
    """The checksum of a whole stream."""
    sums = Digest()
    for document in stream:
        sums.add(document)
    return sums.hex()
