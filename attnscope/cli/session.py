"""From a command's options to a model that is loaded as far as needed, and texts that it has read."""

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attnscope.cli import selection
from attnscope.cli.groups import Request, Texts, Wanted, decoded
from attnscope.cli.output import Output
from attnscope.errors import InputError, listed

if TYPE_CHECKING:
    from attnscope.attention import Capture
    from attnscope.model.answer import Task
    from attnscope.model.checkpoint import Checkpoint
    from attnscope.model.load import Plan
    from attnscope.model.loaded import Model
    from attnscope.model.target import Target
    from attnscope.model.text import Encoded
    from attnscope.results import HeadAttention, Kind


@dataclass(frozen=True, eq=False)
class Session:
    """A model that is ready, the texts it will read, and the kind, layers and heads that are meant.

    `task` is what the model can answer, where it was loaded with the head for that.
    """

    model: "Model"
    encoded: "Encoded"
    target: "Target | None"
    kind: "Kind"
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    task: "Task | None" = None

    @property
    def inputs(self) -> dict[str, Any]:
        return inputs_of(self.encoded, self.target)

    def head(self) -> "HeadAttention":
        """The one chosen head, recomputed and certified; `InputError` where several are meant."""
        from attnscope.analysis import head_attention

        if len(self.layers) * len(self.heads) != 1:
            raise InputError("this needs one head: give one --layer and one --head")
        return head_attention(self.capture(), self.layers[0], self.heads[0])

    def capture(self, layers: Sequence[int] | None = None) -> "Capture":
        """The attention of the chosen heads in the chosen layers, or in others that are named."""
        from attnscope.capture import capture, provenance_of

        model, encoded = self.model, self.encoded
        return capture(
            model.module,
            self.inputs,
            layers=self.layers if layers is None else layers,
            heads=self.heads,
            kind=self.kind,
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
        from attnscope.model.checkpoint import open_checkpoint
        from attnscope.model.source import find

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


def open_session(
    request: Request, texts: Texts, wanted: Wanted, output: Output, *, answering: bool = False
) -> Session:
    """The model loaded up to the last of the chosen layers, and the texts encoded for it.

    With `answering` it is loaded whole, with the head that it predicts with where it has one.
    """
    wanted_layers, wanted_heads = (
        selection.parse(wanted.layer, "layer"),
        selection.parse(wanted.head, "head"),
    )
    read = texts.read()
    checkpoint = find_checkpoint(request, output)
    started = time.perf_counter()
    with loading(checkpoint, output):
        from attnscope.model import load

        planned = load.plan(checkpoint, remote_code=request.trust_remote_code)
        kind = _chosen_kind(planned, wanted.kind, output)
        layers, heads = _chosen(planned, kind, wanted_layers, wanted_heads)
        model, task = _answering(checkpoint, texts, request, output) if answering else (None, None)
        if model is None:
            model = load.load(planned, layers=max(layers) + 1, **request.loading)
    loaded = "all" if model.layers is None else f"the first {model.layers}"
    output.detail(f"loaded {loaded} of its layers in {time.perf_counter() - started:.1f} s")
    encoded = encode(model, texts.suited(read, model), output, truncate=texts.truncate)
    target = read_target(model, encoded, texts.target, output, kind=kind)
    return Session(model, encoded, target, kind, layers, heads, task)


def _answering(
    checkpoint: "Checkpoint", texts: Texts, request: Request, output: Output
) -> "tuple[Model | None, Task | None]":
    """The model with the head that it answers with; nothing, and a notice, where it has none."""
    from attnscope.model.answer import NoAnswerError, load_answering

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


def _chosen_kind(planned: "Plan", wanted: str | None, output: Output) -> "Kind":
    """The kind of attention to look at: the only one, the one that is wanted, or cross-attention."""
    from attnscope.results import Kind

    kinds = tuple(planned.layers)
    if wanted is not None and wanted not in kinds:
        raise InputError(f"{planned.name} has no {wanted} attention: it has {' and '.join(kinds)}")
    if wanted is None and len(kinds) > 1:
        output.notice(f"{planned.name} has {', '.join(kinds)} attention: showing cross (--kind chooses)")
        return Kind.CROSS
    return Kind(wanted or kinds[0])


def _chosen(
    planned: "Plan",
    kind: "Kind",
    layers: list[tuple[int, int]] | None,
    heads: list[tuple[int, int]] | None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Layers and heads by number."""
    there = tuple(range(planned.heads[kind]))
    of_kind = f" ({kind})" if planned.writes else ""
    where = f"{planned.name}{of_kind}: layers {listed(planned.layers[kind])}, heads {listed(there)}"
    return (
        selection.choose(layers, planned.layers[kind], "layer", where),
        selection.choose(heads, there, "head", where),
    )
