"""Figures that attnscope showed, computed again with torch and transformers alone. Nothing of attnscope runs.

    python THIS_FILE [--model NAME-OR-FOLDER]

What was shown stands in SHOWN, and beside it what it was shown of. Below it is computed again in the plainest
way that there is. It is said whether the weights are those that were read, where they are one file. Every
figure is printed as it was shown and as it is now, and at last the verdict. The exit code is 0 where all of
them are as shown, 1 where one is off, and 2 where they cannot be computed.
"""

import argparse
import hashlib
import math
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NoReturn

import torch
import transformers
from torch import Tensor

Figures = Iterable[tuple[str, float | None, float]]  # name, as it was shown, as it is now
Given = dict[str, Tensor]  # what a model is called with
SHOWN: dict[str, Any] = {}
MOST = 40  # figures that are printed one by one
DEMO = (
    "these figures are of the small model that attnscope brings along: give its folder, "
    "--model .../site-packages/attnscope/demo/"
)


def plain(text: str) -> str:
    """Replace control characters by escapes."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def stop(why: str) -> NoReturn:
    print(f"cannot be repeated: {plain(why)}", file=sys.stderr)
    sys.exit(2)


def check_weights(name: str, revision: str) -> None:
    """Say whether the weights file is the one that was read; stop where it is another."""
    file, digest = None, SHOWN["digest"]
    if digest and not SHOWN["part"]:
        with suppress(OSError):  # several files, pickles
            file = transformers.utils.cached_file(name, "model.safetensors", revision=revision)
    if file is None:
        print("weights: not checked, they are no single file of which a hash was kept")
        return
    with open(file, "rb") as opened:
        found = f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"
    if found != digest:
        stop(f"{name}: its weights are not those that were read: {found[:19]}, then {digest[:19]}")
    print(f"weights: {found[:19]}, as they were read")


def load() -> Any:
    """Load the model with eager attention, in the dtype it was shown with."""
    parser = argparse.ArgumentParser(description="Computes again what was shown, and says whether it agrees.")
    parser.add_argument("--model", default=SHOWN["model"], help=f"instead of {SHOWN['model'] or 'the demo'}")
    name = parser.parse_args().model or stop(DEMO + SHOWN["demo"])
    kind = getattr(transformers, SHOWN["architecture"], None)
    if kind is None:
        stop(f"transformers {transformers.__version__} has no {SHOWN['architecture']}")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    revision = SHOWN["revision"] or "main"
    try:
        model = kind.from_pretrained(
            name,
            revision=revision,
            dtype=getattr(torch, SHOWN["dtype"]),
            attn_implementation="eager",
        )
    except (OSError, ValueError) as error:
        stop(f"{name}: {str(error).splitlines()[0]}")
    check_weights(name, revision)
    return model.eval()


def inputs(**changed: list[int]) -> Given:
    """The model's inputs as a batch of one; `changed` replaces those it names."""
    return {name: torch.tensor([ids]) for name, ids in (SHOWN["inputs"] | changed).items()}


@torch.no_grad()
def attention(model: Any, given: Given) -> list[Tensor]:
    """The attention weights that the model returns, by layer: head, query, key."""
    output = model(**given, output_attentions=True)
    two = model.config.is_encoder_decoder
    layers = output.get(f"{SHOWN['kind']}_attentions" if two else "attentions") or ()
    expected = len(layers) if two else model.config.get_text_config().num_hidden_layers
    if not layers or len(layers) != expected or any(layer is None for layer in layers):
        stop(f"{SHOWN['architecture']} does not return the weights of all of its layers")
    return [layer[0].double() for layer in layers]


def report(figures: Figures) -> NoReturn:
    """Print every figure as shown and as computed now, then the verdict; exit 0 if all agree, else 1."""
    allowed, worst, off, count = SHOWN["allowed"], 0.0, 0, 0
    figures = list(figures)  # what is said while they are computed stands above them
    print(f"{'':44}{'shown':>14}{'now':>14}{'off by':>12}")
    for name, shown, now in figures:
        if shown is None:
            apart = 0.0 if math.isnan(now) else math.inf
        else:
            apart = math.inf if math.isnan(now) else abs(shown - now)
        wrong = apart > allowed
        worst, off, count = max(worst, apart), off + wrong, count + 1
        if count <= MOST or wrong:
            then = "none" if shown is None else f"{shown:.7g}"
            print(f"{plain(name)[:43]:44}{then:>14}{now:>14.7g}{apart:>12.2g}{'  OFF' if wrong else ''}")
    if count > MOST:
        print(f"and {count - MOST} more")
    if off or not count:
        print(f"OFF: {off} of {count} figures differ by more than {allowed:g}, the largest by {worst:.2g}")
        sys.exit(1)
    print(f"as shown: {count} figures, the largest difference {worst:.2g} ({allowed:g} is allowed)")
    sys.exit(0)
