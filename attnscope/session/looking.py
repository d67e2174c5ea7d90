"""How heads are looked at: by words, by the names of tokens.

Whether the tokens that are named are there, tokenizer and configuration tell before weights are read. What is
not known yet is left to the question itself: pictures and sounds, what a decoder beside an encoder reads,
text that the model writes on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from attnscope.analysis.heads.view import Name, Units, aimed, units_of, viewed, with_units
from attnscope.errors import AttnscopeError
from attnscope.results import (
    HeadAttention,
    HeadView,
    HeadWeights,
    MapSettings,
    Overview,
    Projection,
)
from attnscope.session.listener import Listener
from attnscope.session.prompts import with_fields
from attnscope.session.request import Inputs
from attnscope.session.wanted import Looking
from attnscope.tokens import Tokens
from attnscope.vocabulary import MASKED_SENTENCE, WHOLE_SENTENCE, Kind

if TYPE_CHECKING:
    from attnscope.model.loading.load import Plan
    from attnscope.session.choosing import Chosen

Names = Callable[..., object]  # of what is chosen, the queries and the keys


def check_plan(planned: "Plan", chosen: "Chosen", *, names: Names, inputs: Inputs, code: bool) -> None:
    """Call `names` with the queries, None where these are not known before weights are read, and the keys.

    It raises `InputError` for what is not there, and is not called where the keys are not known.
    """
    beside_encoder = planned.writes and chosen.kind is not Kind.ENCODER
    if beside_encoder and chosen.kind is Kind.DECODER:
        return
    keys = _read(planned, inputs, code)
    if keys is not None:
        names(chosen, None if beside_encoder else keys, keys)


def _read(planned: "Plan", inputs: Inputs, code: bool) -> Tokens | None:
    """The tokens of the text; None where these are not known, or where reading it says why it cannot be."""
    if inputs.sensed or inputs.goes_on:
        return None
    try:
        tokens = _tokens(planned, inputs, code)
        return with_fields(tokens, inputs.prompt) if tokens and inputs.prompt.fields else tokens
    except AttnscopeError:
        return None


def _tokens(planned: "Plan", inputs: Inputs, code: bool) -> Tokens | None:
    from attnscope.model.inputs.generation import encode_numbers, encode_words
    from attnscope.model.inputs.given import Numbered, Unreadable, read_vocabulary
    from attnscope.model.inputs.rendered import encode_chat
    from attnscope.model.inputs.text import encode, limit_of
    from attnscope.model.loading.config import tokenizer_for

    name, numbers = planned.name, inputs.numbers
    tokenizer = tokenizer_for(planned.model_class, planned.checkpoint.words, code, numbers is None)
    if numbers is not None and (inputs.vocab is not None or isinstance(tokenizer, Unreadable | None)):
        tokenizer = Numbered(planned.config, {} if inputs.vocab is None else read_vocabulary(inputs.vocab))
    if tokenizer is None:  # of a model that reads no text
        return None
    limit = limit_of(tokenizer, planned.skeleton)
    how: dict[str, Any] = {"name": name, "limit": limit, "truncate": inputs.truncate}
    if numbers is not None:
        return encode_numbers(tokenizer, numbers, **how).tokens
    if (chat := inputs.conversation) is not None:
        return encode_chat(tokenizer, chat, **how).tokens
    if (words := inputs.given_words) is not None:
        return encode_words(tokenizer, words, **how).tokens
    sentence = MASKED_SENTENCE if tokenizer.mask_token is not None else WHOLE_SENTENCE
    text = sentence if inputs.text is None else inputs.text
    texts = (text,) if inputs.pair is None else (text, inputs.pair)
    return encode(tokenizer, texts, **how).tokens


def check_link(chosen: "Chosen", queries: Tokens | None, keys: Tokens, asked: Any) -> None:
    """`InputError` for a query, a key or a second query that is not there, each of one token or several."""
    how = asked.looking.how | {"key": asked.key}
    how |= {} if queries is None else {"query": asked.query, "beside": getattr(asked, "compare_query", None)}
    units_of(keys if queries is None else queries, keys, **how)


ENTROPY = ("entropy",)


def overview_aimed(
    overview: Overview, query: Name, key: Name | None, measures: Sequence[str], looking: Looking
) -> Overview:
    """What one query, named by text or position, gives to one key, or to its strongest, in every chosen head.

    `measures` of the heads stand beside it.
    """
    units = units_of(overview.query_tokens, overview.key_tokens, query=query, key=key)
    assert units.query is not None, "that is what was asked for"
    seen = overview if units.plain else with_units(overview, units)
    if overview.by.joins and overview.tokens is not None:
        seen = replace(seen, aim_spans=_spans(overview.tokens, units, looking))
    return aimed(seen, units.query, units.key, beside=measures)


def _spans(tokens: Overview, units: Units, looking: Looking) -> tuple[tuple[int, ...], ...]:
    whole = units_of(tokens.query_tokens, tokens.key_tokens, **looking.how)
    sides = (units.queries, whole.queries, units.query), (units.keys, whole.keys, units.key)
    return tuple(
        tuple(token for each in groups[place] for token in unit[each])
        for groups, unit, place in sides
        if place is not None
    )


def look_at(head: HeadWeights, looking: Looking) -> HeadView | None:
    """The weights of `head` looked at otherwise; None where that is as they are."""
    return viewed(head, **looking.how) if looking.changes else None


@dataclass(frozen=True)
class Seen:
    """One head as it is looked at, and the row and the column that are meant, if any, and a second row."""

    shown: HeadWeights | HeadView
    query: int | None = None
    key: int | None = None
    beside: int | None = None


def aim_at(
    head: HeadWeights,
    looking: Looking,
    query: Name | None = None,
    key: Name | None = None,
    beside: Name | None = None,
) -> Seen:
    """`head` with what `query` and `key` name as one row and one column each, of however many tokens.

    `beside` names a second query.

    Raises `InputError` for names that fit nothing or several places, and for spans that share tokens.
    """
    how = looking.how
    units = units_of(head.query_tokens, head.key_tokens, query=query, key=key, beside=beside, **how)
    as_it_is = units.plain and not looking.changes
    return Seen(head if as_it_is else viewed(head, units=units, **how), units.query, units.key, units.beside)


def map_head(
    head: HeadAttention,
    settings: MapSettings,
    listener: Listener,
    view: HeadView | None = None,
) -> Projection:
    """The map of a head, or of a view of it; what was done other than asked is told."""
    from attnscope.analysis.heads.projection import project_head  # loads what reduces dimensions

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
