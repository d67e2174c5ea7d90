"""What heads look at, in words: how many tokens, at which distance, on which special ones; no control yet."""

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.numbers import cell, counted
from attnscope.render.sheet.said import in_sentence
from attnscope.results import Kind
from attnscope.results.base.distances import AtDistance
from attnscope.tokens import Tokens

NO_CONTROL = "One text, no control yet."
_SHARP, _WHOLE = 1.95, 2.95  # tokens: fewer are almost one, and more need no decimals
MOSTLY = 0.8  # of the rows: what looks at one distance in so many does so by position
SINK = 0.5  # of the weight: what leaves more on special tokens tells little of the text
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

Weights = Float[np.ndarray, "query key"]


def tokens_looked_at(entropy: float) -> float:
    """How many tokens, weighed alike, have this entropy in nats."""
    return float(np.exp(entropy))


def mean_entropy(weights: Weights) -> float:
    """The mean over the rows that have a key, in nats (Clark et al. 2019)."""
    rows = weights[np.isfinite(weights).all(axis=1)]
    held = np.where(rows > 0, rows, 1.0)
    return float(-(held * np.log(held)).sum(axis=1).mean()) if len(rows) else float("nan")


def many(tokens: float) -> str:
    """`1.3`, `6`: so many tokens, with a decimal where they are few."""
    return f"{tokens:.0f}" if tokens >= _WHOLE else cell(tokens, 1)


def about(tokens: float, of: str, unit: str = "token") -> str:
    """`looks at about 6 of 11 tokens on average`."""
    if tokens < _SHARP:
        return f"looks at almost one {unit} at a time ({many(tokens)} of {of})"
    return f"looks at about {many(tokens)} of {of} on average"


def mostly(distance: AtDistance) -> bool:
    """Whether so many rows look at one distance that position alone can do it."""
    return distance.of > 1 and distance.rows >= MOSTLY * distance.of


def distance_words(distance: AtDistance) -> str:
    """`the one before`, `two after`, `itself`."""
    if not distance.offset:
        return "itself"
    apart, where = abs(distance.offset), "before" if distance.offset < 0 else "after"
    number = _NUMBERS[apart] if apart < len(_NUMBERS) else str(apart)
    return f"the one {where}" if apart == 1 else f"{number} {where}"


def link(queries: Tokens, keys: Tokens, query: int, key: int) -> str:
    """`[MASK] → “opened”`: positions only where a token stands several times."""
    return f"{in_sentence(queries, query)} → {in_sentence(keys, key)}"


def seen_of(kind: Kind, keys: int, masked: bool, unit: str = "token") -> str:
    """`11 tokens`, `those it may see`, `11 source tokens`: what a head may look at."""
    if kind is Kind.CROSS:
        return counted(keys, f"source {unit}")
    return "those it may see" if masked else counted(keys, unit)
