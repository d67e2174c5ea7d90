"""Answers `dependencies`: scores heads on the grammatical relations of a treebank, in batches of one length.

Sentences with the same number of tokens are batched, so nothing is padded and each is read as it would be
alone. Each layer's weights are reduced to the most attended word at once, and never kept. A few sentences are
captured and certified in full, and the weights counted there are compared with the recomputed ones.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from attnscope.analysis.rows import Sample, answers, looks_ahead, pieces_of, together
from attnscope.analysis.treebank import Bank, Sentence, read_treebank
from attnscope.capture import Labels, record
from attnscope.capture.running import if_it_runs
from attnscope.capture.weights import Weights
from attnscope.errors import CertificateError, InputError
from attnscope.model.inputs.text import Encoded
from attnscope.model.loaded import Model
from attnscope.results.base.origin import tallied
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener
from attnscope.session.opening import Opened
from attnscope.session.reading import origin_of
from attnscope.session.request import digests
from attnscope.verbs.dependencies.question import Relate
from attnscope.verbs.dependencies.relations import FIXED_DISTANCES, Pairs, Tally, ranked, shares
from attnscope.verbs.dependencies.result import Dependencies, Treebank
from attnscope.vocabulary import Kind, Route

_BAR = 24  # characters of the progress bar
SAMPLE = 3  # sentences to certify, at the quartiles of length


def read_asked(asked: Relate) -> Bank:
    """Read the treebank file; `InputError` where it has no relation, or not the one asked for."""
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
    """Indices of the sentences to read, by token length, and counts of those left out.

    `numbers` numbers the sentences to read, in the order of the file.
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
        """Indices of the sentences to certify, at the quartiles of length."""
        order = [i for length in sorted(self.by_length) for i in self.by_length[length]]
        return {order[len(order) * (k + 1) // (SAMPLE + 1)] for k in range(SAMPLE)}


def progress(done: int, total: int) -> str:
    """Progress bar with counts: `━━━━━━────── 1,024 of 2,001 sentences`."""
    filled = round(_BAR * done / total)
    return f"{'━' * filled}{'─' * (_BAR - filled)} {done:,} of {total:,} sentences"


_MOST_CELLS = 2**24  # most weights of a layer in one batch
_ROUNDING = 1e-3  # difference between batched and single weights from which a notice is given


def find_relations(opened: Opened, chosen: Chosen, asked: Relate, listener: Listener) -> Dependencies:
    """Score every chosen head on every relation of the treebank."""
    bank, model = asked.bank, opened.model
    if chosen.route is Route.RETURNED:
        raise InputError("--route returned has weights alone: here queries and keys are needed")
    if chosen.kind is Kind.CROSS or (model.writes and chosen.kind is Kind.DECODER):
        raise InputError(
            f"{model.name}: relations are among the words that it reads, {chosen.kind} attention is about "
            "those that it writes: --kind encoder"
        )
    with listener.working("cutting the sentences into tokens"):
        lengths = Lengths.of(model, bank.sentences)
    counted = _Counted(opened, chosen, bank, lengths, listener)
    counted.read(asked.batch)
    return counted.result(asked)


@dataclass(frozen=True, eq=False)
class _Encoded:
    """A sentence encoded for the model; `number` counts the sentences that are read."""

    index: int
    number: int
    sentence: Sentence
    encoded: Encoded


class _Counted:
    """Reads a treebank batch by batch, counts right pairs of every head, and certifies a sample."""

    def __init__(
        self,
        opened: Opened,
        chosen: Chosen,
        bank: Bank,
        lengths: Lengths,
        listener: Listener,
    ) -> None:
        self.opened, self.chosen, self.listener = opened, chosen, listener
        self.sentences, self.damaged, self.lengths = bank.sentences, bank.damaged, lengths
        self.model, self.heads = opened.model, (chosen.layers, chosen.heads)
        kept = Counter(name for i in lengths.numbers for _, _, name in bank.sentences[i].edges)
        self.tally = Tally(
            len(chosen.layers), len(chosen.heads), sorted(kept, key=lambda name: (-kept[name], name))
        )
        self.pairs = Pairs({i: bank.sentences[i] for i in lengths.numbers})
        selection = chosen.selection(heads=chosen.heads)
        self.weights = Weights(self.model.module, selection, chosen.block)
        self.proof = Sample(chosen.layers, chosen.heads, chosen.block)
        self.ahead = False
        self.scored = self.without_piece = self.unknown = 0
        self.refused: list[str] = []

    def read(self, most: int) -> None:
        done, total = 0, len(self.lengths.numbers)
        for length in sorted(self.lengths.by_length):
            together = min(most, max(1, _MOST_CELLS // (length**2 * len(self.chosen.heads))))
            indices = self.lengths.by_length[length]
            for start in range(0, len(indices), together):
                batch = indices[start : start + together]
                with self.listener.working(progress(done, total)):
                    for group in self._encoded(batch):
                        self._score(group)
                done += len(batch)
        if not self.scored:
            why = f": {self.refused[0]}" if self.refused else ""
            raise InputError(f"{self.model.name} reads none of the sentences{why}")

    def _encoded(self, indices: Sequence[int]) -> Iterator[list[_Encoded]]:
        groups = defaultdict[Any, list[_Encoded]](list)
        for i in indices:
            try:
                encoded = self.model.encode_words((self.sentences[i].words,))
            except InputError as error:
                self.refused.append(str(error))
                continue
            self.unknown += len(encoded.tokens.unknown)
            one = _Encoded(i, self.lengths.numbers[i], self.sentences[i], encoded)
            groups[tuple((name, value.shape) for name, value in encoded.inputs.items())].append(one)
        yield from groups.values()

    def _score(self, group: Sequence[_Encoded]) -> None:
        pieces = together([pieces_of(one.encoded.tokens, len(one.sentence.words)) for one in group])
        if not pieces.any():
            name = self.model.name
            raise InputError(f"{name}: its tokenizer does not say where in the text its tokens are")
        sampled = {row: one for row, one in enumerate(group) if one.index in self.lengths.sample}
        kept: dict[int, dict[int, Tensor]] = {row: {} for row in sampled}

        def make(layer: int, weights: Tensor) -> Int[Tensor, "row head way word"]:
            _check_weights(weights, pieces.shape[-1], self.model.name)
            for row, by_layer in kept.items():
                by_layer[layer] = weights[row].cpu()
            self.ahead = self.ahead or looks_ahead(weights)
            return answers(weights, pieces)

        inputs = self._inputs(group)
        with if_it_runs(self.model.module, inputs, self.model.name):
            by_layer = self.weights.read(inputs, make)
        answers_by_layer = np.stack([by_layer[layer].numpy() for layer in self.chosen.layers], axis=1)
        for row, one in enumerate(group):
            there, edges = pieces[row].any(-1).numpy(), one.sentence.edges
            known = [edge for edge in edges if there[edge[0]] and there[edge[1]]]
            self.without_piece += len(edges) - len(known)
            if known:
                self.scored += 1
                self.tally.add(one.number, known, answers_by_layer[row])
                self.pairs.add(one.index, known, answers_by_layer[row])
        for row, one in sampled.items():
            self._prove(one, row, inputs, kept[row])

    def _inputs(self, group: Sequence[_Encoded]) -> dict[str, Any]:
        first = group[0].encoded.inputs
        joined = {name: torch.cat([one.encoded.inputs[name] for one in group]) for name in first}
        if self.model.writes:
            joined["decoder_input_ids"] = self.model.opening().ids.repeat_interleave(len(group), 0)
        return joined

    def _prove(self, one: _Encoded, row: int, inputs: dict[str, Any], counted: dict[int, Tensor]) -> None:
        selection, source = replace(self.weights.selection, row=row), origin_of(self.model, self.chosen)
        target = self.model.opening().tokens if self.model.writes else None
        labels = Labels(one.encoded.tokens, target, source)
        captured = record(self.model.module, inputs, selection, labels)
        captured.check_in_place("relations are among words")
        alone = self.weights.read(self._inputs([one]), lambda layer, weights: weights[0].cpu())
        self.proof.add(captured, counted, alone)

    def result(self, asked: Relate) -> Dependencies:
        self._tell()
        read = asked.read_again
        relations, overall = ranked(self.tally, self.heads)
        relations = tuple(replace(each, examples=self.pairs.examples(each, self.heads)) for each in relations)
        there = [i for i, relation in enumerate(relations) if relation.count]
        whole = self.tally.halves[0] + self.tally.halves[1]
        assert self.proof.provenance is not None, "a sentence was captured"
        return Dependencies(
            treebank=Treebank(
                name=Path(asked.path).name,
                sentences=len(self.sentences) + len(self.damaged),
                scored=self.scored,
                too_long=self.lengths.too_long,
                without_relation=self.lengths.without_relation,
                unreadable=len(self.refused) + len(self.damaged),
                pairs_without_piece=self.without_piece,
                limit=self.lengths.limit,
            ),
            kind=self.chosen.kind,
            layers=self.chosen.layers,
            heads=self.chosen.heads,
            relations=tuple(relations[i] for i in there),
            overall=overall,
            accuracies=shares(whole.right, whole.count)[..., there],
            fixed_distances=FIXED_DISTANCES,
            distance_accuracies=shares(whole.distance_right, whole.count)[:, there],
            ahead=self.ahead,
            certified=tallied(self.proof.verdicts.elements()),
            sampled=self.proof.sentences,
            unlike=self.proof.unlike,
            provenance=replace(self.proof.provenance.of_no_text, read=read, files=digests(read)),
            tower=self.proof.tower,
            shown=asked.relation or "",
        )

    def _tell(self) -> None:
        name, first = self.model.name, (self.refused or [""])[0]
        skipped = {
            f"longer than the {self.lengths.limit} tokens that {name} reads": self.lengths.too_long,
            f"that {name} cannot read ({first})": len(self.refused),
            f"that the file has damaged ({(self.damaged or ('',))[0]})": len(self.damaged),
        }
        for why, count in skipped.items():
            if count:
                self.listener.notice(f"skipped {count} sentence{'s' if count > 1 else ''} {why}")
        if self.proof.unlike > _ROUNDING:
            alone = (
                f"by up to {self.proof.unlike:.1g} from what it gives alone: --batch 1 reads one at a time"
            )
            self.listener.notice(f"what a sentence gives among others differs {alone}")
        if self.unknown:
            self.listener.notice(f"{self.model.name} cannot spell {self.unknown} pieces: read as unknown")


def _check_weights(weights: Tensor, tokens: int, name: str) -> None:
    if weights.shape[-2:] != (tokens, tokens):
        queries, keys = weights.shape[-2:]
        raise InputError(
            f"{name}: attention of {queries} queries on {keys} keys is not among {tokens} tokens"
        )
    if not bool(weights.isfinite().all()):
        raise CertificateError(f"{name}: weights of attention are not numbers: the checkpoint may be damaged")
