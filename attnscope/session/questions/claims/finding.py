"""Which heads do it: every chosen head ranked, beside texts of the same shape with other words in them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Int

from attnscope.analysis.controls import MOST_CONTROLS, ControlTexts, batches, control_texts, inputs_with
from attnscope.analysis.finding.each import record_each
from attnscope.analysis.finding.rank import beside, beside_controls, numbers
from attnscope.analysis.finding.rows import Layer, allowed_rows
from attnscope.analysis.finding.sought import Likeness, Target, pair, pattern_keys
from attnscope.analysis.padding import without_padding
from attnscope.analysis.scores import unplaced
from attnscope.attention import AttentionCall, Capture
from attnscope.capture import Labels, Selection
from attnscope.capture.faults import if_it_runs
from attnscope.capture.returned import Returned
from attnscope.errors import InputError, listed
from attnscope.results import Finding, Pattern, Sought, Verdict
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Quiet
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens, printable
from attnscope.verify import certify
from attnscope.vocabulary import Kind

CONTROLS, SEED = 100, 0
Name = str | int
_HEAD = re.compile(r"[Ll]([0-9]{1,6})[ .,]?[Hh]([0-9]{1,6})")
_OF_KEYS = (Pattern.FIRST, Pattern.PUNCTUATION, Pattern.SPECIAL)  # those that compare no places


@dataclass(frozen=True)
class Wish:
    """What to find: a query and a key by name, or a pattern, or likeness to a head; and how many controls."""

    query: Name | None = None
    key: Name | None = None
    pattern: str | None = None
    like: tuple[int, int] | None = None
    controls: int = CONTROLS
    seed: int = SEED

    def __post_init__(self) -> None:
        pair = self.query is not None or self.key is not None
        if pair + (self.pattern is not None) + (self.like is not None) != 1:
            raise InputError("say what to find, one of these: --from and --to, --pattern, --like")
        if pair and (self.query is None or self.key is None):
            raise InputError("--from and --to go together: which token looks, and at which")
        if self.pattern is not None and self.pattern not in list(Pattern):
            raise InputError(f"no pattern '{printable(self.pattern)}': {', '.join(Pattern)}")
        if not 1 <= self.controls <= MOST_CONTROLS:
            raise InputError(f"--controls {self.controls}: give 1 to {MOST_CONTROLS}")


def head_named(name: str) -> tuple[int, int]:
    """Layer and head of `L3H11`; `InputError` for what is no such name."""
    found = _HEAD.fullmatch(name.strip())
    if found is None:
        raise InputError(f"--like '{printable(name)}' names no head: write it as L3H11")
    return int(found[1]), int(found[2])


def find(reading: Reading, chosen: Chosen, wish: Wish) -> Finding:
    """All chosen heads ranked by what is wished for, each beside the same number of control texts.

    Raises `InputError` where that has no meaning for this attention, and for texts without controls.
    """
    _check_reads_text(reading)
    with reading.listener.working("reading the attention"):
        attention = reading.attention(chosen, projections=True)
    layers, whole = _layers(attention, chosen)
    queries, keys = layers[0].query_tokens, layers[0].key_tokens
    sought = _sought(wish, queries, keys)
    target = _target(sought, layers, chosen)
    own = numbers(target, layers, chosen.heads)
    exchange = _exchange(reading, chosen, whole[0])
    texts = _controls(reading, chosen, sought, wish, exchange)
    went = None if sought.key is None else exchange.went(texts.sources, sought.key)
    runs = _runs(reading, chosen, texts, exchange, layers)
    with reading.listener.working(f"reading {len(texts)} control texts"):
        summary, followed = beside_controls(target, own, runs, chosen.heads, went)
    told = beside(target, layers, chosen.heads)
    return Finding(
        sought=sought,
        kind=chosen.kind,
        query_tokens=queries,
        key_tokens=keys,
        layers=tuple(each.layer for each in layers),
        heads=chosen.heads,
        rows=len(target.queries) if isinstance(target, Target) else len(queries),
        weights=own,
        ranks=told.ranks,
        norms=told.norms,
        shares=told.shares,
        even=told.even,
        followed=followed,
        controls=summary.described(texts.how, texts.seed, texts.asked),
        verdicts=tuple(tuple(_verdict(each, head) for head in chosen.heads) for each in whole),
        provenance=attention.provenance,
        tower=attention.tower,
        notes=_notes(attention, layers),
    )


def _check_reads_text(reading: Reading) -> None:
    if reading.asked.sensed:
        raise InputError("find exchanges the words of a text for its controls: pictures and sounds have none")
    if reading.captured is not None or reading.asked.goes_on:
        raise InputError("find reads a text that is given: leave --generate out")


def _layers(attention: Capture | Returned, chosen: Chosen) -> tuple[list[Layer], list[Layer]]:
    """The layers of the text alone, and as they were captured, padding among them."""
    if isinstance(attention, Returned):
        return list(attention.layers), list(attention.layers)
    numbered = dict.fromkeys(call.layer for call in attention.calls)
    whole = [attention.call(layer, block=chosen.block) for layer in numbered]
    calls = [without_padding(call) for call in whole]
    for call in calls[1:]:
        if (call.q.shape[1], call.k.shape[1]) != (calls[0].q.shape[1], calls[0].k.shape[1]):
            message = f"layers {calls[0].layer} and {call.layer} differ in their numbers of tokens"
            raise InputError(f"{message}: choose layers with --layer")
    return [*calls], [*whole]


def _sought(wish: Wish, queries: Tokens, keys: Tokens) -> Sought:
    if wish.like is not None:
        return Sought(like=wish.like)
    if wish.pattern is not None:
        return Sought(pattern=Pattern(wish.pattern))
    return Sought(query=queries.position(str(wish.query)), key=keys.position(str(wish.key)))


def _target(sought: Sought, layers: Sequence[Layer], chosen: Chosen) -> Target | Likeness:
    """The same as keys by query, as far as a query may look at them."""
    queries, keys = layers[0].query_tokens, layers[0].key_tokens
    if sought.like is not None:
        return _likeness(sought.like, layers)
    visible = np.any([_visible(each, chosen.heads) for each in layers], axis=0)
    if sought.pattern is None:
        assert sought.query is not None, "a pair, where nothing else is sought"
        assert sought.key is not None, "a pair has both"
        if not visible[sought.query, sought.key]:
            named = f"{queries.named(sought.query)} may not look at {keys.named(sought.key)}"
            raise InputError(f"{named} in any of these heads: it is masked, as later tokens are in a decoder")
        return pair(sought.query, sought.key, *visible.shape)
    if sought.pattern not in _OF_KEYS and (why := unplaced(chosen.kind, queries, keys)):
        raise InputError(f"no pattern {sought.pattern} here: {why}; there are {', '.join(_OF_KEYS)}")
    meant = pattern_keys(sought.pattern, queries, keys) & visible
    if not meant.any():
        raise InputError(f"no query of this text has a key of pattern {sought.pattern} that it may look at")
    return Target(meant)


def _likeness(like: tuple[int, int], layers: Sequence[Layer]) -> Likeness:
    layer, head = like
    there = [each.layer for each in layers]
    if layer not in there:
        raise InputError(f"--like L{layer}H{head}: layers looked at are {listed(there)}")
    place = there.index(layer)
    count = _heads(layers[place])
    if not 0 <= head < count:
        raise InputError(f"--like L{layer}H{head}: layer {layer} has heads 0-{count - 1}")
    return Likeness(place, head)


def _heads(layer: Layer) -> int:
    return layer.heads if isinstance(layer, AttentionCall) else len(layer.weights)


def _visible(layer: Layer, heads: Sequence[int]) -> Bool[np.ndarray, "query key"]:
    every = range(len(layer.query_tokens))
    return np.asarray(np.any([allowed_rows(layer, head, every).numpy() for head in heads], axis=0))


@dataclass(frozen=True, eq=False)
class _Exchange:
    """The input whose words change places: what the model calls it, its tokens, and which are no padding."""

    name: str
    tokens: Tokens
    there: tuple[int, ...]

    def went(self, sources: Int[np.ndarray, "control token"], key: int) -> Int[np.ndarray, " control"]:
        """Where the token that is number `key` of the text stands in each control."""
        places = [self.there.index(int(np.flatnonzero(each == self.there[key])[0])) for each in sources]
        return np.array(places)


def _exchange(reading: Reading, chosen: Chosen, layer: Layer) -> _Exchange:
    """The text that the keys are those of; `InputError` where they are none."""
    own = chosen.kind is Kind.DECODER and reading.target is not None
    name = "decoder_input_ids" if own else "input_ids"
    tokens, ids = layer.key_tokens, reading.inputs.get(name)
    if ids is None or ids[0].tolist() != list(tokens.ids):
        raise InputError("the keys are not the tokens of the text: there are no words of theirs to exchange")
    return _Exchange(name, tokens, tuple(i for i, each in enumerate(tokens.items) if not each.padding))


def _controls(
    reading: Reading, chosen: Chosen, sought: Sought, wish: Wish, exchange: _Exchange
) -> ControlTexts:
    """The text with its words exchanged; what asks, or the other side where there are two, stays as it is."""
    crossing, there = chosen.kind is Kind.CROSS, exchange.there
    asks = [] if sought.query is None or crossing else [there[sought.query]]
    moved = [] if sought.key is None or (asks and sought.key == sought.query) else [there[sought.key]]
    mask = reading.encoded.mask_id
    if mask is None:
        mask = getattr(reading.model.tokenizer, "mask_token_id", None)
    texts = control_texts(
        exchange.tokens, mask_id=mask, count=wish.controls, seed=wish.seed, kept=asks, moved=moved
    )
    if len(texts) < texts.asked:
        left = f"the text has {len(texts)} controls, not {texts.asked}"
        reading.listener.notice(f"{left}: its words can stand in no more orders")
    return replace(texts, how=f"{texts.how}; so does what the decoder reads") if crossing else texts


def _runs(
    reading: Reading, chosen: Chosen, texts: ControlTexts, exchange: _Exchange, layers: Sequence[Layer]
) -> Iterator[list[Layer]]:
    """The layers of every control: in batches where the model allows it, else one by one."""
    together = isinstance(layers[0], AttentionCall)
    shapes = [_shape(each) for each in layers]
    for part in batches(len(texts), len(exchange.tokens)):
        made = _batch(reading, chosen, exchange.name, texts.ids[part]) if together else None
        if made is None or any([_shape(each) for each in run] != shapes for run in made):
            together = False
            made = [_alone(reading, chosen, exchange.name, ids) for ids in texts.ids[part]]
        yield from made


def _shape(layer: Layer) -> tuple[int, int]:
    return len(layer.query_tokens), len(layer.key_tokens)


def _batch(
    reading: Reading, chosen: Chosen, name: str, ids: Int[np.ndarray, "control token"]
) -> list[list[Layer]] | None:
    """All of these texts in one run of the model; None where that cannot be."""
    inputs, model = inputs_with(reading.inputs, name, ids), reading.model
    if inputs is None:
        return None
    selection = Selection(
        layers=chosen.layers, kind=chosen.kind, tower=chosen.tower.pattern, route=chosen.route
    )
    target = None if reading.target is None else reading.target.tokens
    with if_it_runs(model.module, inputs, model.name):
        made = record_each(model.module, inputs, selection, Labels(reading.encoded.tokens, target))
    return None if made is None else [[without_padding(call) for call in calls] for calls in made]


def _alone(reading: Reading, chosen: Chosen, name: str, ids: Int[np.ndarray, " token"]) -> list[Layer]:
    """One of these texts in a run of its own, as the text itself was read."""
    quiet = replace(reading, listener=Quiet())
    if name == "input_ids":
        inputs = inputs_with(reading.encoded.inputs, name, ids[None])
        if inputs is None:
            raise InputError(f"{reading.model.name} packs its inputs: no control text can take their place")
        quiet = replace(quiet, encoded=replace(reading.encoded, inputs=inputs))
    elif reading.target is not None:
        given = torch.as_tensor(ids[None], dtype=reading.target.ids.dtype, device=reading.target.ids.device)
        quiet = replace(quiet, target=replace(reading.target, ids=given))
    return _layers(quiet.attention(chosen), chosen)[0]


def _verdict(layer: Layer, head: int) -> Verdict:
    return certify(layer, head).verdict if isinstance(layer, AttentionCall) else Verdict.UNCERTIFIED


def _notes(attention: Capture | Returned, layers: Sequence[Layer]) -> tuple[str, ...]:
    if isinstance(attention, Returned):
        return tuple(dict.fromkeys((attention.reason, *(n for each in attention.layers for n in each.notes))))
    return tuple(dict.fromkeys(note for each in layers for note in attention.notes(each.layer)))
