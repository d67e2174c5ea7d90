"""Heads of a text as they can be asked, and how weights are looked at: by words, by the name of a token.

Imports no torch: it also serves what the cache answers.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from attnscope.analysis.heads.view import aimed, viewed
from attnscope.results import (
    Dimensions,
    HeadAttention,
    HeadTerms,
    HeadView,
    HeadWeights,
    MapSettings,
    Overview,
    Projection,
    Thumbnails,
)
from attnscope.session.listener import Listener
from attnscope.session.request import Looking
from attnscope.tokens import Tokens

ENTROPY = ("entropy",)
Name = str | int  # of a token: its text or its position


class ChosenHeads(Protocol):
    """The chosen heads of one text: of a model (`heads.OpenedHeads`) or from the cache (`cache.recall`).

    `head`, `weights`, `terms` and `dimensions` are of one head: `InputError` where several are chosen.
    """

    @property
    def one(self) -> bool:
        """Whether a single head is chosen."""
        ...

    def head(self) -> HeadAttention:
        """The head, recomputed and certified."""
        ...

    def weights(self, stage: str) -> HeadWeights:
        """The same; of a head that cannot be recomputed the weights that the model returns."""
        ...

    def terms(self) -> HeadTerms:
        """The scores of the head taken apart."""
        ...

    def dimensions(self, query: Name | None, key: Name | None) -> Dimensions:
        """One pair of tokens, dimension by dimension; by default the pair with the strongest weight."""
        ...

    def overview(self, measures: Sequence[str], looking: Looking) -> Overview:
        """Every head by all of `measures`."""
        ...

    def thumbnails(self, looking: Looking) -> Thumbnails:
        """The weights of every head in few cells."""
        ...


def overview_aimed(
    heads: ChosenHeads, query: Name, key: Name | None, measures: Sequence[str], looking: Looking
) -> Overview:
    """What one query, named by text or position, gives to one key, or to its strongest, in every chosen head.

    `measures` of the heads stand beside it.
    """
    overview = heads.overview(measures or ENTROPY, looking)
    row = position_of(overview.query_tokens, str(query))
    column = None if key is None else position_of(overview.key_tokens, str(key))
    return aimed(overview, row, column, beside=measures)


def look_at(head: HeadWeights, looking: Looking) -> HeadView | None:
    """The weights of `head` looked at otherwise; None where that is as they are."""
    return viewed(head, words=looking.words, special=looking.treatment) if looking.changes else None


_TIME = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?s")


def position_of(tokens: Tokens, wanted: str) -> int:
    """Where what is named stands: a token, a patch (`r2c4`), a frame (`0.20s`, or a time within it)."""
    return tokens.position(frame_at(wanted, tokens.names))


def frame_at(wanted: str, names: Sequence[str]) -> str:
    """The frame that holds a time such as `7.77s`, as it is called; what is no time within them as it is."""
    starts = {float(name[:-1]): name for name in names if _TIME.fullmatch(name)}
    if wanted in names or not starts or not _TIME.fullmatch(wanted):
        return wanted
    time, ascending = float(wanted[:-1]), sorted(starts)
    step = ascending[1] - ascending[0] if len(ascending) > 1 else 0.0
    begun = [start for start in ascending if start <= time < start + step + 1e-9]
    return starts[begun[-1]] if begun else wanted


def map_head(
    head: HeadAttention,
    settings: MapSettings,
    listener: Listener,
    looking: Looking = Looking(),  # noqa: B008 - frozen
) -> Projection:
    """The map of a head, or of its words; what was done other than asked is told."""
    from attnscope.analysis.heads.projection import project_head  # loads what reduces dimensions

    view = look_at(head, looking)
    with listener.working("drawing the map"):
        result = project_head(head, settings, view)
    if result.perplexity < result.wanted_perplexity:
        points = len(result.queries) + len(result.keys)
        lowered = f"perplexity lowered from {result.wanted_perplexity:g} to {result.perplexity:.3g}"
        listener.notice(f"{lowered}, a third of the {points} points less one")
    if not result.settled:
        listener.notice(
            f"the map had not settled after {result.iterations} iterations: --max-iter goes on for longer"
        )
    return result
