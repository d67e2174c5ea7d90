"""Attention of control inputs: the model reads the words, patches or frames again in another order.

The other side of cross-attention stays. Text that the model wrote is read at once, as if it had been given
(teacher forcing), and stays as it is while words of the prompt change places. Controls run in batches through
the recorder where the untouched input in the batch has the numbers that it has alone, else one by one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.analysis.controls import (
    ASKING,
    ControlTexts,
    batches,
    control_pieces,
    control_texts,
    inputs_of,
)
from attnscope.analysis.heads.view import without_padding
from attnscope.analysis.inputs.pieces import Pieces, pieces_of
from attnscope.analysis.rows import Layer
from attnscope.attention import AttentionCall, Capture
from attnscope.capture import Labels
from attnscope.capture.returned import Returned
from attnscope.capture.run import record_rows
from attnscope.capture.running import if_it_runs
from attnscope.errors import InputError
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Quiet
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind, Unit

Alike = Callable[[Sequence[Layer]], bool]
Units = Sequence[Sequence[int]]
_OF_DECODER = "decoder_input_ids"


@dataclass(frozen=True)
class Controls:
    """Number and seed of controls; `query` and `key` are the positions of the one pair, if any.

    Both are of one `unit`. The query stays; the words of the key have others to change places with.
    """

    count: int
    seed: int
    query: tuple[int, ...] = ()
    key: tuple[int, ...] = ()
    unit: Unit = Unit.TOKEN


@dataclass(frozen=True, eq=False)
class Words:
    """A text's words to shuffle: `ids` in the model's inputs, tokens, and positions that are no padding."""

    name: str
    ids: Tensor
    tokens: Tokens
    there: tuple[int, ...]
    mask_id: int | None

    def controls(self, asked: Controls) -> ControlTexts:
        """Shuffled texts; words that the model wrote stay unless the key is among them."""
        asks, key = ([self.there[i] for i in each] for each in (asked.query, asked.key))
        written = self._written()
        held = written if key and not written & {*key} else set[int]()
        asking = [f"the {asked.unit} that asks"] if asked.unit.is_long else [*ASKING]
        staying = ([] if {*asks} <= held else asking) + (["what the model wrote"] if held else [])
        drawn = control_texts(
            self.tokens,
            mask_id=self.mask_id,
            count=asked.count,
            seed=asked.seed,
            kept={*asks, *held},
            moved=[] if asked.unit.is_long or self._is_message(key) else [i for i in key if i not in asks],
            staying=staying,
        )
        more = "; read at once, not written anew" if written else ""
        return replace(drawn, how=f"{drawn.how}{more}")

    def _is_message(self, places: Sequence[int]) -> bool:
        """True where the places are exactly one message of a chat."""
        return tuple(places) in {each.positions for each in self.tokens.sections}

    def _written(self) -> set[int]:
        last = len(self.tokens.texts) - 1
        own = self.tokens.written and any(token.part != last for token in self.tokens.items)
        return {i for i, token in enumerate(self.tokens.items) if own and token.part == last}

    def went(self, controls: ControlTexts, key: Sequence[int]) -> list[list[int]]:
        """Positions of the `key` tokens in each control."""
        places = {position: i for i, position in enumerate(self.there)}
        places_of_key = []
        for sources in controls.sources:
            at = {int(source): place for place, source in enumerate(sources)}
            places_of_key.append([places[at[self.there[i]]] for i in key])
        return places_of_key

    def changed(self, controls: ControlTexts, key: Sequence[int]) -> Bool[np.ndarray, " control"]:
        """Mask of the controls with another word at some place of `key`."""
        return controls.changed([self.there[i] for i in key])

    def wider(
        self, controls: ControlTexts, queries: Units, keys: Units, links: Int[np.ndarray, "link 2"]
    ) -> Float[np.ndarray, " control"]:
        """Chance spread of the mean of `links` in the text over that in each control, at least 1."""
        asking, asked = ([[self.there[i] for i in unit] for unit in side] for side in (queries, keys))
        return controls.wider(asking, asked, links)

    def values(self, controls: ControlTexts, part: slice) -> list[Tensor]:
        drawn = torch.as_tensor(controls.ids[part], dtype=self.ids.dtype, device=self.ids.device)
        return [each[None] for each in drawn]


@dataclass(frozen=True, eq=False)
class Parts:
    """Patches of a picture or frames of a sound to shuffle; `beside` names the other inputs, which stay."""

    pieces: Pieces
    beside: str

    @property
    def name(self) -> str:
        return self.pieces.name

    def controls(self, asked: Controls) -> ControlTexts:
        """Controls with the patches or frames in other orders."""
        kept = self.pieces.at_positions(asked.query)
        drawn = control_pieces(
            self.pieces.contents, self.pieces.of, count=asked.count, seed=asked.seed, kept=kept
        )
        stay = f"; {self.beside} stays" if self.beside else ""
        if asked.key and not self.pieces.at_positions(asked.key):
            stay += f"; what is looked at is no {drawn.of.part} of it and stays"
        return replace(drawn, how=f"{drawn.how}{stay}")

    def went(self, controls: ControlTexts, key: Sequence[int]) -> list[list[int]]:
        """Positions of the pieces of `key` in each control; other positions stay."""
        mine, places_of_key = self.pieces.at_positions(key), []
        stay = [each for each in key if each not in self.pieces.positions]
        for sources in controls.sources:
            at = {int(source): place for place, source in enumerate(sources)}
            places_of_key.append([*stay, *(self.pieces.positions[at[each]] for each in mine)])
        return places_of_key

    def changed(self, controls: ControlTexts, key: Sequence[int]) -> Bool[np.ndarray, " control"]:
        """Mask of the controls with another piece at some place of `key`."""
        return controls.changed(self.pieces.at_positions(key))

    def wider(
        self, controls: ControlTexts, queries: Units, keys: Units, links: Int[np.ndarray, "link 2"]
    ) -> Float[np.ndarray, " control"]:
        """One for each control: pieces do not repeat, so chance moves links alike in all."""
        return np.ones(len(controls))

    def values(self, controls: ControlTexts, part: slice) -> list[Tensor]:
        return [self.pieces.exchanged(sources) for sources in controls.sources[part]]


# the model input whose parts change places, and which key position stands for which part
Exchange = Words | Parts


def exchange_of(reading: Reading, chosen: Chosen, keys: Tokens, key: Sequence[int]) -> Exchange:
    """The words or pieces that the `keys` consist of; in a text with a picture, that of `key`.

    `InputError` where the keys are neither a text nor the known parts of a picture or a sound.
    """
    words, parts = _words(reading, chosen, keys), _parts(reading, chosen, keys)
    if parts is not None and (words is None or parts.pieces.at_positions(key)):
        return parts
    if words is not None:
        return words
    if reading.perceived is not None and keys.stretches:
        raise InputError("what part of the file each position is cannot be told: there is no control")
    raise InputError("the keys are not the tokens of the text: there are no words of theirs to exchange")


def _words(reading: Reading, chosen: Chosen, tokens: Tokens) -> Words | None:
    own = chosen.kind is Kind.DECODER and reading.target is not None
    name = _OF_DECODER if own else "input_ids"
    ids = reading.inputs.get(name)
    if ids is None or ids[0].tolist() != list(tokens.ids):
        return None
    mask = reading.encoded.mask_id
    if mask is None:
        mask = getattr(reading.model.tokenizer, "mask_token_id", None)
    there = tuple(i for i, each in enumerate(tokens.items) if not each.padding)
    return Words(name, ids, tokens, there, mask)


def _parts(reading: Reading, chosen: Chosen, keys: Tokens) -> Parts | None:
    perceived = reading.perceived
    if perceived is None:
        return None
    pieces = pieces_of(perceived.inputs, perceived.positions, keys, perceived.medium)
    if pieces is None:
        return None
    text = "what the decoder reads" if chosen.kind is Kind.CROSS else "the text"
    return Parts(pieces, text if keys.texts or chosen.kind is Kind.CROSS else "")


def layers_of(attention: Capture | Returned, chosen: Chosen) -> tuple[list[Layer], list[Layer]]:
    """The captured layers without padding, and the same layers with it."""
    if isinstance(attention, Returned):
        return list(attention.layers), list(attention.layers)
    numbered = dict.fromkeys(call.layer for call in attention.calls)
    whole = [attention.call(layer, block=chosen.block) for layer in numbered]
    calls = [without_padding(call) for call in whole]
    for call in calls[1:]:
        if _shape(call) != _shape(calls[0]):
            message = f"layers {calls[0].layer} and {call.layer} differ in their numbers of tokens"
            raise InputError(f"{message}: choose layers with --layer")
    return [*calls], [*whole]


def _shape(layer: Layer) -> tuple[int, int]:
    return len(layer.query_tokens), len(layer.key_tokens)


def rounding(layers: Sequence[Layer]) -> float:
    """Tolerated weight difference of two runs over one input: 1e-4, or eight epsilons of their arithmetic."""
    epsilons = [call.epsilon for call in layers if isinstance(call, AttentionCall)]
    return max(1e-4, 8 * max(epsilons, default=0.0))


def runs(
    reading: Reading,
    chosen: Chosen,
    controls: ControlTexts,
    exchange: Exchange,
    layers: Sequence[Layer],
    alike: Alike,
) -> Iterator[list[Layer]]:
    """The layers of each control, in batches where the model allows it, else one by one.

    `alike` tells whether layers have the numbers of the untouched input, which the first batch holds.
    """
    together = isinstance(layers[0], AttentionCall)
    shapes, own = [_shape(each) for each in layers], reading.inputs[exchange.name]
    for part in batches(len(controls), max(shapes[0])):
        values = exchange.values(controls, part)
        read = None
        if together:
            first = [own] if part.start == 0 else []
            read = _batch(reading, chosen, exchange.name, [*first, *values])
            if read is not None and any([_shape(each) for each in run] != shapes for run in read):
                read = None
            if read is not None and first:
                untouched, *read = read
                read = read if alike(untouched) else None
        if read is None:
            together = False
            yield from (alone(reading, chosen, exchange.name, each) for each in values)
        else:
            yield from read


def _batch(reading: Reading, chosen: Chosen, name: str, values: Sequence[Tensor]) -> list[list[Layer]] | None:
    inputs, model = inputs_of(reading.inputs, name, values), reading.model
    if inputs is None:
        return None
    target = None if reading.target is None else reading.target.tokens
    try:
        with if_it_runs(model.module, inputs, model.name):
            several = record_rows(
                model.module, inputs, chosen.selection(), Labels(reading.encoded.tokens, target)
            )
    except InputError:
        return None  # runs one by one raise it again if they fail too
    return None if several is None else [[without_padding(call) for call in calls] for calls in several]


def alone(reading: Reading, chosen: Chosen, name: str, value: Tensor) -> list[Layer]:
    """The layers of one changed input in a run of its own."""
    quiet = replace(reading, listener=Quiet(), captured=None)
    if name == _OF_DECODER:
        assert reading.target is not None, "whose tokens these are"
        quiet = replace(quiet, target=replace(reading.target, ids=value))
    else:
        inputs = {**reading.encoded.inputs, name: value}
        quiet = replace(quiet, encoded=replace(reading.encoded, inputs=inputs))
    return layers_of(quiet.attention(chosen), chosen)[0]
