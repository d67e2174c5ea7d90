"""The words of demo-reader's texts, and which names training never sees.

A name is two pieces, "mar ##na", and every first piece goes with every second one. One name in five is new:
it stands nowhere in training, though both of its pieces do in other names.
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
_FIRST, _SECOND = ({piece: at for at, piece in enumerate(pieces)} for pieces in (FIRST, SECOND))


def is_new(name: Name) -> bool:
    """Whether a name stands nowhere in training."""
    return (_FIRST[name[0]] + 3 * _SECOND[name[1]]) % 5 == 0


MET: tuple[Name, ...] = tuple(name for name in NAMES if not is_new(name))
NEW: tuple[Name, ...] = tuple(name for name in NAMES if is_new(name))
