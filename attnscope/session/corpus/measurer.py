"""A model that measures chunk after chunk: every head of the chosen layers, text by text, in batches.

Weights become numbers as each layer makes them and are never kept, so memory grows neither with the corpus
nor with the layers. Filling up is tried on two sentences before anything is read; where it changes weights,
or where a batch gives what fills up any weight, texts of one length alone are read together. Of chunks 0, 1,
3, 7 and so on one text is captured in full within its batch and certified, and read once more alone.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnscope.analysis.claims.relations.answers import Sample, pieces_of, together
from attnscope.analysis.corpus.facts import Facts, norms_moved, triangles
from attnscope.analysis.corpus.links import LINKS, links
from attnscope.analysis.corpus.measuring import leaking, measured, needs_norms
from attnscope.analysis.corpus.totals import Totals
from attnscope.capture import Labels, Selection, record
from attnscope.capture.faults import if_it_runs
from attnscope.capture.weights import Passed, Passing
from attnscope.errors import InputError
from attnscope.results import Provenance, Verdict
from attnscope.session.corpus.batches import Ready, batches, filled_up, joined
from attnscope.session.corpus.chunk_file import Measured, Proved, Rows, written
from attnscope.session.corpus.engine.interface import Chunk, Measurer, SetAside, Text
from attnscope.session.corpus.identity import Instructions
from attnscope.session.listener import Quiet
from attnscope.session.opening import Opened, Purpose, open_model
from attnscope.session.request import Inputs
from attnscope.vocabulary import WHOLE_SENTENCE, Kind, Route

UNLIKE = 1e-3  # of weights in a batch and alone: more than rounding
_CELLS = 2**22  # of the weights of a layer at once
_SPOKEN = ("A dog sleeps.", WHOLE_SENTENCE)
_DEADLY = "the process that reads it ends, twice"
_NEITHER = "nothing reads the heads' outputs by a matrix alone"


class CorpusMeasurer:
    """The measurer of a recipe; the model is open."""

    def __init__(self, recipe: Instructions, opened: Opened) -> None:
        assert opened.chosen is not None, "something was wanted"
        self.recipe, self.model, self.chosen = recipe, opened.model.settled(), opened.chosen
        self._check()
        chosen = self.chosen
        self.selection = Selection(
            chosen.layers, chosen.heads, chosen.kind, chosen.tower.pattern, chosen.route
        )
        self.reader = Passing(self.model.module, self.selection, chosen.block)
        self.limit = self.model.limit(recipe.longest)
        padding = getattr(self.model.tokenizer, "pad_token_id", None)
        self.padding = 0 if padding is None else int(padding)
        self.triangles: dict[int, Tensor] = {}
        self.provenance = self._spoken_to()
        self.padded = self._may_fill_up()

    def _check(self) -> None:
        chosen, name = self.chosen, self.model.name
        if chosen.route is Route.RETURNED:
            raise InputError("--route returned has weights alone: here queries and keys are needed")
        if chosen.kind is Kind.CROSS or (self.model.writes and chosen.kind is Kind.DECODER):
            raise InputError(
                f"{name}: a corpus is what it reads, {chosen.kind} attention is about what it writes: "
                "--kind encoder"
            )

    def _spoken(self) -> list[Ready]:
        """The two sentences on which the model is tried."""
        return [
            Ready(Text(i, "", sentence), self.model.encode((sentence,), truncate=True, most=self.limit))
            for i, sentence in enumerate(_SPOKEN)
        ]

    def _spoken_to(self) -> Provenance:
        """Where its numbers come from; finds what matrices heads move by, where that is asked."""
        one = self._spoken()[-1]
        selection = replace(self.selection, projections=needs_norms(self.recipe.measures))
        inputs = self._inputs([one])
        with if_it_runs(self.model.module, inputs, self.model.name):
            captured = record(self.model.module, inputs, selection, self._labels(one, len(one)))
        for layer in self.chosen.layers:
            call = captured.call(layer, block=self.chosen.block)
            if call.projection is not None:
                self.triangles[layer] = triangles(call.projection)
        origin: Provenance = captured.provenance
        kind = origin.device if "+" in origin.device else origin.device.partition(":")[0]  # whichever of them
        return replace(origin.of_no_text, device=kind)

    def _may_fill_up(self) -> bool:
        """Whether a shorter sentence has the same weights beside a longer one as alone."""
        first, second = self._spoken()
        if len(first) == len(second) or any(
            first.inputs.keys() != second.inputs.keys() or value.ndim != 2 for value in first.inputs.values()
        ):
            return False
        length, layers = len(first), self.chosen.layers
        try:
            among = self.reader.read(self._inputs([first, second]), lambda _, passed: passed)
            alone = self.reader.read(self._inputs([first]), lambda _, passed: passed.weights[0])
        except InputError:
            return False
        facts = Facts.of([first.tokens, second.tokens])
        for layer in layers:
            mine = among[layer].weights[0][:, :length, :length]
            if leaking(among[layer], facts) > 0 or not float((mine - alone[layer]).abs().max()) <= UNLIKE:
                return False
        return True

    def measure(self, chunk: Chunk) -> bytes:
        """The chunk's file."""
        done = _MeasuredChunk(self, chunk)
        done.read()
        return written(done.result())

    def encoded(self, text: Text) -> Ready:
        """A text as the model reads it; `InputError` where it cannot."""
        how: dict[str, Any] = {"truncate": self.recipe.truncate, "most": self.limit}
        if text.words is not None:
            return Ready(text, self.model.encode_words((text.words,), **how))
        return Ready(text, self.model.encode((text.text,), **how))

    def _inputs(self, group: Sequence[Ready]) -> dict[str, Any]:
        inputs: dict[str, Any] = joined(group, self.padding)
        if self.model.writes:
            inputs["decoder_input_ids"] = self.model.opening().ids.repeat_interleave(len(group), 0)
        return inputs

    def _labels(self, one: Ready, most: int) -> Labels:
        target = self.model.opening().tokens if self.model.writes else None
        return Labels(filled_up(one.tokens, most, self.padding), target, self.model.origin())

    def values(self, group: Sequence[Ready]) -> tuple[np.ndarray, float]:
        """`text measure layer head` of a group, and the largest weight on what fills up."""
        facts = Facts.of([one.tokens for one in group])
        pieces = None if self.recipe.linked is None else _pieces(group)
        leaks = 0.0

        def make(layer: int, passed: Passed) -> Tensor:
            nonlocal leaks
            leaks = max(leaks, leaking(passed, facts))
            triangle = self.triangles.get(layer)
            norms = None if triangle is None else norms_moved(passed, triangle)
            values = measured(passed, facts, self.recipe.measures, norms)
            return (
                values if pieces is None else torch.cat([values, self._links(passed, pieces, group)], dim=1)
            )

        inputs = self._inputs(group)
        with if_it_runs(self.model.module, inputs, self.model.name):
            by_layer = self.reader.read(inputs, make)
        stacked = np.stack([by_layer[layer].numpy() for layer in self.chosen.layers], axis=2)
        return stacked, leaks

    def _links(self, passed: Passed, pieces: Tensor, group: Sequence[Ready]) -> Tensor:
        linked = self.recipe.linked
        assert linked is not None, "asked only where it was asked for"
        tags = [one.text.tags or () for one in group]
        return links(passed.weights, pieces, tags, linked.source, linked.target)

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of all that is measured, in their order."""
        return self.recipe.measures + (() if self.recipe.linked is None else LINKS)

    def prove(self, group: Sequence[Ready], row: int, sample: Sample) -> None:
        """Capture and certify one text within its batch, and hold its weights against those it has alone."""
        one, inputs = group[row], self._inputs(group)
        most = max(map(len, group))
        selection = replace(self.selection, row=row)
        captured = record(self.model.module, inputs, selection, self._labels(one, most))
        counted = self.reader.read(inputs, lambda _, passed: passed.weights[row].cpu())
        alone = self.reader.read(self._inputs([one]), lambda _, passed: passed.weights[0].cpu())
        length, beside = len(one), {}
        for layer, weights in counted.items():
            beside[layer] = weights.clone()
            beside[layer][:, :length, :length] = alone[layer]
        sample.add(captured, counted, beside)


def _pieces(group: Sequence[Ready]) -> Tensor:
    """Which tokens are pieces of which word, `row word token`."""
    most = max(map(len, group))
    pieces = [pieces_of(one.tokens, len(one.text.words or ())) for one in group]
    wide = [torch.nn.functional.pad(one, (0, most - one.shape[1])) for one in pieces]
    return together(wide)


@dataclass
class _MeasuredChunk:
    """The texts of one chunk: what is measured of them so far, and what is set aside."""

    measurer: CorpusMeasurer
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
                one = self.measurer.encoded(text)
            except InputError as error:
                self.aside.append(SetAside(text.place, str(error), text.text))
                continue
            self.unknown += len(one.tokens.unknown)
            self.cut += any("cut to" in notice for notice in one.encoded.notices)
            ready.append(one)
        self._measure(ready, padded=self.measurer.padded)

    def _measure(self, ready: Sequence[Ready], *, padded: bool) -> None:
        cells = _CELLS // max(len(self.measurer.chosen.heads), 1)
        for group in batches(ready, most=self.measurer.recipe.batch, cells=cells, padded=padded):
            values, leaks = self.measurer.values(group)
            if leaks > 0:
                self._measure(group, padded=False)
                continue
            self.groups.append(group)
            self.measured += zip(group, values, strict=True)

    def _sample(self) -> Sample:
        """Of chunks 0, 1, 3, 7 and so on in turn: a text that was filled up most, and one that was not."""
        chosen = self.measurer.chosen
        sample = Sample(chosen.layers, chosen.heads, chosen.block)
        turn = self.chunk.number + 1
        if self.groups and turn.bit_count() == 1:
            if turn.bit_length() % 2:
                self.measurer.prove(
                    max(self.groups, key=lambda group: len(group[-1]) - len(group[0])), 0, sample
                )
            else:
                middle = self.groups[len(self.groups) // 2]
                self.measurer.prove(middle, len(middle) - 1, sample)
        return sample

    def result(self) -> Measured:
        """All of it, texts in the order of the corpus."""
        measurer, recipe = self.measurer, self.measurer.recipe
        self.measured.sort(key=lambda pair: pair[0].text.number)
        shape = (0, len(measurer.measures), len(measurer.chosen.layers), len(measurer.chosen.heads))
        values = np.stack([measured for _, measured in self.measured]) if self.measured else np.zeros(shape)
        numbers = np.array([one.text.number for one, _ in self.measured], np.int64)
        lengths = np.array([len(one) for one, _ in self.measured], np.int64)
        places = tuple(one.text.place for one, _ in self.measured)
        return Measured(
            number=self.chunk.number,
            measures=measurer.measures,
            layers=measurer.chosen.layers,
            heads=measurer.chosen.heads,
            kind=measurer.chosen.kind.value,
            tower=measurer.chosen.tower.distinct_name,
            texts=len(self.measured),
            tokens=int(lengths.sum()),
            longest=int(lengths.max(initial=0)),
            limit=measurer.limit,
            unknown=self.unknown,
            padded=sum(len(one) < len(group[-1]) for group in self.groups for one in group),
            cut=self.cut,
            set_aside=tuple(self.aside),
            absent=self._absent(values),
            proved=self._proved(),
            totals=Totals.of(values, numbers),
            rows=Rows(numbers, lengths, places, values) if recipe.rows else None,
        )

    def _absent(self, values: np.ndarray) -> dict[str, str]:
        lacking = [layer for layer in self.measurer.chosen.layers if layer not in self.measurer.triangles]
        if not lacking:
            return {}
        return {name: _NEITHER for name in self.measurer.recipe.measures if needs_norms((name,))}

    def _proved(self) -> Proved:
        sample = self._sample()
        verdicts = sample.verdicts
        if not sample.unlike <= UNLIKE:  # also where it is not a number
            verdicts[Verdict.FAILED] += 1
        counts = {verdict.value: verdicts[verdict] for verdict in Verdict if verdicts[verdict]}
        unlike = math.inf if math.isnan(sample.unlike) else sample.unlike
        return Proved(counts, sample.sentences, unlike, asdict(self.measurer.provenance))


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
        return CorpusMeasurer(self, opened)
