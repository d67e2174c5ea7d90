"""Which queries of a long text to list, those that look somewhere in particular; and what tells why they do.

What is passed over, as special tokens are, takes weight from nearly every query and says little.
"""

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.stage import Panel
from attnscope.render.kit.words.command import asking, label
from attnscope.render.kit.words.weights import head_of
from attnscope.render.sheet.sheet import Next
from attnscope.render.words import Said
from attnscope.results import HeadView, HeadWeights


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
