"""How many tokens a head looks at, and what is much."""

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.numbers import cell
from attnscope.render.kit.stage import Panel
from attnscope.render.kit.words.command import asking, label
from attnscope.render.kit.words.weights import head_of
from attnscope.render.sheet.sheet import Next
from attnscope.render.words import Said
from attnscope.results import HeadView, HeadWeights
from attnscope.results.base.strongest import AtDistance

_SHARP, _WHOLE = 1.95, 2.95  # tokens: fewer are almost one, and more need no decimals
MOSTLY = 0.8  # of the rows: what looks at one distance in so many does so by position
SINK = 0.5  # of the weight: what leaves more on special tokens tells little of the text

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


def mostly(distance: AtDistance) -> bool:
    """Whether so many rows look at one distance that position alone can do it."""
    return distance.of > 1 and distance.rows >= MOSTLY * distance.of


def most_telling(result: HeadWeights | HeadView, shown: Panel, most: int | None) -> list[int]:
    """Rows of the `most` queries with the largest number that is not passed over, largest first.

    All in the order of the text where there are no more, or `most` is None.
    """
    rows = len(shown.row_tokens)
    if most is None or rows <= most:
        return list(range(rows))
    best = np.where(result.rest.pairs & shown.visible, _above(result, shown), -np.inf).max(axis=1)
    return [int(row) for row in np.argsort(-best, kind="stable")[:most]]


def _above(result: HeadWeights | HeadView, shown: Panel) -> Float[np.ndarray, "row column"]:
    if result.expected is None or shown.show != "weights":
        return shown.values
    return np.asarray(shown.values - result.expected)


def next_question(result: HeadWeights | HeadView, say: Said, query: int, key: int, options: str = "") -> Next:
    """What tells a head that looks by words from one that looks by positions: texts in other orders.

    A text that has none, as one of a single word, is asked for all heads.
    """
    own, asked = head_of(result), label(result.query_tokens, query)
    kept = result.query_groups[query] if isinstance(result, HeadView) else (query,)
    items = enumerate(own.query_tokens.items)
    if len({each.id for place, each in items if not each.special and place not in kept}) < 2:
        return Next(say("all_heads"), asking(own, "heads", "--query", asked))
    sought = asking(own, "find", "--from", asked, "--to", label(result.key_tokens, key))
    return Next(say("by_words"), f"{sought}{options}")
