"""Where sentences and passages of a text begin, by a plain rule that knows no language.

A passage ends at a blank line. A sentence ends with its passage, and after `.`, `!`, `?` or `…` with the
quotes and brackets that close behind it, where white space follows and what comes next is no small letter
(in a text that has capitals at all).
The full stop of a single capital letter (`J. Smith`) or of a title (`Dr.`, `Mrs.`, `St.`) ends none. Behind
`。`, `！` and `？` no white space is needed. So `e.g. this` is one sentence and `in 1999. It` are two; what
the rule gets wrong is seen where the sentences are listed.
"""

import re
from bisect import bisect_right

from attnscope.vocabulary import Unit

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*|\r\n[^\S\n]*\r\n\s*")
_CLOSE = "\"'”’»)\\]"
_END = re.compile(rf"(?:[.!?…]+[{_CLOSE}]*(?=\s)|[。！？]+[」』”）]*)\s*")
_TITLES = frozenset(["dr", "mr", "mrs", "ms", "prof", "st", "jr", "sr", "vs"])
_BEFORE = re.compile(r"[^\W\d_]+$")


def starts_of(text: str, unit: Unit) -> list[int]:
    """The character at which each sentence or passage begins; the first begins with the text."""
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
    """Which of them holds this character."""
    return bisect_right(starts, character) - 1
