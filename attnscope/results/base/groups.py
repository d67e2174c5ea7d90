"""Groups tokens into words, sentences and passages, sums weights over groups, and weighs special tokens.

A word is what the tokenizer cuts as one, by its words, its offsets and white space, which sentence-piece
vocabularies keep within a piece. Bytes, marks and joiners of one character are never split. Scripts without
blanks (Chinese, Japanese, Thai and others) keep the tokenizer's pieces as words. Special tokens, patches and
frames are groups of their own. Weights between groups are summed over keys and averaged over queries.

Sentences and passages consist of whole words, and special tokens that the user typed, such as a mask.
Plain rules without a language find them. A passage ends at a blank line. A sentence ends with its
passage, and after `.`, `!`, `?` or `…` with closing quotes and brackets, where white space follows and
then no small letter (in a text with capitals). The full stop of a single capital letter (`J. Smith`) or
of a title (`Dr.`, `Mrs.`, `St.`) ends none. After `。`, `！` and `？` no white space is needed. So `e.g.
this` is one sentence and `in 1999. It` are two; mistakes of the rule show where sentences are listed.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from attnscope.errors import InputError
from attnscope.spelling import called, spelled
from attnscope.tokens import Section, Token, Tokens
from attnscope.vocabulary import Special, Unit

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*|\r\n[^\S\n]*\r\n\s*")
_CLOSE = "\"'”’»)\\]"
_END = re.compile(rf"(?:[.!?…]+[{_CLOSE}]*(?=\s)|[。！？]+[」』”）]*)\s*")
_TITLES = frozenset(["dr", "mr", "mrs", "ms", "prof", "st", "jr", "sr", "vs"])
_BEFORE = re.compile(r"[^\W\d_]+$")


_APART = 2  # characters between a token and the next one of its text, at most
_JOINERS = "\u200c\u200d"
_WITHOUT_BLANKS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")

Groups = tuple[tuple[int, ...], ...]


def units_of_text(tokens: Tokens, unit: Unit) -> Groups:
    """Token indices of each unit, in order; `InputError` where the tokens have no offsets."""
    if unit is Unit.TOKEN:
        return tuple((i,) for i in range(len(tokens)))
    return words_of(tokens) if unit is Unit.WORD else _stretches_of_text(tokens, unit)


def _stretches_of_text(tokens: Tokens, unit: Unit) -> Groups:
    """Groups by sentence or passage, each within one text; added special tokens are alone."""
    tokens = placed(tokens)
    _check_offsets(tokens, unit)
    starts = [starts_of(text, unit) for text in tokens.texts]
    groups: list[list[int]] = []
    last: tuple[int, int] | None = None
    for word in words_of(tokens):
        token = tokens.items[word[0]]
        own = last if _goes_along(tokens, word[0], last) else None
        if token.span is not None and token.part < len(starts) and not _stands_alone(tokens, word[0]):
            start, end = token.span
            cut = tokens.texts[token.part][start:end]
            own = token.part, number_at(starts[token.part], start + len(cut) - len(cut.lstrip()))
        if own is not None and own == last:
            groups[-1].extend(word)
        else:
            groups.append([*word])
        last = own
    return tuple(map(tuple, groups))


def _goes_along(tokens: Tokens, position: int, last: tuple[int, int] | None) -> bool:
    """Whether a token without an offset (as an unknown one) belongs to the stretch before it."""
    token = tokens.items[position]
    alone = token.special or token.padding or _stands_alone(tokens, position)
    return token.span is None and last is not None and token.part == last[0] and not alone


def placed(tokens: Tokens) -> Tokens:
    """The tokens with offsets found for generated tokens by searching their text."""
    ends, items = dict[int, int](), list[Token]()
    for i, token in enumerate(tokens.items):
        source = tokens.texts[token.part] if 0 <= token.part < len(tokens.texts) else ""
        span = token.span
        if span is None and not _stands_alone(tokens, i):
            span = _found(token, source, ends.get(token.part, 0))
        if span is not None:
            ends[token.part] = max(span[1], ends.get(token.part, 0))
        items.append(token if span == token.span else replace(token, span=span))
    return replace(tokens, items=tuple(items))


def _found(token: Token, source: str, start: int) -> tuple[int, int] | None:
    bare = token.text.strip()
    place = source.find(bare, start, start + len(bare) + _APART) if bare and not token.special else -1
    return None if place < 0 else (place, place + len(bare))


def _stands_alone(tokens: Tokens, position: int) -> bool:
    return any(position in each.positions for each in tokens.stretches)


def _check_offsets(tokens: Tokens, unit: Unit) -> None:
    items, alone = tokens.items, {place for each in tokens.stretches for place in each.positions}
    if not any(t.span is not None for t in items) and not all(
        token.special or i in alone for i, token in enumerate(items)
    ):
        raise InputError(
            f"--by {unit} needs a tokenizer with offsets: this one does not say where in the text its tokens "
            "are"
        )


def words_of(tokens: Tokens) -> Groups:
    """Token indices of each word, in order; `InputError` where the tokens have no offsets."""
    _check_offsets(tokens, Unit.WORD)
    items, alone = tokens.items, {place for each in tokens.stretches for place in each.positions}
    groups: list[list[int]] = []
    for i in range(len(items)):
        if groups and not {i, i - 1} & alone and _continues(tokens, groups[-1], items[i]):
            groups[-1].append(i)
        else:
            groups.append([i])
    return tuple(map(tuple, groups))


def taken_together(groups: Groups, *spans: Sequence[int]) -> Groups:
    """The groups with those at each of the disjoint `spans` merged into one."""
    first = {span[0]: span for span in spans}
    inside = {place for span in spans for place in span[1:]}
    return tuple(
        tuple(position for each in first.get(place, (place,)) for position in groups[each])
        for place in range(len(groups))
        if place not in inside
    )


def joined(tokens: Tokens, groups: Groups, unit: Unit = Unit.WORD) -> Tokens:
    """One token per group; tokens in no group are left out.

    A word of several pieces has its text cut from the source, and no id of the vocabulary (-1). Positions
    stay those of the input, a word's that of its first piece; sentences and passages are counted by
    themselves.
    """
    tokens = placed(tokens) if unit.is_long else tokens
    place, firsts = {group[0]: i for i, group in enumerate(groups)}, [group[0] for group in groups]
    stretches = [replace(each, first=place[each.first]) for each in tokens.stretches if each.first in place]
    sections = [left for each in tokens.sections if (left := each.among(firsts))]
    marked = (
        *stretches,
        *sections,
        *_fields(tokens, groups),
        *([] if tokens.given is None else [tokens.given]),
    )
    named = dict(zip((each.positions for each in tokens.sections), called(tokens.sections), strict=True))
    items = tuple(
        _joined(tokens, [tokens.items[i] for i in group], unit, named.get(group)) for group in groups
    )
    numbers = () if len(items) == len(tokens) else tuple(tokens.positions[group[0]] for group in groups)
    if unit.is_long:
        every = units_of_text(tokens, unit)
        number = {position: i for i, each in enumerate(every) for position in each}
        numbers = () if len(items) == len(every) else tuple(number[group[0]] for group in groups)
    return replace(tokens, items=items, marked=marked, numbers=numbers)


def _fields(tokens: Tokens, groups: Groups) -> Iterator[Section]:
    for each in tokens.fields:
        if held := [i for i, group in enumerate(groups) if {*group} & {*each.positions}]:
            yield replace(each, first=held[0], count=len(held))


def _joined(tokens: Tokens, pieces: Sequence[Token], unit: Unit, named: str | None = None) -> Token:
    first = pieces[0]
    if len(pieces) == 1:
        return first
    if named is not None:
        return replace(first, id=-1, piece=named, text=named, span=None, special=False, unknown=False)
    spans = [token.span for token in pieces if token.span is not None and token.part == first.part]
    if (len(spans) < len(pieces) and not unit.is_long) or first.part >= len(tokens.texts):  # special ones
        text = spelled(replace(tokens, items=tuple(pieces)), range(len(pieces)))
        return replace(first, id=-1, piece=text, text=text, span=None, special=False, unknown=False)
    span = min(start for start, _ in spans), max(end for _, end in spans)
    text = tokens.texts[first.part][slice(*span)]
    word, special = -1 if unit.is_long else first.word, first.special and not unit.is_long
    piece = text.strip() or first.piece
    return Token(-1, piece, text, span, word, first.part, special, padding=first.padding)


def _continues(tokens: Tokens, word: Sequence[int], token: Token) -> bool:
    last = tokens.items[word[-1]]
    ends = [span[1] for i in word if (span := tokens.items[i].span) is not None]
    elsewhere = last.part != token.part or token.part >= len(tokens.texts)
    if token.span is None or not ends or token.special or last.special or elsewhere:
        return False
    text, start, end = tokens.texts[token.part], token.span[0], max(ends)
    if tokens.words_given:
        return token.word == last.word
    if start < end:
        return True  # bytes of one character
    if len(word) == 1 and not last.text:
        return token.word == last.word  # the mark of a word's start, which stands for no character
    if any(character.isspace() for character in text[end : start + 1]):
        return False
    before, after = text[max(start - 1, 0) : start], text[start : start + 1]
    if before.isspace():
        return token.word == last.word and len(word) == 1 and last.text in ("", " ")
    if _within_character(before, after):
        return True
    if sets_no_blanks(before) or sets_no_blanks(after):
        return False
    if after.isalpha() and (_is_mark(before) or before in _JOINERS):
        return True
    return token.word == last.word


def _within_character(before: str, after: str) -> bool:
    """Whether `after` continues the same visible character: a mark, joiner, skin tone or long vowel."""
    toned = "\U0001f3fb" <= after <= "\U0001f3ff"
    drawn_out = unicodedata.name(after or " ", "").startswith("KATAKANA-HIRAGANA")
    return _is_mark(after) or after in _JOINERS or toned or drawn_out or before == "\u200d"


def _is_mark(character: str) -> bool:
    return bool(character) and unicodedata.category(character).startswith("M")


def sets_no_blanks(character: str) -> bool:
    """Whether the character's script writes words without blanks."""
    return bool(character) and unicodedata.name(character, "").startswith(_WITHOUT_BLANKS)


def regrouped(
    weights: Float[np.ndarray, "query key"], queries: Groups, keys: Groups, *, renormalise: bool = False
) -> Float[np.ndarray, "query_group key_group"]:
    """Weights by groups of tokens; `renormalise` divides each row by its sum (NaN where that is 0).

    A row of NaN is a query without a key: it is left out of the mean over its group, which is NaN only
    where no piece has a key.
    """
    answered = ~np.isnan(weights).any(axis=1)
    taken = (members(queries, len(weights)) & answered).astype(np.float64)
    pieces = taken.sum(axis=1, keepdims=True)
    sums = np.nan_to_num(weights) @ members(keys, weights.shape[1]).T
    rows = _divided(taken @ sums, pieces)
    return _divided(rows, rows.sum(axis=1, keepdims=True)) if renormalise else rows


def members(groups: Groups, count: int) -> Bool[np.ndarray, "group token"]:
    """True where a token belongs to a group."""
    members = np.zeros((len(groups), count), dtype=bool)
    for row, group in enumerate(groups):
        members[row, list(group)] = True
    return members


def _divided(
    rows: Float[np.ndarray, "row column"], sums: Float[np.ndarray, "row 1"]
) -> Float[np.ndarray, "row column"]:
    empty = np.full(rows.shape, np.nan)
    quotients: Float[np.ndarray, "row column"] = np.divide(rows, sums, out=empty, where=sums > 0)
    return quotients


def starts_of(text: str, unit: Unit) -> list[int]:
    """Character offsets at which each sentence or passage begins, starting with 0."""
    passages = [0, *(match.end() for match in _BLANK_LINE.finditer(text))]
    if unit is Unit.PASSAGE:
        return passages
    ends = (match.end() for match in _END.finditer(text) if _ends_one(text, match))
    return sorted({*passages, *ends})


def _ends_one(text: str, match: re.Match[str]) -> bool:
    if text[match.end() : match.end() + 1].islower() and text != text.lower():
        return False
    if match[0][:2].strip() != ".":
        return True
    word = _BEFORE.search(text, 0, match.start())
    return word is None or not ((len(word[0]) == 1 and word[0].isupper()) or word[0].casefold() in _TITLES)


def number_at(starts: list[int], character: int) -> int:
    """The index of the unit that contains this character."""
    return bisect_right(starts, character) - 1


__all__ = ["Special", "SpecialMass", "special_mass"]


@dataclass(frozen=True)
class SpecialMass:
    """Mean share of a query's weight, 0 to 1, that is on special tokens, over queries that have a key.

    `total` is all of it; `by_name` splits it by token name, in order of the text.
    """

    total: float
    by_name: Mapping[str, float]


def special_mass(weights: Sequence[Float[np.ndarray, "query key"]], keys: Tokens) -> SpecialMass | None:
    """The mean special mass over these heads; None without special tokens or queries that have a key."""
    special = [i for i, token in enumerate(keys.items) if token.special]
    rows = [each[~np.isnan(each).any(axis=1)] for each in weights]
    means = [each[:, special].mean(axis=0) for each in rows if len(each)]
    if not special or not means:
        return None
    masses: dict[str, float] = {}
    for position, mass in zip(special, np.mean(means, axis=0).tolist(), strict=True):
        masses[keys.names[position]] = masses.get(keys.names[position], 0.0) + mass
    return SpecialMass(sum(masses.values()), masses)


@dataclass(frozen=True)
class Passage:
    """A removable part of the input: its `text`, and the `positions` of its tokens."""

    text: str
    positions: tuple[int, ...]
