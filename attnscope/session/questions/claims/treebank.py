"""Which sentences of a treebank are read: those with a relation, by their length.

Lengths are counted in tokens of the model; `relations` reads the sentences.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnscope.analysis.claims.relations.treebank import Bank, Sentence, read_treebank
from attnscope.errors import InputError
from attnscope.model.loaded import Model
from attnscope.session.verbs.dependencies import Relate

_BAR = 24  # characters of the progress bar
SAMPLE = 3  # sentences that are certified: of lengths that cut all of them in four


def read_asked(asked: Relate) -> Bank:
    """The sentences of the file; `InputError` where it has no relation, or not the one that is asked for."""
    bank = read_treebank(Path(asked.path), asked.limit)
    there = Counter(name for sentence in bank.sentences for _, _, name in sentence.edges)
    if not there:
        raise InputError(f"no relation in '{asked.path}': every sentence of it is a single word")
    if asked.relation is not None and asked.relation not in there:
        relations = ", ".join(name for name, _ in there.most_common())
        raise InputError(f"no relation '{asked.relation}' in '{asked.path}': {relations}")
    return bank


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
        limit = model.limit()
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


def progress(done: int, total: int) -> str:
    """`━━━━━━────── 1,024 of 2,001 sentences`."""
    filled = round(_BAR * done / total)
    return f"{'━' * filled}{'─' * (_BAR - filled)} {done:,} of {total:,} sentences"
