"""Chunk after chunk of a corpus measured: what is read together, set aside, captured in full and certified.

Where a batch gives what fills up any weight, its texts are read again by their lengths. Of chunks 0, 1, 3, 7
and so on one text is captured in full within its batch and certified, and read once more alone.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import torch

from attnscope.analysis.claims.relations.answers import Sample
from attnscope.analysis.corpus.names import needs_norms
from attnscope.analysis.corpus.totals import Totals
from attnscope.errors import InputError
from attnscope.results import Verdict
from attnscope.results.claims.lengths import CorpusText
from attnscope.session.corpus.batches import Ready, batches
from attnscope.session.corpus.chunk_file import Measured, Proved, Rows, written
from attnscope.session.corpus.engine.interface import Chunk, Measurer, SetAside
from attnscope.session.corpus.identity import Instructions
from attnscope.session.corpus.reader import UNLIKE, BatchReader
from attnscope.session.listener import Quiet
from attnscope.session.opening import Purpose, open_model
from attnscope.session.request import Inputs

_CELLS = 2**22  # of the weights of a layer at once
_DEADLY = "the process that reads it ends, twice"
_NEITHER = "nothing reads the heads' outputs by a matrix alone"


@dataclass
class _MeasuredChunk:
    """The texts of one chunk: what is measured of them so far, and what is set aside."""

    reader: BatchReader
    chunk: Chunk
    measured: list[tuple[Ready, np.ndarray]] = field(default_factory=list)
    aside: list[SetAside] = field(default_factory=list)
    groups: list[list[Ready]] = field(default_factory=list)
    unknown: int = 0
    cut: int = 0

    def read(self) -> None:
        """Every text that can be read."""
        self.aside += self.chunk.set_aside
        ready = []
        for text in self.chunk.texts:
            if text.number in self.chunk.deadly:
                self.aside.append(SetAside(text.place, _DEADLY, text.text))
                continue
            try:
                one = self.reader.encoded(text)
            except InputError as error:
                self.aside.append(SetAside(text.place, str(error), text.text))
                continue
            self.unknown += len(one.tokens.unknown)
            self.cut += one.cut
            ready.append(one)
        self._measure(ready, padded=self.reader.padded)

    def _measure(self, ready: Sequence[Ready], *, padded: bool) -> None:
        cells = _CELLS // max(len(self.reader.chosen.heads), 1)
        for group in batches(ready, most=self.reader.recipe.batch, cells=cells, padded=padded):
            values, leaks = self.reader.values(group)
            if leaks > 0:
                self._measure(group, padded=False)
                continue
            self.groups.append(group)
            self.measured += zip(group, values, strict=True)

    def _sample(self) -> Sample:
        """Of chunks 0, 1, 3, 7 and so on in turn: a text that was filled up most, and one that was not."""
        chosen = self.reader.chosen
        sample = Sample(chosen.layers, chosen.heads, chosen.block)
        turn = self.chunk.number + 1
        if self.groups and turn.bit_count() == 1:
            if turn.bit_length() % 2:
                self.reader.prove(
                    max(self.groups, key=lambda group: len(group[-1]) - len(group[0])), 0, sample
                )
            else:
                middle = self.groups[len(self.groups) // 2]
                self.reader.prove(middle, len(middle) - 1, sample)
        return sample

    def result(self) -> Measured:
        """All of it, texts in the order of the corpus."""
        reader, recipe = self.reader, self.reader.recipe
        self.measured.sort(key=lambda pair: pair[0].text.number)
        shape = (0, len(reader.measures), len(reader.chosen.layers), len(reader.chosen.heads))
        values = np.stack([measured for _, measured in self.measured]) if self.measured else np.zeros(shape)
        numbers = np.array([one.text.number for one, _ in self.measured], np.int64)
        lengths = np.array([len(one) for one, _ in self.measured], np.int64)
        places = tuple(one.text.place for one, _ in self.measured)
        texts = [self._told(one) for one, _ in self.measured]
        return Measured(
            number=self.chunk.number,
            measures=reader.measures,
            layers=reader.chosen.layers,
            heads=reader.chosen.heads,
            kind=reader.chosen.kind.value,
            tower=reader.chosen.tower.distinct_name,
            texts=len(self.measured),
            tokens=int(lengths.sum()),
            longest=int(lengths.max(initial=0)),
            limit=reader.limit,
            unknown=self.unknown,
            padded=sum(len(one) < len(group[-1]) for group in self.groups for one in group),
            cut=self.cut,
            set_aside=tuple(self.aside),
            absent=self._absent(values),
            proved=self._proved(),
            totals=Totals.of(values, numbers, texts),
            rows=Rows(numbers, lengths, places, values) if recipe.rows else None,
        )

    def _told(self, one: Ready) -> CorpusText:
        return CorpusText(one.text.place, len(one), one.text.text, not one.cut and one.text.words is None)

    def _absent(self, values: np.ndarray) -> dict[str, str]:
        lacking = [layer for layer in self.reader.chosen.layers if layer not in self.reader.triangles]
        if not lacking:
            return {}
        return {name: _NEITHER for name in self.reader.recipe.measures if needs_norms((name,))}

    def _proved(self) -> Proved:
        sample = self._sample()
        verdicts = sample.verdicts
        if not sample.unlike <= UNLIKE:  # also where it is not a number
            verdicts[Verdict.FAILED] += 1
        counts = {verdict.value: verdicts[verdict] for verdict in Verdict if verdicts[verdict]}
        unlike = math.inf if math.isnan(sample.unlike) else sample.unlike
        return Proved(counts, sample.sentences, unlike, asdict(self.reader.provenance))


@dataclass(frozen=True)
class CorpusMeasurer:
    """The measurer of a recipe; the model is open."""

    reader: BatchReader

    def measure(self, chunk: Chunk) -> bytes:
        """The chunk's file."""
        measured = _MeasuredChunk(self.reader, chunk)
        measured.read()
        return written(measured.result())


class CorpusRecipe(Instructions):
    """The recipe of a corpus: what a worker is told, which it opens to a model that measures."""

    def on(self, device: str) -> "CorpusRecipe":
        """The same for a worker that has this device; a model that is spread has several."""
        if self.request.device_map is not None:
            return self
        return replace(self, request=replace(self.request, device=device))

    def open(self) -> Measurer:
        """The model in memory, and torch with one thread."""
        torch.set_num_threads(1)
        opened = open_model(self.request, Inputs("a"), self.wanted, Purpose.ATTENTION, Quiet())
        return CorpusMeasurer(BatchReader(self, opened))
