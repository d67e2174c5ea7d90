"""One word in many texts: cosines of all pairs, and how far labels part them, beside shuffled ones."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.errors import InputError
from attnscope.results.claims.senses import Separation

Vectors = Float[np.ndarray, "text head dim"]
MOST_CONTROLS = 100_000


def pair_cosines(vectors: Float[np.ndarray, "text dim"]) -> Float[np.ndarray, "text text"]:
    """The cosine of every two rows; NaN where one of them is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.clip(rows @ rows.T, -1.0, 1.0))


def together(vectors: Vectors) -> Float[np.ndarray, "text text"]:
    """The cosines with the vectors of all heads taken as one."""
    return pair_cosines(vectors.reshape(len(vectors), -1))


def separation(by_layer: Sequence[Vectors], labels: Sequence[str], controls: int, seed: int) -> Separation:
    """How far apart the groups of `labels` lie in each layer and head, beside `controls` shuffled labelings.

    Raises `InputError` where there are no two groups, or no two texts of one.
    """
    numbers = np.array([sorted(set(labels)).index(label) for label in labels])
    real = _same(numbers)
    if real.all():
        raise InputError(f"all texts are labelled '{labels[0]}': two groups are needed")
    if not real.any():
        raise InputError("no two texts have the same label: a group needs two at least")
    random = np.random.default_rng(seed)
    shuffled = np.array([_same(random.permutation(numbers)) for _ in range(controls)])
    whole = np.array([_pairs(together(vectors)) for vectors in by_layer])
    heads = np.array(
        [[_pairs(pair_cosines(head)) for head in vectors.swapaxes(0, 1)] for vectors in by_layer]
    )
    (within, between), (heads_within, heads_between) = _means(whole, real), _means(heads, real)
    gaps = np.stack([np.subtract(*_means(whole, each)) for each in shuffled])
    best = np.stack([np.subtract(*_means(heads, each)).max(axis=1) for each in shuffled])
    largest = (heads_within - heads_between).max(axis=1)
    return Separation(
        within=within,
        between=between,
        heads_within=heads_within,
        heads_between=heads_between,
        chance=gaps.mean(axis=0),
        percentile=_below(gaps, within - between),
        best_chance=best.mean(axis=0),
        best_percentile=_below(best, largest),
        controls=controls,
        seed=seed,
    )


def _below(
    controls: Float[np.ndarray, "control layer"], real: Float[np.ndarray, " layer"]
) -> Float[np.ndarray, " layer"]:
    """How many in a hundred of the controls are smaller; what rounding makes smaller is not."""
    return np.asarray(100.0 * (controls < real - 1e-12).mean(axis=0))


def _same(numbers: Int[np.ndarray, " text"]) -> Bool[np.ndarray, " pair"]:
    """For every two texts whether they have one label."""
    first, second = np.triu_indices(len(numbers), 1)
    return np.asarray(numbers[first] == numbers[second])


def _pairs(cosines: Float[np.ndarray, "text text"]) -> Float[np.ndarray, " pair"]:
    return np.asarray(cosines[np.triu_indices(len(cosines), 1)])


def _means(
    cosines: Float[np.ndarray, "*any pair"], same: Bool[np.ndarray, " pair"]
) -> tuple[Float[np.ndarray, "*any"], Float[np.ndarray, "*any"]]:
    """The mean over the pairs of one label, and over those of two."""
    return np.asarray(cosines[..., same].mean(axis=-1)), np.asarray(cosines[..., ~same].mean(axis=-1))
