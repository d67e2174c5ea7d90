"""From one token back to the input through all layers, and what replacing each input token really does."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from attnscope.analysis.ablation.question import word_at
from attnscope.analysis.finding.rows import Layer, allowed_rows, rows_of
from attnscope.analysis.flow.graph import max_flow, mixed, rollout, shares
from attnscope.analysis.flow.moved import moved_together
from attnscope.analysis.flow.replacing import Input, lost_chance, turned_vector
from attnscope.analysis.flow.trust import SHUFFLES, trusted
from attnscope.analysis.flow.zeroing import rolled_out
from attnscope.analysis.padding import without_padding
from attnscope.attention import AttentionCall, Capture
from attnscope.capture import Selection
from attnscope.capture.faults import if_it_runs
from attnscope.capture.returned import Returned
from attnscope.errors import CertificateError, InputError, listed
from attnscope.results import Verdict
from attnscope.results.claims.ablation import Asks
from attnscope.results.claims.flow import Ablated, Flow
from attnscope.session.choosing import Chosen
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens
from attnscope.verify import certify
from attnscope.vocabulary import Kind, Route

MOST_FLOW = 128  # tokens up to which the largest flow is looked for: one search for each
NOTHING = "nothing"  # what a token is replaced by where a vocabulary has neither mask nor unknown token
Layers = Sequence[Float[np.ndarray, "query key"]]


def flow(reading: Reading, chosen: Chosen, query: str | int, seed: int = 0) -> Flow:
    """What reaches `query` from every input token through the chosen layers, the first ones of the model.

    `InputError` for cross-attention, for pictures and sounds, and for layers that leave some out before them.
    """
    _check(reading, chosen)
    with reading.listener.working("reading the attention"):
        attention = reading.attention(chosen, projections=True)
    layers, certified = _layers(attention, chosen)
    tokens = layers[0].query_tokens
    place = tokens.position(str(query))
    with reading.listener.working("following the attention through the layers"):
        weights = [_mean_weights(each, chosen.heads) for each in layers]
        mixing, by_norm = [mixed(each) for each in weights], _by_norm(layers, chosen.heads)
        reached = rollout(mixing)[:, place]
        most = max_flow(mixing, place) if len(tokens) <= MOST_FLOW else None
    if most is None:
        reading.listener.notice(
            f"no flow: it is looked for in up to {MOST_FLOW} tokens, here are {len(tokens)}"
        )
    found = Flow(
        query=place,
        kind=chosen.kind,
        tokens=tokens,
        layers=tuple(each.layer for each in layers),
        heads=chosen.heads,
        raw=np.array([each[place] for each in weights]),
        rollout=reached,
        by_norm=None if by_norm is None else by_norm[:, place],
        flow=most,
        most=MOST_FLOW,
        ablated=None,
        reason="",
        certified=certified,
        provenance=attention.provenance,
        tower=attention.tower,
        notes=_notes(attention, layers),
    )
    found = _with_zeroing(reading, chosen, found)
    return _beside_replacing(reading, chosen, found, seed)


def _check(reading: Reading, chosen: Chosen) -> None:
    if chosen.kind is Kind.CROSS:
        raise InputError(
            "flow goes back through self-attention: cross-attention leads to another text (--kind encoder or "
            "decoder)"
        )
    if reading.asked.sensed:
        raise InputError("flow goes back to the tokens of a text: leave --image and --audio out")
    if reading.captured is not None or reading.asked.goes_on:
        raise InputError("flow reads a text that is given: leave --generate out")
    before = [layer for layer in chosen.tower.layers if layer <= max(chosen.layers)]
    if list(chosen.layers) != before:
        raise InputError(f"flow goes back to the input: choose the first layers, --layer {listed(before)}")


def _layers(attention: Capture | Returned, chosen: Chosen) -> tuple[list[Layer], dict[str, int]]:
    """The layers of the text, and how many of their heads have each verdict; all have the same tokens."""
    verdicts: Counter[str] = Counter()
    layers: list[Layer] = []
    if isinstance(attention, Returned):
        layers = list(attention.layers)
        verdicts[Verdict.UNCERTIFIED.value] = len(layers) * len(chosen.heads)
    else:
        for layer in dict.fromkeys(call.layer for call in attention.calls):
            whole = attention.call(layer, block=chosen.block)
            verdicts.update(certify(whole, head).verdict.value for head in chosen.heads)
            layers.append(without_padding(whole))
    sizes = {(len(each.query_tokens), len(each.key_tokens)) for each in layers}
    if len(sizes) > 1 or any(queries != keys for queries, keys in sizes):
        raise InputError(
            "flow needs the same tokens in every layer, as queries and as keys: here they differ"
        )
    return layers, {verdict.value: verdicts[verdict.value] for verdict in Verdict}


def _mean_weights(layer: Layer, heads: Sequence[int]) -> Float[np.ndarray, "query key"]:
    """The mean over heads; `CertificateError` where weights are no numbers that should be some."""
    rows = rows_of(layer, heads)
    every = range(len(layer.query_tokens))
    answered = np.array([allowed_rows(layer, head, every).any(dim=1).numpy() for head in heads])
    if np.isnan(rows[answered]).any():
        raise CertificateError(
            f"the weights of layer {layer.layer} are not numbers: nothing can be followed through them"
        )
    return np.asarray(np.nan_to_num(rows).mean(axis=0))


def _by_norm(layers: Sequence[Layer], heads: Sequence[int]) -> Float[np.ndarray, "layer query key"] | None:
    moved = [moved_together(each, heads) if isinstance(each, AttentionCall) else None for each in layers]
    known = [each.numpy() for each in moved if each is not None]
    return rollout([mixed(shares(each)) for each in known]) if len(known) == len(moved) else None


def _notes(attention: Capture | Returned, layers: Sequence[Layer]) -> tuple[str, ...]:
    if isinstance(attention, Returned):
        return (attention.reason,)
    return tuple(dict.fromkeys(note for each in layers for note in attention.notes(each.layer)))


def _with_zeroing(reading: Reading, chosen: Chosen, found: Flow) -> Flow:
    """The same with value zeroing, or with the reason why no layer can be run so."""
    if chosen.route is Route.RETURNED:
        return replace(found, no_zeroing="weights that a model returns say nothing of its values")
    if chosen.block:
        return replace(found, no_zeroing="values are zeroed in all blocks of a layer")
    if len(found.tokens) > MOST_FLOW:
        return replace(found, no_zeroing=f"values are zeroed of up to {MOST_FLOW} tokens")
    selection = Selection(
        kind=chosen.kind, tower=chosen.tower.pattern, route=chosen.route, layers=found.layers
    )
    module, inputs, name = reading.model.module, reading.inputs, reading.model.name
    try:
        with reading.listener.working("zeroing values"), if_it_runs(module, inputs, name):
            made = rolled_out(module, inputs, selection, chosen.heads, len(found.tokens))
    except InputError as error:
        return replace(found, no_zeroing=str(error))
    return replace(found, zeroed=made.rollout[:, found.query], zeroing=made.intervention)


@dataclass(frozen=True)
class _Replacement:
    """What stands in the place of a token: the number of another one, or None for no embedding at all."""

    id: int | None
    name: str


def _beside_replacing(reading: Reading, chosen: Chosen, found: Flow, seed: int) -> Flow:
    """The same with what replacing each token does, or with the reason why nothing could be replaced."""
    own = chosen.kind is Kind.DECODER and reading.target is not None
    name = "decoder_input_ids" if own else "input_ids"
    ids = reading.inputs.get(name)
    if ids is None or ids[0].tolist() != list(found.tokens.ids):
        return replace(found, reason="the positions are not the tokens of the text, which could be replaced")
    instead = _replacement(reading)
    places = _replaced(found, instead)
    if not places:
        return replace(found, reason="there is no other token that could be replaced")
    asked = Input(name, places, instead.id)
    with reading.listener.working(f"replacing {len(places)} tokens"):
        made = _effects(reading, chosen, found, asked)
    if made is None:
        return replace(
            found, reason=f"{reading.model.name} answers nothing at this token, and has no vector of it"
        )
    lost, answer, chance = made
    effects = np.full(len(found.tokens), np.nan)
    effects[list(places)] = lost
    trust = trusted(found.methods, effects, found.query, seed)
    ablated = Ablated(effects, instead.name, answer, chance, trust, SHUFFLES, seed)
    return replace(found, ablated=ablated)


def _replacement(reading: Reading) -> _Replacement:
    """The mask, else the token for what is unknown, else nothing: of GPT-2 the unknown one ends a text."""
    tokenizer = reading.model.tokenizer
    for role in ("mask", "unk"):
        id = getattr(tokenizer, f"{role}_token_id", None)
        others = {
            getattr(tokenizer, f"{other}_token_id", None) for other in ("bos", "eos", "cls", "sep", "pad")
        }
        if id is not None and id not in others:
            return _Replacement(int(id), str(getattr(tokenizer, f"{role}_token")))
    return _Replacement(None, NOTHING)


def _replaced(found: Flow, instead: _Replacement) -> tuple[int, ...]:
    """The ordinary tokens that reach the query, but for itself and what is the replacement already."""
    tokens: Tokens = found.tokens
    return tuple(
        i
        for i, token in enumerate(tokens.items)
        if i != found.query
        and not (token.special or token.padding)
        and token.id != instead.id
        and found.rollout[-1, i] > 0
    )


def _effects(
    reading: Reading, chosen: Chosen, found: Flow, asked: Input
) -> tuple[Float[np.ndarray, " place"], str, float] | None:
    """What is lost of the answer at the query; of a model without one how far the query's vector turns."""
    model, inputs = reading.model, reading.inputs
    inside = chosen.kind is Kind.ENCODER and model.writes
    with if_it_runs(model.module, inputs, model.name):
        if reading.task is not None and not inside:
            asks = Asks.MASK if reading.task == "masked" else Asks.NEXT
            question = word_at(asks, found.query, len(found.tokens), None, model.spell)
            made = lost_chance(model.module, inputs, asked, question)
            return None if made is None else (made[0], model.spell(made[1]), made[2])
        turned = turned_vector(model.module, inputs, asked, found.query, _last(model.module, inside))
        return None if turned is None else (turned, "", float("nan"))


def _last(module: Any, encoder: bool) -> Any:
    """What returns the last vectors: the encoder of two halves, or the model without its head."""
    return module.get_encoder() if encoder else getattr(module, "base_model", module)
