"""One text of a batch, certified in the very run that measures it, layer after layer as these pass by.

A layer's heads are recomputed in float64 from what their kernel was given, and held against its output and
the weights that are measured; then they are let go, so memory does not grow with the layers. That positions
are tokens and that answers act is not asked of each text: it is what the proof by cause says of the sentence
on which the reader tried its model. Last the text is read once more alone, and in some of its queries (in all
of a short text) its weights are held against those of the batch.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from time import perf_counter

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.rows import Sample
from attnscope.attention import by_layers
from attnscope.capture.long.run import sample_rows
from attnscope.capture.weights import OneText, Passed
from attnscope.reference import place
from attnscope.results import Reach, Verdict
from attnscope.verbs.corpus.engine.interface import SetAside
from attnscope.verbs.corpus.part import Proved
from attnscope.verbs.corpus.reader import UNLIKE, BatchReader, Ready, filled_up
from attnscope.vocabulary import Effect

_SHOWN = 4  # heads that failed


class Judged:
    """The text in a `row`: `layer` is called with what passes by, `proved` once the batch is through."""

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
        """Certify a layer's heads, and keep the weights of some queries."""
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
        """All that is known of the text once it was measured."""
        began = perf_counter()
        unlike = self._alone()
        place = self.one.text.source, self.one.text.line
        failed = tuple(SetAside(*place, why, "") for why in self._wrong(unlike))
        verdicts = self.sample.verdicts
        counts = {verdict.value: verdicts[verdict] for verdict in Verdict if verdicts[verdict]}
        queries = len(self.one)
        held = 0 if self.is_alone else len(self.queries)
        proved = Proved(
            counts,
            1,
            unlike,
            asdict(self.reader.provenance),
            failed,
            held,
            queries,
            self._untried(),
            by_layers((layer, each) for layer, call in self.reader.tried.items() for each in call.beside),
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
        """How far weights are from those of the text read alone: 0 where it was read alone."""
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
