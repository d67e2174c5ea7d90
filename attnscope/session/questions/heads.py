"""Heads of a reading: one in full, its scores taken apart, or several at a glance."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from attnscope.analysis import measure_heads, recompute_head
from attnscope.analysis.dimensions import head_dimensions
from attnscope.analysis.links import aimed, among_all
from attnscope.analysis.measuring.known import Seen
from attnscope.analysis.padding import without_padding
from attnscope.analysis.returned import returned_head, returned_overview
from attnscope.analysis.terms import head_terms
from attnscope.analysis.views.several import viewed_overview
from attnscope.attention import Capture
from attnscope.capture.returned import Returned
from attnscope.errors import InputError
from attnscope.measures import MEASURES, Need
from attnscope.results import Dimensions, HeadAttention, HeadTerms, HeadView, HeadWeights, Overview
from attnscope.session.choosing import Chosen
from attnscope.session.questions.apart import with_apart
from attnscope.session.questions.looking import look_at, position_of
from attnscope.session.reading import Reading
from attnscope.session.request import Looking
from attnscope.vocabulary import Stage

ENTROPY = ("entropy",)
TOKENS = Looking()
Name = str | int


def read_head(reading: Reading, chosen: Chosen) -> HeadAttention:
    """The one chosen head, recomputed and certified; `InputError` where several are meant."""
    layer, head = chosen.only()
    with reading.listener.working("reading the attention"):
        found = recompute_head(reading.capture(chosen), layer, head, block=chosen.block)
    return replace(found, notes=(*found.notes, *reading.notes))


def read_weights(reading: Reading, chosen: Chosen, stage: str = Stage.WEIGHTS) -> HeadWeights:
    """The one chosen head, or its weights as the model returns them where it cannot be recomputed.

    `InputError` where a `stage` other than the weights is asked for, and that is not returned.
    """
    layer, head = chosen.only()
    with reading.listener.working("reading the attention"):
        attention = reading.attention(chosen)
        if not isinstance(attention, Returned):
            return recompute_head(attention, layer, head, block=chosen.block)
        if stage != Stage.WEIGHTS:
            raise InputError(f"{reading.model.name} returns weights alone here: leave --show {stage} out")
        return returned_head(attention, layer, head)


def read_overview(
    reading: Reading, chosen: Chosen, measures: Sequence[str] = ENTROPY, looking: Looking = TOKENS
) -> Overview:
    """The chosen heads in the chosen layers, each by all of `measures`.

    What is not taken of the text is measured in a run of its own.
    """
    of_text = tuple(name for name in measures if not MEASURES[name].description.apart)
    found = _of_text(reading, chosen, of_text or ENTROPY, looking)
    return with_apart(reading, chosen, found, measures)


def _of_text(reading: Reading, chosen: Chosen, measures: Sequence[str], looking: Looking) -> Overview:
    check_has_words(reading, chosen, looking)
    with reading.listener.working("reading the attention"):
        attention = reading.attention(chosen, projections=needs_norms(measures))
        if isinstance(attention, Returned):
            found = returned_overview(attention, chosen.heads, measures)
        else:
            found = measure_heads(attention, chosen.heads, chosen.block, measures)
    found = replace(found, notes=(*found.notes, *reading.notes))
    if looking.links_among_all:
        found = among_all(found)
    if not looking.changes:
        return found
    allowed = None if isinstance(attention, Returned) else _allowed(attention, chosen, found.layers)
    return viewed_overview(found, words=looking.words, special=looking.treatment, allowed=allowed)


def check_has_words(reading: Reading, chosen: Chosen, looking: Looking) -> None:
    """Raises `InputError` for words where nothing but a picture or a sound is read."""
    if looking.words and reading.perceived is not None and not reading.tokens_of(chosen.kind).texts:
        raise InputError("--words joins the pieces of words: a picture or a sound has none")


def _allowed(attention: Capture, chosen: Chosen, layers: Sequence[int]) -> Seen:
    """Where queries may look, by the place of a layer and of a head."""
    calls = [without_padding(attention.call(layer, block=chosen.block)) for layer in layers]
    return lambda layer, head: calls[layer].allowed_matrix(chosen.heads[head])


def needs_norms(measures: Sequence[str]) -> bool:
    """Whether one of them needs what takes the heads' outputs to the hidden state."""
    return any(Need.NORMS in MEASURES[name].needs for name in measures)


def read_aimed(
    reading: Reading,
    chosen: Chosen,
    query: Name,
    key: Name | None = None,
    measures: Sequence[str] = (),
    looking: Looking = TOKENS,
) -> Overview:
    """What one query, named by text or position, gives to one key, or to its strongest, in every chosen head.

    `measures` of the heads stand beside it.
    """
    found = read_overview(reading, chosen, measures or ENTROPY, looking)
    row = position_of(found.query_tokens, str(query))
    column = None if key is None else position_of(found.key_tokens, str(key))
    return aimed(found, row, column, beside=measures)


def read_terms(reading: Reading, chosen: Chosen) -> HeadTerms:
    """The scores of the one chosen head taken apart."""
    layer, head = chosen.only()
    with reading.listener.working("reading the attention"):
        return head_terms(reading.capture(chosen), layer, head, chosen.block)


def read_dimensions(
    reading: Reading, chosen: Chosen, query: Name | None = None, key: Name | None = None
) -> Dimensions:
    """One pair of the one chosen head, dimension by dimension; by default its strongest."""
    layer, head = chosen.only()
    with reading.listener.working("reading the attention"):
        return head_dimensions(reading.capture(chosen), layer, head, query, key, chosen.block)


def each_head(reading: Reading, chosen: Chosen, looking: Looking) -> Iterator[HeadWeights | HeadView]:
    """Every chosen head of every chosen layer as it is looked at, certified where it can be recomputed."""
    with reading.listener.working("reading the attention"):
        attention = reading.attention(chosen)
    for layer in chosen.layers:
        for head in chosen.heads:
            if isinstance(attention, Returned):
                weights: HeadWeights = returned_head(attention, layer, head)
            else:
                weights = recompute_head(attention, layer, head, block=chosen.block)
            yield look_at(weights, looking) or weights
