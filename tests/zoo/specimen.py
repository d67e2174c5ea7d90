"""A specimen: one tiny, sharpened model of one type, and inputs that it runs on."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .classes import model_class
from .configs import NotBuildable, config
from .inputs import LAYOUTS, Maker
from .prompts import media, prompt
from .sharpen import draw, finite, peaks

GAINS = (2.0, 1.0, 4.0, 0.5, 8.0)
PEAKED = (0.2, 0.9)  # neither even nor one-hot
LARGEST = 16_000_000  # parameters


@dataclass(frozen=True)
class Specimen:
    """A model (eval, float32, eager) and what to call it with."""

    model_type: str
    model: nn.Module
    inputs: dict[str, Any]
    peak: float | None  # mean over the softmaxes, 0 even, 1 one-hot; None where there is no softmax
    notes: str = ""


def build(model_type: str, seed: int = 0) -> Specimen:
    """The specimen of a model type; NotBuildable says in one line why there is none."""
    made = config(model_type)
    kind = model_class(made)
    with torch.device("meta"):
        try:
            size = sum(parameter.numel() for parameter in kind(made).parameters())
        except Exception:
            size = 0
    if size > LARGEST:
        raise NotBuildable(f"too big: {size} parameters")
    torch.manual_seed(seed)
    model = kind._from_config(made, attn_implementation="eager").eval().float()
    inputs, notes = _runnable(model, seed)
    return Specimen(model_type, model, inputs, _sharpen(model, inputs, seed), notes)


def _runnable(model: nn.Module, seed: int) -> tuple[dict[str, Any], str]:
    """The first inputs that the model accepts, those with pictures or sound before text alone, and a note."""
    notes, first = "", None
    found = media(Maker(model, seed))
    for name in [*found, None]:
        for layout in range(LAYOUTS):
            maker = Maker(model, seed, layout)
            try:
                inputs = maker.make() if name is None else prompt(maker, name)
                with torch.no_grad():
                    model(**inputs)
            except Exception as error:
                first = first or error
            else:
                return inputs, f"{notes}{name or 'no media'} in the prompt" if found else ""
        if name is not None:
            notes, first = f"{notes}{name} failed ({' '.join(str(first).split())[:90]}); ", None
    raise first or AssertionError


def _sharpen(model: nn.Module, inputs: dict[str, Any], seed: int) -> float | None:
    """Draw the weights with the first gain that leaves all numbers finite and the softmaxes peaked."""
    best: tuple[float, float, float | None] | None = None
    for gain in GAINS:
        peak = _drawn(model, inputs, gain, seed)
        if peak == -1:
            continue
        if peak is None or PEAKED[0] <= peak <= PEAKED[1]:
            return peak
        off = max(PEAKED[0] - peak, peak - PEAKED[1])
        best = min(best or (off, gain, peak), (off, gain, peak))
    if best is None:
        raise NotBuildable("no finite output at any gain")
    return _drawn(model, inputs, best[1], seed)


def _drawn(model: nn.Module, inputs: dict[str, Any], gain: float, seed: int) -> float | None:
    draw(model, gain, seed + 1)
    with torch.no_grad(), peaks() as found:
        output = model(**inputs)
    if not finite(output):
        return -1
    return sum(found) / len(found) if found else None
