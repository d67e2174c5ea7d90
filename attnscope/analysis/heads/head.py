"""Recomputes one head with every stage and its certificate; its score terms; the mean of several heads.

Weights that a model only returned have no certificate: their results say so.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor

from attnscope.analysis.heads.view import cut_tokens, kept, links, pair_of, without_padding
from attnscope.analysis.scores.dense import ENTROPY, apply_measures, unplaced
from attnscope.analysis.scores.supplies import of_tokens
from attnscope.arithmetic import Operands, Stages, attend
from attnscope.attention import AttentionCall, Capture
from attnscope.capture.returned import Returned, ReturnedLayer
from attnscope.errors import InputError
from attnscope.reference import exact
from attnscope.results import (
    Certificate,
    Dimensions,
    HeadAttention,
    HeadTerms,
    HeadWeights,
    Influence,
    Overview,
    Verdict,
)
from attnscope.results.heads import MEAN
from attnscope.results.overview import Module
from attnscope.results.score import CAP, CONTENT, MASK, SINK, Rotation
from attnscope.verify import certify


def recompute_head(captured: Capture, layer: int, head: int, block: int = 0) -> HeadAttention:
    """Head `head` of a captured layer, recomputed in float64; `InputError` if it was not captured.

    `block` chooses among the separate attentions of a layer that makes several.
    """
    whole = captured.call(layer, block=block)
    call = without_padding(whole)
    operands = call.operands(head)
    stages = attend(operands)
    allowed = call.allowed_matrix(head)
    return HeadAttention(
        layer=layer,
        head=head,
        kind=call.kind,
        key_head=call.key_head(head),
        heads=call.heads,
        key_heads=call.key_heads,
        layers=captured.layers,
        query_tokens=call.query_tokens,
        key_tokens=call.key_tokens,
        q=operands.q[0].numpy(),
        k=operands.k[0].numpy(),
        v=operands.v[0].numpy(),
        scores=stages.scores[0].numpy(),
        scaled=stages.masked[0].masked_fill(~allowed, torch.nan).numpy(),
        weights=stages.weights[0].numpy(),
        output=stages.output[0].numpy(),
        allowed=allowed.numpy(),
        scale=call.scale,
        softcap=call.softcap,
        sink=None if operands.sinks is None else float(operands.sinks.mean()),
        sink_by_query=operands.sinks is not None and operands.sinks.numel() > 1,
        window=call.window if _is_held(call, allowed) else None,
        module=call.module,
        certificate=certify(whole, head),
        provenance=captured.provenance,
        terms={name: added.numpy() for name, added in call.added(head).items()},
        tower=captured.tower,
        block=call.block,
        blocks=captured.blocks(layer),
        notes=captured.notes(layer),
    )


def _is_held(call: AttentionCall, allowed: Bool[Tensor, "query key"]) -> bool:
    """Whether no query attends outside the window: a kernel may be given a window that no mask enforces."""
    queries, keys = allowed.shape
    if call.window is None or queries != keys:
        return call.window is not None
    places = torch.arange(keys)
    return not (allowed & ((places[:, None] - places).abs() >= call.window)).any()


def head_terms(captured: Capture, layer: int, head: int, block: int = 0) -> HeadTerms:
    """Head `head` of a captured layer with its scores split into terms; `InputError` if not captured."""
    call = without_padding(captured.call(layer, block=block))
    operands, added = call.operands(head), call.added(head)
    stages, allowed = attend(operands), call.allowed_matrix(head)
    without = _without(operands, added)
    contributions: dict[str, Tensor] = {CONTENT: stages.scaled[0][allowed]}
    if operands.softcap is not None:
        contributions[CAP] = (stages.capped - stages.scaled)[0][allowed]
    contributions |= {name: values[allowed] for name, values in added.items()}
    if not allowed.all():
        contributions[MASK] = torch.empty(0)
    sinks = None
    if operands.sinks is not None:
        sinks = operands.sinks.reshape(-1).expand(len(allowed))
        contributions[SINK] = sinks[allowed.any(-1)]
    return HeadTerms(
        head=recompute_head(captured, layer, head, block=block),
        scaled=stages.scaled[0].numpy(),
        capped=stages.capped[0].numpy(),
        sinks=None if sinks is None else sinks.numpy(),
        normaliser=_normaliser(stages, sinks).numpy(),
        influences=tuple(
            _influence(name, values, _moved(stages, attend(without[name])))
            for name, values in contributions.items()
        ),
    )


def _without(operands: Operands, added: dict[str, Float[Tensor, "query key"]]) -> dict[str, Operands]:
    parts = {
        CONTENT: operands.but(scale=0.0),
        CAP: operands.but(softcap=None),
        MASK: operands.but(allowed=None),
        SINK: operands.but(sinks=None),
    }
    for name in added:
        others = [values for other, values in added.items() if other != name]
        parts[name] = operands.but(bias=torch.stack(others).sum(0)[None] if others else None)
    return parts


def _normaliser(stages: Stages, sinks: Float[Tensor, " query"] | None) -> Float[Tensor, " query"]:
    """Log of the sum of exp(score) over the keys and the sink; NaN for a query without any key."""
    total = torch.logsumexp(stages.masked[0], -1)
    silent = total == -torch.inf
    total = total if sinks is None else torch.logaddexp(total, sinks)
    return total.masked_fill(silent, torch.nan)


def _moved(stages: Stages, without: Stages) -> Float[Tensor, " query"]:
    """Total variation between the weights with and without a term, for every query that has a key."""
    answered = ~stages.weights[0].isnan().any(-1)
    one, other = stages.weights[0][answered], without.weights[0][answered]
    unspent = (one.sum(-1) - other.sum(-1)).abs()  # what a sink takes, more or less
    return ((one - other).abs().sum(-1) + unspent) / 2


def _influence(name: str, values: Tensor, moved: Tensor) -> Influence:
    told = (values.mean(), values.min(), values.max()) if len(values) else (np.nan,) * 3
    changes = (moved.mean(), moved.max()) if len(moved) else (np.nan,) * 2
    return Influence(name, *map(float, told), *map(float, changes))


UNPAIRED = "its keys are turned, but not two and two by one angle from token to token"

_LENGTH = 1e-4  # of the longest key of a pair: how far its length may change
_ANGLE = 1e-3  # radians that a token may be off the turn of its place
_TELLING = 1e-4  # of the largest: a key of hardly any length points nowhere
_LEAST_TOKENS = 3  # two are on a line whatever they do


def head_dimensions(
    captured: Capture,
    layer: int,
    head: int,
    query: str | int | None = None,
    key: str | int | None = None,
    block: int = 0,
) -> Dimensions:
    """Head `head` of a captured layer with one query-key pair, by default its strongest.

    `InputError` when the head was not captured, or for a token that is not there or masked.
    """
    whole = recompute_head(captured, layer, head, block=block)
    row, column = pair_of(whole, query, key)
    rotation, unpaired = rotation_in(without_padding(captured.call(layer, block=block)), whole.key_head)
    return Dimensions(whole, row, column, rotation, unpaired)


def rotation_in(call: AttentionCall, key_head: int) -> tuple[Rotation | None, str]:
    """The rotary rotation of a key head's keys, or None and why it cannot be determined."""
    if call.unrotated_k is None:
        return None, ""
    before, after = (exact(each[key_head]).numpy() for each in (call.unrotated_k, call.k))
    if (before == after).all():  # the same numbers: nothing was computed in between
        return None, ""
    rotation = rotation_of(before, after)
    return rotation, "" if rotation is not None else UNPAIRED


class _Pairs(NamedTuple):
    first: Int[np.ndarray, " pair"]
    second: Int[np.ndarray, " pair"]


def rotation_of(before: Float[np.ndarray, "key dim"], after: Float[np.ndarray, "key dim"]) -> Rotation | None:
    """The rotation found from keys `before` and `after`: dimension pairs, each turned by one angle per token.

    None where nothing is turned, or where neither halves nor neighbours as pairs explain all tokens.
    """
    turned = np.flatnonzero((before != after).any(axis=0))
    if not len(turned) or len(before) < _LEAST_TOKENS:
        return None
    for pairs in _layouts(int(turned[0]), int(turned[-1]) + 1, before.shape[1]):
        angle = _angles(before, after, pairs)
        if angle is not None:
            moved = np.isin(pairs.first, turned) | np.isin(pairs.second, turned)
            return Rotation(pairs.first[moved], pairs.second[moved], angle[moved])
    return None


def _layouts(start: int, end: int, dimensions: int) -> Iterator[_Pairs]:
    """Candidate dimension pairs: i with i + half (Llama, GPT-NeoX), or even with odd (GPT-J)."""
    for low, high in dict.fromkeys([(start, end), (0, end), (start, dimensions), (0, dimensions)]):
        if (high - low) % 2:
            continue
        places = np.arange(low, high)
        half = len(places) // 2
        yield _Pairs(places[:half], places[half:])
        yield _Pairs(places[::2], places[1::2])


def _angles(
    before: Float[np.ndarray, "key dim"], after: Float[np.ndarray, "key dim"], pairs: _Pairs
) -> Float[np.ndarray, " pair"] | None:
    """Each pair's angle per token in radians; None where lengths change or one token's angle differs."""
    one, other = (each[:, pairs.first] + 1j * each[:, pairs.second] for each in (before, after))
    stretched = np.abs(other).sum() / max(np.abs(one).sum(), np.finfo(float).tiny)  # some scale all alike
    longest = np.abs(other).max(axis=0)
    if (np.abs(np.abs(other) - stretched * np.abs(one)) > _LENGTH * longest).any():
        return None
    turns = other * one.conj()  # its argument is how far the token is turned, its length how much it tells
    angle = np.angle((turns[1:] * turns[:-1].conj()).sum(axis=0))
    angle = angle + _slope(turns, angle)  # an error of one step adds up over all of them: once more over all
    told = np.abs(turns) > _TELLING * np.abs(turns).max(axis=0)
    return None if (np.abs(_left(turns, angle))[told] > _ANGLE).any() else angle


def _left(
    turns: Complex[np.ndarray, "key pair"], angle: Float[np.ndarray, " pair"]
) -> Float[np.ndarray, "key pair"]:
    """Remaining angle of each token in radians after turning it back by `angle` times its place."""
    back = turns * np.exp(-1j * angle * np.arange(len(turns))[:, None])
    return np.asarray(np.angle(back * back.sum(axis=0).conj()))


def _slope(
    turns: Complex[np.ndarray, "key pair"], angle: Float[np.ndarray, " pair"]
) -> Float[np.ndarray, " pair"]:
    """Slope of the remaining angle per token in radians, by weighted least squares."""
    weight = np.abs(turns) + np.finfo(float).tiny
    place = np.arange(len(turns))[:, None]
    centred = place - (weight * place).sum(axis=0) / weight.sum(axis=0)
    off = (weight * centred * _left(turns, angle)).sum(axis=0)
    return np.asarray(off / (weight * centred**2).sum(axis=0))


Read = Callable[[int, int], HeadWeights]


def mean_head(
    attention: Capture | Returned, layers: Sequence[int], heads: Sequence[int], block: int = 0
) -> HeadWeights:
    """The mean weights of these heads, over one layer or all of these layers.

    A query that has a key in only some heads is averaged over those. `InputError` where layers differ in
    their tokens.
    """

    def read(layer: int, head: int) -> HeadWeights:
        if isinstance(attention, Returned):
            return returned_head(attention, layer, head)
        return recompute_head(attention, layer, head, block=block)

    first = read(layers[0], heads[0])
    weights, allowed, certificates, notes = _averaged(_each(read, layers, heads, first), first)
    return HeadWeights(
        layer=layers[0] if len(layers) == 1 else MEAN,
        head=MEAN,
        kind=first.kind,
        heads=len(heads),
        layers=first.layers,
        query_tokens=first.query_tokens,
        key_tokens=first.key_tokens,
        weights=weights,
        allowed=allowed,
        module=first.module if len(layers) == 1 else "",
        certificate=_least(certificates),
        provenance=first.provenance,
        tower=first.tower,
        block=first.block,
        blocks=first.blocks,
        notes=notes,
    )


def _each(
    read: Read, layers: Sequence[int], heads: Sequence[int], first: HeadWeights
) -> Iterator[HeadWeights]:
    for layer in layers:
        for head in heads:
            found = first if (layer, head) == (layers[0], heads[0]) else read(layer, head)
            if found.weights.shape != first.weights.shape:
                raise InputError(
                    f"layers {layers[0]} and {layer} differ in their numbers of tokens: name one with --layer"
                )
            yield found


def _averaged(
    found: Iterator[HeadWeights], first: HeadWeights
) -> tuple[Float[np.ndarray, "query key"], Bool[np.ndarray, "query key"], list[Certificate], tuple[str, ...]]:
    total, count = np.zeros(first.weights.shape), np.zeros((len(first.weights), 1))
    allowed = np.zeros(first.weights.shape, dtype=bool)
    certificates, notes = list[Certificate](), dict[str, None]()
    for each in found:
        answered = each.answered[:, None]
        total += np.where(answered, np.nan_to_num(each.weights), 0.0)
        count += answered
        allowed |= each.allowed
        certificates.append(each.certificate)
        notes |= dict.fromkeys(each.notes)
    with np.errstate(invalid="ignore"):
        return total / np.where(count, count, np.nan), allowed, certificates, tuple(notes)


def _least(certificates: Sequence[Certificate]) -> Certificate:
    """The certificate with the worst verdict, carrying the largest errors of all."""
    least = max(certificates, key=lambda each: (each.verdict.rank, -each.power))
    return replace(
        least,
        weight_error=float(np.max([each.weight_error for each in certificates])),  # NaN where one is
        output_error=float(np.max([each.output_error for each in certificates])),
    )


_ALONE = "the model returns weights alone"


def returned_head(returned: Returned, layer: int, head: int) -> HeadWeights:
    """Head `head` with the weights the model returned; `InputError` where the layer has no such head."""
    mine = _without_padding(returned.layer(layer))
    _check(head, len(mine.weights), layer)
    weights = exact(mine.weights[head]).numpy()
    return HeadWeights(
        layer=layer,
        head=head,
        kind=returned.kind,
        heads=len(mine.weights),
        layers=returned.depth,
        query_tokens=mine.query_tokens,
        key_tokens=mine.key_tokens,
        weights=weights,
        allowed=np.ones(weights.shape, dtype=bool),
        module=mine.module,
        certificate=uncertified(returned.reason),
        provenance=returned.provenance,
        tower=returned.tower,
        notes=mine.notes,
    )


def returned_overview(
    returned: Returned, heads: Sequence[int], measures: Sequence[str] = ENTROPY
) -> Overview:
    """Measures and strongest link of `heads` in every layer, from the weights the model returned."""
    every = [_without_padding(layer) for layer in returned.layers]
    first = every[0]
    for layer in every:
        _check(max(heads), len(layer.weights), layer.layer)
        if layer.weights.shape[1:] != first.weights.shape[1:]:
            raise InputError(f"layers {first.layer} and {layer.layer} differ in shape: show them one by one")
    weights = [[exact(layer.weights[head]) for head in heads] for layer in every]
    dense = tuple(tuple(each.numpy() for each in row) for row in weights)
    numbers = tuple(layer.layer for layer in every)
    return Overview(
        kind=returned.kind,
        query_tokens=first.query_tokens,
        key_tokens=first.key_tokens,
        scores=apply_measures(
            weights,
            measures,
            layers=numbers,
            heads=tuple(heads),
            unplaced=unplaced(returned.kind, first.query_tokens, first.key_tokens),
            supplies=of_tokens(first.query_tokens, first.key_tokens, _ALONE),
        ),
        **links(dense, first.query_tokens, first.key_tokens, returned.kind),
        weights=dense,
        certificates=((uncertified(returned.reason),) * len(heads),) * len(numbers),
        provenance=returned.provenance,
        tower=returned.tower,
        notes=tuple(dict.fromkeys((returned.reason, *(note for layer in every for note in layer.notes)))),
        modules=tuple(
            Module(each.module, len(each.weights), returned.depth, notes=each.notes) for each in every
        ),
    )


def _without_padding(layer: ReturnedLayer) -> ReturnedLayer:
    rest = kept(layer.query_tokens, layer.key_tokens, layer.weights)
    if rest is None:
        return layer
    query_tokens, key_tokens = cut_tokens(layer.query_tokens, layer.key_tokens, rest)
    weights = layer.weights[:, rest[0]][:, :, rest[1]]
    return replace(layer, weights=weights, query_tokens=query_tokens, key_tokens=key_tokens)


def uncertified(reason: str) -> Certificate:
    """A certificate that proves nothing, for values that were not recomputed."""
    none = math.nan
    return Certificate(Verdict.UNCERTIFIED, none, none, none, none, "", (), reason)


def _check(head: int, count: int, layer: int) -> None:
    if not 0 <= head < count:
        raise InputError(f"no head {head} in layer {layer}: heads are 0-{count - 1}")
