"""Tokens as a page knows them: their names, which are special, which make a word, which text they are of."""

from typing import Any

from attnscope.errors import InputError
from attnscope.printable import printable
from attnscope.render.kit.labels import settled
from attnscope.results.base.groups import joined, placed, units_of_text
from attnscope.tokens import Tokens
from attnscope.vocabulary import Special, Unit


def tokens_of(tokens: Tokens, by: Unit = Unit.WORD) -> dict[str, Any]:
    """`words` are positions by word, None where the tokenizer does not tell or every word is one token.

    Names are closed where they run from right to left, since numbers stand beside them.

    Where the result is `by` sentences or passages they are positions by these, and `unit` says so.

    `said` is how each token stands in its text, where that is not its name, and `gaps` what stands before it.
    """
    parts = [token.part for token in tokens.items]
    gaps, said = _as_read(tokens)
    return {
        "text": bool(tokens.texts) and not _pictured(tokens),
        "names": [settled(name) for name in tokens.names],
        "gaps": gaps,
        "said": {i: text for i, text in enumerate(said) if text != tokens.names[i]},
        "special": [i for i, token in enumerate(tokens.items) if token.special],
        "parts": parts,
        **_words(tokens, by if by.is_long else Unit.WORD),
    }


def _pictured(tokens: Tokens) -> bool:
    placed = {place for stretch in tokens.stretches for place in stretch.positions}
    return bool(placed) and all(i in placed or token.special for i, token in enumerate(tokens.items))


def _as_read(tokens: Tokens) -> tuple[list[str], list[str]]:
    """What stands before each token in its text, and the token as it stands there, without blanks before it.

    The place of a token that a model wrote is looked for; one that is nowhere follows a blank, unless it is a
    piece of a word.
    """
    gaps, said, ends = list[str](), list[str](), dict[int, int]()
    for token, name in zip(placed(tokens).items, tokens.names, strict=True):
        source = tokens.texts[token.part] if 0 <= token.part < len(tokens.texts) else ""
        before = ends.get(token.part, 0)
        text, span = token.text, token.span
        if span is not None and source:
            text, gap = source[slice(*span)], source[before : span[0]]
            ends[token.part] = max(span[1], before)
        else:
            gap = "" if token.piece.startswith("##") else " "
        bare = text.lstrip()
        gap += text[: len(text) - len(bare)]
        gaps.append("\n" if "\n" in gap else " " if gap else "")
        said.append(name if token.special or token.unknown or not bare else printable(bare.rstrip()))
    return gaps, said


def _words(tokens: Tokens, by: Unit) -> dict[str, Any]:
    named = {"unit": by.several}
    try:
        groups = units_of_text(tokens, by)
    except InputError:
        return named | {"words": None, "joined": {}}
    if all(len(group) == 1 for group in groups) and not by.is_long:
        return named | {"words": None, "joined": {}}
    units = joined(tokens, groups, by)
    names = [f"{units.positions[i]} {name}" if by.is_long else name for i, name in enumerate(units.names)]
    whole = {
        group[0]: settled(name)
        for group, name in zip(groups, names, strict=True)
        if len(group) > 1 or by.is_long
    }
    return named | {"words": groups, "joined": whole}


def sides(queries: Tokens, keys: Tokens, by: Unit = Unit.WORD) -> dict[str, Any]:
    """Both sides of one attention. `pair` where two texts were read: then one may look at the other."""
    same = queries is keys or queries == keys
    pair = same and len({token.part for token in queries.items}) > 1
    return {
        "queries": tokens_of(queries, by),
        "keys": None if same else tokens_of(keys, by),
        "self": same,
        "pair": pair,
    }


def first_token(
    place: int | None, tokens: dict[str, Any] | None, words: bool, special: Special
) -> int | None:
    """Where what stands at a `place` begins, among words or without special tokens, by tokens."""
    if place is None or tokens is None:
        return place
    groups = tokens["words"] if words and tokens["words"] else [(i,) for i in range(len(tokens["names"]))]
    hidden = () if special is Special.SHOW else tokens["special"]
    return [group[0] for group in groups if group[0] not in hidden][place]
