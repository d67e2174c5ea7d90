"""From a command's options to a model that is loaded as far as needed, and texts that it has read."""

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from attnscope.cli import selection
from attnscope.cli.groups import ROUTES, Request, Texts, Wanted, decoded
from attnscope.cli.output import Output
from attnscope.cli.writing import Writing, check_goes_on, gone_on
from attnscope.errors import InputError, listed

if TYPE_CHECKING:
    from attnscope.attention import Capture
    from attnscope.model.anatomy.towers import Tower
    from attnscope.model.inputs.target import Target
    from attnscope.model.inputs.text import Encoded
    from attnscope.model.loaded import Model
    from attnscope.model.loading.answering import Task
    from attnscope.model.loading.load import Plan
    from attnscope.model.source.checkpoint import Checkpoint
    from attnscope.results import HeadAttention, Kind


@dataclass(frozen=True, eq=False)
class Session:
    """A model that is ready, the texts it will read, and the tower, layers and heads that are meant.

    `task` is what the model can answer, where it was loaded with the head for that. Of a text that it went
    on with, the attention of all chosen heads is `captured` already.
    """

    model: "Model"
    encoded: "Encoded"
    target: "Target | None"
    tower: "Tower"
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    task: "Task | None" = None
    block: int = 0
    route: str | None = None
    captured: "Capture | None" = None

    @property
    def kind(self) -> "Kind":
        return self.tower.kind

    @property
    def inputs(self) -> dict[str, Any]:
        return inputs_of(self.encoded, self.target)

    def head(self) -> "HeadAttention":
        """The one chosen head, recomputed and certified; `InputError` where several are meant."""
        from attnscope.analysis import head_attention

        layer, head = self.only()
        return head_attention(self.capture(), layer, head, block=self.block)

    def only(self) -> tuple[int, int]:
        """The one chosen layer and head; `InputError` where several are meant."""
        if len(self.layers) * len(self.heads) != 1:
            raise InputError("this needs one head: give one --layer and one --head")
        return self.layers[0], self.heads[0]

    def capture(self, layers: Sequence[int] | None = None) -> "Capture":
        """The attention of the chosen heads in the chosen layers, or in others that are named."""
        from attnscope.capture import capture, provenance_of
        from attnscope.capture.faults import if_it_runs
        from attnscope.results import Route

        model, encoded = self.model, self.encoded
        if self.captured is not None:
            return self.captured
        if self.route == ROUTES["returned"]:
            raise InputError("--route returned has weights alone: here queries and keys are needed")
        with if_it_runs(model.module, self.inputs, model.name):
            return capture(
                model.module,
                self.inputs,
                layers=self.layers if layers is None else layers,
                heads=self.heads,
                kind=self.kind,
                tower=self.tower.pattern,
                route=None if self.route is None else Route(self.route),
                tokens=encoded.tokens,
                target=None if self.target is None else self.target.tokens,
                provenance=provenance_of(model.module, encoded.tokens, model.origin()),
            )


def inputs_of(encoded: "Encoded", target: "Target | None") -> dict[str, Any]:
    """What the model is called with."""
    return {**encoded.inputs, **({} if target is None else {"decoder_input_ids": target.ids})}


def find_checkpoint(request: Request, output: Output) -> "Checkpoint":
    """The checkpoint that is asked for, found before torch is imported: most mistakes show at once."""
    with output.working("looking for the model"):
        from attnscope.model.source.address import check_endpoint

        check_endpoint()
        from attnscope.model.source.checkpoint import open_checkpoint
        from attnscope.model.source.find import find

        source = find(
            request.model,
            revision=request.revision,
            allow_pickle=request.allow_pickle,
            remote_code=request.trust_remote_code,
        )
        if source.notice:
            output.notice(source.notice)
        return open_checkpoint(source, allow_pickle=request.allow_pickle)


@contextmanager
def loading(checkpoint: "Checkpoint", output: Output) -> Iterator[None]:
    """Around importing torch and transformers and loading a model: a spinner, and no garbage collection.

    The collector finds nothing in modules that are being imported, and takes a fifth of the start-up.
    """
    with output.working(f"loading {checkpoint.source.name}"):
        gc.disable()
        try:
            yield
        finally:
            gc.enable()


def tell_memory(model: "Model", output: Output) -> None:
    """Say in what precision the model runs and what it takes; unasked where its weights were changed much."""
    from attnscope.model.loading import memory

    say = output.notice if memory.is_notable(model) else output.detail
    say(memory.statement(model))


def open_session(
    request: Request,
    texts: Texts,
    wanted: Wanted,
    output: Output,
    *,
    answering: bool = False,
    writing: Writing | None = None,
) -> Session:
    """The model loaded up to the last of the chosen layers, and the texts encoded for it.

    With `answering` it is loaded whole, with the head that it predicts with where it has one. It goes on
    with the text where `writing` says so.
    """
    settings = None if writing is None else writing.settings()
    wanted_layers, wanted_heads = (
        selection.parse(wanted.layer, "layer"),
        selection.parse(wanted.head, "head"),
    )
    read = texts.read()
    checkpoint = find_checkpoint(request, output)
    started = time.perf_counter()
    with loading(checkpoint, output):
        from attnscope.model.loading import load

        planned = load.plan(checkpoint, remote_code=request.trust_remote_code)
        tower = _chosen_tower(planned, wanted, output)
        layers, heads = chosen_heads(planned, tower, wanted_layers, wanted_heads, output)
        model, task = None, None
        if settings is not None:
            from attnscope.model.loading.answering import load_answering

            check_goes_on(planned, tower, texts)
            model, task = load_answering(checkpoint, **request.loading)
        elif answering:
            model, task = _answering(checkpoint, texts, request, output)
        if model is None:
            model = load.load(planned, layers=max(layers) + 1, **request.loading)
    loaded = "all" if model.layers is None else f"the first {model.layers}"
    output.detail(f"loaded {loaded} of its layers in {time.perf_counter() - started:.1f} s")
    tell_memory(model, output)
    encoded = encode(model, texts.suited(read, model), output, truncate=texts.truncate)
    route = None if wanted.route is None else ROUTES[wanted.route]
    session = Session(model, encoded, None, tower, layers, heads, task, wanted.block, route)
    if settings is not None:
        return gone_on(session, settings, output)
    return replace(session, target=read_target(model, encoded, texts.target, output, kind=tower.kind))


def _answering(
    checkpoint: "Checkpoint", texts: Texts, request: Request, output: Output
) -> "tuple[Model | None, Task | None]":
    """The model with the head that it answers with; nothing, and a notice, where it has none."""
    from attnscope.model.loading.answering import NoAnswerError, load_answering

    try:
        return load_answering(checkpoint, pair=texts.pair is not None, **request.loading)
    except NoAnswerError as error:
        output.notice(f"no prediction: {error}")
        return None, None


def encode(model: "Model", texts: tuple[str, ...], output: Output, *, truncate: bool) -> "Encoded":
    """The text as the model reads it; what the user should know about that is said."""
    encoded = model.encode(texts, truncate=truncate)
    for notice in encoded.notices:
        output.notice(notice)
    return encoded


def read_target(
    model: "Model", encoded: "Encoded", text: str | None, output: Output, *, kind: "Kind | None" = None
) -> "Target | None":
    """What the decoder beside an encoder reads; when only the encoder is looked at, no more than it takes."""
    if not model.writes:
        if text is not None:
            raise InputError(f"{model.name} is no encoder-decoder: leave --target out")
        return None
    if kind == "encoder":
        if text is not None:
            raise InputError(
                "--target is what the decoder reads, --kind encoder shows the encoder: leave one out"
            )
        return model.opening()
    with output.working("writing the target"):
        target = model.target(encoded, None if text is None else decoded(text))
    if target.written:
        output.notice(f"{model.name} writes: {target.tokens.sentence}")
    if not target.finished:
        output.notice(f"it had not come to an end after {len(target.tokens)} tokens: cut there")
    return target


def _chosen_tower(planned: "Plan", wanted: Wanted, output: Output) -> "Tower":
    """The attention to look at: the only one, the one that is wanted, or else the one that reads the text."""
    from attnscope.model.anatomy.towers import choose_tower, reading_text
    from attnscope.model.anatomy.without import without_attention
    from attnscope.results import Kind

    kind = None if wanted.kind is None else Kind(wanted.kind)
    if not planned.towers:
        raise InputError(without_attention(planned.skeleton, planned.name))
    if len(planned.towers) < 2 or wanted.tower is not None:
        return choose_tower(planned.towers, kind, wanted.tower, planned.name)
    if kind is not None and sum(tower.kind is kind for tower in planned.towers) == 1:
        return choose_tower(planned.towers, kind, None, planned.name)
    meant = [tower for tower in planned.towers if kind in (None, tower.kind)]
    if not meant:
        return choose_tower(planned.towers, kind, None, planned.name)  # refused in its words
    chosen = reading_text(meant)
    kinds = list(dict.fromkeys(tower.kind for tower in meant))
    if len(kinds) == len(meant):
        output.notice(
            f"{planned.name} has {', '.join(kinds)} attention: showing {chosen.kind} (--kind chooses)"
        )
    else:
        there = ", ".join(tower.called for tower in meant)
        output.notice(f"{planned.name} has attention in {there}: showing {chosen.called} (--tower chooses)")
    return chosen


def chosen_heads(
    planned: "Plan",
    tower: "Tower",
    layers: list[tuple[int, int]] | None,
    heads: list[tuple[int, int]] | None,
    output: Output,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Layers and heads by number; where layers differ in heads, those that all chosen ones have."""
    from attnscope.model.anatomy.towers import layers_without

    of_kind = f" ({tower.called})" if len(planned.towers) > 1 else ""
    widest = range(max(tower.heads.values()))
    where = f"{planned.name}{of_kind}: layers {listed(tower.layers)}, heads {listed(widest)}"
    chosen = selection.choose(layers, tower.layers, "layer", where, layers_without(planned.skeleton, tower))
    counts = {tower.heads[layer] for layer in chosen}
    if 0 in counts:
        raise InputError(f"{planned.name} does not say how many heads a layer has: name layer and head")
    if len(counts) > 1:
        output.notice(f"the layers have {listed(sorted(counts))} heads: choosing from {min(counts)}")
    return chosen, selection.choose(heads, tuple(range(min(counts))), "head", where)
