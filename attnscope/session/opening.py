"""From a name to a model in memory, loaded as far as the question needs it."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from attnscope.errors import InputError
from attnscope.model.inputs.given import read_vocabulary
from attnscope.process.machine import lean_loading
from attnscope.session.listener import Listener
from attnscope.session.option import slots, words
from attnscope.session.request import Inputs, Loading, ModelRequest
from attnscope.session.wanted import Wanted
from attnscope.vocabulary import Kind, Purpose

if TYPE_CHECKING:
    from attnscope.model.anatomy.towers import Tower
    from attnscope.model.loaded import Model
    from attnscope.model.loading.answering import Judging, Task
    from attnscope.model.loading.load import Plan
    from attnscope.model.source.checkpoint import Checkpoint
    from attnscope.model.source.find import Source
    from attnscope.session.choosing import Chosen

    Check = Callable[[Plan, Chosen], None]


Opening = Callable[..., "Opened"]  # as `open_model` does it


@dataclass(frozen=True, eq=False)
class Opened:
    """A model in memory; `task` is what it can answer, where it was loaded with the head for that.

    `chosen` is what was wanted of it, where anything was.
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
    """The model that is asked for, ready for `inputs`; mistakes show before any weight is read.

    `check` sees what will be loaded, and what of it is meant, before it is.
    """
    if inputs.vocab is not None:
        read_vocabulary(inputs.vocab)  # only to see whether it is one
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
    """Where the model is, found as `how` says before torch is imported: most mistakes show at once."""
    with listener.working("looking for the model"):
        from attnscope.model.source.here import check_environment

        check_environment()
        from attnscope.model.source.find import find

        source = find(name, **how)
    if source.notice:
        listener.notice(source.notice)
    return source


def find_checkpoint(request: ModelRequest, listener: Listener) -> "Checkpoint":
    """The checkpoint that is asked for, with the files that are there."""
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
    """Around importing torch and transformers and loading a model."""
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
    # a model that is opened for whatever may be asked of it may be given token numbers
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
