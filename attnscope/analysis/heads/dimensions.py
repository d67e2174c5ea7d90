"""The product of one query and one key of a head, dimension by dimension.

Which dimensions of a key a rotary position turns together is told from keys before and after it
(`rotation_of`). There is no table of architectures: a layout is taken when it explains every token, and
refused when one does not fit.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Int

from attnscope.analysis.heads.head import recompute_head
from attnscope.analysis.heads.view import pair_of
from attnscope.analysis.padding import without_padding
from attnscope.attention import AttentionCall, Capture
from attnscope.reference import exact
from attnscope.results import Dimensions
from attnscope.results.score import Rotation

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
    """Head `head` of a captured layer at one pair of tokens, by default its strongest.

    `InputError` when the head was not captured, or for a token that is not there or masked.
    """
    whole = recompute_head(captured, layer, head, block=block)
    row, column = pair_of(whole, query, key)
    rotation, unpaired = rotation_in(without_padding(captured.call(layer, block=block)), whole.key_head)
    return Dimensions(whole, row, column, rotation, unpaired)


def rotation_in(call: AttentionCall, key_head: int) -> tuple[Rotation | None, str]:
    """What turns the keys of one key head, and why it cannot be told where it cannot."""
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
    """The pairs that are turned from `before` to `after`, each by the same angle from token to token.

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
    """Dimension i with i + half (Llama, GPT-NeoX), or even with odd (GPT-J), of all or of those turned."""
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
    """Radians from token to token; None where a length changes, or a token is turned otherwise."""
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
    """Radians by which each token is off, once it is turned back by `angle` times its place."""
    back = turns * np.exp(-1j * angle * np.arange(len(turns))[:, None])
    return np.asarray(np.angle(back * back.sum(axis=0).conj()))


def _slope(
    turns: Complex[np.ndarray, "key pair"], angle: Float[np.ndarray, " pair"]
) -> Float[np.ndarray, " pair"]:
    """Radians from token to token that are left: the line through what is off, by least squares."""
    weight = np.abs(turns) + np.finfo(float).tiny
    place = np.arange(len(turns))[:, None]
    centred = place - (weight * place).sum(axis=0) / weight.sum(axis=0)
    off = (weight * centred * _left(turns, angle)).sum(axis=0)
    return np.asarray(off / (weight * centred**2).sum(axis=0))
