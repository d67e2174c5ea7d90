"""How much a head gives from words of one part of speech to those of another, beside what distances explain.

    link      mean over the words of the first sort of the weight on all words of the second
    distance  the same for what the head gives, in this very text, to any word that stands so far away
    gain      link less distance: what is left of it once nearness is taken out

Words are compared, not pieces: summed over the pieces of a key, averaged over those of a query, and no word
is linked to itself. A pair is among those that its own `distance` is a mean of, so short texts gain too
little rather than too much. A text without such a pair does not count.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.rows import word_weights
from attnscope.reference import exact
from attnscope.results import MeasureDescription
from attnscope.verbs.corpus.result import DISTANCE_ALONE, GAIN, LINK


def descriptions(source: str, target: str) -> tuple[MeasureDescription, ...]:
    """What is said of the three, in their order."""
    pair = f"{source}->{target}"
    return (
        MeasureDescription(
            name=LINK,
            unit="weight",
            meaning=f"Mean weight of a {source} word on the {target} words of its text.",
            label=f"weight of {pair}",
            strongest=f"head of each layer that links {pair} most",
        ),
        MeasureDescription(
            name=DISTANCE_ALONE,
            unit="weight",
            meaning=f"The same for what any word of the text gives at the distances of {pair}.",
            label=f"weight at the distances of {pair}",
            strongest=f"head of each layer that looks most to where {target} stands",
        ),
        MeasureDescription(
            name=GAIN,
            unit="weight",
            meaning=f"Weight of {pair} less what its distances alone explain.",
            label=f"{pair} beyond its distances",
            least="-1",
            low="avoids them",
            high="seeks them",
            strongest=f"head of each layer that seeks {pair} most",
            signed=True,
        ),
    )


def links(
    weights: Float[Tensor, "row head query key"],
    pieces: Bool[Tensor, "row word token"],
    tags: Sequence[Sequence[str]],
    source: str,
    target: str,
) -> Float[Tensor, "row 3 head"]:
    """Link, distance and gain of every head in every text; NaN where there is no such pair of words."""
    by_word = word_weights(weights, pieces)
    words = by_word.shape[-1]
    there = pieces.any(-1).to(by_word.device)
    first, second = (_tagged(tags, wanted, words).to(there.device) & there for wanted in (source, target))
    other = ~torch.eye(words, dtype=torch.bool, device=there.device)
    every = there[:, :, None] & there[:, None, :] & other
    pairs = first[:, :, None] & second[:, None, :] & other
    queries = pairs.any(-1).sum(-1)
    expected = _by_distance(by_word, every)
    none = (queries == 0)[:, None]
    link, distance = (
        ((each * pairs[:, None]).sum((-2, -1)) / queries.clamp_min(1)[:, None]).masked_fill(none, torch.nan)
        for each in (by_word, expected)
    )
    return torch.stack([link, distance, link - distance], dim=1).cpu()


def _tagged(tags: Sequence[Sequence[str]], wanted: str, words: int) -> Bool[Tensor, "row word"]:
    found = torch.zeros(len(tags), words, dtype=torch.bool)
    for row, mine in enumerate(tags):
        for i, tag in enumerate(mine):
            found[row, i] = tag == wanted
    return found


def _by_distance(
    by_word: Float[Tensor, "row head word other"], every: Bool[Tensor, "row word other"]
) -> Float[Tensor, "row head word other"]:
    """For every pair the mean weight of all pairs of words of that text that stand as far apart."""
    words = by_word.shape[-1]
    places = torch.arange(words, device=by_word.device)
    offsets = (places[None, :] - places[:, None] + words - 1).flatten()
    shape = (*by_word.shape[:2], 2 * words - 1)
    index = offsets.expand(*by_word.shape[:2], -1)
    seen = (by_word * every[:, None]).flatten(2)
    sums = by_word.new_zeros(shape).scatter_add_(2, index, seen)
    counts = by_word.new_zeros(shape)
    counts.scatter_add_(2, index, exact(every[:, None].expand_as(by_word).flatten(2)))
    return (sums / counts.clamp_min(1)).gather(2, index).reshape(by_word.shape)
