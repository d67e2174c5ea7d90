"""What the words of one head are filled with. The words: render/words/head.jinja."""

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import alike, descending, parameter, weight
from attnscope.render.kit.stage import OF_KEYS, VECTORS
from attnscope.render.kit.words.weights import head_of, spans, sums_words
from attnscope.render.sheet.said import in_sentence
from attnscope.render.sheets.looking import many, mean_entropy, mostly, tokens_looked_at
from attnscope.render.words import Said
from attnscope.results import HeadAttention, HeadView, HeadWeights, Special
from attnscope.results.base.distances import at_distance
from attnscope.results.base.distances import even as even_weight
from attnscope.results.base.strongest import MOST
from attnscope.vocabulary import Unit

Shown = HeadWeights | HeadView
MOST_KEYS = 25  # of one query that have a bar
_NAMED = 3  # keys of a sentence
_LITTLE = 0.05  # what is less need not be named
_MOST_TERMS = 5  # of an output


def said(result: Shown, focus: Focus = WHOLE) -> Said:
    """The words of `heads` about one head, or one query of it."""
    return Said("head", _facts(result, focus))


def answer(result: Shown, focus: Focus, say: Said) -> str:
    """What the head looks at, or the query that is asked about; nothing of a vector but the output."""
    if focus.query is None:
        return say(result.case)
    if focus.stage in VECTORS:
        return say("mixed") if focus.stage == "output" and result.answered[focus.query] else ""
    return say("row" if ranked(result, focus.query) else "row_without_keys")


def ranked(result: Shown, query: int) -> list[int]:
    """The keys that a query may look at, the largest weight first."""
    if not result.answered[query]:
        return []
    return [key for key in descending(result.weights[query]) if result.allowed[query, key]]


def listed(result: Shown, query: int, key: int | None) -> list[int]:
    """The strongest keys of a query, and `key` however weak."""
    order = ranked(result, query)
    return [*order[:MOST_KEYS], *(each for each in order[MOST_KEYS:] if each == key)]


def _facts(result: Shown, focus: Focus) -> dict[str, object]:
    head, link = head_of(result), result.strongest
    queries, keys = result.query_tokens, result.key_tokens
    view = result if isinstance(result, HeadView) else None
    full = head if isinstance(head, HeadAttention) else None
    by = Unit.TOKEN if view is None else view.by
    texts, crosses = bool(head.query_tokens.texts), result.crosses
    aside, special = _aside(result, link), _special(result)
    distance = None
    if texts and not crosses:
        distance = at_distance(result.weights, result.allowed, queries.positions)
        distance = distance if mostly(distance) else None
    return {
        "head": head.name,
        "joins": by.joins,
        "unit": by.value,
        "units": by.several,
        "special_how": Special.SHOW.value if view is None else view.special.value,
        "emptied": bool(view and view.emptied),
        "texts": texts,
        "cross": crosses,
        "decoder": crosses and texts,
        "masked": not crosses and not result.allowed[result.answered].all(),
        "queries": len(queries),
        "keys": len(keys),
        "scale": None if full is None else parameter(full.scale),
        "cap": None if full is None or full.softcap is None else parameter(full.softcap),
        "sums": sums_words(result) if not isinstance(result, HeadAttention) else None,
        # where it looks
        "asked": None if link is None else in_sentence(queries, link[0]),
        "looked": None if link is None else in_sentence(keys, link[1]),
        "own": None if link is None else float(result.weights[link]),
        "even": None if link is None else _even(result, *link),
        "tokens": many(tokens_looked_at(mean_entropy(np.where(result.allowed, result.weights, 0.0)))),
        "rows": distance and distance.rows,
        "rows_of": distance and distance.of,
        "offset": distance and distance.offset,
        # what is passed over
        "aside": aside,
        "taken": sum(share for _, share in aside),
        "special": special[0] if special else None,
        "special_kinds": len(special),
        "sink": None if result.rest.sink < 0 else in_sentence(keys, result.rest.sink),
        **_row_facts(result, None if focus.stage in OF_KEYS else focus.query, focus.key),
    }


def _even(result: Shown, query: int, key: int) -> float:
    if isinstance(result, HeadView) and (result.by.joins or spans(result)):
        return float(result.even[query, key])
    return even_weight(result.allowed, query)


def _special(result: Shown) -> list[str]:
    """The special tokens among the keys by their names, that with most of the weight first."""
    shares = dict[str, float]()
    weights = np.nan_to_num(result.weights).sum(axis=0).tolist()
    for token, share in zip(result.key_tokens.items, weights, strict=True):
        if token.special:
            shares[settled(token.name)] = shares.get(settled(token.name), 0.0) + share
    return sorted(shares, key=lambda name: -shares[name])


def _aside(result: Shown, link: tuple[int, int] | None) -> list[tuple[str, float]]:
    """What is passed over and has a larger weight than the strongest link, or more than half of all."""
    rest, found = result.rest, list[tuple[str, float]]()
    if link is None or rest.whole:
        return found
    own = float(result.weights[link])
    for name, pairs in zip(("special", "sink", "itself"), rest.parts, strict=True):
        share = rest.share(pairs)
        if share > MOST or np.nan_to_num(rest.weights * pairs).max(initial=0.0) > own:
            found.append((name, share))
    return found


def _tells(digits: str) -> bool:
    """Whether a weight is more than nothing in these digits."""
    return bool(digits.strip("0."))


def _row_facts(result: Shown, query: int | None, key: int | None) -> dict[str, object]:
    """The same names where no query is asked for."""
    order = [] if query is None else ranked(result, query)
    row = result.weights[query or 0]
    bars = [] if query is None else listed(result, query, key)
    form = alike(row[order[:1]], 2)  # that of the largest: all can be compared with it
    shares = [form(float(row[to])) for to in order[:_NAMED]]
    given = [f"{in_sentence(result.key_tokens, to)} {text}" for to, text in zip(order, shares, strict=False)]
    further = [each for each in order if each not in bars]
    least = shares[1] if len(order) > 1 and row[order[1]] < _LITTLE else None
    share = None if key is None else form(float(row[key]))
    rank = order.index(key) + 1 if key is not None and key in order else None
    pieces = list(result.query_groups[query]) if isinstance(result, HeadView) and query is not None else []
    full = result if isinstance(result, HeadAttention) and result.sink is not None else None
    terms = [
        f"{weight(float(row[to]), 3)} v({settled(result.key_tokens.named(to))})".replace(" ", "\u00a0")
        for to in order[:_MOST_TERMS]
    ]
    return {
        "query": None if query is None else in_sentence(result.query_tokens, query),
        "query_emptied": bool(pieces) and bool(head_of(result).answered[pieces].any()),
        "first": given[0] if given else None,
        "then": given[1:],
        "least": None if least is None else least if _tells(least) else f"{least[:-1]}1",
        "nearly_none": least is not None and not _tells(least),
        "key": None if key is None else in_sentence(result.key_tokens, key),
        "key_masked": key is not None and key not in order,
        "key_rank": None if rank == 1 else rank,
        "key_share": share if share is None or _tells(share) else f"<{share[:-1]}1",
        "ranked": len(order),
        "terms": terms,
        "more_terms": max(len(order) - _MOST_TERMS, 0),
        "further": len(further),
        "further_share": float(row[further].sum()),
        "masked_keys": len(result.key_tokens) - len(order),
        "in_sink": float(1 - row[order].sum()) if full is not None and order else None,
    }
