"""Measures of one head: pure functions of its weights and other tensors, one number per head.

A measure sees a tile of true weights and returns what it contributes, as a rule a number per row.
Contributions of the tiles of a row are combined (added, or the largest taken), then finished over the rows:
so the same function serves a 10-token head in one tile and a long one in many. A new measure is one
function, one entry in `MEASURES` and one test; what screens and files say of it stands in that entry. What it
needs beside weights it says (`Need`), and has no meaning where that is not known.

Rows sum to 1 unless the head has a sink, which takes a part of every row and is no key. Nothing is scaled
up for it: `entropy` adds up the keys alone, a mass is a share of all the weight, the sink's included, and
`distance` counts what went to the sink as no way at all. By norm a row always sums to 1.

Positional measures compare where query and key stand, so both must be the same tokens. Where words are
looked at, or special tokens left out, positions count what is left. A mean weight on some keys is one over
the queries that may look at such a key: the first query has no previous token, and says nothing of that.
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
