"""Supplies what measures need beside weights (masks, norms, kinds of tokens), and says what is missing.

Kinds of tokens are special ones, punctuation, equal ones and those of one text. For a long head all of it
is by query and by key, never by pair.

"""

import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.arithmetic import attend
from attnscope.attention import AttentionCall
from attnscope.measures import MEASURES, Need
from attnscope.measures.rows import cosine_distances, moved_norms
from attnscope.reference import EXACT
from attnscope.tiles.stream import WITHOUT_FORM, Beside
from attnscope.tiles.tiling import LongCall
from attnscope.tokens import Patches, Token, Tokens
from attnscope.vocabulary import Unit


def special(tokens: Tokens) -> Bool[Tensor, " token"]:
    return torch.tensor([token.special for token in tokens.items], dtype=torch.bool)


def punctuation(tokens: Tokens) -> Bool[Tensor, " token"]:
    """True for each token that consists of Unicode punctuation only."""
    return torch.tensor([_is_punctuation(token) for token in tokens.items], dtype=torch.bool)


def _is_punctuation(token: Token) -> bool:
    written = token.text.strip()
    return not token.special and bool(written) and all(unicodedata.category(c)[0] == "P" for c in written)


def alike(queries: Tokens, keys: Tokens) -> Bool[Tensor, "query key"]:
    """True where key and query are the same token, or the same word ignoring case; itself included.

    A patch or a frame is like none but itself.
    """
    first, second = named(queries, keys)
    return first[:, None] == second[None, :]


def named(queries: Tokens, keys: Tokens) -> tuple[Int[Tensor, " query"], Int[Tensor, " key"]]:
    """A number for every query and key token, equal where the tokens are equal."""
    names = [_names(tokens) for tokens in (queries, keys)]
    numbers = {name: i for i, name in enumerate(dict.fromkeys([*names[0], *names[1]]))}
    first, second = (torch.tensor([numbers[name] for name in each]) for each in names)
    return first, second


def _names(tokens: Tokens) -> list[object]:
    elsewhere = {place for stretch in tokens.stretches for place in stretch.positions}
    return [
        ("position", i) if i in elsewhere else ("word", token.text.casefold()) if token.id < 0 else token.id
        for i, token in enumerate(tokens.items)
    ]


def is_picture(tokens: Tokens) -> bool:
    """Whether all positions are patches of a picture or learned tokens: there is no text."""
    return not tokens.texts and any(isinstance(each, Patches) for each in tokens.stretches)


def together(queries: Tokens, keys: Tokens) -> Bool[Tensor, "query key"] | None:
    """True where query and key belong to the same one of several texts; None for a single text."""
    found = parts(queries, keys)
    return None if found is None else found[0][:, None] == found[1][None, :]


def parts(queries: Tokens, keys: Tokens) -> tuple[Int[Tensor, " query"], Int[Tensor, " key"]] | None:
    """The number of the text that each query and key belongs to; None for a single text."""
    first, second = (torch.tensor([token.part for token in tokens.items]) for tokens in (queries, keys))
    return None if len({*first.tolist(), *second.tolist()}) < 2 else (first, second)


_SORTS = {
    Need.SPECIAL: "no key is a special token",
    Need.PUNCTUATION: "no key is punctuation",
    Need.ALIKE: "no token stands twice",
}
_APART = {
    Need.PERIOD: "it is taken of random tokens",
    Need.CIRCUIT: "it is taken of the model's weights",
    Need.SLOPE: "it is taken of the model's answer",
    Need.GRADIENT: "it is taken of the model's answer",
    Need.DIRECT: "it is taken of the model's answer",
}
_IN_LINE = ("distance", "previous", "next", "fixed", "offset", "pattern")
_IN_ROWS = "patches lie in rows and columns, not in a line (`find --pattern previous` has those to the left)"
_OF_WORDS = {
    Need.NORMS: "what the pieces of a word move may cancel: their lengths do not add up",
    Need.SCORES: "scores are of single tokens",
}
_EVEN = "it is held against even weights of single tokens"
_ALL_TOKENS = "it is of all tokens, special ones too"
_NEITHER = "nothing reads the heads' outputs by a matrix alone"
Fields = dict[str, Any]
AllowedPairs = Callable[[int, int], Tensor]  # of a layer and a head, `query key`

_AT_ONCE = 4096  # keys whose values are projected at once


@dataclass(frozen=True, eq=False)
class Supplies:
    """Makes the tile fields of a head by index of layer and head; `missing` says why needs are unmet.

    `absent` says by name which measures have no meaning here in any case.

    """

    missing: Mapping[Need, str]
    fields: Callable[[int, int, Tensor, Collection[Need]], Fields]
    absent: Mapping[str, str] = field(default_factory=dict)


def of_tokens(queries: Tokens, keys: Tokens, without: str) -> Supplies:
    """Supplies from the tokens alone; `without` says why masks, norms and scores are missing."""
    facts = {
        Need.SPECIAL: special(keys),
        Need.PUNCTUATION: punctuation(keys),
        Need.ALIKE: alike(queries, keys),
    }
    apart = torch.eye(*facts[Need.ALIKE].shape, dtype=torch.bool)
    there = {**facts, Need.ALIKE: facts[Need.ALIKE] & ~apart}
    missing, absent = unmeasured({need: bool(there[need].any()) for need in _SORTS}, queries, keys)
    others = dict.fromkeys((Need.ALLOWED, Need.NORMS, Need.SCORES), without)

    def fields(_layer: int, _head: int, _weights: Tensor, needs: Collection[Need]) -> Fields:
        return {need.value: values for need, values in facts.items() if need in needs}

    return Supplies({**others, **missing}, fields, absent)


def unmeasured(
    there: Mapping[Need, bool], queries: Tokens, keys: Tokens
) -> tuple[dict[Need, str], dict[str, str]]:
    """Why needs are missing (no such tokens in the text), and which measures have no meaning here."""
    missing = {need: reason for need, reason in _SORTS.items() if not there[need]}
    in_rows = is_picture(queries) and is_picture(keys)
    return {**_APART, **missing}, dict.fromkeys(_IN_LINE, _IN_ROWS) if in_rows else {}


def of_groups(queries: Tokens, keys: Tokens, allowed: AllowedPairs | None, by: Unit) -> Supplies:
    """Supplies for weights between units (`by`), or between the tokens left.

    `allowed` gives the mask by index of layer and head; None where it is not known.

    """
    by_tokens = of_tokens(queries, keys, "")
    lacking = _OF_WORDS if by.joins else dict.fromkeys(_OF_WORDS, _ALL_TOKENS)
    missing = {need: reason for need, reason in by_tokens.missing.items() if reason} | lacking
    missing |= {} if allowed else {Need.ALLOWED: "where queries may look is not known"}

    def fields(layer: int, head: int, weights: Tensor, needs: Collection[Need]) -> Fields:
        facts = by_tokens.fields(layer, head, weights, needs)
        if allowed is not None:
            facts["allowed"] = allowed(layer, head)
        if Need.ALLOWED in needs:
            facts |= {"visible": facts["allowed"].sum(-1), "together": together(queries, keys)}
        return facts

    return Supplies(missing, fields, {**by_tokens.absent, **({"pattern": _EVEN} if by.joins else {})})


def of_calls(calls: Sequence[AttentionCall], heads: Sequence[int], queries: Tokens, keys: Tokens) -> Supplies:
    """Supplies from captured calls whose tokens are `queries` and `keys`."""
    by_tokens = of_tokens(queries, keys, "")
    same = together(queries, keys)
    unread = all(call.projection is None for call in calls)
    missing = {need: reason for need, reason in by_tokens.missing.items() if reason}
    missing |= {Need.NORMS: _NEITHER} if unread else {}

    @cache
    def norms(layer: int) -> Float[Tensor, "head key"]:
        call = calls[layer]
        if call.projection is None:
            return torch.full((call.heads, call.k.shape[1]), torch.nan, dtype=EXACT)
        return moved_norms(call.v, call.projection)

    def fields(layer: int, head: int, weights: Tensor, needs: Collection[Need]) -> Fields:
        call, number = calls[layer], heads[head]
        facts = by_tokens.fields(layer, head, weights, needs)
        facts["allowed"] = call.allowed_matrix(number)
        if Need.ALLOWED in needs:
            facts |= {"visible": facts["allowed"].sum(-1), "together": same}
        if Need.NORMS in needs:
            mine = norms(layer)[number]
            facts |= {"norms": mine, "moved": weights @ mine}
        if Need.SCORES in needs:
            operands = call.operands(number)
            distances = cosine_distances(operands.q[0], operands.k[0])
            facts |= {"scaled": attend(operands).masked[0], "distances": distances}
        return facts

    return Supplies(missing, fields, by_tokens.absent)


def without_norms(calls: Sequence[AttentionCall], supplies: Supplies) -> tuple[str, ...]:
    """A note naming the layers without an output projection, where others have one; else nothing."""
    lacking = [str(call.layer) for call in calls if call.projection is None]
    if not lacking or Need.NORMS in supplies.missing:
        return ()
    return (f"what L{', L'.join(lacking)} moves is not known: {_NEITHER}",)


def of_long_calls(calls: Sequence[AttentionCall], queries: Tokens, keys: Tokens) -> Supplies:
    """Supplies that say what is missing for long calls; their fields come from `beside`."""
    first, second = named(queries, keys)
    there = {
        Need.SPECIAL: bool(special(keys).any()),
        Need.PUNCTUATION: bool(punctuation(keys).any()),
        Need.ALIKE: _stands_twice(first, second),
    }
    missing, absent = unmeasured(there, queries, keys)
    if all(call.projection is None for call in calls):
        missing = {**missing, Need.NORMS: _NEITHER}
    return Supplies(missing, lambda *_: {}, {**absent, **WITHOUT_FORM})


def _stands_twice(queries: Int[Tensor, " query"], keys: Int[Tensor, " key"]) -> bool:
    counts = keys.bincount(minlength=int(queries.max()) + 1 if len(queries) else 0)
    same_axis = len(queries) == len(keys) and torch.equal(queries, keys)
    return bool((counts[queries] > int(same_axis)).any())


def beside(call: LongCall, head: int, queries: Tokens, keys: Tokens, needs: Collection[Need]) -> Beside:
    """The fields that tiles of one long head get beside weights, as far as needed."""
    device = call.q.device
    wanted: dict[str, Any] = {}
    if Need.SPECIAL in needs:
        wanted["special"] = special(keys)
    if Need.PUNCTUATION in needs:
        wanted["punctuation"] = punctuation(keys)
    if Need.ALIKE in needs:
        wanted["query_names"], wanted["key_names"] = named(queries, keys)
    if Need.ALLOWED in needs and (part_of := parts(queries, keys)) is not None:
        wanted["query_parts"], wanted["key_parts"] = part_of
    facts = {name: values.to(device) for name, values in wanted.items()}
    return Beside(**facts, norms=norms(call, head) if Need.NORMS in needs else None)


def norms(call: AttentionCall, head: int) -> Float[Tensor, " key"]:
    """||f(x)|| of every key; NaN where the layer has no output projection."""
    keys = call.k.shape[1]
    if call.projection is None:
        return torch.full((keys,), torch.nan, dtype=EXACT)
    values, shared = call.v, call.key_head(head)
    blocks = range(0, keys, _AT_ONCE)
    return torch.cat(
        [
            moved_norms(values[shared : shared + 1, i : i + _AT_ONCE], call.projection[head : head + 1])[0]
            for i in blocks
        ]
    )


def needs_of(names: Collection[str]) -> frozenset[Need]:
    """All needs of these measures beside weights."""
    return frozenset(need for name in names for need in MEASURES[name].needs)
