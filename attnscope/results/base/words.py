"""Which tokens make up a word, as the tokenizer itself cuts them: by its words, its offsets and white space.

A word ends where the tokenizer's own splitting ends one, and at white space, which sentence-piece
vocabularies keep within a piece. Bytes, marks and joiners of one character are never parted. Chinese,
Japanese, Thai and other scripts that set no blanks keep the tokenizer's pieces, which are all the words
there are. Special tokens, patches and frames stay by themselves.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from attnscope.errors import InputError
from attnscope.tokens import Token, Tokens

_JOINERS = "\u200c\u200d"
_WITHOUT_BLANKS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")

Groups = tuple[tuple[int, ...], ...]


def words_of(tokens: Tokens) -> Groups:
    """Positions of the tokens of each word, in order; `InputError` where the tokens have no offsets."""
    items, alone = tokens.items, {place for each in tokens.stretches for place in each.positions}
    if not any(t.span is not None for t in items) and not all(
        token.special or i in alone for i, token in enumerate(items)
    ):
        raise InputError(
            "--words needs a tokenizer with offsets: this one does not say where in the text its tokens are"
        )
    groups: list[list[int]] = []
    for i in range(len(items)):
        if groups and not {i, i - 1} & alone and _continues(tokens, groups[-1], items[i]):
            groups[-1].append(i)
        else:
            groups.append([i])
    return tuple(map(tuple, groups))


def joined(tokens: Tokens, groups: Groups) -> Tokens:
    """One token for each of `groups`, which may leave tokens out.

    A word of several pieces has its text cut from the source, and no id of the vocabulary (-1). Positions
    stay those of the input, a word's that of its first piece.
    """
    place = {group[0]: i for i, group in enumerate(groups)}
    stretches = [replace(each, first=place[each.first]) for each in tokens.stretches if each.first in place]
    items = tuple(_joined(tokens, [tokens.items[i] for i in group]) for group in groups)
    numbers = () if len(items) == len(tokens) else tuple(tokens.positions[group[0]] for group in groups)
    return replace(tokens, items=items, stretches=tuple(stretches), numbers=numbers)


def _joined(tokens: Tokens, pieces: Sequence[Token]) -> Token:
    first = pieces[0]
    spans = [token.span for token in pieces if token.span is not None]
    if len(pieces) == 1 or len(spans) < len(pieces):
        return first
    span = min(start for start, _ in spans), max(end for _, end in spans)
    text = tokens.texts[first.part][slice(*span)]
    return replace(first, id=-1, piece=text.strip() or first.piece, text=text, span=span, unknown=False)


def _continues(tokens: Tokens, word: Sequence[int], token: Token) -> bool:
    """Whether `token` belongs to the word whose pieces so far stand at the positions `word`."""
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
    if _sets_no_blanks(before) or _sets_no_blanks(after):
        return False
    if after.isalpha() and (_is_mark(before) or before in _JOINERS):
        return True
    return token.word == last.word


def _within_character(before: str, after: str) -> bool:
    """Whether one visible character goes on: by a mark, joiner, skin tone, long vowel or joined part."""
    toned = "\U0001f3fb" <= after <= "\U0001f3ff"
    drawn_out = unicodedata.name(after or " ", "").startswith("KATAKANA-HIRAGANA")
    return _is_mark(after) or after in _JOINERS or toned or drawn_out or before == "\u200d"


def _is_mark(character: str) -> bool:
    return bool(character) and unicodedata.category(character).startswith("M")


def _sets_no_blanks(character: str) -> bool:
    return bool(character) and unicodedata.name(character, "").startswith(_WITHOUT_BLANKS)
