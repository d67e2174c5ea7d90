"""The words of demo-reader's texts, and which of their combinations training never sees.

A name is two pieces, "mar ##na", and every first piece goes with every second one. One name in five is new:
it stands nowhere in training, though both of its pieces do in other names. Of the other names, one pair of
name and thing in five is kept away: no text states or asks what that thing of that person is like.
"""

from __future__ import annotations

import tomllib
from itertools import product
from pathlib import Path

Name = tuple[str, str]

_WORDS: dict[str, tuple[str, ...]] = {
    name: tuple(text.split())
    for name, text in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
FIRST, SECOND = _WORDS["first"], tuple(f"##{piece}" for piece in _WORDS["second"])
THINGS, LIKE = _WORDS["things"], _WORDS["like"]
PLACES, MOVES, MOODS, TIMES = (_WORDS[name] for name in ("places", "moves", "moods", "times"))

NAMES: tuple[Name, ...] = tuple(product(FIRST, SECOND))
_FIRST, _SECOND, _THING = ({word: at for at, word in enumerate(words)} for words in (FIRST, SECOND, THINGS))


def is_new(name: Name) -> bool:
    """Whether a name stands nowhere in training."""
    return (_FIRST[name[0]] + 3 * _SECOND[name[1]]) % 5 == 0


def is_held_out(name: Name, thing: str) -> bool:
    """Whether training neither states nor asks what this thing of this person is like."""
    return is_new(name) or (2 * _FIRST[name[0]] + _SECOND[name[1]] + 3 * _THING[thing]) % 5 == 0


MET: tuple[Name, ...] = tuple(name for name in NAMES if not is_new(name))
NEW: tuple[Name, ...] = tuple(name for name in NAMES if is_new(name))
