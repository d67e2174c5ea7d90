"""One word held against itself: its vectors by cosine, its rows of weights by divergence.

Vectors are as the kernel got them, so in a model with rotary positions queries and keys carry their
position. Two layers do not share a space, nor do two models that were not trained from one another:
only rows over the same tokens are compared there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from attnscope.analysis.distances import cosines, jensen_shannon, total_variation
from attnscope.analysis.head import head_attention
from attnscope.attention import AttentionCall, Capture
from attnscope.errors import InputError
from attnscope.results import Between, Certificate, Comparison, Divergence, Kind, Side, Similarity
from attnscope.sdpa import attend
from attnscope.tokens import Tokens
from attnscope.verify import certify

Pair = tuple[int, int]
Vectors = Float[np.ndarray, "head dim"]


def compare_texts(
    a: Capture, b: Capture, positions: Pair, *, layers: Sequence[int], heads: Sequence[int]
) -> Comparison:
    """One word in two texts, in every layer that both captures hold.

    One head is shown in full: of `layers` and `heads` the one whose output vectors differ most.
    """
    pairs = [(call.layer, call.layer) for call in a.calls]
    return _compared(Between.TEXTS, (a, b), positions, pairs, layers, heads, one_space=True)


def compare_layers(captured: Capture, position: int, layers: Pair, *, heads: Sequence[int]) -> Comparison:
    """One word of one text in two layers, head by head of the same number."""
    sides, positions = (captured, captured), (position, position)
    return _compared(Between.LAYERS, sides, positions, [layers], layers[:1], heads, one_space=False)


def compare_models(
    a: Capture, b: Capture, positions: Pair, *, layers: Sequence[int], heads: Sequence[int]
) -> Comparison:
    """One word of one text under two models, in every layer where both have as many layers and heads.

    Cosines are only taken between models of one architecture and shape. Raises `InputError` where one head
    would have to be chosen and nothing says which differs most.
    """
    grids = [([call.layer for call in side.calls], side.calls[0].heads) for side in (a, b)]
    one_grid = grids[0] == grids[1]
    if len(layers) * len(heads) > 1 and not (one_grid and _same_keys(a.calls[0], b.calls[0])):
        named = [f"{len(numbers)} layers x {count} heads" for numbers, count in grids]
        why = "read the text as different tokens" if one_grid else f"differ: {' and '.join(named)}"
        raise InputError(f"the two models {why}: give one --layer and one --head that both have")
    pairs = [(call.layer, call.layer) for call in a.calls if one_grid or call.layer in layers]
    one_space = _shape(a) == _shape(b)
    return _compared(Between.MODELS, (a, b), positions, pairs, layers, heads, one_space=one_space)


def _shape(captured: Capture) -> tuple[str, list[tuple[int, ...]]]:
    """The architecture, and of every layer how many query and key heads it has and of how many dimensions."""
    shapes = [(*call.q.shape[::2], *call.k.shape[::2], call.v.shape[2]) for call in captured.calls]
    return captured.provenance.architecture, shapes


@dataclass(frozen=True, eq=False)
class _Word:
    """The word in one layer: its vectors by name and its rows of weights, one row per compared head."""

    vectors: dict[str, Vectors]
    weights: Float[np.ndarray, "head key"]
    certificates: tuple[Certificate, ...]


def _compared(
    between: Between,
    sides: tuple[Capture, Capture],
    positions: Pair,
    pairs: Sequence[Pair],
    layers: Sequence[int],
    heads: Sequence[int],
    *,
    one_space: bool,
) -> Comparison:
    """The word in every pair of layers, and in full the head of `layers` (of side a) that differs most."""
    words = [
        tuple(
            _word(side.call(layer), heads, place)
            for side, layer, place in zip(sides, pair, positions, strict=True)
        )
        for pair in pairs
    ]
    similarities = _similarities(words) if one_space else ()
    meet = _same_keys(*(side.call(layer) for side, layer in zip(sides, pairs[0], strict=True)))
    divergence = _divergence(words) if meet else None
    candidates = [i for i, (layer, _) in enumerate(pairs) if layer in layers]
    i, j = _most_different(similarities, divergence, candidates)
    a, b = (
        Side(
            head_attention(captured, pairs[i][side], heads[j]),
            positions[side],
            tuple(word[side].certificates for word in words),
        )
        for side, captured in enumerate(sides)
    )
    chosen = len(candidates) * len(heads) > 1
    return Comparison(between, a, b, tuple(pairs), tuple(heads), similarities, divergence, chosen)


def _most_different(
    similarities: tuple[Similarity, ...], divergence: Divergence | None, candidates: Sequence[int]
) -> Pair:
    """Where the outputs are least alike, or the rows furthest apart, in the `candidates` among the layers."""
    if similarities:
        differing = -next(each.heads for each in similarities if each.vector == "output")
    elif divergence is not None:
        differing = divergence.jensen_shannon
    else:
        return candidates[0], 0
    among = np.nan_to_num(differing[list(candidates)], nan=-np.inf)
    row, column = np.unravel_index(among.argmax(), among.shape)
    return candidates[int(row)], int(column)


def _similarities(words: Sequence[tuple[_Word, ...]]) -> tuple[Similarity, ...]:
    """Of every kind of vector; of the unrotated key only where that is another one than the key."""
    similarities = []
    for name in words[0][0].vectors:
        if name == "unrotated key" and not any(_rotated(word) for pair in words for word in pair):
            continue
        pairs = [(a.vectors[name], b.vectors[name]) for a, b in words]
        together = [cosines(first.reshape(1, -1), second.reshape(1, -1)) for first, second in pairs]
        by_head = [cosines(first, second) for first, second in pairs]
        similarities.append(Similarity(name, np.array(by_head), np.concatenate(together)))
    return tuple(similarities)


def _rotated(word: _Word) -> bool:
    return not np.array_equal(word.vectors["key"], word.vectors["unrotated key"])


def _divergence(words: Sequence[tuple[_Word, ...]]) -> Divergence:
    return Divergence(
        jensen_shannon=np.array([jensen_shannon(a.weights, b.weights) for a, b in words]),
        total_variation=np.array([total_variation(a.weights, b.weights) for a, b in words]),
    )


def _word(call: AttentionCall, heads: Sequence[int], position: int) -> _Word:
    """The word at `position` among the queries of one layer; a sink's share is the last of its weights.

    In cross-attention the word is a query only: keys and values belong to other tokens.
    """
    stages = [attend(call.operands(head)) for head in heads]
    shared = [call.key_head(head) for head in heads]
    vectors = {"query": call.q[list(heads), position]}
    if call.kind is not Kind.CROSS:
        vectors["key"] = call.k[shared, position]
        if call.unrotated_k is not None:
            vectors["unrotated key"] = call.unrotated_k[shared, position]
        vectors["value"] = call.v[shared, position]
    vectors["output"] = torch.stack([stage.output[0, position] for stage in stages])
    weights = torch.stack([stage.weights[0, position] for stage in stages])
    if call.sinks is not None:
        weights = torch.cat([weights, (1 - weights.sum(-1, keepdim=True)).clamp_min(0)], dim=-1)
    return _Word(
        {name: vector.double().numpy() for name, vector in vectors.items()},
        weights.numpy(),
        tuple(certify(call, head) for head in heads),
    )


def _same_keys(a: AttentionCall, b: AttentionCall) -> bool:
    """Whether the keys of both are the same pieces of the same text, and both or neither have a sink."""

    def spelled(tokens: Tokens) -> list[object]:
        return [tokens.texts, *((token.piece, token.span, token.part) for token in tokens.items)]

    return spelled(a.key_tokens) == spelled(b.key_tokens) and (a.sinks is None) == (b.sinks is None)
