"""Split after split of a corpus measured: what is read together, set aside and certified.

Where a batch gives what fills up any weight, its texts are read again by their lengths. Of the first two of
every sixteen splits one text is certified as it is measured, and read once more alone (`judged`). It is one
of the split's first pool: in the first split that which is filled up most (of several the shortest), in the
second the longest of the batch that has the text of median length; where nothing is filled up that in both.
So the sample does not depend on who measures, it grows with the corpus, and its share of the time does not.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from time import perf_counter

import numpy as np
import torch

from attnscope.errors import CertificateError, InputError
from attnscope.measures.registry import needs_norms
from attnscope.process.machine import peak_memory
from attnscope.results.base.origin import Verdict
from attnscope.session.listener import Quiet
from attnscope.session.opening import open_model
from attnscope.session.request import Inputs
from attnscope.verbs.corpus.engine.interface import EVERY, SAMPLED, Finished, SetAside, Split, Text
from attnscope.verbs.corpus.folder import Folder
from attnscope.verbs.corpus.identity import Instructions
from attnscope.verbs.corpus.judged import Judged
from attnscope.verbs.corpus.part import Part, Proved, RowsFile
from attnscope.verbs.corpus.reader import BatchReader, Ready, pools
from attnscope.verbs.corpus.result import CorpusText
from attnscope.verbs.corpus.rows import RowsOfSplit
from attnscope.verbs.corpus.store import place_of
from attnscope.verbs.corpus.texts import Reading
from attnscope.verbs.corpus.totals import Totals
from attnscope.vocabulary import Purpose

_POOL, _TOKENS = 1024, 2**15  # of texts that are in memory at once
_NUMBERED = 24  # binary digits of a text's number in its split
_DEADLY = "the process that reads it ends, twice"
_NEITHER = "nothing reads the heads' outputs by a matrix alone"


@dataclass
class MeasuredSplit:
    """A split, read in pools of texts: what is measured of them so far, and what is set aside."""

    reader: BatchReader
    split: Split
    aside: list[SetAside] = field(default_factory=list)
    totals: Totals | None = None
    proved: Proved = field(default_factory=Proved)
    counts: Counter[str] = field(default_factory=Counter)
    certifying: float = 0.0  # seconds
    longest: int = 0
    rows: RowsOfSplit | None = None

    def __post_init__(self) -> None:
        if self.reader.recipe.rows:
            chosen = self.reader.chosen
            self.rows = RowsOfSplit(self.reader.measures, chosen.layers, chosen.heads)

    def read(self) -> Reading:
        """Every text that can be read."""
        reading = Reading(self.split)
        texts = filter(None, map(self._encoded, reading))
        proves = self.split.only is None and self.split.number % EVERY < SAMPLED
        for pool in pools(texts, most=_POOL, tokens=_TOKENS):
            self._add(_Pool(self.reader, pool, self.split.number if proves else None))
            proves = False
        if self.totals is None:
            self._add(_Pool(self.reader, [], None))
        return reading

    def _encoded(self, item: Text | SetAside) -> Ready | None:
        if isinstance(item, SetAside):
            self.aside.append(item)
            return None
        if self.split.only is not None and not self.split.only[0] <= item.number < self.split.only[1]:
            return None
        if item.number in self.split.deadly:
            self.aside.append(SetAside(item.source, item.line, _DEADLY, item.text))
            return None
        try:
            one = self.reader.encoded(item)
        except InputError as error:
            self.aside.append(SetAside(item.source, item.line, str(error), item.text))
            return None
        self.counts["unknown"] += len(one.tokens.unknown)
        self.counts["cut"] += one.cut
        return one

    def _add(self, pool: "_Pool") -> None:
        self.aside += pool.aside
        self.certifying += pool.certifying
        self.proved = self.proved.merged(pool.proved)
        texts, values = pool.in_order()
        lengths = [len(one) for one in texts]
        numbers = [one.text.number for one in texts]
        among = np.array(numbers, np.int64) + (self.split.number << _NUMBERED)
        own = Totals.of(values, among, list(map(_told, texts)))
        self.totals = own if self.totals is None else self.totals.merged(own)
        self.counts.update(texts=len(texts), tokens=sum(lengths), padded=pool.padded)
        self.longest = max([self.longest, *lengths])
        if self.rows is not None and texts:
            where = {"source": [one.text.source for one in texts], "line": [one.text.line for one in texts]}
            self.rows.add({"text": numbers, **where, "tokens": lengths}, values)

    def part(self, reading: Reading, folder: Folder) -> Part:
        """All of it; its rows are kept."""
        reader, totals = self.reader, self.totals
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


class _Pool:
    """Texts that are measured in batches of about one length; where there is a `number` one is certified."""

    def __init__(self, reader: BatchReader, ready: Sequence[Ready], number: int | None) -> None:
        self.reader = reader
        self.measured: list[tuple[Ready, np.ndarray]] = []
        self.groups: list[list[Ready]] = []
        self.aside: list[SetAside] = []
        self.certifying = 0.0
        self.proved = Proved(provenance=asdict(reader.provenance))
        self._measure(ready, reader.padded, number)

    def _measure(self, ready: Sequence[Ready], padded: bool, number: int | None) -> None:
        groups = list(self.reader.groups(ready, padded=padded))
        at, row = (None, 0) if number is None or not groups else sampled(groups, number)
        for i, group in enumerate(groups):
            judged = Judged(self.reader, group, row) if i == at else None
            shown = () if judged is None else (judged.layer, judged.text)
            try:
                values, leaks = self.reader.values(group, *shown)
            except CertificateError as error:
                self._without_numbers(group, str(error), None if judged is None else number)
                continue
            if leaks > 0:
                self._measure(group, False, None if judged is None else number)
                continue
            self.groups.append(group)
            self.measured += zip(group, values, strict=True)
            if judged is not None:
                self.proved = self.proved.merged(judged.proved())
                self.certifying += judged.seconds

    def _without_numbers(self, group: Sequence[Ready], why: str, number: int | None) -> None:
        if len(group) > 1:
            for one in group:
                self._measure([one], False, number)
                number = None
            return
        text = group[0].text
        self.aside.append(SetAside(text.source, text.line, why, text.text))
        failed = (SetAside(text.source, text.line, why, ""),)
        self.proved = self.proved.merged(Proved({Verdict.FAILED.value: 1}, failed=failed))

    def in_order(self) -> tuple[list[Ready], np.ndarray]:
        self.measured.sort(key=lambda pair: pair[0].text.number)
        chosen = self.reader.chosen
        shape = (0, len(self.reader.measures), len(chosen.layers), len(chosen.heads))
        values = np.stack([measured for _, measured in self.measured]) if self.measured else np.zeros(shape)
        return [one for one, _ in self.measured], values

    @property
    def padded(self) -> int:
        return sum(len(one) < len(group[-1]) for group in self.groups for one in group)


def sampled(groups: Sequence[Sequence[Ready]], number: int) -> tuple[int, int]:
    """Which text is certified in a split of this number: of which batch, in which row."""
    spreads = [len(group[-1]) - len(group[0]) for group in groups]  # how far the shortest is filled up
    if number % 2 == 0 and max(spreads):
        return spreads.index(max(spreads)), 0
    ends = list(accumulate(map(len, groups)))
    at = bisect_right(ends, (ends[-1] - 1) // 2)  # that of the text of median length
    return at, len(groups[at]) - 1


@dataclass(frozen=True)
class CorpusMeasurer:
    """The measurer of a recipe; the model is open."""

    reader: BatchReader
    folder: Folder

    @classmethod
    def of(cls, recipe: Instructions) -> "CorpusMeasurer":
        """That of a recipe, with one thread of torch: `lent` undoes that."""
        torch.set_num_threads(1)
        opened = open_model(recipe.request, Inputs("a"), recipe.wanted, Purpose.ATTENTION, Quiet())
        return cls(BatchReader(recipe, opened), Folder(place_of(recipe.into)))

    def measure(self, split: Split) -> Finished:
        """The part of a split, kept in the run's folder; a split on trial is measured and not kept."""
        began = perf_counter()
        measured = MeasuredSplit(self.reader, split)
        reading = measured.read()
        if split.only is not None:
            return Finished(split.number, reading.texts)
        part = measured.part(reading, self.folder)
        named = self.folder.keep(part, 0, split.number)
        took = perf_counter() - began
        counts = split.number, part.texts, part.tokens, split.size
        return Finished(*counts, str(named), took, measured.certifying, peak_memory())
