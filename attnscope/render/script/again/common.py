"""Figures that attnscope showed, computed again with torch and transformers alone. Nothing of attnscope runs.

    python THIS_FILE [--model NAME-OR-FOLDER]

What was shown stands in SHOWN, and beside it what it was shown of. Below it is computed again in the plainest
way that there is. Every figure is printed as it was shown and as it is now, and at last the verdict. The exit
code is 0 where all of them are as shown, 1 where one is off, and 2 where they cannot be computed.
"""

import argparse
import math
import sys
from collections.abc import Iterable
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


def stop(why: str) -> NoReturn:
    print(f"cannot be repeated: {why}", file=sys.stderr)
    sys.exit(2)


def load() -> Any:
    """The model as it was shown, in its plainest form."""
    parser = argparse.ArgumentParser(description="Computes again what was shown, and says whether it agrees.")
    parser.add_argument("--model", default=SHOWN["model"], help=f"instead of {SHOWN['model'] or 'the demo'}")
    name = parser.parse_args().model or stop(DEMO + SHOWN["demo"])
    kind = getattr(transformers, SHOWN["architecture"], None)
    if kind is None:
        stop(f"transformers {transformers.__version__} has no {SHOWN['architecture']}")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        model = kind.from_pretrained(
            name,
            revision=SHOWN["revision"] or "main",
            dtype=getattr(torch, SHOWN["dtype"]),
            attn_implementation="eager",
        )
    except (OSError, ValueError) as error:
        stop(f"{name}: {str(error).splitlines()[0]}")
    return model.eval()


def inputs(**changed: list[int]) -> Given:
    """All that the model was called with, a batch of one; `changed` stands in the place of what it names."""
    return {name: torch.tensor([ids]) for name, ids in (SHOWN["inputs"] | changed).items()}


@torch.no_grad()
def attention(model: Any, given: Given) -> list[Tensor]:
    """The weights that the model itself returns, by layer: head, query, key."""
    output = model(**given, output_attentions=True)
    two = model.config.is_encoder_decoder
    layers = output.get(f"{SHOWN['kind']}_attentions" if two else "attentions") or ()
    expected = len(layers) if two else model.config.get_text_config().num_hidden_layers
    if not layers or len(layers) != expected or any(layer is None for layer in layers):
        stop(f"{SHOWN['architecture']} does not return the weights of all of its layers")
    return [layer[0].double() for layer in layers]


def report(figures: Figures) -> NoReturn:
    """Every figure as it was shown and as it is now, and whether they are the same."""
    allowed, worst, off, count = SHOWN["allowed"], 0.0, 0, 0
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
            print(f"{name[:43]:44}{then:>14}{now:>14.7g}{apart:>12.2g}{'  OFF' if wrong else ''}")
    if count > MOST:
        print(f"and {count - MOST} more")
    if off or not count:
        print(f"OFF: {off} of {count} figures differ by more than {allowed:g}, the largest by {worst:.2g}")
        sys.exit(1)
    print(f"as shown: {count} figures, the largest difference {worst:.2g} ({allowed:g} is allowed)")
    sys.exit(0)
