"""The words of a text that is read or written, of whatever pieces the tokenizer makes them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnscope.errors import InputError
from attnscope.results.base.groups import Groups, joined, sets_no_blanks, words_of
from attnscope.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Side:
    """The words of one text: the tokens of each, and what they are called."""

    groups: Groups
    words: Tokens

    @classmethod
    def of(cls, tokens: Tokens, *, plain: bool = False) -> "Side":
        """Words between blanks, marks at their ends apart unless these are `plain`; special tokens are none.

        Of scripts that set no blanks words are the tokenizer's.
        """
        own = replace(tokens, words_given=False) if not plain else tokens
        special = {i for i, token in enumerate(tokens.items) if token.special}
        groups = list[list[int]]()
        for group in words_of(own):
            if not special & {*group}:
                if groups and goes_on(own, groups[-1], group, plain=plain):
                    groups[-1].extend(group)
                else:
                    groups.append([*group])
        found = tuple(map(tuple, groups))
        return cls(found, joined(tokens, found))


def goes_on(tokens: Tokens, before: Sequence[int], group: Sequence[int], *, plain: bool) -> bool:
    """Whether a word of the tokenizer belongs to the one before: no blank between, no mark at an end."""
    last, first = tokens.items[before[-1]], tokens.items[group[0]]
    if last.span is None or first.span is None or last.part != first.part or first.part >= len(tokens.texts):
        return False
    text, (_, end), (start, _) = tokens.texts[first.part], last.span, first.span
    between = text[end : start + 1] if start >= end else ""
    if any(each.isspace() for each in between) or text[end - 1 : end].isspace():
        return False
    if plain:
        return True
    if sets_no_blanks(text[end - 1 : end]) or sets_no_blanks(text[start : start + 1]):
        return False
    left, right = text[:end].split()[-1], text[start:].split()[0]
    return any(map(str.isalnum, left)) and any(map(str.isalnum, right))


def written_by(groups: Groups, name: str) -> None:
    """Raises `InputError` where a word has no row before it, which writes it."""
    if any(word[0] == 0 for word in groups):
        raise InputError(
            f"{name}: the first token of the target is a word: nothing writes it, begin with a start"
        )
