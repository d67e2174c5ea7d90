"""One word in many texts: cosines of all pairs, and how far labels part them, beside all other labelings."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.errors import InputError
from attnscope.results.claims.ranking import LEAST_SPREAD
from attnscope.verbs.compare.texts_result import ROUNDING, Separation, splits_of

Vectors = Float[np.ndarray, "text head dim"]


def pair_cosines(vectors: Float[np.ndarray, "text dim"]) -> Float[np.ndarray, "text text"]:
    """The cosine of every two rows; NaN where one of them is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.clip(rows @ rows.T, -1.0, 1.0))


def together(vectors: Vectors) -> Float[np.ndarray, "text text"]:
    """The cosines with the vectors of all heads taken as one."""
    return pair_cosines(vectors.reshape(len(vectors), -1))


def separation(by_layer: Sequence[Vectors], labels: Sequence[str], controls: int, seed: int) -> Separation:
    """How far apart the groups of `labels` lie in each layer and head, beside other labelings.

    These are all there are where they are at most `controls`, else so many shuffled ones. Raises
    `InputError` where there are no two groups, or no two texts of one.
    """
    numbers = np.array([sorted(set(labels)).index(label) for label in labels])
    real = _same(numbers)
    if real.all():
        raise InputError(f"all texts are labelled '{labels[0]}': two groups are needed")
    if not real.any():
        raise InputError("no two texts have the same label: a group needs two at least")
    sizes = np.bincount(numbers).tolist()
    splits = splits_of(sizes)
    exact = splits - 1 <= controls
    random = np.random.default_rng(seed)
    others = (
        _every_other(numbers, sizes)
        if exact
        else [_same(random.permutation(numbers)) for _ in range(controls)]
    )
    whole = np.array([_pairs(together(vectors)) for vectors in by_layer])
    heads = np.array(
        [[_pairs(pair_cosines(head)) for head in vectors.swapaxes(0, 1)] for vectors in by_layer]
    )
    (within, between), (heads_within, heads_between) = _means(whole, real), _means(heads, real)
    gaps = np.stack([np.subtract(*_means(whole, each)) for each in others])
    of_heads = np.stack([np.subtract(*_means(heads, each)) for each in others])
    (mean, excess, strongest), (heads_mean, heads_excess, heads_strongest) = (
        _beside(*each) for each in ((within - between, gaps), (heads_within - heads_between, of_heads))
    )
    return Separation(
        within=within,
        between=between,
        heads_within=heads_within,
        heads_between=heads_between,
        control_mean=mean,
        heads_control_mean=heads_mean,
        excess=excess,
        heads_excess=heads_excess,
        below=(gaps < within - between - ROUNDING).sum(axis=0).astype(float),
        strongest=strongest,
        heads_strongest=heads_strongest,
        splits=splits,
        exact=exact,
        seed=seed,
    )


def _beside(
    real: Float[np.ndarray, "*any"], others: Float[np.ndarray, "..."]
) -> tuple[Float[np.ndarray, "*any"], Float[np.ndarray, "*any"], Float[np.ndarray, " control"]]:
    """The mean of a gap over all labelings, how far the real one is above it, and the most of any in others.

    Both in the gap's own spread over all labelings, at least `LEAST_SPREAD`.
    """
    every = np.concatenate([real[None], others])
    mean, spread = every.mean(axis=0), np.maximum(every.std(axis=0), LEAST_SPREAD)
    excess = ((every - mean) / spread).reshape(len(every), -1)
    return mean, excess[0].reshape(real.shape), np.fmax.reduce(excess[1:], axis=1)


def _every_other(numbers: Int[np.ndarray, " text"], sizes: Sequence[int]) -> list[Bool[np.ndarray, " pair"]]:
    """For every split but the real one, which pairs it puts together."""
    real, found = _same(numbers), []
    for groups in _splits(tuple(range(len(numbers))), tuple(sizes)):
        labels = np.empty_like(numbers)
        for label, group in enumerate(groups):
            labels[list(group)] = label
        same = _same(labels)
        if not np.array_equal(same, real):
            found.append(same)
    return found


def _splits(texts: tuple[int, ...], sizes: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """Every split of the texts into groups of these sizes, once each: the first text is in one of them."""
    if not texts:
        yield []
        return
    first, *rest = texts
    for size in sorted(set(sizes)):
        left = list(sizes)
        left.remove(size)
        for others in combinations(rest, size - 1):
            remaining = tuple(each for each in rest if each not in others)
            for more in _splits(remaining, tuple(left)):
                yield [(first, *others), *more]


def _same(numbers: Int[np.ndarray, " text"]) -> Bool[np.ndarray, " pair"]:
    first, second = np.triu_indices(len(numbers), 1)
    return np.asarray(numbers[first] == numbers[second])


def _pairs(cosines: Float[np.ndarray, "text text"]) -> Float[np.ndarray, " pair"]:
    return np.asarray(cosines[np.triu_indices(len(cosines), 1)])


def _means(
    cosines: Float[np.ndarray, "*any pair"], same: Bool[np.ndarray, " pair"]
) -> tuple[Float[np.ndarray, "*any"], Float[np.ndarray, "*any"]]:
    return np.asarray(cosines[..., same].mean(axis=-1)), np.asarray(cosines[..., ~same].mean(axis=-1))
