"""Measures every head and text of a batch at once, in few passes over a layer's weights.

Each measure is written once for one head (`attnscope.measures`); here is its twin for all heads and texts of
a batch, on the model's device and in the type of its weights, float32 at the least. What is divided and added
up over texts is in float64. Given the weights every value is within 1e-6 of its measure's range (of `keys`
for a distance, of ln `keys` for an entropy) of what the measure itself says in float64, and the same but for
rounding where the model's weights are float64 (tests/analysis/corpus).
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.rows import word_weights
from attnscope.capture.weights import Passed
from attnscope.measures import MEASURES, Need
from attnscope.measures import rows as patterns
from attnscope.reference import exact
from attnscope.verbs.corpus.passes import Facts, Layer, Mean, View, added_up, by_norm, make

_SORTS = (Need.SPECIAL, Need.PUNCTUATION, Need.ALIKE)
Values = Float[Tensor, "row measure head"]


def measured(
    passed: Passed,
    facts: Facts,
    names: Sequence[str],
    norms: Float[Tensor, "row head key"] | None,
) -> Values:
    """Every measure of every head and text, in float64; NaN where it has no meaning.

    `norms` are ||f(x)|| of every key; None where the output projection is not known. Raises
    `CertificateError` where weights of a text are not numbers.
    """
    facts = facts.at(passed.weights.device)
    layer = Layer.of(passed, facts)
    views = {"": View(layer, layer.answers.to(layer.weights.dtype))}
    if norms is not None:
        views["-norm"] = by_norm(layer, norms.to(layer.weights))
    make(layer, list(views.values()), {name.removesuffix("-norm") for name in names})
    none = layer.weights.new_zeros(())
    means: list[Mean] = []
    for name in names:
        plain = name.removesuffix("-norm")
        view = views.get("-norm" if plain != name or plain == "moved" else "")
        means.append((none, none) if view is None else _MEANS[plain](view))
    sums, counts = (
        exact(torch.stack([each[i].expand(layer.weights.shape[:2]) for each in means], dim=1)) for i in (0, 1)
    )
    return _with_meaning((sums / counts.masked_fill(counts == 0, math.nan)).cpu(), names, facts)


def _classes(view: View) -> Mean:
    """Index of each head's attention pattern class; batched twin of `measures.rows`."""
    layer, rows = view.layer, view.count
    even = layer.answers / layer.visible.clamp_min(1)
    of_even = View(
        Layer(layer.allowed.to(even.dtype), layer.facts, layer.allowed, layer.visible, layer.answers), even
    )
    columns = added_up(even, of_even.layer.weights).amax(-1)
    vertical = _over(view.columns.amax(-1) / rows, columns / rows)
    diagonal = torch.zeros_like(vertical)
    for step in patterns.OFFSETS:
        pairs = layer.behind(step).sum(-1)
        lies = _over(view.at(step) / pairs, of_even.at(step) / pairs).nan_to_num(0.0)
        diagonal = torch.where(pairs > 1, diagonal.maximum(lies), diagonal)
    number = {name: float(i) for i, name in enumerate(patterns.CLASSES)}
    found = torch.full_like(vertical, number["mixed"])
    for name, each in (("diag", diagonal), ("vert", vertical)):  # the first named wins
        found = found.masked_fill(each >= patterns.ALONE, number[name])
    both = torch.minimum(vertical, diagonal) >= patterns.BESIDE
    found = found.masked_fill(both, number["v+d"])
    return found, (rows > 0).to(found.dtype).expand_as(found)


def _over(real: Tensor, even: Tensor) -> Tensor:
    return torch.where(even < patterns.ALL, (real - even) / (1 - even), 0.0)


_MEANS: dict[str, Callable[[View], Mean]] = {
    "entropy": lambda view: view.over(view.entropies),
    "evenness": View.even,
    "confidence": lambda view: view.over(view.largest),
    "fixed": lambda view: (view.offsets[1], view.count),
    "offset": lambda view: (view.offsets[0], (view.count > 0).to(view.taken.dtype)),
    "distance": lambda view: (view.distance, view.count),
    "same": lambda view: (view.same, view.that_may(view.layer.may_repeat)),
    "self": lambda view: view.at_step(0),
    "previous": lambda view: view.at_step(-1),
    "next": lambda view: view.at_step(1),
    "first": lambda view: (view.columns[..., 0], view.that_may(view.layer.allowed[..., 0])),
    "sink": View.sink,
    "special-tokens": lambda view: view.on(view.layer.facts.special),
    "punctuation": lambda view: view.on(view.layer.facts.punctuation),
    "moved": lambda view: view.all_moved(),
    "pattern": _classes,
}


def leaking(passed: Passed, facts: Facts) -> float:
    """The largest weight that a text's query gives to padding; 0 where padding is harmless."""
    own, shortest = facts.at(passed.weights.device).own, int(facts.lengths.min())
    if shortest == own.shape[1]:
        return 0.0
    out = (own[:, :, None] & ~own[:, None, shortest:])[:, None]
    return float(passed.weights.detach()[..., shortest:].masked_fill(~out, 0.0).abs().max())


def _with_meaning(values: Values, names: Sequence[str], facts: Facts) -> Values:
    """Sets NaN for texts that lack the kind of key a measure is about."""
    missing = facts.once("missing", lambda: {name: each.cpu() for name, each in facts.missing.items()})
    for i, name in enumerate(names):
        for need in MEASURES[name].needs.intersection(_SORTS):
            values[missing[need.value], i] = math.nan
    return values


def links(
    weights: Float[Tensor, "row head query key"],
    pieces: Bool[Tensor, "row word token"],
    tags: Sequence[Sequence[str]],
    source: str,
    target: str,
) -> Float[Tensor, "row 3 head"]:
    """Link, distance and gain of every head in every text; NaN where no such pair of words occurs."""
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
    """For every pair of words the mean weight over all pairs at the same offset in that text."""
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
