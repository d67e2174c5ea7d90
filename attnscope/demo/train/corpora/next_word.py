"""What the next-word model reads: the documents of `corpus` as running text, and random words said twice.

In random words nothing but the text itself tells what comes next: after a word that stood there before comes
what came after it then. So they ask for induction (Olsson et al. 2022), which the grammar hardly ever needs.
All that the rules of `corpus` hold out stays out of both.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from attnscope.demo.train.corpora.corpus import FOREIGN, LENGTH, Document, is_allowed, vocabulary_of

ROOM = LENGTH - 2  # words between the token that begins a passage and the one that ends it
SHORTEST = 3  # words of the shortest repeated stretch
LONGEST_GAP = 12
MOST_COPIES = 4


@dataclass(frozen=True)
class Passage:
    """Words in their order; where they are random, only those that follow from the text are asked for."""

    words: tuple[str, ...]
    is_random: bool = False

    @property
    def asked(self) -> list[bool]:
        """Whether each word, and then the end, is asked for in training."""
        if not self.is_random:
            return [True] * (len(self.words) + 1)
        return [*follows_again(self.words), False]


def follows_again(words: Sequence[str]) -> list[bool]:
    """Whether each word follows its neighbour on the left just as it did when that neighbour last stood."""
    follower: dict[str, str] = {}
    follows = [False] * len(words)
    for place in range(1, len(words)):
        follows[place] = follower.get(words[place - 1]) == words[place]
        follower[words[place - 1]] = words[place]
    return follows


def prose(document: Document) -> Passage:
    """A document as one text; a second segment that does not follow from the first is left away."""
    second = "" if document.label == FOREIGN else document.second
    return Passage(tuple(f"{document.first} {second}".split()))


def echo(words: Sequence[str], generator: random.Random) -> Passage:
    """Random words: some to begin with, then a stretch that comes again at once or after other words.

    All words but the repeated ones differ, so that what follows is never ambiguous. Short stretches are
    likelier than long ones; a stretch comes two to four times, as often as there is room for it.
    """
    before, gap = generator.randint(0, 8), generator.choice((0, generator.randint(1, LONGEST_GAP)))
    room = ROOM - before
    size = min(generator.randint(SHORTEST, (room - gap) // 2) for _ in range(2))
    copies = generator.randint(2, min(MOST_COPIES, (room + gap) // (size + gap)))
    drawn = generator.sample(words, before + size + gap * (copies - 1))
    start, stretch, rest = drawn[:before], drawn[before : before + size], drawn[before + size :]
    text = start + stretch
    for copy in range(copies - 1):
        text += rest[copy * gap : (copy + 1) * gap] + stretch
    return Passage(tuple(text), is_random=True)


def passages(documents: Sequence[Document], seed: int, share: float) -> Iterator[Passage]:
    """The documents in their order and, among them, a share of random passages that the rules allow."""
    generator, words = random.Random(seed), plain_words(documents)
    for document in documents:
        yield prose(document)
        while generator.random() < share:
            passage = echo(words, generator)
            if is_allowed(Document(" ".join(passage.words))):
                yield passage


def plain_words(documents: Iterable[Document]) -> list[str]:
    """The words of a stream without punctuation, in alphabetical order."""
    return sorted(word for word in vocabulary_of(documents) if word.isalpha())


def digest(stream: Iterable[Passage]) -> str:
    """The checksum of a whole stream of passages."""
    sums = hashlib.sha256()
    for passage in stream:
        sums.update(f"{' '.join(passage.words)}|{int(passage.is_random)}\n".encode())
    return sums.hexdigest()
