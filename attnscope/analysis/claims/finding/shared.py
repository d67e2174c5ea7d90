"""Links that many texts have in common: the same two words, or the same two fields, in the same head.

A token is called by its field, or by its word, the second one `door#2`. Of a field of several tokens the
pair counts that has most evidence.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attnscope.analysis.claims.prompts import Figures, Seen
from attnscope.results.base.evidence import LEAST, Weights
from attnscope.results.claims.links import Links
from attnscope.results.claims.prompts import Figure
from attnscope.results.claims.ranking import LEVEL
from attnscope.tokens import Tokens

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
