"""Measures splits of a corpus: batches texts, sets bad ones aside, certifies samples.

Where padding in a batch gets any weight, its texts are read again by their lengths. In the first two of every
sixteen splits one text is certified as it is measured, and read once more alone (`Judged`). It is a text of
the first pool: in the first split the most padded one (of several the shortest), in the second the longest of
the batch that has the text of median length; where nothing is padded that in both. So the sample does not
depend on who measures, it grows with the corpus, and its share of the time does not.
"""

import io
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from time import perf_counter
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.rows import Sample
from attnscope.attention import by_layers
from attnscope.capture.long.run import sample_rows
from attnscope.capture.weights import OneText, Passed
from attnscope.errors import CertificateError, InputError
from attnscope.measures.registry import needs_norms
from attnscope.process.machine import peak_memory
from attnscope.reference import place
from attnscope.results import Reach, Verdict
from attnscope.session.listener import Quiet
from attnscope.session.opening import open_model
from attnscope.session.request import Inputs
from attnscope.verbs.corpus.engine import EVERY, SAMPLED, Finished, SetAside, Split, Text
from attnscope.verbs.corpus.folder import Folder
from attnscope.verbs.corpus.identity import Instructions
from attnscope.verbs.corpus.part import Part, Proved, RowsFile, Totals
from attnscope.verbs.corpus.reader import UNLIKE, BatchReader, Ready, filled_up, pools
from attnscope.verbs.corpus.result import CorpusText
from attnscope.verbs.corpus.store import place_of
from attnscope.verbs.corpus.texts import Reading
from attnscope.vocabulary import Effect, Purpose

_POOL, _TOKENS = 1024, 2**15  # of texts that are in memory at once
_NUMBERED = 24  # binary digits of a text's number in its split
_DEADLY = "the process that reads it ends, twice"
_NEITHER = "nothing reads the heads' outputs by a matrix alone"
_SHOWN = 4  # heads that failed


class MeasuredSplit:
    """A split, read and measured in pools of texts; collects totals and what is set aside."""

    def __init__(self, reader: BatchReader, split: Split) -> None:
        self.reader, self.split = reader, split
        self.aside: list[SetAside] = []
        self.totals: Totals | None = None
        self.proved = Proved(provenance=asdict(reader.provenance))
        self.counts = Counter[str]()
        self.certifying = 0.0  # seconds
        self.longest = 0
        self.rows = RowsOfSplit(reader) if reader.recipe.rows else None
        self.reading = Reading(split)
        self._read()

    def _read(self) -> None:
        texts = filter(None, map(self._encoded, self.reading))
        proves = self.split.only is None and self.split.number % EVERY < SAMPLED
        for pool in pools(texts, most=_POOL, tokens=_TOKENS):
            self._add(pool, proves)
            proves = False
        if self.totals is None:
            self._add([], False)

    def _encoded(self, item: Text | SetAside) -> Ready | None:
        if isinstance(item, SetAside):
            self.aside.append(item)
            return None
        if self.split.only is not None and not self.split.only[0] <= item.number < self.split.only[1]:
            return None
        if item.number in self.split.deadly:
            self._set_aside(item, _DEADLY)
            return None
        try:
            one = self.reader.encoded(item)
        except InputError as error:
            self._set_aside(item, str(error))
            return None
        self.counts["unknown"] += len(one.tokens.unknown)
        self.counts["cut"] += one.cut
        return one

    def _set_aside(self, text: Text, why: str) -> None:
        self.aside.append(SetAside(text.source, text.line, why, text.text))

    def _add(self, pool: Sequence[Ready], proves: bool) -> None:
        pairs = sorted(self._measured(pool, self.reader.padded, proves), key=lambda pair: pair[0].text.number)
        chosen, texts = self.reader.chosen, [one for one, _ in pairs]
        shape = (0, len(self.reader.measures), len(chosen.layers), len(chosen.heads))
        values = np.stack([values for _, values in pairs]) if pairs else np.zeros(shape)
        lengths, numbers = [len(one) for one in texts], [one.text.number for one in texts]
        among = np.array(numbers, np.int64) + (self.split.number << _NUMBERED)
        own = Totals.of(values, among, list(map(_told, texts)))
        self.totals = own if self.totals is None else self.totals.merged(own)
        self.counts.update(texts=len(texts), tokens=sum(lengths))
        self.longest = max([self.longest, *lengths])
        if self.rows is not None and texts:
            where = {"source": [one.text.source for one in texts], "line": [one.text.line for one in texts]}
            self.rows.add({"text": numbers, **where, "tokens": lengths}, values)

    def _measured(
        self, ready: Sequence[Ready], padded: bool, proves: bool
    ) -> Iterator[tuple[Ready, np.ndarray]]:
        """Values of each text in `ready`, batched by length; with `proves` one sampled text is certified."""
        groups = list(self.reader.groups(ready, padded=padded))
        at, row = sampled(groups, self.split.number) if proves and groups else (None, 0)
        for i, group in enumerate(groups):
            judged = Judged(self.reader, group, row) if i == at else None
            shown = () if judged is None else (judged.layer, judged.text)
            try:
                values, leaks = self.reader.values(group, *shown)
            except CertificateError as error:
                yield from self._without_numbers(group, str(error), judged is not None)
                continue
            if leaks > 0:
                yield from self._measured(group, False, judged is not None)
                continue
            self.counts["padded"] += sum(len(one) < len(group[-1]) for one in group)
            yield from zip(group, values, strict=True)
            if judged is not None:
                self.proved = self.proved.merged(judged.proved())
                self.certifying += judged.seconds

    def _without_numbers(
        self, group: Sequence[Ready], why: str, proves: bool
    ) -> Iterator[tuple[Ready, np.ndarray]]:
        if len(group) > 1:
            for i, one in enumerate(group):
                yield from self._measured([one], False, proves and i == 0)
            return
        text = group[0].text
        self._set_aside(text, why)
        failed = (SetAside(text.source, text.line, why, ""),)
        self.proved = self.proved.merged(Proved({Verdict.FAILED.value: 1}, failed=failed))

    def part(self, folder: Folder) -> Part:
        """The split's part; its rows are written to the folder."""
        reader, totals, reading = self.reader, self.totals, self.reading
        assert totals is not None, "there was a pool"
        lacking = any(layer not in reader.triangles for layer in reader.chosen.layers)
        rows: tuple[RowsFile, ...] = ()
        if self.rows is not None:
            content = self.rows.content()
            name = folder.keep_rows(self.split.number, content) if content else ""
            rows = (RowsFile(name, reading.texts, reading.lines, len(content)),)
        return Part(
            first=self.split.number,
            measures=reader.measures,
            layers=reader.chosen.layers,
            heads=reader.chosen.heads,
            kind=reader.chosen.kind.value,
            tower=reader.chosen.tower.distinct_name,
            limit=reader.limit,
            longest=self.longest,
            lines=reading.lines,
            set_aside=tuple(self.aside),
            absent={name: _NEITHER for name in reader.recipe.measures if lacking and needs_norms((name,))},
            proved=self.proved,
            totals=totals,
            read=reading.texts,
            blanks=reading.blanks,
            rows=rows,
            **self.counts,
        )


def _told(one: Ready) -> CorpusText:
    text = one.text
    return CorpusText(f"{text.source}:{text.line}", len(one), text.text, not one.cut and text.words is None)


def sampled(groups: Sequence[Sequence[Ready]], number: int) -> tuple[int, int]:
    """Index of the batch and row of the text that is certified in split `number`."""
    spreads = [len(group[-1]) - len(group[0]) for group in groups]  # how far the shortest is filled up
    if number % 2 == 0 and max(spreads):
        return spreads.index(max(spreads)), 0
    ends = list(accumulate(map(len, groups)))
    at = bisect_right(ends, (ends[-1] - 1) // 2)  # that of the text of median length
    return at, len(groups[at]) - 1


@dataclass(frozen=True)
class CorpusMeasurer:
    """A measurer with its model open, and the run's folder."""

    reader: BatchReader
    folder: Folder

    @classmethod
    def of(cls, recipe: Instructions) -> "CorpusMeasurer":
        """Opens a recipe's model; limits torch to one thread, which `lent` undoes."""
        torch.set_num_threads(1)
        opened = open_model(recipe.request, Inputs("a"), recipe.wanted, Purpose.ATTENTION, Quiet())
        return cls(BatchReader(recipe, opened), Folder(place_of(recipe.into)))

    def measure(self, split: Split) -> Finished:
        """Measures a split and keeps its part; a trial split is measured and not kept."""
        began = perf_counter()
        measured = MeasuredSplit(self.reader, split)
        if split.only is not None:
            return Finished(split.number, measured.reading.texts)
        part = measured.part(self.folder)
        named = self.folder.keep(part, 0, split.number)
        took = perf_counter() - began
        counts = split.number, part.texts, part.tokens, split.size
        return Finished(*counts, str(named), took, measured.certifying, peak_memory())


class RowsOfSplit:
    """The values of a split as a Parquet file in memory: one row for each text and head.

    Texts and lines count from the start of the split, and sources are numbers.
    """

    def __init__(self, reader: BatchReader) -> None:
        self.reader = reader
        self._buffer = io.BytesIO()
        self._writer: Any = None

    def add(self, texts: Mapping[str, Sequence[int]], values: np.ndarray) -> None:
        """Adds rows: `texts` has columns with one value a text, `values` are `text measure layer head`."""
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        layers, heads = self.reader.chosen.layers, self.reader.chosen.heads
        every = len(layers) * len(heads)
        columns: dict[str, Any] = {
            name: np.repeat(np.array(each, np.int64), every) for name, each in texts.items()
        }
        columns["layer"] = np.tile(np.repeat(np.array(layers, np.int32), len(heads)), len(values))
        columns["head"] = np.tile(np.array(heads, np.int32), len(values) * len(layers))
        for i, name in enumerate(self.reader.measures):
            flat = values[:, i].reshape(-1)
            columns[name] = pyarrow.array(flat, mask=np.isnan(flat))
        table = pyarrow.table(columns)
        self._writer = self._writer or ParquetWriter(self._buffer, table.schema, compression="zstd")
        self._writer.write_table(table)

    def content(self) -> bytes:
        """The bytes of the Parquet file; empty where no text was measured."""
        if self._writer is not None:
            self._writer.close()
        return self._buffer.getvalue()


class Judged:
    """Certifies the text in a `row` of a batch during the run that measures it, layer by layer.

    `layer` is called with each layer's tensors, `proved` once the batch is through. A layer's heads are
    recomputed in float64 from their kernel's inputs, and compared with its output and with the measured
    weights; then they are freed, so memory does not grow with the layers. That positions are tokens and that
    answers act was proved on the sentence on which the reader tried its model. Last the text is read once
    more alone, and in some of its queries (in all of a short text) its weights are compared with those of the
    batch.
    """

    def __init__(self, reader: BatchReader, group: Sequence[Ready], row: int) -> None:
        self.reader, self.one, self.row = reader, group[row], row
        self.is_alone = len(group) == 1
        chosen, tokens = reader.chosen, filled_up(group[row].tokens, max(map(len, group)), reader.padding)
        self.sample = Sample(chosen.layers, chosen.heads, chosen.block)
        self.text = OneText(row, tokens, reader.tried, chosen.heads)
        self.queries = sample_rows(len(self.one), len(self.one)).tolist()
        self.rows: dict[int, Float[Tensor, "head some_query key"]] = {}
        self.seconds = 0.0  # that this takes, beside measuring

    def layer(self, layer: int, passed: Passed) -> None:
        """Certifies a layer's heads, and keeps the weights of some queries."""
        began = perf_counter()
        assert passed.call is not None, "it was wanted"
        counted = passed.weights[self.row].detach()
        where = place(counted.device)
        self.sample.certify(passed.call.at(where), counted.to(where), self.queries)
        self.rows[layer] = self._some(counted)
        self.seconds += perf_counter() - began

    def _some(self, weights: Float[Tensor, "head query key"]) -> Float[Tensor, "head some_query own_key"]:
        return weights[:, self.queries, : len(self.one)].cpu()

    def proved(self) -> Proved:
        """The verdicts and differences found for the text, after it was measured."""
        began = perf_counter()
        unlike = self._alone()
        place = self.one.text.source, self.one.text.line
        failed = tuple(SetAside(*place, why, "") for why in self._wrong(unlike))
        verdicts = self.sample.verdicts
        counts = {verdict.value: verdicts[verdict] for verdict in Verdict if verdicts[verdict]}
        tried = self.reader.tried
        proved = Proved(
            certified=counts,
            sampled=1,
            unlike=unlike,
            failed=failed,
            held=0 if self.is_alone else len(self.queries),
            queries=len(self.one),
            untried=self._untried(),
            beside=by_layers((layer, each) for layer, call in tried.items() for each in call.beside),
        )
        self.seconds += perf_counter() - began
        return proved

    def _untried(self) -> int:
        calls, heads = self.reader.tried.values(), self.reader.chosen.heads
        reaches = (
            Reach() if call.reach is None else call.reach.get(head, Reach())
            for call in calls
            for head in heads
        )
        return sum(reach.effect is Effect.UNKNOWN for reach in reaches)

    def _alone(self) -> float:
        """Largest difference of its weights in the batch and alone; 0 where it was measured alone."""
        if self.is_alone:
            return 0.0
        apart: list[Tensor] = []

        def layer(number: int, passed: Passed) -> None:
            alone = self._some(passed.weights[0].detach())
            apart.append((self.rows.pop(number) - alone).abs().amax())

        self.reader.weights([self.one], layer)
        unlike = float(torch.stack(apart).max())
        return math.inf if math.isnan(unlike) else unlike

    def _wrong(self, unlike: float) -> Iterator[str]:
        sample = self.sample
        if sample.failed:
            shown = ", ".join(f"L{layer} H{head}" for layer, head in sample.failed[:_SHOWN])
            more = len(sample.failed) - _SHOWN
            yield f"{shown}{f' and {more} more' if more > 0 else ''} not as recomputed"
        if unlike > UNLIKE:
            sample.verdicts[Verdict.FAILED] += 1
            yield f"a weight is off by {unlike:.1g} from that of the text read alone"
