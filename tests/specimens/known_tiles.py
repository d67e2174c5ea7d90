"""Heads of which everything is known that any measure needs, whole or in tiles, and slow loops for each.

5 queries by 7 keys; what is known is a plain list, so that the loops share nothing with the measures.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from attnscope.measures import MEASURES, Tile

SPECIAL = [True, False, False, False, False, False, True]
PUNCTUATION = [False, False, False, True, False, False, False]
QUERY_IDS, KEY_IDS = [10, 11, 12, 11, 14], [10, 11, 12, 11, 14, 15, 12]
QUERY_TEXTS, KEY_TEXTS = [0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1, 1]
NORMS = [3.0, 0.5, 1.0, 2.0, 0.125, 4.0, 1.5]
PERIOD = 2
VALUES = np.random.default_rng(5)
DISTANCES = VALUES.uniform(0, 2, (5, 7)).round(1).tolist()  # with ties
SCALED = VALUES.normal(size=(5, 7)).round(1).tolist()
CIRCUIT = VALUES.normal(size=(3, 3)).tolist()
OUTPUT, SLOPE, DIRECT = (VALUES.normal(size=(5, 3)).tolist() for _ in range(3))
GRADIENT = VALUES.normal(size=(5, 7)).tolist()
ALLOWED = [[not (i == 1 and j in (2, 3)) for j in range(7)] for i in range(5)]  # one query sees two keys less

Rows = list[list[float]]


def weights() -> Tensor:
    """Rows of true weights, 0 where a query may not look."""
    logits = 2 * torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return torch.softmax(logits.masked_fill(~torch.tensor(ALLOWED), -torch.inf), -1)


def tiles(dense: Tensor, cuts: Sequence[int] = (0, 7), queries: Sequence[int] | None = None) -> list[Tile]:
    """The head cut between keys, with everything that is known of it; `queries` are some of its rows."""
    rows = list(range(5) if queries is None else queries)
    norms = torch.tensor(NORMS, dtype=torch.float64)
    pairs = {
        "allowed": torch.tensor(ALLOWED),
        "alike": torch.tensor([[q == k for k in KEY_IDS] for q in QUERY_IDS]),
        "together": torch.tensor([[q == k for k in KEY_TEXTS] for q in QUERY_TEXTS]),
        "distances": torch.tensor(DISTANCES, dtype=torch.float64),
        "scaled": torch.tensor(SCALED, dtype=torch.float64),
        "gradient": torch.tensor(GRADIENT, dtype=torch.float64),
    }
    of_queries = {
        name: torch.tensor(each, dtype=torch.float64)[rows]
        for name, each in (("output", OUTPUT), ("slope", SLOPE), ("direct", DIRECT))
    }
    columns = {"special": torch.tensor(SPECIAL), "punctuation": torch.tensor(PUNCTUATION), "norms": norms}
    return [
        Tile(
            dense[rows, start:end],
            torch.tensor(rows),
            torch.arange(start, end),
            visible=pairs["allowed"][rows].sum(-1),
            moved=dense[rows] @ norms.to(dense.dtype),
            period=PERIOD,
            circuit=torch.tensor(CIRCUIT, dtype=torch.float64),
            **{name: each[rows, start:end] for name, each in pairs.items()},
            **of_queries,
            **{name: each[start:end] for name, each in columns.items()},
        )
        for start, end in itertools.pairwise(cuts)
    ]


def slowly(name: str, dense: Tensor, queries: Sequence[int] | None = None) -> float:
    """The measure by loops over plain numbers, of the rows `queries` of a 5 by 7 head."""
    chosen = list(range(5) if queries is None else queries)
    rows = {query: dense[query].tolist() for query in chosen}
    if name.endswith("-norm"):
        name = name.removesuffix("-norm")
        rows = {query: _by_norm(row) for query, row in rows.items()}
    if name in OF_HEADS:
        return OF_HEADS[name](rows)
    found = [OF_ROWS[name](row, query) for query, row in rows.items()]
    counted = [each for each in found if not math.isnan(each)]
    return math.fsum(counted) / len(counted) if counted else math.nan


def _by_norm(row: list[float]) -> list[float]:
    total = math.fsum(p * n for p, n in zip(row, NORMS, strict=True))
    return [p * n / total for p, n in zip(row, NORMS, strict=True)]


def _at(row: list[float], key: int) -> float:
    return row[key] if 0 <= key < len(row) else 0.0


def _on(meant: Callable[[int, int], bool]) -> Callable[[list[float], int], float]:
    """On the keys of a query that are meant; of one that may look at none of them there is no number."""

    def on(row: list[float], query: int) -> float:
        keys = [key for key in range(7) if meant(query, key)]
        return sum(row[key] for key in keys) if any(ALLOWED[query][key] for key in keys) else math.nan

    return on


def _entropy(row: list[float]) -> float:
    return -sum(p * math.log(p) for p in row if p > 0)


def _of_second_half(steps: int) -> Callable[[list[float], int], float]:
    return lambda row, query: _at(row, query - steps) if query >= PERIOD else math.nan


OF_ROWS: dict[str, Callable[[list[float], int], float]] = {
    "entropy": lambda row, query: _entropy(row),
    "confidence": lambda row, query: sorted(row)[-1],
    "distance": lambda row, query: sum(
        p * (query - k if query > k else k - query) for k, p in enumerate(row)
    ),
    "self": _on(lambda query, key: key == query),
    "previous": _on(lambda query, key: key == query - 1),
    "next": _on(lambda query, key: key == query + 1),
    "first": _on(lambda query, key: key == 0),
    "sink": _on(lambda query, key: key == 0 < query),
    "special-tokens": _on(lambda query, key: SPECIAL[key]),
    "punctuation": _on(lambda query, key: PUNCTUATION[key]),
    "same": _on(lambda query, key: key != query and KEY_IDS[key] == QUERY_IDS[query]),
    "evenness": lambda row, query: _entropy(row) / math.log(sum(ALLOWED[query])),
    "moved": lambda row, query: sum(p * n for p, n in zip(row, NORMS, strict=True)),
    "induction": _of_second_half(PERIOD - 1),
    "duplicate": _of_second_half(PERIOD),
    "previous-random": _of_second_half(1),
}


def _frequent(rows: dict[int, list[float]]) -> tuple[float, float]:
    offsets = [row.index(max(row)) - query for query, row in rows.items() if not any(map(math.isnan, row))]
    if not offsets:
        return math.nan, math.nan
    most = max(offsets.count(each) for each in offsets)
    nearest = sorted((abs(each), each) for each in offsets if offsets.count(each) == most)
    return most / len(offsets), nearest[0][1]


def _near(rows: dict[int, list[float]]) -> float:
    """Pearson's correlation of ranks that are counted one by one."""
    pairs = [(DISTANCES[i][j], SCALED[i][j]) for i in rows for j in range(7) if ALLOWED[i][j]]

    def ranks(values: list[float]) -> list[float]:
        return [sum(v < x for v in values) + sum(v == x for v in values) / 2 for x in values]

    return float(np.corrcoef(*(ranks([pair[side] for pair in pairs]) for side in (0, 1)))[0, 1])


def _pattern(rows: dict[int, list[float]]) -> float:
    rows = {query: row for query, row in rows.items() if not any(map(math.isnan, row))}
    if not rows:
        return math.nan
    even = {i: [ALLOWED[i][j] / sum(ALLOWED[i]) for j in range(7)] for i in rows}

    def over(feature: Callable[[dict[int, list[float]]], float]) -> float:
        found, chance = feature(rows), feature(even)
        return (found - chance) / (1 - chance)

    def column(of: dict[int, list[float]]) -> float:
        return max(sum(row[j] for row in of.values()) / len(of) for j in range(7))

    def shifted(by: int) -> Callable[[dict[int, list[float]]], float]:
        def feature(of: dict[int, list[float]]) -> float:
            there = [row[i + by] for i, row in of.items() if 0 <= i + by < 7]
            return sum(there) / len(there)

        return feature

    def block(of: dict[int, list[float]]) -> float:
        own = [
            sum(p for p, text in zip(row, KEY_TEXTS, strict=True) if text == QUERY_TEXTS[i])
            for i, row in of.items()
        ]
        return sum(own) / len(own)

    steps = [by for by in range(-2, 3) if sum(0 <= i + by < 7 for i in rows) > 1]
    vertical, diagonal = over(column), max((over(shifted(by)) for by in steps), default=0.0)
    if vertical >= 0.25 and diagonal >= 0.25:
        return 3
    return 4 if vertical >= 0.5 else 2 if diagonal >= 0.5 else 1 if over(block) >= 0.5 else 0


def _by_slope(slopes: Rows) -> Callable[[dict[int, list[float]]], float]:
    """Output times slope, number by number, over all queries."""

    def over(rows: dict[int, list[float]]) -> float:
        return math.fsum(o * g for i in rows for o, g in zip(OUTPUT[i], slopes[i], strict=True))

    return over


def _by_gradient(least: float) -> Callable[[dict[int, list[float]]], float]:
    """Weight times gradient, pair by pair, of those that are at least so much."""

    def over(rows: dict[int, list[float]]) -> float:
        parts = [p * g for i, row in rows.items() for p, g in zip(row, GRADIENT[i], strict=True)]
        return math.fsum(each for each in parts if not each < least)

    return over


OF_HEADS: dict[str, Callable[[dict[int, list[float]]], float]] = {
    "fixed": lambda rows: _frequent(rows)[0],
    "offset": lambda rows: _frequent(rows)[1],
    "near": _near,
    "pattern": _pattern,
    "importance": lambda rows: abs(_by_slope(SLOPE)(rows)),
    "logit": _by_slope(DIRECT),
    "attention-gradient": _by_gradient(-math.inf),
    "attention-gradient-positive": _by_gradient(0),
    "copying": lambda rows: float(
        np.linalg.eigvals(CIRCUIT).real.sum() / np.abs(np.linalg.eigvals(CIRCUIT)).sum()
    ),
}
ORACLES = tuple(name for name in MEASURES if name.removesuffix("-norm") in {*OF_ROWS, *OF_HEADS})
# what is the same whatever the weights are
OF_NO_WEIGHTS = {"near", "copying", "importance", "logit"}
