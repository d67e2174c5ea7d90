"""Reads texts in batches, and measures every head of the chosen layers, text by text.

Weights become numbers as each layer makes them and are never kept, so memory grows neither with the corpus
nor with the layers. Padding is tried on two sentences before anything is read; where it changes weights,
only texts of one length are read together.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from attnscope.analysis.rows import pieces_of, together
from attnscope.attention import AttentionCall
from attnscope.capture import Labels, record
from attnscope.capture.running import if_it_runs
from attnscope.capture.weights import OneText, Passed, Passing
from attnscope.errors import InputError
from attnscope.measures.registry import needs_norms
from attnscope.model.inputs.text import Encoded
from attnscope.results import Provenance
from attnscope.session.opening import Opened
from attnscope.tokens import Token, Tokens
from attnscope.verbs.corpus.engine import Text
from attnscope.verbs.corpus.identity import Instructions
from attnscope.verbs.corpus.measuring import leaking, links, measured
from attnscope.verbs.corpus.passes import Facts, norms_moved, triangles
from attnscope.verbs.corpus.result import LINKS
from attnscope.vocabulary import WHOLE_SENTENCE, Kind, Route

_FILLED = {"input_ids": None, "attention_mask": 0, "token_type_ids": 0}  # by what, None: the padding token
_SPREAD, _MORE = 1.2, 2  # how much longer than the shortest text of a batch another one may be


@dataclass(frozen=True, eq=False)
class Ready:
    """A text, encoded as the model reads it alone."""

    text: Text
    encoded: Encoded

    @property
    def tokens(self) -> Tokens:
        return self.encoded.tokens

    @property
    def inputs(self) -> Mapping[str, Any]:
        return self.encoded.inputs  # type: ignore[no-any-return]

    @property
    def cut(self) -> bool:
        """Whether the text was cut to the model's limit."""
        return any("cut to" in notice for notice in self.encoded.notices)

    def __len__(self) -> int:
        return len(self.tokens)


def pools(texts: Iterable[Ready], *, most: int, tokens: int) -> Iterator[list[Ready]]:
    """Lists of consecutive texts, at `most` so many and `tokens` in all, or one longer text."""
    pool: list[Ready] = []
    held = 0
    for one in texts:
        if pool and (len(pool) == most or held + len(one) > tokens):
            yield pool
            pool, held = [], 0
        pool.append(one)
        held += len(one)
    if pool:
        yield pool


def batches(texts: Sequence[Ready], *, most: int, cells: int, padded: bool) -> Iterator[list[Ready]]:
    """Batches of at `most` so many texts and `cells` weights; of one length unless `padded`."""
    group: list[Ready] = []
    for one in sorted(texts, key=lambda one: (len(one), one.text.number)):
        if group and not _fits(group, one, most, cells, padded):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _fits(group: Sequence[Ready], one: Ready, most: int, cells: int, padded: bool) -> bool:
    shortest, length = len(group[0]), len(one)
    if len(group) == most or (len(group) + 1) * length**2 > cells:
        return False
    if length > (_SPREAD * shortest + _MORE if padded else shortest):
        return False
    return all(_alike(group[0].inputs, one.inputs, name, padded) for name in one.inputs)


def _alike(first: Mapping[str, Any], other: Mapping[str, Any], name: str, padded: bool) -> bool:
    if name not in first or first.keys() != other.keys():
        return False
    return (padded and name in _FILLED) or first[name].shape == other[name].shape


def joined(group: Sequence[Ready], padding: int) -> dict[str, Tensor]:
    """The inputs of a group as one batch, padded with token id `padding`."""
    inputs = {}
    for name in group[0].inputs:
        values, by = [one.inputs[name] for one in group], _FILLED.get(name)
        if name in _FILLED:
            rows = [row for value in values for row in value]
            inputs[name] = pad_sequence(rows, batch_first=True, padding_value=padding if by is None else by)
        else:
            inputs[name] = torch.cat(values)
    lengths = torch.tensor([[len(one)] for one in group])
    if "attention_mask" not in inputs and int(lengths.min()) < int(lengths.max()):
        mask = torch.arange(int(lengths.max())) < lengths
        inputs["attention_mask"] = mask.long().to(inputs["input_ids"].device)
    return inputs


def filled_up(tokens: Tokens, most: int, padding: int) -> Tokens:
    """The tokens of a text with padding up to `most`."""
    fill = Token(padding, "", "", None, None, special=True, padding=True)
    return Tokens(tokens.texts, (*tokens.items, *(fill for _ in range(most - len(tokens)))))


UNLIKE = 1e-3  # of weights in a batch and alone: more than rounding
_CELLS = 2**22  # of the weights of a layer at once
_SPOKEN = ("A dog sleeps.", WHOLE_SENTENCE)


class BatchReader:
    """Reads batches of texts through an open model, and measures what a recipe asks for."""

    def __init__(self, recipe: Instructions, opened: Opened) -> None:
        assert opened.chosen is not None, "something was wanted"
        self.recipe, self.model, self.chosen = recipe, opened.model.settled(), opened.chosen
        self._check()
        chosen = self.chosen
        self.selection = chosen.selection(heads=chosen.heads)
        self.passing = Passing(self.model.module, self.selection, chosen.block)
        self.limit = self.model.limit(recipe.longest)
        padding = getattr(self.model.tokenizer, "pad_token_id", None)
        self.padding = 0 if padding is None else int(padding)
        self.triangles: dict[int, Tensor] = {}
        self.tried: dict[int, AttentionCall] = {}
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
        return [
            Ready(Text(i, 0, 0, sentence), self.model.encode((sentence,), truncate=True, most=self.limit))
            for i, sentence in enumerate(_SPOKEN)
        ]

    def _spoken_to(self) -> Provenance:
        """Runs a short text for the provenance; finds projections where measures need norms.

        What is proved by cause of this sentence is what is said of the texts that are certified.
        """
        one = self._spoken()[-1]
        selection = replace(self.selection, projections=needs_norms(self.recipe.measures))
        inputs = self._inputs([one])
        with if_it_runs(self.model.module, inputs, self.model.name):
            captured = record(self.model.module, inputs, selection, self._labels(one, len(one)))
        for layer in self.chosen.layers:
            call = captured.call(layer, block=self.chosen.block)
            self.tried[layer] = replace(call, projection=None)
            if call.projection is not None:
                self.triangles[layer] = triangles(call.projection)
        origin: Provenance = captured.provenance
        kind = origin.device if "+" in origin.device else origin.device.partition(":")[0]  # whichever of them
        return replace(origin.of_no_text, device=kind)

    def _may_fill_up(self) -> bool:
        first, second = self._spoken()
        if len(first) == len(second) or any(
            first.inputs.keys() != second.inputs.keys() or value.ndim != 2 for value in first.inputs.values()
        ):
            return False
        length, layers = len(first), self.chosen.layers
        try:
            among = self.passing.read(self._inputs([first, second]), lambda _, passed: passed)
            alone = self.passing.read(self._inputs([first]), lambda _, passed: passed.weights[0])
        except InputError:
            return False
        facts = Facts.of([first.tokens, second.tokens])
        for layer in layers:
            mine = among[layer].weights[0][:, :length, :length]
            if leaking(among[layer], facts) > 0 or not float((mine - alone[layer]).abs().max()) <= UNLIKE:
                return False
        return True

    def encoded(self, text: Text) -> Ready:
        """Encodes a text for the model; `InputError` where that is impossible."""
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
        source = self.model.origin() | {"run": ()}  # a part is the same wherever it was measured
        return Labels(filled_up(one.tokens, most, self.padding), target, source)

    def groups(self, texts: Sequence[Ready], *, padded: bool) -> Iterator[list[Ready]]:
        """Batches of texts that are read together."""
        cells = _CELLS // max(len(self.chosen.heads), 1)
        return batches(texts, most=self.recipe.batch, cells=cells, padded=padded)

    def weights(self, group: Sequence[Ready], see: Callable[[int, Passed], object]) -> None:
        """Runs a group without measuring, and shows each layer to `see`."""
        self.passing.read(self._inputs(group), see)

    def values(
        self,
        group: Sequence[Ready],
        see: Callable[[int, Passed], None] | None = None,
        text: OneText | None = None,
    ) -> tuple[np.ndarray, float]:
        """Values (`text measure layer head`) of a group, and the largest weight on padding.

        Each layer is shown to `see` when it is measured, with the call of `text`.
        """
        facts = Facts.of([one.tokens for one in group])
        pieces = None if self.recipe.linked is None else _pieces(group)
        leaks = 0.0

        def make(layer: int, passed: Passed) -> Tensor:
            nonlocal leaks
            leaks = max(leaks, leaking(passed, facts))
            triangle = self.triangles.get(layer)
            norms = None if triangle is None else norms_moved(passed, triangle)
            values = measured(passed, facts, self.recipe.measures, norms)
            if pieces is not None:
                values = torch.cat([values, self._links(passed, pieces, group)], dim=1)
            if see is not None:
                see(layer, passed)
            return values

        inputs = self._inputs(group)
        with if_it_runs(self.model.module, inputs, self.model.name):
            by_layer = self.passing.read(inputs, make, text)
        stacked = np.stack([by_layer[layer].numpy() for layer in self.chosen.layers], axis=2)
        return stacked, leaks

    def _links(self, passed: Passed, pieces: Tensor, group: Sequence[Ready]) -> Tensor:
        linked = self.recipe.linked
        assert linked is not None, "asked only where it was asked for"
        tags = [one.text.tags or () for one in group]
        return links(passed.weights, pieces, tags, linked.source, linked.target)

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of all measures, in order."""
        return self.recipe.measures + (() if self.recipe.linked is None else LINKS)


def _pieces(group: Sequence[Ready]) -> Tensor:
    most = max(map(len, group))
    pieces = [pieces_of(one.tokens, len(one.text.words or ())) for one in group]
    wide = [torch.nn.functional.pad(one, (0, most - one.shape[1])) for one in pieces]
    return together(wide)
