"""The questions about heads by the names that they have in `session.questions`, from the cache if that can.

A reading is either one of a model, then the question is passed on and what comes of it is noted, or one that
is kept. This is imported without torch; the questions themselves are imported when a model has to answer.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from attnscope.analysis.links import aimed
from attnscope.analysis.pair import pair_of
from attnscope.measures import MEASURES
from attnscope.results import (
    Dimensions,
    HeadAttention,
    HeadTerms,
    HeadWeights,
    Overview,
    Thumbnails,
)
from attnscope.session.cache.remembered import Meant, Remembered
from attnscope.session.questions.looking import look_at, position_of
from attnscope.session.request import Looking
from attnscope.vocabulary import Stage

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.reading import Reading

    Readable = Reading | Remembered
    Which = Chosen | Meant

__all__ = [
    "ENTROPY",
    "look_at",
    "read_aimed",
    "read_dimensions",
    "read_head",
    "read_overview",
    "read_terms",
    "read_thumbnails",
    "read_weights",
]
ENTROPY = ("entropy",)
TOKENS = Looking()
Name = str | int


def read_head(reading: "Readable", chosen: "Which") -> HeadAttention:
    """The one chosen head, recomputed and certified."""
    if isinstance(reading, Remembered):
        return reading.head(*chosen.only())
    from attnscope.session.questions import heads

    return heads.read_head(reading, cast("Chosen", chosen))


def read_weights(reading: "Readable", chosen: "Which", stage: str = Stage.WEIGHTS) -> HeadWeights:
    """The one chosen head; of a model its weights as it returns them where it cannot be recomputed."""
    if isinstance(reading, Remembered):
        return reading.head(*chosen.only())
    from attnscope.session.questions import heads

    return heads.read_weights(reading, cast("Chosen", chosen), stage)


def read_terms(reading: "Readable", chosen: "Which") -> HeadTerms:
    """The scores of the one chosen head taken apart."""
    if isinstance(reading, Remembered):
        return reading.terms(*chosen.only())
    from attnscope.session.questions import heads

    return heads.read_terms(reading, cast("Chosen", chosen))


def read_dimensions(
    reading: "Readable", chosen: "Which", query: Name | None = None, key: Name | None = None
) -> Dimensions:
    """One pair of the one chosen head, dimension by dimension; by default its strongest."""
    if isinstance(reading, Remembered):
        place = chosen.only()
        return reading.dimensions(*place, *pair_of(reading.head(*place), query, key))
    from attnscope.session.questions import heads

    return heads.read_dimensions(reading, cast("Chosen", chosen), query, key)


def read_overview(
    reading: "Readable", chosen: "Which", measures: Sequence[str] = ENTROPY, looking: Looking = TOKENS
) -> Overview:
    """The chosen heads in the chosen layers, each by all of `measures`; kept where these are of the text."""
    what = ("overview", *_which(chosen), list(measures), *_how(looking), looking.links_among_all)
    if isinstance(reading, Remembered):
        found = reading.result(*what)
        return cast("Overview", found)
    from attnscope.session.questions import heads

    made = heads.read_overview(reading, cast("Chosen", chosen), measures, looking)
    if reading.keeper is not None and not any(MEASURES[name].description.apart for name in measures):
        reading.keeper.made(made, *what)
    return made


def read_aimed(
    reading: "Readable",
    chosen: "Which",
    query: Name,
    key: Name | None = None,
    measures: Sequence[str] = (),
    looking: Looking = TOKENS,
) -> Overview:
    """What one query gives to one key, or to its strongest, in every chosen head; `measures` stand beside."""
    found = read_overview(reading, chosen, measures or ENTROPY, looking)
    row = position_of(found.query_tokens, str(query))
    column = None if key is None else position_of(found.key_tokens, str(key))
    return aimed(found, row, column, beside=measures)


def read_thumbnails(reading: "Readable", chosen: "Which", looking: Looking = TOKENS) -> Thumbnails:
    """The weights of the chosen heads in all chosen layers, in few cells each."""
    what = ("grid", *_which(chosen), *_how(looking))
    if isinstance(reading, Remembered):
        found = reading.result(*what)
        return cast("Thumbnails", found)
    from attnscope.session.questions.claims import thumbnails

    made = thumbnails.read_thumbnails(reading, cast("Chosen", chosen), looking)
    if reading.keeper is not None:
        reading.keeper.made(made, *what)
    return made


def _which(chosen: "Which") -> tuple[list[int], list[int], int]:
    return list(chosen.layers), list(chosen.heads), chosen.block


def _how(looking: Looking) -> tuple[bool, str]:
    return looking.words, str(looking.treatment)
