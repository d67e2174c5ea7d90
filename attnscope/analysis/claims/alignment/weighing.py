"""How much each cross-attention head counts, and whether heads agree more than by chance.

Without gold a head counts by how sharp its rows are (1 - entropy / ln keys) and how monotone (the correlation
of where a row looks with its place), the geometric mean of both: Marian, BART and Whisper all have heads that
follow the text, and others that look at its end. With gold, shares of a mixture are fitted to it.
"""

import numpy as np
from jaxtyping import Float, Int

DRAWS = 99
_ROUNDS, _NOTHING = 100, 1e-12

Rows = Float[np.ndarray, "head row key"]
Shares = Float[np.ndarray, " head"]


def even(heads: int) -> Shares:
    """The plain mean."""
    return np.full(heads, 1 / heads)


def by_sharpness(rows: Rows) -> Shares:
    """The share of each head; that of all heads alike where none is both sharp and monotone."""
    rest = np.clip(1 - rows.sum(axis=2, keepdims=True), 0, None)
    whole = np.concatenate([rows, rest], axis=2)
    entropy = -(whole * np.log(whole + _NOTHING)).sum(axis=2).mean(axis=1)
    sharp = np.clip(1 - entropy / np.log(whole.shape[2]), 0, None)
    values = np.sqrt(sharp * _monotone(rows))
    total = float(values.sum())
    return values / total if total > _NOTHING else even(len(values))


def _monotone(rows: Rows) -> Float[np.ndarray, " head"]:
    """The correlation of each row's mean key with the row, nothing below 0; 1 of too few rows."""
    count = rows.shape[1]
    if count < 3:
        return np.ones(len(rows))
    centres = rows @ np.arange(rows.shape[2]) / (rows.sum(axis=2) + _NOTHING)
    centres = centres - centres.mean(axis=1, keepdims=True)
    places = np.arange(count) - (count - 1) / 2
    spread = np.sqrt((centres**2).sum(axis=1) * (places**2).sum())
    found = np.divide(centres @ places, spread, out=np.zeros(len(rows)), where=spread > 1e-9)
    return np.asarray(np.clip(found, 0, None))


def fitted(masses: Float[np.ndarray, "case head"]) -> Shares:
    """The mixture of heads that makes the right keys likeliest (expectation maximisation).

    `masses` is what each head gives to the right keys of each case. The likelihood has one maximum.
    """
    shares = even(masses.shape[1])
    for _ in range(_ROUNDS):
        taken = masses * shares + _NOTHING
        shares = (taken / taken.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def mixed(rows: Rows, shares: Shares) -> Float[np.ndarray, "row key"]:
    """One row of all heads, each by its share."""
    return np.asarray(np.tensordot(shares, rows, axes=1))


def agreement(rows: Rows, shares: Shares) -> float:
    """The mean over rows of the strongest key: large where heads look sharply, and at the same."""
    return float(mixed(rows, shares).max(axis=1).mean())


def shuffled(rows: Rows, shares: Shares, draws: int = DRAWS, seed: int = 0) -> Float[np.ndarray, " draw"]:
    """The agreement where the rows of each head are in an order of their own.

    A head keeps how sharp it is and which keys it likes whatever the row: heads that all look at the full
    stop agree as much as before. What is lost is what the row has to do with the key.
    """
    random, used = np.random.default_rng(seed), shares > 0
    kept, own = rows[used], shares[used]
    each = np.arange(len(kept))[:, None]
    return np.array([agreement(kept[each, _orders(random, kept)], own) for _ in range(draws)])


def _orders(random: np.random.Generator, rows: Rows) -> Int[np.ndarray, "head row"]:
    return np.argsort(random.random(rows.shape[:2]), axis=1)
