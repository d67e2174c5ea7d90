"""What attention gives to every passage where a sentence of the answer is written.

Weights are summed over the tokens of a passage, and averaged over the rows that write the sentence and over
all heads. Beside the mean of all heads stand those that copy: whose strongest key among the passages is the
very token that is written (Wu et al. 2024), and the mean by how much each weight can move (Kobayashi et al.
2020).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnscope.analysis.claims.finding.rows import Layer, moved, rows_of
from attnscope.results.base.groups import members

COPIES = 0.1  # of the tokens of the answer: a head that copies fewer is none of those that copy
LOOKS = 0.1  # of its weight a head gives to the token that it is said to copy, at least

Shares = Float[np.ndarray, "sentence passage"]


@dataclass(frozen=True, eq=False)
class Looked:
    """The mean over all heads, over those that copy, and by norm; None where there is no such thing."""

    attention: Shares
    copying: Shares | None
    heads: tuple[tuple[int, int], ...]
    by_norm: Shares | None


def looked(
    layers: Iterable[Layer],
    heads: Sequence[int],
    rows: Sequence[int],
    written: Sequence[int],
    keys: Sequence[int],
    passages: Sequence[Sequence[int]],
    sentences: Sequence[Sequence[int]],
) -> Looked:
    """`written[i]` is the id of the token that `rows[i]` writes; `sentences` count these, `keys` are ids."""
    there, own = members(tuple(map(tuple, passages)), len(keys)), _averaging(sentences, len(rows))
    inside, ids = there.any(axis=0), np.array(keys)
    columns, numbers = there.T.astype(float), list[int]()
    weights, scores, moving = list[np.ndarray](), list[np.ndarray](), list[np.ndarray | None]()
    for layer in layers:
        given, lengths = np.nan_to_num(rows_of(layer, heads, rows)), moved(layer)
        weights.append(given @ columns)
        strongest = np.where(inside, given, -1.0).argmax(axis=2)
        looks = np.take_along_axis(given, strongest[..., None], axis=2)[..., 0] >= LOOKS
        scores.append(((ids[strongest] == np.array(written)) & looks).mean(axis=1))
        numbers.append(layer.layer)
        moving.append(None if lengths is None else (given * lengths[list(heads)][:, None]).sum(axis=0))
    every, copied = np.array(weights), np.array(scores)  # layer, head, row, passage; layer, head
    known = [each for each in moving if each is not None]
    copies = copied >= max(COPIES, copied.max() / 2)
    return Looked(
        own @ every.mean(axis=(0, 1)),
        own @ every[copies].mean(axis=0) if copies.any() else None,
        tuple((numbers[i], heads[j]) for i, j in np.argwhere(copies).tolist()),
        None if len(known) < len(moving) else own @ _shares(np.sum(known, axis=0)) @ columns,
    )


def _shares(moved: Float[np.ndarray, "row key"]) -> Float[np.ndarray, "row key"]:
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))


def _averaging(sentences: Sequence[Sequence[int]], rows: int) -> Float[np.ndarray, "sentence row"]:
    taken = members(tuple(map(tuple, sentences)), rows).astype(float)
    return np.asarray(taken / taken.sum(axis=1, keepdims=True))
