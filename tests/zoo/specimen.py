"""A specimen: one tiny, sharpened model of one type, and inputs that it runs on."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .configs import NotBuildable, config, model_class, not_buildable
from .inputs import LAYOUTS, Maker, media, prompt
from .overrides import GAINS as OWN_GAINS
from .sharpen import draw, finite, peaks

GAINS = (2.0, 1.0, 4.0, 0.5, 8.0)
PEAKED = (0.2, 0.8)  # neither even nor one-hot
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
    try:
        return _built(model_type, seed)
    except Exception as error:
        raise not_buildable(error) from error


def _built(model_type: str, seed: int) -> Specimen:
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
    first = {path: parameter.detach().clone() for path, parameter in model.named_parameters()}
    best: tuple[float, float] | None = None
    own = OWN_GAINS.get(model.config.model_type)
    for gain in GAINS if own is None else (own,):
        draw(model, first, gain, seed + 1)
        usable, peak = _look(model, inputs)
        if not usable:
            continue
        if peak is None or PEAKED[0] <= peak <= PEAKED[1]:
            return peak
        off = max(PEAKED[0] - peak, peak - PEAKED[1])
        best = min(best or (off, gain), (off, gain))
    if best is None:
        raise NotBuildable("its output is not a number at any strength of the weights")
    draw(model, first, best[1], seed + 1)
    return _look(model, inputs)[1]


def _look(model: nn.Module, inputs: dict[str, Any]) -> tuple[bool, float | None]:
    """Whether the output is made of numbers, and how peaked the softmaxes were on average."""
    with torch.no_grad(), peaks() as found:
        output = model(**inputs)
    return finite(output), sum(found) / len(found) if found else None
