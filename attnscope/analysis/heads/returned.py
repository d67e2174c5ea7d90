"""Results of what a model returned: weights alone, uncertified, in the place of recomputed attention."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attnscope.analysis.heads.view import cut_tokens, kept, links
from attnscope.analysis.scores.dense import ENTROPY, apply_measures, unplaced
from attnscope.analysis.scores.supplies import of_tokens
from attnscope.capture.returned import Returned, ReturnedLayer
from attnscope.errors import InputError
from attnscope.reference import exact
from attnscope.results import Certificate, HeadWeights, Overview, Verdict
from attnscope.results.overview import Module

_ALONE = "the model returns weights alone"


def returned_head(returned: Returned, layer: int, head: int) -> HeadWeights:
    """Head `head` as it was returned; `InputError` where the layer has no such head."""
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
    """Measures and strongest link of `heads` in every layer that was asked for, as they were returned."""
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
    """The certificate of what was not recomputed: nothing was compared with anything."""
    none = math.nan
    return Certificate(Verdict.UNCERTIFIED, none, none, none, none, "", (), reason)


def _check(head: int, count: int, layer: int) -> None:
    if not 0 <= head < count:
        raise InputError(f"no head {head} in layer {layer}: heads are 0-{count - 1}")
