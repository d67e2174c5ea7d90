"""Links that no place, distance, key or evenness explains: in one text, and in many texts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from jaxtyping import Float, Int

from attnscope.analysis.prompts import Figures, Seen
from attnscope.results.base.evidence import LEAST, Explained, Link, Weights, telling_pairs
from attnscope.results.claims.prompts import Figure
from attnscope.results.claims.ranking import LEVEL
from attnscope.tokens import Tokens
from attnscope.verbs.find.links_result import Links


@dataclass(frozen=True, eq=False)
class Telling:
    """Links of the first text, most evidence first, with `layer` and `head` as places among those read.

    `best` is the most evidence that any link has in each of the other texts, 0 where none has any.
    `explained` is the most that may explain each weight of the first text, NaN for what is no pair of words.
    """

    links: tuple[Link, ...]
    best: Float[np.ndarray, " control"]
    explained: Weights


@dataclass(frozen=True, eq=False)
class Read:
    """The weights of all heads over one text, and its tokens on either side."""

    weights: Weights
    queries: Tokens
    keys: Tokens


def telling_links(texts: Iterable[Read], *, crosses: bool, causal: bool) -> Telling:
    """The links of the first text that have at least `LEAST` evidence, and the best of every other one."""
    others = iter(texts)
    text = next(others)
    shape, count = text.weights.shape, 0
    most, second, left = np.full(shape, -1.0), np.zeros(shape), np.zeros(shape)
    whose = np.zeros(shape, dtype=np.int32)
    for count, read in enumerate(chain([text], others)):
        pairs = telling_pairs(read.queries, read.keys, crosses=crosses, causal=causal)
        for i, layer in enumerate(read.weights):
            explained = Explained.of(np.nan_to_num(layer), crosses=crosses)
            weights, more = explained.weights, explained.weights > most[i]
            np.maximum(second[i], np.minimum(most[i], weights), out=second[i])
            np.maximum(most[i], weights, out=most[i])
            np.copyto(left[i], np.where(pairs & explained.allowed, explained.most, np.inf), where=more)
            whose[i][more] = count
    evidence = most - np.maximum(second, left)
    best = np.zeros(count + 1)
    np.maximum.at(best, whose.ravel(), np.maximum(evidence, 0.0).ravel())
    links, told = list[Link](), telling_pairs(text.queries, text.keys, crosses=crosses, causal=causal)
    others_most = np.where(whose == 0, second, most)
    for i, layer in enumerate(text.weights):
        explained = Explained.of(np.nan_to_num(layer), crosses=crosses)
        others_most[i] = np.where(told & explained.allowed, np.fmax(others_most[i], explained.most), np.nan)
        mine = np.argwhere((whose[i] == 0) & (evidence[i] >= LEAST)).tolist()
        links += [
            explained.link(i, (j, query, key), float(second[i, j, query, key])) for j, query, key in mine
        ]
    return Telling(tuple(sorted(links, key=lambda link: -link.evidence)), best[1:], others_most)


def in_order(tokens: Tokens, sources: Int[np.ndarray, " token"]) -> Tokens:
    """The tokens of a control: at each place the one that `sources` names."""
    return replace(tokens, items=tuple(tokens.items[int(source)] for source in sources))


Place = tuple[int, int]
Pair = tuple[str, str]
_MOST = 200  # figures that are told


@dataclass(frozen=True, eq=False)
class InPrompt:
    """The links of one text, with the weight of every pair of its words in every head.

    `explained` is the most that may explain each: what any control text has at the two places, other queries
    at that distance or to that key, even attention; NaN for what is no pair of two words.
    """

    links: Links
    weights: Weights
    explained: Weights

    def together(self, every: Sequence["InPrompt"]) -> tuple[list[Figures], int, str]:
        """The links of all texts, prompt by prompt, among how many they were chosen, and that in words."""
        found, pairs = figures_of_links(every)
        among = pairs * self.weights.shape[0] * self.weights.shape[1]
        return found, among, _looked_at(pairs, among)


def figures_of_links(every: Sequence[InPrompt]) -> tuple[list[Figures], int]:
    """The links that lie above what explains them in the mean, prompt by prompt, and of how many pairs.

    Pairs are those that stand in at least half of the texts, and in two of them.
    """
    pairs = [_pairs(each) for each in every]
    times = Counter(pair for each in pairs for pair in each)
    shared = [pair for pair, count in times.items() if count >= max(2, len(every) / 2)]
    found: list[Figures] = [{} for _ in every]
    told = [
        (float(np.mean([seen.value - seen.control for _, seen in seen_in])), figure, seen_in)
        for pair in shared
        for figure, seen_in in _of_pair(pair, every, pairs)
    ]
    told = sorted((each for each in told if each[0] >= LEAST), key=lambda each: -each[0])
    for _, figure, seen_in in told[:_MOST]:
        for number, seen in seen_in:
            found[number][figure] = seen
    return found, len(shared)


def _of_pair(
    pair: Pair, every: Sequence[InPrompt], pairs: Sequence[dict[Pair, list[Place]]]
) -> Iterator[tuple[Figure, list[tuple[int, Seen]]]]:
    seen = {number: _seen(every[number], its[pair]) for number, its in enumerate(pairs) if pair in its}
    layers, heads = every[0].links.layers, every[0].links.heads
    for i, layer in enumerate(layers):
        for j, head in enumerate(heads):
            name = f"L{layer} H{head} from {pair[0]} at {pair[1]}"
            yield (
                Figure(name, "weight", layer, head),
                [(number, its(i, j)) for number, its in seen.items()],
            )


def _seen(one: InPrompt, places: Sequence[Place]) -> Callable[[int, int], Seen]:
    queries, keys = (list(side) for side in zip(*places, strict=True))
    weights, explained = (each[:, :, queries, keys] for each in (one.weights, one.explained))
    best = (weights - explained).argmax(axis=2)
    out = {
        (link.layer, link.head, link.query, link.key)
        for link in one.links.links
        if one.links.chance(link) <= LEVEL
    }

    def at(i: int, j: int) -> Seen:
        k = int(best[i, j])
        place = (one.links.layers[i], one.links.heads[j], *places[k])
        return Seen(float(weights[i, j, k]), float(explained[i, j, k]), stands=place in out)

    return at


def _pairs(one: InPrompt) -> dict[Pair, list[Place]]:
    queries, keys = called(one.links.query_tokens), called(one.links.key_tokens)
    found = dict[Pair, list[Place]]()
    for query, key in np.argwhere(~np.isnan(one.explained[0, 0])).tolist():
        if queries[query] != keys[key]:
            found.setdefault((queries[query], keys[key]), []).append((query, key))
    return found


def called(tokens: Tokens) -> list[str]:
    """Every token by its field or by its word, and which of them it is where there are several."""
    names = [token.text.strip() or token.name for token in tokens.items]
    times, nth = Counter(names), Counter[str]()
    told = []
    for name in names:
        nth[name] += 1
        told.append(f"“{name}”" + (f"#{nth[name]}" if times[name] > 1 else ""))
    several, of_name = Counter(each.name for each in tokens.fields), Counter[str]()
    for field in tokens.fields:
        of_name[field.name] += 1
        which = f"#{of_name[field.name]}" if several[field.name] > 1 else ""
        for place in field.positions:
            told[place] = f"field:{field.name}{which}"
    return told


def _looked_at(pairs: int, among: int) -> str:
    if not pairs:
        return "no two words or fields stand in most of these prompts, as in a template they do (--fill)"
    of = f"{pairs:,} pairs of words or fields" if pairs > 1 else "one pair of words or fields"
    return f"{among:,} links were held against one another: {of} in every head"
