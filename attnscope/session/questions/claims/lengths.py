"""Which sentences of a treebank are read: those with a relation that the model can read, by their length.

It counts the tokens of each, and leaves reading to `relations`.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from attnscope.analysis.claims.relations.treebank import Sentence
from attnscope.errors import InputError
from attnscope.model.inputs.text import limit_of
from attnscope.model.loaded import Model

SAMPLE = 3  # sentences that are certified: of lengths that cut all of them in four


@dataclass(frozen=True, eq=False)
class Lengths:
    """Which sentences are read, by how many tokens they have, and how many are left out and why.

    `numbers` counts those that are read, in the order of the file.
    """

    by_length: dict[int, list[int]]
    numbers: dict[int, int]
    too_long: int
    without_relation: int
    limit: int | None

    @classmethod
    def of(cls, model: Model, sentences: Sequence[Sentence]) -> "Lengths":
        tokenizer, by_length, numbers = model.tokenizer, defaultdict[int, list[int]](list), dict[int, int]()
        too_long = without = 0
        model.encode_words((sentences[0].words,), truncate=True)  # refused where it reads no text
        limit = limit_of(tokenizer, model.module.config)
        for i, sentence in enumerate(sentences):
            length = len(tokenizer(" ".join(sentence.words))["input_ids"]) if sentence.edges else 0
            if not sentence.edges:
                without += 1
            elif limit is not None and length > limit:
                too_long += 1
            else:
                numbers[i] = len(numbers)
                by_length[length].append(i)
        if not numbers:
            raise InputError(f"{model.name} reads none of the sentences: it reads at most {limit} tokens")
        return cls(by_length, numbers, too_long, without, limit)

    @property
    def sample(self) -> set[int]:
        """The sentences that are certified: where lengths, in order, are cut in four."""
        order = [i for length in sorted(self.by_length) for i in self.by_length[length]]
        return {order[len(order) * (k + 1) // (SAMPLE + 1)] for k in range(SAMPLE)}
