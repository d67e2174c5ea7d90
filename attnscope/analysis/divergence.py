"""How far rows of weights, or vectors, lie apart."""

import numpy as np
from jaxtyping import Float


def cosines(a: Float[np.ndarray, "head dim"], b: Float[np.ndarray, "head dim"]) -> Float[np.ndarray, " head"]:
    """Cosine of the angle between each row of `a` and the same row of `b`; NaN where one is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        directions = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (a, b)]
    similarity: Float[np.ndarray, " head"] = np.clip((directions[0] * directions[1]).sum(axis=1), -1.0, 1.0)
    return similarity


def jensen_shannon(
    a: Float[np.ndarray, "head key"], b: Float[np.ndarray, "head key"]
) -> Float[np.ndarray, " head"]:
    """Mean divergence of each row and its counterpart from their mean, in nats (Lin 1991)."""
    divergence: Float[np.ndarray, " head"] = (_from_mean(a, a + b) + _from_mean(b, a + b)) / 2
    return np.asarray(np.maximum(divergence, 0.0))


def _from_mean(
    rows: Float[np.ndarray, "head key"], total: Float[np.ndarray, "head key"]
) -> Float[np.ndarray, " head"]:
    """Kullback-Leibler divergence of each row from half the `total` of two rows, this being one of them."""
    ratio = np.divide(2 * rows, total, out=np.ones_like(rows), where=rows > 0)
    divergence: Float[np.ndarray, " head"] = (rows * np.log(ratio)).sum(axis=1)
    return divergence


def total_variation(
    a: Float[np.ndarray, "head key"], b: Float[np.ndarray, "head key"]
) -> Float[np.ndarray, " head"]:
    """Half the sum of absolute differences of each row and its counterpart, 0 to 1."""
    distance: Float[np.ndarray, " head"] = np.abs(a - b).sum(axis=1) / 2
    return distance
