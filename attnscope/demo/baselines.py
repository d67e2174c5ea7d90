"""Counting rules that the model is held against: the commonest word, the word that fits its neighbours."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from attnscope.demo.corpus import Document

EDGE = "|"


class Counts:
    """Words and neighbouring pairs of the training stream."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.words: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        for document in documents:
            for text in filter(None, (document.first, document.second)):
                words = text.split()
                self.words.update(words)
                pairs.update(zip([EDGE, *words], [*words, EDGE], strict=True))
        self.after: dict[str, dict[str, int]] = {}
        self.before: dict[str, dict[str, int]] = {}
        for (left, right), count in pairs.items():
            self.after.setdefault(left, {})[right] = count
            self.before.setdefault(right, {})[left] = count
        self.total = self.words.total()

    def unigram(self, best: int) -> list[str]:
        """The commonest words: the best guess without any context."""
        return [word for word, _ in self.words.most_common(best)]

    def bigram(self, left: str, right: str, best: int) -> list[str]:
        """The words likeliest between two neighbours: p(word | left) p(right | word), smoothed."""
        after, before = self.after.get(left, {}), self.before.get(right, {})
        total = sum(after.values())
        share = max(1, sum(before.values())) / self.total

        def score(word: str) -> float:
            come = (after.get(word, 0) + self.words[word] / self.total) / (total + 1)
            follow = (before.get(word, 0) + share) / (self.words[word] + 1)
            return math.log(come) + math.log(follow)

        known = (after.keys() | before.keys()) - {EDGE}
        return sorted(known, key=lambda word: (-score(word), word))[:best]
