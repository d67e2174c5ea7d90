"""From a command's options to a model that is loaded as far as needed, and a text that it has read."""

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnscope.cli import selection
from attnscope.cli.output import Output
from attnscope.errors import InputError, listed

if TYPE_CHECKING:
    from attnscope.model.checkpoint import Checkpoint
    from attnscope.model.load import Model, Plan
    from attnscope.model.text import Encoded

DTYPES = ("float32", "bfloat16", "float16", "float64", "auto")


@dataclass(frozen=True)
class Request:
    """Which model a command was asked to load, and how."""

    model: str | None
    revision: str | None = None
    device: str = "auto"
    dtype: str = "float32"
    remote_code: bool = False
    allow_pickle: bool = False


@dataclass(frozen=True, eq=False)
class Session:
    """A model that is ready, the text it will read, and the layers and heads that are meant."""

    model: "Model"
    encoded: "Encoded"
    layers: tuple[int, ...]
    heads: tuple[int, ...]


def read_texts(text: str, pair: str | None) -> tuple[str, ...]:
    """The text or texts of one run, `-` taken from standard input; `InputError` for what is not UTF-8."""
    if text == "-":
        raw = sys.stdin.buffer.read() if sys.stdin else b""
        text = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
    texts = (text,) if pair is None else (text, pair)
    try:
        # an argument that Python could not decode holds its bytes as surrogates
        return tuple(each.encode("utf-8", "surrogateescape").decode("utf-8") for each in texts)
    except UnicodeError as error:
        raise InputError("the text is not valid UTF-8") from error


def find_checkpoint(request: Request, output: Output) -> "Checkpoint":
    """The checkpoint that is asked for, found before torch is imported: most mistakes show at once."""
    if request.dtype not in DTYPES:
        raise InputError(f"unknown dtype '{request.dtype}': {', '.join(DTYPES)}")
    with output.working("looking for the model"):
        from attnscope.model.checkpoint import open_checkpoint
        from attnscope.model.source import find

        source = find(
            request.model,
            revision=request.revision,
            allow_pickle=request.allow_pickle,
            remote_code=request.remote_code,
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
    request: Request,
    texts: tuple[str, ...],
    output: Output,
    *,
    layer: str | None = None,
    head: str | None = None,
    truncate: bool = False,
) -> Session:
    """The model loaded up to the last of the chosen layers, and the text encoded for it."""
    wanted_layers, wanted_heads = selection.parse(layer, "layer"), selection.parse(head, "head")
    checkpoint = find_checkpoint(request, output)
    started = time.perf_counter()
    with loading(checkpoint, output):
        from attnscope.model import load

        planned = load.plan(checkpoint, remote_code=request.remote_code)
        layers, heads = _chosen(planned, wanted_layers, wanted_heads)
        model = load.load(
            planned,
            layers=max(layers) + 1,
            device=request.device,
            dtype=request.dtype,
            remote_code=request.remote_code,
        )
    loaded = "all" if model.layers is None else f"the first {model.layers}"
    output.detail(f"loaded {loaded} of its layers in {time.perf_counter() - started:.1f} s")
    return Session(model, encode(model, texts, output, truncate=truncate), layers, heads)


def encode(model: "Model", texts: tuple[str, ...], output: Output, *, truncate: bool) -> "Encoded":
    """The text as the model reads it; what the user should know about that is said."""
    encoded = model.encode(texts, truncate=truncate)
    for notice in encoded.notices:
        output.notice(notice)
    return encoded


def _chosen(
    planned: "Plan", layers: list[tuple[int, int]] | None, heads: list[tuple[int, int]] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Layers and heads by number."""
    there = tuple(range(planned.heads))
    where = f"{planned.name}: layers {listed(planned.layers)}, heads {listed(there)}"
    return (
        selection.choose(layers, planned.layers, "layer", where),
        selection.choose(heads, there, "head", where),
    )
