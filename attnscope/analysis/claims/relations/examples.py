"""Pairs of a treebank that can be shown: what every head takes for the heads of a few dependents.

Of each relation the first pairs in the order of the file are kept, whatever the order in which they are read.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Int

from attnscope.analysis.claims.relations.ranking import Edges, Heads
from attnscope.analysis.claims.relations.treebank import Sentence
from attnscope.results.claims.relations import Direction, Example, Relation

_KEPT = 40  # pairs of a relation
_LONGEST = 30  # words of a sentence that is shown


class Pairs:
    """The pairs that may be shown; `sentences` are those that are read, by their number in the file."""

    def __init__(self, sentences: Mapping[int, Sentence]) -> None:
        self.sentences = sentences
        self.wanted: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for index in sorted(sentences):
            if len(sentences[index].words) <= _LONGEST:
                for dependent, governor, name in sentences[index].edges:
                    self.wanted[name].append((index, dependent, governor))
        self.wanted = {name: pairs[:_KEPT] for name, pairs in self.wanted.items()}
        self._by_sentence: dict[int, set[int]] = defaultdict(set)
        for pairs in self.wanted.values():
            for index, dependent, _ in pairs:
                self._by_sentence[index].add(dependent)
        self._taken: dict[tuple[int, int], Int[np.ndarray, "layer head direction"]] = {}

    def add(self, index: int, edges: Edges, answered: Int[np.ndarray, "layer head direction word"]) -> None:
        """What every head answers for every word of one sentence; `edges` are those that count."""
        for dependent in self._by_sentence.get(index, set()) & {dependent for dependent, *_ in edges}:
            self._taken[index, dependent] = answered[..., dependent].astype(np.int16)

    def examples(self, relation: Relation, heads: Heads) -> tuple[Example, ...]:
        """The first pair that the relation's best head gets right, and the first that it misses."""
        best, ways = relation.best, tuple(Direction)
        place = heads[0].index(best.layer), heads[1].index(best.head), ways.index(best.direction)
        every = [
            Example(self.sentences[index].words, dependent, governor, int(taken[place]))
            for index, dependent, governor in self.wanted.get(relation.name, ())
            if (taken := self._taken.get((index, dependent))) is not None
        ]
        return _first(every, right=True) + _first(every, right=False)


def _first(every: Sequence[Example], *, right: bool) -> tuple[Example, ...]:
    return tuple([each for each in every if each.right == right][:1])
