"""Counting rules that the models are held against: the commonest word, the word that fits its neighbours."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from attnscope.demo.train.corpora.corpus import Document

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


class Continuations:
    """Which word comes after the last two, the last one or none: counts of texts, and nothing else.

    Counts are mixed as by Witten and Bell (1991): a longer context counts the more, the more often it was
    seen and the fewer different words came after it; the rest goes to the shorter one, at last to all alike.
    """

    def __init__(self, texts: Iterable[Sequence[str]], longest: int = 2) -> None:
        self.longest = longest
        self.after: list[dict[tuple[str, ...], Counter[str]]] = [{} for _ in range(longest + 1)]
        for words in texts:
            line = [*[EDGE] * longest, *words, EDGE]
            for place in range(longest, len(line)):
                for length, table in enumerate(self.after):
                    table.setdefault(tuple(line[place - length : place]), Counter())[line[place]] += 1
        self.totals = [{context: counts.total() for context, counts in table.items()} for table in self.after]
        self.vocabulary = len(self.after[0][()])

    def probabilities(self, words: Iterable[str], before: Sequence[str], length: int) -> dict[str, float]:
        """The probability of each of these words, or of EDGE, after at most the last `length` words."""
        mixed = dict.fromkeys(words, 1 / self.vocabulary)
        for size in range(length + 1):
            context = tuple(before[len(before) - size :])
            if counts := self.after[size].get(context):
                total, kinds = self.totals[size][context], len(counts)
                mixed = {word: (counts[word] + kinds * p) / (total + kinds) for word, p in mixed.items()}
        return mixed

    def best(self, before: Sequence[str], length: int, best: int = 5) -> list[str]:
        """The likeliest words: among those seen after the contexts and the commonest of all."""
        known = {word for word, _ in self.after[0][()].most_common(best)}
        for size in range(1, length + 1):
            known |= self.after[size].get(tuple(before[len(before) - size :]), Counter()).keys()
        likely = self.probabilities(known, before, length)
        return sorted(known, key=lambda word: (-likely[word], word))[:best]
