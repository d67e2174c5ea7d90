"""Measures of one head: pure functions of its weights and other tensors, one number per head.

A measure gets a tile of weights and returns its contribution, usually a number per row. Contributions of the
tiles of a row are combined (added, or the largest taken), then finished over the rows: so one function
serves a 10-token head in one tile and a long one in many. A new measure is one function, one entry in
`MEASURES` with its texts, and one test. It declares the fields it needs beside weights (`Need`), and has no
meaning where they are unknown.

Rows sum to 1 unless the head has a sink, which takes a part of every row and is no key. Nothing is rescaled
for it: `entropy` sums over the keys alone, a mass is a share of all weight including the sink's, and
`distance` counts the sink's weight as distance 0. By norm a row always sums to 1.

Positional measures compare positions of query and key, so both must be the same tokens. By words, or without
special tokens, positions count the remaining ones. A mean weight on some keys is over queries that may
attend to such a key: the first query has no previous token, and does not count.
"""

from attnscope.measures.measure import (
    Measure,
    Need,
    Tile,
    by_norm,
    larger,
    mass_on,
    mean,
    mean_on_keys,
    whole,
)
from attnscope.measures.registry import MEASURES, parse_measures

__all__ = [
    "MEASURES",
    "Measure",
    "Need",
    "Tile",
    "by_norm",
    "larger",
    "mass_on",
    "mean",
    "mean_on_keys",
    "parse_measures",
    "whole",
]
