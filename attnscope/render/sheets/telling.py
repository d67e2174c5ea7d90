"""Which queries of a long text to list, those that look somewhere in particular; and what tells why they do.

A special token, the first of a text and the query itself take weight from nearly every query and say little.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.stage import Panel
from attnscope.render.kit.words.command import asking, label
from attnscope.render.kit.words.weights import head_of
from attnscope.render.sheet.sheet import Next
from attnscope.results import HeadView, HeadWeights, Kind

_OF = {"weights": "weight", "scores": "score", "scaled": "scaled score"}


def most_telling(result: HeadWeights | HeadView, shown: Panel, most: int | None) -> list[int]:
    """Rows of the `most` queries with the largest number on a telling key, largest first.

    All in the order of the text where there are no more, or `most` is None.
    """
    rows = len(shown.row_tokens)
    if most is None or rows <= most:
        return list(range(rows))
    best = _telling(result, shown).max(axis=1)
    return [int(row) for row in np.argsort(-best, kind="stable")[:most]]


def telling_words(result: HeadWeights | HeadView, shown: Panel, listed: Sequence[int]) -> str:
    """How those that are listed were chosen; empty where all are."""
    rows = len(shown.row_tokens)
    if len(listed) == rows:
        return ""
    where = "a token" if _crosses(result) else "another token, not the first,"
    return f"{len(listed)} of {rows} queries: largest {_OF[shown.show]} on {where} not special"


def strongest_link(result: HeadWeights | HeadView, shown: Panel) -> tuple[int, int] | None:
    """The query and the key of the largest number on a telling key; None where no such pair is seen.

    Of sentences and passages it is the weight that lies farthest above even attention.
    """
    values = _telling(result, shown)
    if isinstance(result, HeadView) and result.by.is_long and shown.show == "weights":
        # the longer a sentence, the more it gets of any head
        special = np.array([[token.special] for token in shown.row_tokens.items])
        values = np.where(special & ~special.all(), -np.inf, values - result.even)
    if not np.isfinite(values).any():
        return None
    query, key = (int(i) for i in np.unravel_index(values.argmax(), values.shape))
    return query, key


def _telling(result: HeadWeights | HeadView, shown: Panel) -> Float[np.ndarray, "row column"]:
    """The numbers on telling keys, minus infinity on all others."""
    keys = shown.column_tokens
    assert keys is not None, "vectors have no keys"
    left_out = ~shown.visible | np.array([token.special for token in keys.items])
    if not _crosses(result):
        rows, columns = (np.array(side.positions) for side in (shown.row_tokens, keys))
        left_out |= (columns == 0) | (rows[:, None] == columns)
    return np.where(left_out, -np.inf, shown.values)


def _crosses(result: HeadWeights | HeadView) -> bool:
    return head_of(result).kind is Kind.CROSS


def next_question(result: HeadWeights | HeadView, query: int, key: int, options: str = "") -> Next:
    """What tells a head that looks by words from one that looks by positions: texts in other orders.

    A text that has none, as one of a single word, is asked for all heads.
    """
    own, asked = head_of(result), label(result.query_tokens, query)
    kept = result.query_groups[query] if isinstance(result, HeadView) else (query,)
    items = enumerate(own.query_tokens.items)
    if len({each.id for place, each in items if not each.special and place not in kept}) < 2:
        return Next("what do all heads look at from there?", asking(own, "heads", "--query", asked))
    sought = asking(own, "find", "--from", asked, "--to", label(result.key_tokens, key))
    return Next("is it the words, or only their positions?", f"{sought}{options}")
