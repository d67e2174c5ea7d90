"""Open a model by name, loading only the layers and the head that the question needs.

Named tokens are checked before weights are read, with the tokenizer and the config. The question itself
checks the rest: pictures and sounds, decoder targets, generated text.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from attnscope.analysis.heads.view import Name, Units, aimed, units_of, viewed, with_units
from attnscope.errors import AttnscopeError, InputError
from attnscope.model.inputs.given import read_vocabulary
from attnscope.process.machine import lean_loading
from attnscope.results import HeadAttention, HeadView, HeadWeights, MapSettings, Overview, Projection
from attnscope.session.listener import Listener
from attnscope.session.option import slots, words
from attnscope.session.prompts import with_fields
from attnscope.session.request import Inputs, Loading, ModelRequest
from attnscope.session.wanted import Looking, Wanted
from attnscope.tokens import Tokens
from attnscope.vocabulary import MASKED_SENTENCE, WHOLE_SENTENCE, Kind, Purpose

if TYPE_CHECKING:
    from attnscope.model.anatomy.towers import Tower
    from attnscope.model.loaded import Model
    from attnscope.model.loading.answering import Judging, Task
    from attnscope.model.loading.load import Plan
    from attnscope.model.source.checkpoint import Checkpoint
    from attnscope.model.source.find import Source
    from attnscope.session.choosing import Chosen

    Check = Callable[[Plan, Chosen], None]


Names = Callable[..., object]  # called with the chosen heads, query tokens and key tokens


def check_plan(planned: "Plan", chosen: "Chosen", *, names: Names, inputs: Inputs, code: bool) -> None:
    """Call `names` with the chosen heads, the query tokens and the key tokens, before weights are read.

    The query tokens are None where they are not known yet. `names` raises `InputError` for tokens that are
    not there; it is not called where the keys are not known.
    """
    beside_encoder = planned.writes and chosen.kind is not Kind.ENCODER
    if beside_encoder and chosen.kind is Kind.DECODER:
        return
    keys = _read(planned, inputs, code)
    if keys is not None:
        names(chosen, None if beside_encoder else keys, keys)


def _read(planned: "Plan", inputs: Inputs, code: bool) -> Tokens | None:
    """Tokens of the input; None for pictures, sounds and generated text, and where encoding fails."""
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
    if tokenizer is None:  # the model reads no text
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
    """`InputError` for a query, a key or a second query that is not among the tokens."""
    how = asked.looking.how | {"key": asked.key}
    how |= {} if queries is None else {"query": asked.query, "beside": getattr(asked, "compare_query", None)}
    units_of(keys if queries is None else queries, keys, **how)


ENTROPY = ("entropy",)


def overview_aimed(
    overview: Overview, query: Name, key: Name | None, measures: Sequence[str], looking: Looking
) -> Overview:
    """The overview aimed at one query, named by text or position, and one key or its strongest.

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
    """The view of `head` that `looking` describes; None where that is the plain weights."""
    return viewed(head, **looking.how) if looking.changes else None


@dataclass(frozen=True)
class Seen:
    """One head in its view, with the row and the column that are meant, if any, and a second row."""

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
    """`head` in its view, with `query` and `key` resolved to one row and one column.

    Each may name several tokens. `beside` names a second query. Raises `InputError` for names that fit
    nothing or several places, and for spans that share tokens.
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
    """The 2D map of a head's queries and keys, or of a view of it; tells of a lowered perplexity."""
    from attnscope.analysis.heads.projection import project_head  # imports dimension reduction

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


Opening = Callable[..., "Opened"]  # a function like `open_model`


@dataclass(frozen=True, eq=False)
class Opened:
    """A model in memory; `task` is its answering task, if it was loaded with a head for one.

    `chosen` are the layers and heads that are meant, None where none were asked for.
    """

    model: "Model"
    task: "Task | None" = None
    chosen: "Chosen | None" = None


def open_model(
    request: ModelRequest,
    inputs: Inputs,
    wanted: Wanted | None,
    purpose: Purpose,
    listener: Listener,
    check: "Check | None" = None,
) -> Opened:
    """Load the model of `request` for `inputs`; mistakes show before any weight is read.

    `check` gets the plan and the chosen heads before the weights are loaded.
    """
    if inputs.vocab is not None:
        read_vocabulary(inputs.vocab)  # raises for a file that is no vocabulary
    checkpoint = find_checkpoint(request, listener)
    started = time.perf_counter()
    with loading(checkpoint.source.name, listener):
        opened = _loaded(checkpoint, request, inputs, wanted, purpose, listener, check)
    run = words(request, [each for each in slots(Loading) if each != "adapter"])
    model = replace(opened.model, kernel=request.attn, run=run)
    opened = replace(opened, model=model)
    loaded = "all" if model.layers is None else f"the first {model.layers}"
    listener.detail(f"loaded {loaded} of its layers in {time.perf_counter() - started:.1f} s")
    _tell_memory(model, listener)
    if model.unread:
        from attnscope.model.loading.partial import counted, named

        those = f"{counted(model.unread)} of its file: {named(model.unread)}"
        listener.notice(f"{model.name} does not read {those}")
    return opened


def find_source(name: str | None, listener: Listener, **how: Any) -> "Source":
    """Find the model's folder, before torch is imported; `how` are options of `source.find`."""
    with listener.working("looking for the model"):
        from attnscope.model.source.here import check_environment

        check_environment()
        from attnscope.model.source.find import find

        source = find(name, **how)
    if source.notice:
        listener.notice(source.notice)
    return source


def find_checkpoint(request: ModelRequest, listener: Listener) -> "Checkpoint":
    """The checkpoint of the requested model, with its tokenizer and adapter."""
    source = find_source(
        request.name,
        listener,
        revision=request.revision,
        allow_pickle=request.allow_pickle,
        remote_code=request.trust_remote_code,
        stand_in=request.stand_in,
    )
    with listener.working("looking for the model"):
        from attnscope.model.source.checkpoint import open_checkpoint
        from attnscope.model.source.find import find

        words = None if request.tokenizer is None else find(request.tokenizer, weights=False)
        if words is not None:
            listener.notice(f"read with the tokenizer of {words.name}")
        return open_checkpoint(
            source, allow_pickle=request.allow_pickle, adapter=request.adapter, tokenizer=words
        )


@contextmanager
def loading(name: str, listener: Listener) -> Iterator[None]:
    """Context manager around importing torch and loading a model."""
    with listener.working(f"loading {name}"), lean_loading():
        yield


def _loaded(
    checkpoint: "Checkpoint",
    request: ModelRequest,
    inputs: Inputs,
    wanted: Wanted | None,
    purpose: Purpose,
    listener: Listener,
    check: "Check | None",
) -> Opened:
    from attnscope.model.loading.answering import NoAnswerError, load_answering
    from attnscope.model.loading.config import saved_class
    from attnscope.model.loading.load import load_model, load_with_head, plan_model
    from attnscope.session.choosing import choose

    code = request.trust_remote_code
    _check_chat(checkpoint, inputs, code)
    # a model that is opened for any question may be given token ids, without a tokenizer
    loading = request.loading | {"words": inputs.ids is None and purpose is not Purpose.ANYTHING}
    answering = (Purpose.ANSWER, Purpose.ANSWER_OR_CLASS, Purpose.ANSWER_OR_VECTOR)
    chosen, must_answer = None, purpose in answering
    if wanted is not None:
        as_saved = {"choose": saved_class} if inputs.sensed else {}
        planned = plan_model(checkpoint, remote_code=code, **as_saved)
        chosen = choose(planned, wanted, listener, sensed=inputs.sensed)
        if check is not None:
            check(planned, chosen)
        if inputs.goes_on:
            _check_goes_on(planned, chosen.tower)
            must_answer = True
    if purpose is Purpose.EVERYTHING:
        return Opened(load_with_head(checkpoint, **loading), None, chosen)
    if must_answer or purpose in (Purpose.ATTENTION_AND_ANSWER, Purpose.ANYTHING):
        pair = inputs.paired or purpose is Purpose.ANYTHING
        try:
            model, task = load_answering(checkpoint, pair=pair, **loading)
            return Opened(model, task, chosen)
        except NoAnswerError as error:
            told = _judging(checkpoint, code)
            beside = purpose is Purpose.ATTENTION_AND_ANSWER and told in ("tags", "span")
            if beside or (purpose in answering[1:] and told is not None):
                return Opened(load_with_head(checkpoint, **loading), None, chosen)
            if purpose is Purpose.ANSWER_OR_VECTOR and not inputs.goes_on:
                return Opened(load_model(planned, **loading), None, chosen)
            if must_answer:
                raise
            if purpose is Purpose.ANYTHING:
                return Opened(load_with_head(checkpoint, **loading), None, chosen)
            listener.notice(f"no prediction: {error}")
    assert chosen is not None, "without a head that answers there is only attention to look at"
    return Opened(load_model(planned, layers=max(chosen.layers) + 1, **loading), None, chosen)


def _check_chat(checkpoint: "Checkpoint", inputs: Inputs, code: bool) -> None:
    if (chat := inputs.conversation) is None:
        return
    from attnscope.model.inputs.rendered import Template
    from attnscope.model.loading.config import open_tokenizer

    Template(open_tokenizer(checkpoint.words, code), chat, checkpoint.source.name).whole()


def _judging(checkpoint: "Checkpoint", remote_code: bool) -> "Judging | None":
    from attnscope.model.loading.answering import judging
    from attnscope.model.loading.config import read_config, saved_class

    return judging(saved_class(read_config(checkpoint, remote_code)))


def _check_goes_on(planned: "Plan", tower: "Tower") -> None:
    if tower.kind is not Kind.ENCODER:
        return
    if planned.writes:
        raise InputError(f"what {planned.name} generates its decoder reads: --kind decoder or --kind cross")
    raise InputError(f"{planned.name} is no decoder and writes no text: leave --generate out")


def _tell_memory(model: "Model", listener: Listener) -> None:
    from attnscope.model.anatomy.placed import map_of
    from attnscope.model.loading import memory

    if spread := map_of(model.module):
        listener.detail(f"spread: {json.dumps(spread)}")
    say = listener.notice if memory.is_notable(model) else listener.detail
    say(memory.statement(model))
