"""Which measures can be taken of a corpus, and what they need: without torch."""

from collections.abc import Sequence

from attnscope.errors import InputError
from attnscope.measures import MEASURES, Need

_KNOWN = {Need.ALLOWED, Need.SPECIAL, Need.PUNCTUATION, Need.ALIKE, Need.NORMS}


def measurable(names: Sequence[str]) -> tuple[str, ...]:
    """Those of `names` that can be taken of a corpus, in their order."""
    return tuple(name for name in names if MEASURES[name].needs <= _KNOWN)


def check_measurable(names: Sequence[str]) -> None:
    """Raises `InputError` for a measure that is not taken of a corpus."""
    if others := [name for name in names if name not in measurable(names)]:
        there = ", ".join(measurable(tuple(MEASURES)))
        raise InputError(f"no {', '.join(others)} over a corpus: what can be measured is {there}")


def needs_norms(names: Sequence[str]) -> bool:
    """Whether one of them needs what takes the heads' outputs to the hidden state."""
    return any(Need.NORMS in MEASURES[name].needs for name in names)
