"""One word held against itself: its vectors by cosine, its rows of weights by divergence.

Vectors are as the kernel got them, so in a model with rotary positions queries and keys carry their
position. Two layers do not share a space, nor do two models that were not trained from one another:
only rows over the same tokens, or the same words, are compared there.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from attnscope.analysis.controls import cosines, jensen_shannon, total_variation
from attnscope.analysis.heads.head import recompute_head
from attnscope.analysis.heads.view import Places, place_in_text, units_around, viewed
from attnscope.attention import Capture
from attnscope.errors import InputError
from attnscope.results import Certificate, HeadAttention, Special
from attnscope.verbs.compare.result import Between, Comparison, Divergence, Side, Similarity, begin_to_differ
from attnscope.verbs.compare.word import TOKENS, ComparedWord, Look, same_keys, word_in

Pair = tuple[int, int]
Both = tuple[Places, Places]
_MOST_SPECIAL = 0.5  # of the word's weight on either side


def compare(
    between: Between,
    a: Capture,
    b: Capture,
    positions: Both,
    *,
    layers: Sequence[int],
    heads: Sequence[int],
    look: Look = TOKENS,
) -> Comparison:
    """One word on both sides, in every layer that both captures hold, or in two `layers` of one text.

    One head is shown in full: of `layers` and `heads` the one whose output vectors differ most. `positions`
    are those of the word's tokens on each side as it was captured, padding of a batch counted, by words of
    any of its pieces. Of two models cosines are taken where they are of one architecture and shape.
    `InputError` where `look` leaves every query or key out, and where one head of two models would have to be
    chosen and nothing says which differs most.
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
    divergence = _divergence(words) if same_keys(first, second, look) else None
    candidates = [i for i, (layer, _) in enumerate(pairs) if layer in layers]
    passed = (
        _passed_over(words, look) if between is Between.TEXTS else np.zeros((len(words), len(heads)), bool)
    )
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


def _check_models(a: Capture, b: Capture, many: int, look: Look) -> bool:
    """Whether both have as many layers and heads; `InputError` where of `many` one has to be chosen."""
    grids = [([call.layer for call in side.calls], side.calls[0].heads) for side in (a, b)]
    one_grid = grids[0] == grids[1]
    if many > 1 and not (one_grid and same_keys(a.calls[0], b.calls[0], look)):
        named = [f"{len(numbers)} layers x {count} heads" for numbers, count in grids]
        why = f"read the text as different {look.units}" if one_grid else f"differ: {' and '.join(named)}"
        raise InputError(f"the two models {why}: give one --layer and one --head that both have")
    return one_grid


def _shape(captured: Capture) -> tuple[str, list[tuple[int, ...]]]:
    shapes = [(*call.q.shape[::2], *call.k.shape[::2], call.v.shape[2]) for call in captured.calls]
    return captured.provenance.architecture, shapes


def _side(
    head: HeadAttention, places: Places, certificates: tuple[tuple[Certificate, ...], ...], look: Look
) -> Side:
    if not look.changes and len(places) == 1:
        return Side(head, places[0], certificates)
    units = units_around(head.query_tokens, head.key_tokens, places, look.by, look.special)
    view = viewed(head, by=look.by, special=look.special, units=units)
    return Side(head, look.pieces(head.query_tokens, places)[0], certificates, view)


def _passed_over(words: Sequence[tuple[ComparedWord, ...]], look: Look) -> Bool[np.ndarray, "layer head"]:
    """Heads that leave most of the word's weight on special tokens on one side: what differs is a sink."""
    over = [np.logical_or.reduce([side.on_special > _MOST_SPECIAL for side in pair]) for pair in words]
    shown = look.all_heads or look.special is Special.RENORMALISE
    return np.array(over) & (not shown)


def _most_different(
    similarities: tuple[Similarity, ...],
    divergence: Divergence | None,
    candidates: Sequence[int],
    passed: Bool[np.ndarray, "layer head"],
    begins: Sequence[Pair],
) -> Pair:
    """Where the outputs are least alike, or the rows furthest apart, in the `candidates` among the layers.

    Heads that are `passed` over come last. Where two models begin to differ in some heads (`begins`) it is
    one of these.
    """
    if similarities:
        differing = -next(each.heads for each in similarities if each.vector == "output")
    elif divergence is not None:
        differing = divergence.jensen_shannon
    else:
        return candidates[0], 0
    among = np.nan_to_num(differing[list(candidates)], nan=-np.inf)
    among = np.where(passed[list(candidates)] & ~passed[list(candidates)].all(), -np.inf, among)
    if begins:
        others = np.ones(among.shape, bool)
        others[[candidates.index(row) for row, _ in begins], [column for _, column in begins]] = False
        among = np.where(others, -np.inf, among)
    row, column = np.unravel_index(among.argmax(), among.shape)
    return candidates[int(row)], int(column)


def _similarities(words: Sequence[tuple[ComparedWord, ...]]) -> tuple[Similarity, ...]:
    """Of every kind of vector; of the unrotated key only where that is another one than the key."""
    similarities = []
    for name in words[0][0].vectors:
        if name == "unrotated key" and not any(word.rotated for pair in words for word in pair):
            continue
        pairs = [(a.vectors[name], b.vectors[name]) for a, b in words]
        together = [cosines(first.reshape(1, -1), second.reshape(1, -1)) for first, second in pairs]
        by_head = [cosines(first, second) for first, second in pairs]
        similarities.append(Similarity(name, np.array(by_head), np.concatenate(together)))
    return tuple(similarities)


def _divergence(words: Sequence[tuple[ComparedWord, ...]]) -> Divergence:
    return Divergence(
        jensen_shannon=np.array([jensen_shannon(a.weights, b.weights) for a, b in words]),
        total_variation=np.array([total_variation(a.weights, b.weights) for a, b in words]),
    )
