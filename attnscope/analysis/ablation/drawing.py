"""Heads drawn by lot: what any other head of the same layer would do, so that one that does more is seen."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, islice

import numpy as np

Head = tuple[int, int]  # layer and head
MOST_DRAWN = 12  # other heads of a layer, and other groups
_MOST_SETS = 10_000  # of layers, to draw from


def others_drawn(heads: Sequence[Head], counts: Mapping[int, int], seed: int) -> list[Head]:
    """For each layer of `heads` some of its other heads; none of a layer whose heads are all there.

    `counts` says how many heads a layer has.
    """
    random, drawn = np.random.default_rng(seed), list[Head]()
    for layer in sorted({layer for layer, _ in heads}):
        left = [head for head in range(counts[layer]) if (layer, head) not in set(heads)]
        several = random.permutation(left)[:MOST_DRAWN]
        drawn += sorted((layer, int(head)) for head in several)
    return drawn


def layers_drawn(group: Sequence[Head], counts: Mapping[int, int], seed: int) -> list[tuple[Head, ...]]:
    """Of a group of whole layers other whole layers, as many at once; none where it is no such group."""
    mine = Counter(layer for layer, _ in group)
    others = [layer for layer in sorted(counts) if layer not in mine]
    if any(count < counts[layer] for layer, count in mine.items()) or len(others) < len(mine):
        return []
    sets = list(islice(combinations(others, len(mine)), _MOST_SETS))
    order = np.random.default_rng(seed).permutation(len(sets))[:MOST_DRAWN]
    return [
        tuple((layer, head) for layer in sets[each] for head in range(counts[layer]))
        for each in sorted(order)
    ]


def groups_drawn(group: Sequence[Head], counts: Mapping[int, int], seed: int) -> list[tuple[Head, ...]]:
    """Other groups with as many heads in the same layers, each different; none where there are none.

    They are made of heads that are not in `group` as far as there are enough of these in every layer.
    """
    random = np.random.default_rng(seed)
    needed = Counter(layer for layer, _ in group)
    pools: dict[int, list[int]] = defaultdict(list)
    for layer, count in needed.items():
        left = [head for head in range(counts[layer]) if (layer, head) not in set(group)]
        pools[layer] = left if len(left) >= count else list(range(counts[layer]))
    found: dict[tuple[Head, ...], None] = {}
    for _ in range(20 * MOST_DRAWN):
        one = tuple(
            (layer, int(head))
            for layer, count in sorted(needed.items())
            for head in sorted(random.permutation(pools[layer])[:count])
        )
        if set(one) != set(group):
            found[one] = None
        if len(found) == MOST_DRAWN:
            break
    return list(found)
