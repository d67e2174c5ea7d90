"""What a corpus will cost, from a few seconds with its own texts and its own model.

Texts are taken from splits that lie evenly in it, and their batches are measured in an order that soon has
some of every length. Each thing that a run does is timed by itself, once with the code that does it: what it
takes for all is that times how often it is done.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from attnscope.analysis.corpus.sketch import keys_of
from attnscope.errors import InputError
from attnscope.process.ending import temporary_folder
from attnscope.results.claims.estimate import Estimate, Sampled, Term
from attnscope.session.corpus import part as parts
from attnscope.session.corpus.batches import Ready
from attnscope.session.corpus.engine.interface import SetAside, Split, Text
from attnscope.session.corpus.engine.machine import lent
from attnscope.session.corpus.folder import Folder
from attnscope.session.corpus.judged import Judged
from attnscope.session.corpus.measurer import EVERY, POOL, CorpusMeasurer, MeasuredSplit, sampled
from attnscope.session.corpus.part import Part, Proved
from attnscope.session.corpus.reader import BatchReader
from attnscope.session.corpus.recipe import CorpusRecipe
from attnscope.session.corpus.splits import Plan
from attnscope.session.corpus.store import Place
from attnscope.session.corpus.texts import Reading
from attnscope.session.corpus.tree import FAN, TOP

SECONDS = 4.0  # of measuring
_PICKED, _LOOKED_AT = 8, 4096  # splits
_GOLDEN = (math.sqrt(5) - 1) / 2  # multiples of it, without their whole part, soon lie everywhere
_LEAST = 4  # batches
Made = TypeVar("Made")


@dataclass
class _Stopwatch:
    """Seconds by name: of the processor, or on the clock where an accelerator computes."""

    now: Callable[[], float]
    taken: dict[str, float] = field(default_factory=dict)

    def of(self, name: str, do: Callable[[], Made]) -> Made:
        began = self.now()
        made = do()
        self.taken[name] = self.taken.get(name, 0.0) + self.now() - began
        return made


def estimated(
    recipe: CorpusRecipe, plan: Plan, files: Sequence[str], workers: int, machines: int, began: float
) -> Estimate:
    """The cost of this plan; `began` is when this process had done nothing for it, in its own seconds."""
    with lent(), temporary_folder() as folder:
        clock = _Stopwatch(time.process_time if recipe.request.device == "cpu" else time.perf_counter)
        clock.taken["command"] = time.process_time() - began
        opened = CorpusMeasurer.of(replace(recipe, into=folder))
        clock.taken["start"] = time.process_time() - began
        return _Trial(opened.reader, plan, clock, Path(folder)).estimate(files, workers, machines)


@dataclass
class _Trial:
    """Some texts of a plan, read and measured."""

    reader: BatchReader
    plan: Plan
    clock: _Stopwatch
    folder: Path

    def estimate(self, files: Sequence[str], workers: int, machines: int) -> Estimate:
        """All of it: what is measured first, then what is calculated."""
        clock, reader = self.clock, self.reader
        splits = _picked(self.plan)
        texts = clock.of("reading", lambda: [_texts(split) for split in splits])
        size, found = sum(split.size for split in splits), sum(map(len, texts))
        taken = [text for each in texts for text in _evenly(each, POOL // len(splits))]
        ready = clock.of("tokens", lambda: self._encoded(taken))
        lengths = np.array([len(one) for one in ready])
        measured = self._measured(ready)
        tokens = sum(len(one) for one, _ in measured)
        kept = self._kept(measured)
        read = found * len(ready) / len(taken)  # some are set aside
        many = self.plan.whole / size * read
        all_tokens, number = many * float(lengths.mean()), self.plan.about
        samples = min(2, number) + 2 * (number // EVERY)
        seconds = clock.taken
        terms = (
            Term("start: libraries", seconds["command"], "command", 1, driver=True),
            Term("start: and the model", seconds["start"], "worker", workers * machines),
            Term("reading", seconds["reading"] / size * 2**20, "MB", self.plan.whole / 2**20),
            Term("tokenizing", seconds["tokens"] / lengths.sum() * 1000, "1,000 tokens", all_tokens / 1000),
            Term("forward pass", seconds["forward"] / tokens * 1000, "1,000 tokens", all_tokens / 1000),
            Term(
                "measuring",
                max(seconds["values"] - seconds["forward"], 0.0) / tokens * 1000,
                "1,000 tokens",
                all_tokens / 1000,
            ),
            Term("totals", seconds["totals"] / len(measured) * 1000, "1,000 texts", many / 1000),
            Term(
                "certificate",
                max(seconds["certificate"] - seconds["plain"], 0.0),
                "text in full",
                samples,
            ),
            Term("writing a part", seconds["writing"], "split", number),
            Term(
                "merging parts",
                seconds["merging"] + seconds["writing"] / (FAN - 1),
                "split",
                number,
                driver=True,
            ),
        )
        return Estimate(
            files=tuple(files),
            size=self.plan.whole,
            sampled=Sampled(len(measured), tokens, size, _error(lengths)),
            terms=terms,
            texts=many,
            tokens=all_tokens,
            splits=number,
            workers=workers,
            machines=machines,
            memory=_peak(),
            kept=kept(many / number, number),
            provenance=reader.provenance,
        )

    def _encoded(self, texts: Sequence[Text]) -> list[Ready]:
        ready, why = [], ""
        for text in texts:
            try:
                ready.append(self.reader.encoded(text))
            except InputError as error:
                why = str(error)
        if not ready:
            raise InputError(
                f"none of {len(texts)} texts can be read, so nothing is known of the rest: {why}"
            )
        return ready

    def _measured(self, ready: Sequence[Ready]) -> list[tuple[Ready, np.ndarray]]:
        """As many batches as there is time for, the forward pass alone and with what is measured in it."""
        groups = list(self.reader.groups(ready, padded=self.reader.padded))
        order = sorted(range(len(groups)), key=lambda i: i * _GOLDEN % 1)
        self.reader.values(groups[order[0]])  # what only the first one takes
        measured: list[tuple[Ready, np.ndarray]] = []
        began = time.perf_counter()
        for i, at in enumerate(order):
            measured += self._timed(groups[at], forward_first=i % 2 == 0)
            if i + 1 >= _LEAST and time.perf_counter() - began > SECONDS:
                break
        at, row = sampled(groups, 1)
        self.clock.of("plain", lambda: self.reader.values(groups[at]))
        self.clock.of("certificate", lambda: self._certified(groups[at], row))
        return measured

    def _certified(self, group: Sequence[Ready], row: int) -> Proved:
        judged = Judged(self.reader, group, row)
        self.reader.values(group, judged.layer, judged.text)
        return judged.proved()

    def _forward(self, group: Sequence[Ready]) -> None:
        """What measuring costs is what `values` takes beyond this."""
        self.reader.weights(group, lambda _, passed: float(passed.weights[0, 0, 0, 0]))

    def _timed(self, group: Sequence[Ready], *, forward_first: bool) -> Iterator[tuple[Ready, np.ndarray]]:
        """The values of a group; whichever reads it first takes longer, so the two take turns at that."""
        if forward_first:
            self.clock.of("forward", lambda: self._forward(group))
        values, _ = self.clock.of("values", lambda: self.reader.values(group))
        if not forward_first:
            self.clock.of("forward", lambda: self._forward(group))
        return zip(group, values, strict=True)

    def _kept(self, measured: Sequence[tuple[Ready, np.ndarray]]) -> Callable[[float, int], float]:
        """How many bytes so many splits of so many texts are, about.

        Parts grow by the rounded values that occur, of which there are as many more as in a normal
        distribution that spreads as those of the sample do.
        """
        whole = self.clock.of("totals", lambda: self._part(measured))
        half = self._part(measured[: max(len(measured) // 2, 1)])
        small = len(half.written())  # the first one takes longer: a library is loaded
        content = self.clock.of("writing", whole.written)
        self.clock.of("merging", lambda: parts.read(content).merged(half))
        large, there = len(content), len(whole.totals.sketch.entry)
        each = max(large - small, 0) / max(there - len(half.totals.sketch.entry), 1)
        spread, share = _spread(np.stack([values for _, values in measured]).reshape(len(measured), -1))
        in_sample = _occurring(spread, share, len(measured))

        def part_of(texts: float) -> float:
            return max(large + each * there * (_occurring(spread, share, texts) / in_sample - 1), 0.0)

        def bytes_of(texts: float, splits: int) -> float:
            together = [splits // FAN**TOP, splits % FAN**TOP // FAN, splits % FAN]
            sizes = [part_of(texts * FAN**level) for level in (TOP, 1, 0)]
            return float(sum(count * size for count, size in zip(together, sizes, strict=True)))

        return bytes_of

    def _part(self, measured: Sequence[tuple[Ready, np.ndarray]]) -> Part:
        split = MeasuredSplit(self.reader, Split(0, ()))
        texts = [one for one, _ in measured]
        numbered = [Ready(_numbered(one.text, i), one.encoded) for i, one in enumerate(texts)]
        split.add(numbered, np.stack([values for _, values in measured]), 0, Proved())
        return split.part(Reading(split.split), Folder(Place.of(self.folder)))


def _spread(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each statistic the standard deviation of its rounded values, as whole numbers, and its share.

    Both of negative values, zeros and positive ones: no whole number is near that of zero. 0 of none.
    """
    keys = keys_of(np.nan_to_num(values).reshape(-1)).reshape(values.shape)
    sides = np.stack([values < 0, values == 0, values > 0])
    count = sides.sum(axis=1)
    mean = np.where(sides, keys, 0).sum(axis=1) / np.maximum(count, 1)
    squares = np.where(sides, keys - mean[:, None], 0.0) ** 2
    return np.sqrt(squares.sum(axis=1) / np.maximum(count, 1)), count / len(values)


def _occurring(spread: np.ndarray, share: np.ndarray, texts: float) -> float:
    """How many whole numbers occur among so many of normal distributions, each of a share of the texts."""
    places = np.linspace(-8, 8, 161)
    density = np.exp(-(places**2) / 2) / math.sqrt(2 * math.pi)
    wide, mine = np.maximum(spread, 1e-9)[..., None], texts * share
    found = (wide * -np.expm1(-mine[..., None] * density / wide)).sum(axis=-1) * (places[1] - places[0])
    return float(np.maximum(found, np.minimum(mine, 1)).sum())


def _numbered(text: Text, number: int) -> Text:
    return Text(number, text.source, text.line, text.text, text.words, text.tags)


def _picked(plan: Plan) -> list[Split]:
    """Splits that lie evenly in the first of a corpus; of one that is read as a stream its first."""
    splits: list[Split] = []
    for split in islice(plan.splits(), _LOOKED_AT):
        splits.append(split)
        if len(splits) == _PICKED and any(span.held is not None for span in split.spans):
            break
    return list(_evenly(splits, _PICKED))


def _evenly(items: Sequence[Any], most: int) -> Sequence[Any]:
    """At `most` so many of them, as far from each other as from both ends."""
    count = min(len(items), max(most, 1))
    return [items[int((i + 0.5) * len(items) / count)] for i in range(count)]


def _texts(split: Split) -> list[Text]:
    return [item for item in Reading(split) if not isinstance(item, SetAside)]


def _error(lengths: np.ndarray) -> float:
    """The standard error of their mean, as a share of it."""
    if len(lengths) < 2:
        return math.nan
    return float(lengths.std(ddof=1) / math.sqrt(len(lengths)) / lengths.mean())


def _peak() -> int | None:
    """The most memory that this process has had, where the system tells."""
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
