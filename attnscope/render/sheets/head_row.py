"""One query of a head: its keys, strongest first, each with its weight and its scaled score."""

from collections.abc import Iterator
from functools import partial

from attnscope.render.kit.numbers import alike, alike_texts, counted, descending, parameter, weight
from attnscope.render.kit.stage import NO_KEY, NOTHING_LEFT
from attnscope.render.kit.words.weights import head_of, special_words, sums_words, view_words
from attnscope.render.sheet.blocks import KeyBars, Matrix
from attnscope.render.sheet.said import at, in_sentence, numbered
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.render.sheets.looking import NO_CONTROL
from attnscope.results import HeadAttention, HeadView, HeadWeights

MOST_KEYS = 25
_NAMED = 3  # keys of a sentence
_LITTLE = 0.05  # what is less need not be named
_FULL_BARS = (0.05, 0.1, 0.2, 0.5, 1.0)
_exact = partial(weight, decimals=3)


def keys_of(result: HeadWeights | HeadView, matrix: Matrix, query: int, key: int | None) -> KeyBars:
    """The strongest keys of a query, and `key` however weak."""
    listed = _listed(_ranked(result, query), key)
    weights = [float(result.weights[query, each]) for each in listed]
    full = next((full for full in _FULL_BARS if max(weights, default=0.0) <= full), 1.0)
    columns = [Column("weight", weights, "weight", _exact)]
    if isinstance(result, HeadAttention):
        texts = alike_texts(result.scaled[query, listed], 2).tolist() if listed else []
        columns.append(Column("scaled", result.scaled[query, listed].tolist(), "scaled", told=texts))
    return KeyBars(
        title=f"query {at(result.query_tokens, query)}",
        of="key",
        names=numbered(result.key_tokens, listed),
        table=Table(*columns),
        says=f"full bar = {parameter(full)}" if listed else f"it has {_why_not(result, query)}",
        chosen=frozenset(i for i, each in enumerate(listed) if each == key),
        marks=(Mark("bar", "own", "", weights),),
        measured="attention weight",
        written="weight",
        axis=(0.0, full),
        matrix=matrix,
        query=query,
        pointed=key,
        above=key is not None,
    )


def _ranked(result: HeadWeights | HeadView, query: int) -> list[int]:
    if not result.answered[query]:
        return []
    return [key for key in descending(result.weights[query]) if result.allowed[query, key]]


def _listed(ranked: list[int], key: int | None) -> list[int]:
    return [*ranked[:MOST_KEYS], *(each for each in ranked[MOST_KEYS:] if each == key)]


def _why_not(result: HeadWeights | HeadView, query: int) -> str:
    emptied = isinstance(result, HeadView) and result.head.answered[list(result.query_groups[query])].any()
    return NOTHING_LEFT if emptied else NO_KEY


def most_of(result: HeadWeights | HeadView, query: int, key: int | None) -> str:
    """`From [MASK], L3 H11 gives “opened” .98 and every other token less than .01.`"""
    ranked, asked = _ranked(result, query), in_sentence(result.query_tokens, query)
    unit = result.by.value if isinstance(result, HeadView) else "token"
    name = head_of(result).name
    if not ranked:
        return f"From {asked}, {name} has {_why_not(result, query)}."
    form = alike(result.weights[query, ranked[:1]], 2)  # that of the largest: all can be compared with it
    texts = [form(float(result.weights[query, to])) for to in ranked[:_NAMED]]
    first, *others = (
        f"{in_sentence(result.key_tokens, to)} {text}" for to, text in zip(ranked, texts, strict=False)
    )
    told = f"From {asked}, {name} gives {first}"
    if others and result.weights[query, ranked[1]] < _LITTLE:
        least = _more_than_nothing(texts[1], "less than ")
        told += f" and every other {unit} {least if least != texts[1] else f'{least} or less'}"
    elif others:
        told += f", then {', '.join(others)}"
    if key is not None and key not in ranked:
        told += f"; {in_sentence(result.key_tokens, key)} is masked"
    elif key not in (None, ranked[0]):
        share = _more_than_nothing(form(float(result.weights[query, key])), "<")
        rank = f"number {ranked.index(key) + 1} of {counted(len(ranked), 'key')}"
        told += f"; {in_sentence(result.key_tokens, key)} gets {share}, {rank}"
    return f"{told}. {NO_CONTROL}"


def _more_than_nothing(text: str, less: str) -> str:
    return text if text.strip("0.") else f"{less}{text[:-1]}1"


def left_out(result: HeadWeights | HeadView, query: int, key: int | None) -> str:
    """What the bars leave out: further keys, masked keys, the share of a sink."""
    return " · ".join(_beside(result, query, key))


def of_row(result: HeadWeights | HeadView, query: int) -> tuple[str, ...]:
    """What special tokens have of this row, and what a view is."""
    pieces = result.query_groups[query] if isinstance(result, HeadView) else (query,)
    special = special_words(head_of(result).special_mass_of(pieces), "the weight of this query")
    return (special, " · ".join(view_words(result)))


def _beside(result: HeadWeights | HeadView, query: int, key: int | None) -> Iterator[str]:
    ranked = _ranked(result, query)
    listed = _listed(ranked, key)
    if further := [each for each in ranked if each not in listed]:
        share = weight(float(result.weights[query, further].sum()))
        yield f"{counted(len(further), 'more key')} share {share}"
    if masked := len(result.key_tokens) - len(ranked):
        yield f"{counted(masked, 'key')} masked"
    if not isinstance(result, HeadAttention):
        yield sums_words(result)
    elif result.sink is not None and ranked:
        yield f"the sink takes {weight(float(1 - result.weights[query, ranked].sum()))}"
