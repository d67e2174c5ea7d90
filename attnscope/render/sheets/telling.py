"""Which queries of a long text to list, those that look somewhere in particular; and what tells why they do.

What is passed over, as special tokens are, takes weight from nearly every query and says little.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import weight
from attnscope.render.kit.stage import Panel
from attnscope.render.kit.words.command import asking, label
from attnscope.render.kit.words.weights import head_of
from attnscope.render.sheet.said import in_sentence
from attnscope.render.sheet.sheet import Next
from attnscope.results import HeadView, HeadWeights, Kind
from attnscope.results.base.strongest import MOST, Rest, rest_of
from attnscope.tokens import Tokens

_OF = {"weights": "weight", "scores": "score", "scaled": "scaled score"}


def most_telling(result: HeadWeights | HeadView, shown: Panel, most: int | None) -> list[int]:
    """Rows of the `most` queries with the largest number that is not passed over, largest first.

    All in the order of the text where there are no more, or `most` is None.
    """
    rows = len(shown.row_tokens)
    if most is None or rows <= most:
        return list(range(rows))
    best = _telling(result, shown, left_of(result)).max(axis=1)
    return [int(row) for row in np.argsort(-best, kind="stable")[:most]]


def telling_words(result: HeadWeights | HeadView, shown: Panel, listed: Sequence[int]) -> str:
    """How those that are listed were chosen; empty where all are."""
    rows = len(shown.row_tokens)
    if len(listed) == rows:
        return ""
    rest = left_of(result)
    where = "a token" if head_of(result).kind is Kind.CROSS else "another token"
    if rest.sink >= 0:
        where += f", not {in_sentence(result.key_tokens, rest.sink)},"
    return f"{len(listed)} of {rows} queries: largest {_OF[shown.show]} on {where} not special"


def left_of(result: HeadWeights | HeadView) -> Rest:
    """What is left of a head to have its strongest link."""
    crosses = head_of(result).kind is Kind.CROSS
    return rest_of(result.weights, result.query_tokens, result.key_tokens, crosses=crosses)


def strongest_link(result: HeadWeights | HeadView, shown: Panel) -> tuple[int, int] | None:
    """The query and the key of the largest number that is not passed over; None where no such pair is seen.

    Of sentences and passages it is the weight that lies farthest above even attention.
    """
    values = _telling(result, shown, left_of(result))
    if not np.isfinite(values).any():
        return None
    query, key = (int(i) for i in np.unravel_index(values.argmax(), values.shape))
    return query, key


def _telling(result: HeadWeights | HeadView, shown: Panel, rest: Rest) -> Float[np.ndarray, "row column"]:
    values = shown.values
    if isinstance(result, HeadView) and result.by.is_long and shown.show == "weights":
        values = values - result.even  # the longer a sentence, the more it gets of any head
    return np.where(rest.pairs & shown.visible, values, -np.inf)


def aside_words(rest: Rest, keys: Tokens, named: float) -> str:
    """`, apart from “When” (.62 of its weight) and from each token itself (.09)`; empty without any such.

    That is all that is passed over and has a larger weight than the `named` one, or more than half of all.
    """
    if rest.whole:
        return ""
    sink = "" if rest.sink < 0 else in_sentence(keys, rest.sink)
    passed = list[str]()
    for name, pairs in zip((_special(rest, keys), sink, "each token itself"), rest.parts, strict=True):
        share = rest.share(pairs)
        if share > MOST or np.nan_to_num(rest.weights * pairs).max(initial=0.0) > named:
            passed.append(f"from {name} ({weight(share)}{'' if passed else ' of its weight'})")
    return (
        f", apart {' and '.join([', '.join(passed[:-1]), passed[-1]][not passed[:-1] :])}" if passed else ""
    )


def _special(rest: Rest, keys: Tokens) -> str:
    shares = dict[str, float]()
    for token, share in zip(keys.items, np.nan_to_num(rest.weights).sum(axis=0).tolist(), strict=True):
        if token.special:
            shares[token.name] = shares.get(token.name, 0.0) + share
    most = settled(max(shares, key=lambda name: shares[name], default=""))
    return most if len(shares) < 2 else f"{most} and other special tokens"


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
