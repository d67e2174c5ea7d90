"""Compares one word on two sides: its vectors by cosine, its rows of weights by divergence.

Vectors are as the kernel got them, so in a model with rotary positions queries and keys carry their
position. Two layers do not share a space, nor do two models that were not trained from one another:
only rows over the same tokens, or the same words, are compared there. A word that was cut into pieces has
the mean of their vectors, and of their rows the mean, summed over the pieces of each key (Clark et al. 2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.controls import cosines, jensen_shannon, total_variation
from attnscope.analysis.heads.head import recompute_head
from attnscope.analysis.heads.view import (
    Places,
    groups_of,
    place_in_text,
    units_around,
    viewed,
    without_padding,
)
from attnscope.arithmetic import attend
from attnscope.attention import AttentionCall, Capture
from attnscope.errors import InputError
from attnscope.reference import exact
from attnscope.results import Certificate, HeadAttention, Kind, Special
from attnscope.results.base.groups import Groups, joined, regrouped, taken_together, units_of_text
from attnscope.session.wanted import Looking
from attnscope.tokens import Token, Tokens
from attnscope.verbs.compare.result import Between, Comparison, Divergence, Side, Similarity, begin_to_differ
from attnscope.verify import certify_heads
from attnscope.vocabulary import Unit

Pair = tuple[int, int]
TOKENS = Looking()
_MOST_SPECIAL = 0.5  # of the word's weight on either side


@dataclass(frozen=True, eq=False)
class ComparedWord:
    """The word in one layer: vectors by name, and its row of weights in each compared head.

    `on_special` is how much of the word's weight each head puts on special tokens.
    """

    vectors: dict[str, Float[np.ndarray, "head dim"]]
    weights: Float[np.ndarray, "head key"]
    on_special: Float[np.ndarray, " head"]
    certificates: tuple[Certificate, ...]


def compare(
    between: Between,
    a: Capture,
    b: Capture,
    positions: tuple[Places, Places],
    *,
    layers: Sequence[int],
    heads: Sequence[int],
    look: Looking = TOKENS,
) -> Comparison:
    """Compares one word on both sides, in every layer of both captures, or in two `layers` of one text.

    One head is shown in full: of `layers` and `heads` the one whose output vectors differ most. `positions`
    are those of the word's tokens on each side as it was captured, padding of a batch counted, by words of
    any of its pieces. Of two models cosines are taken where they are of one architecture and shape. What is
    only hidden still counts where rows are compared: a row with gaps is no distribution. `InputError` where
    `look` leaves every query or key out, and where one head of two models would have to be chosen and nothing
    says which differs most.
    """
    sides, pairs = (a, b), [(call.layer, call.layer) for call in a.calls]
    one_space = between is Between.TEXTS
    if between is Between.LAYERS:
        pairs, layers = [(layers[0], layers[1])], layers[:1]
    elif between is Between.MODELS:
        one_grid = _check_models(a, b, len(layers) * len(heads), look)
        pairs = [pair for pair in pairs if one_grid or pair[0] in layers]
        one_space = _shape(a) == _shape(b)
    words = [
        tuple(
            word_in(side.call(layer), heads, place, look)
            for side, layer, place in zip(sides, pair, positions, strict=True)
        )
        for pair in pairs
    ]
    similarities = _similarities(words) if one_space else ()
    first, second = (side.call(layer) for side, layer in zip(sides, pairs[0], strict=True))
    divergence = None
    if _same_keys(first, second, look):
        rows = [(one.weights, other.weights) for one, other in words]
        measured = (np.array([by(*each) for each in rows]) for by in (jensen_shannon, total_variation))
        divergence = Divergence(*measured)
    candidates = [i for i, (layer, _) in enumerate(pairs) if layer in layers]
    # heads that leave most of the word's weight on special tokens on one side: what differs is a sink
    passed = np.array([np.logical_or.reduce([w.on_special > _MOST_SPECIAL for w in pair]) for pair in words])
    passed &= between is Between.TEXTS and not look.links_among_all
    passed &= look.treatment is not Special.RENORMALISE
    begins = begin_to_differ(similarities, divergence) if between is Between.MODELS else ()
    begins = tuple(place for place in begins if place[0] in candidates)
    i, j = _most_different(similarities, divergence, candidates, passed, begins)
    one, other = (
        _side(
            recompute_head(captured, pairs[i][side], heads[j]),
            tuple(place_in_text(captured.call(pairs[i][side]), place) for place in positions[side]),
            tuple(word[side].certificates for word in words),
            look,
        )
        for side, captured in enumerate(sides)
    )
    chosen = len(candidates) * len(heads) > 1
    over = passed[candidates]
    left_out = int(over.sum()) if chosen and not over.all() else 0
    return Comparison(
        between, one, other, tuple(pairs), tuple(heads), similarities, divergence, chosen, left_out
    )


def _check_models(a: Capture, b: Capture, many: int, look: Looking) -> bool:
    """Whether both models have the same layers and heads; `InputError` where one of `many` must be chosen."""
    grids = [([call.layer for call in side.calls], side.calls[0].heads) for side in (a, b)]
    one_grid = grids[0] == grids[1]
    if many > 1 and not (one_grid and _same_keys(a.calls[0], b.calls[0], look)):
        named = [f"{len(numbers)} layers x {count} heads" for numbers, count in grids]
        differ = f"read the text as different {look.unit.several}"
        why = differ if one_grid else f"differ: {' and '.join(named)}"
        raise InputError(f"the two models {why}: give one --layer and one --head that both have")
    return one_grid


def _shape(captured: Capture) -> tuple[str, list[tuple[int, ...]]]:
    shapes = [(*call.q.shape[::2], *call.k.shape[::2], call.v.shape[2]) for call in captured.calls]
    return captured.provenance.architecture, shapes


def _side(
    head: HeadAttention, places: Places, certificates: tuple[tuple[Certificate, ...], ...], look: Looking
) -> Side:
    if not look.changes and len(places) == 1:
        return Side(head, places[0], certificates)
    units = units_around(head.query_tokens, head.key_tokens, places, **look.how)
    view = viewed(head, units=units, **look.how)
    return Side(head, _pieces(look, head.query_tokens, places)[0], certificates, view)


def _most_different(
    similarities: tuple[Similarity, ...],
    divergence: Divergence | None,
    candidates: Sequence[int],
    passed: Bool[np.ndarray, "layer head"],
    begins: Sequence[Pair],
) -> Pair:
    """Indices of the least alike outputs, or the furthest rows, among the `candidates` (indices of layers).

    Heads that are `passed` over come last. Where two models begin to differ in some heads (`begins`) it is
    one of these.
    """
    if similarities:
        differing = -next(each.heads for each in similarities if each.vector == "output")
    elif divergence is not None:
        differing = divergence.jensen_shannon
    else:
        return candidates[0], 0
    among = np.zeros(differing.shape, bool)
    among[[row for row, _ in begins] or list(candidates), [j for _, j in begins] or slice(None)] = True
    if (among & ~passed).any():
        among &= ~passed
    best = np.where(among, np.nan_to_num(differing, nan=-1e300), -np.inf).argmax()
    row, column = np.unravel_index(best, among.shape)
    return int(row), int(column)


def _similarities(words: Sequence[tuple[ComparedWord, ...]]) -> tuple[Similarity, ...]:
    """Cosines of every kind of vector; of the unrotated key only where it differs from the key."""
    similarities = []
    for name in words[0][0].vectors:
        pairs = [(a.vectors[name], b.vectors[name]) for a, b in words]
        if name == "unrotated key" and all(
            np.array_equal(word.vectors["key"], word.vectors[name]) for pair in words for word in pair
        ):
            continue
        together = [cosines(first.reshape(1, -1), second.reshape(1, -1)) for first, second in pairs]
        by_head = [cosines(first, second) for first, second in pairs]
        similarities.append(Similarity(name, np.array(by_head), np.concatenate(together)))
    return tuple(similarities)


def word_in(
    call: AttentionCall, heads: Sequence[int], places: Places, look: Looking = TOKENS
) -> ComparedWord:
    """Vectors and weights of the word at `places` in one layer; a sink's share is the last of the weights.

    Where rows are divided by what remains without special tokens, a sink is left out like these. In
    cross-attention the word is a query only: keys and values belong to other tokens.
    """
    whole, call = call, without_padding(call)
    span = _pieces(look, call.query_tokens, tuple(place_in_text(whole, place) for place in places))
    pieces = list(span)
    stages = [attend(call.operands(head)) for head in heads]
    shared = [call.key_head(head) for head in heads]
    weights = torch.stack([stage.weights[0, pieces] for stage in stages])
    vectors = {"query": exact(call.q[list(heads)][:, pieces]).mean(dim=1)}
    if call.kind is not Kind.CROSS:
        others = {"key": call.k, "unrotated key": call.unrotated_k, "value": call.v}
        vectors |= {
            name: exact(each[shared][:, pieces]).mean(dim=1)
            for name, each in others.items()
            if each is not None
        }
    vectors["output"] = _mean_output(torch.stack([stage.output[0, pieces] for stage in stages]), weights)
    special = [i for i, token in enumerate(call.key_tokens.items) if token.special]
    on_special = weights[..., special].sum(-1).nanmean(dim=1)
    if call.sinks is not None:
        weights = torch.cat([weights, (1 - weights.sum(-1, keepdim=True)).clamp_min(0)], dim=-1)
    return ComparedWord(
        {name: vector.numpy() for name, vector in vectors.items()},
        _rows(weights, look, call, span),
        on_special.numpy(),
        certify_heads(whole, heads),
    )


def _pieces(look: Looking, queries: Tokens, places: Places) -> Places:
    """Positions of all tokens of the word or words at `places`."""
    groups = units_of_text(queries, look.unit) if look.unit.joins else ()
    return tuple(i for group in groups if {*group} & {*places} for i in group) or places


def _mean_output(
    outputs: Float[Tensor, "head piece dim"], weights: Float[Tensor, "head piece key"]
) -> Float[Tensor, "head dim"]:
    """Mean output over the pieces that have a key; NaN where none has."""
    answered = ~weights.isnan().any(dim=-1, keepdim=True)
    counted = answered | ~answered.any(dim=1, keepdim=True)
    return outputs.masked_fill(~counted, 0).sum(dim=1) / counted.sum(dim=1)


def _rows(
    weights: Float[Tensor, "head piece key_and_sink"], look: Looking, call: AttentionCall, span: Places
) -> Float[np.ndarray, "head key"]:
    groups = _keys(look, call.key_tokens, () if call.kind is Kind.CROSS else span)
    if groups is None and len(span) > 1:
        groups = groups_of(call.key_tokens, "key", Unit.TOKEN, Special.SHOW)
    if groups is None:
        return np.asarray(weights[:, 0].numpy())
    scaled, count = look.treatment is Special.RENORMALISE, weights.shape[1]
    if call.sinks is not None and not scaled:
        groups = (*groups, (len(call.key_tokens),))
    members = tuple(tuple(range(first, first + count)) for first in range(0, len(weights) * count, count))
    return regrouped(weights.flatten(0, 1).numpy(), members, groups, renormalise=scaled)


def _keys(look: Looking, keys: Tokens, span: Places = ()) -> Groups | None:
    """Groups of tokens that rows are compared over, the `span` as one; None where every token is one."""
    scaled = look.treatment is Special.RENORMALISE
    if not look.unit.joins and not scaled and len(span) < 2:
        return None
    groups = groups_of(keys, "key", look.unit, Special.RENORMALISE if scaled else Special.SHOW)
    places = [i for i, group in enumerate(groups) if {*group} & {*span}]
    return taken_together(groups, *([places] if places else []))


def _same_keys(a: AttentionCall, b: AttentionCall, look: Looking) -> bool:
    """Whether both have the same keys (pieces or words of the same text), and both or neither a sink."""

    def spelled(tokens: Tokens) -> list[object]:
        groups = _keys(look, tokens)
        items = tokens.items if groups is None else joined(tokens, groups, look.unit).items
        return [tokens.texts, *(_spelled(item, look.unit.joins) for item in items)]

    sinks = look.treatment is Special.RENORMALISE or (a.sinks is None) == (b.sinks is None)
    first, second = (spelled(without_padding(each).key_tokens) for each in (a, b))
    return first == second and sinks


def _spelled(token: Token, word: bool) -> tuple[object, ...]:
    """The identity of a token or word: its characters and where they start."""
    if not word or token.span is None:
        return token.piece, token.span, token.part
    blanks = len(token.text) - len(token.text.lstrip())
    return token.text.strip(), token.span[0] + blanks, token.part
