"""Model types of transformers on an accelerator: whatever the processor's survey says of one.

    python -m tests.accelerator.families [--only PATTERN] [--card]

On both emulated ones, or with `--card` on the one that torch names on this machine.

Whatever attention adds to its scores, leaves out of them or does to them passes here through the door to
float64 and back (tests/zoo). Ends with 1 where a type is read otherwise than on the processor.
"""

import argparse
import contextlib
import fnmatch
import sys
from collections import Counter
from dataclasses import fields
from typing import Any

import torch
from zoo import NotBuildable, Specimen, build, model_types
from zoo.survey import Survey, survey

from attnscope.model.loading.memory import torch_device

from . import backend

# one of each mechanism: plain, relative, distances, windows, soft cap, sinks, experts, latent keys, pictures
NAMED = (
    "bart", "bert", "bloom", "cpmant", "deberta-v2", "deepseek_v3", "gemma2", "gpt2", "gpt_neo", "gpt_oss",
    "llama", "longformer", "mpt", "swin", "t5", "vit", "whisper",
)  # fmt: skip
CARD = "card"
ROUNDED = ("weight_error", "power", "faintest")  # figures of rounding, not of what was read


def placed(given: Any, device: str) -> Any:
    """Inputs on a device, whatever holds them."""
    if isinstance(given, torch.Tensor):
        return given.to(device)
    if isinstance(given, dict):
        return {name: placed(each, device) for name, each in given.items()}
    return [placed(each, device) for each in given] if isinstance(given, list) else given


def runs_there(specimen: Specimen) -> str:
    """Why the model itself does not run on the device; empty where it does."""
    try:
        with torch.no_grad():
            specimen.model(**specimen.inputs)
    except Exception as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:160]
    return ""


def compared(model_type: str, kind: str) -> tuple[str, list[str]]:
    """Why nothing is compared, and what the survey on the device says otherwise than the processor's."""
    specimen = build(model_type)
    right = survey(specimen)
    device = str(torch_device("auto")) if kind == CARD else backend.NAME
    with contextlib.nullcontext() if kind == CARD else backend.present(kind):
        inputs = placed(specimen.inputs, device)
        there = Specimen(model_type, specimen.model.to(device), inputs, specimen.peak)
        if why := runs_there(there):
            return why, []
        try:
            found = survey(there)
        except Exception as error:
            return "", [" ".join(f"{type(error).__name__}: {error}".split())[:200]]
    return "", unlike(found, right)


def unlike(ours: Survey, theirs: Survey) -> list[str]:
    """Fields of two surveys that differ, those of rounding left out."""
    names = [each.name for each in fields(Survey) if each.name not in (*ROUNDED, "notes")]
    pairs = {name: (getattr(ours, name), getattr(theirs, name)) for name in names}
    return [f"{name}: {one!r}, not {other!r}" for name, (one, other) in pairs.items() if one != other]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.accelerator.families", description=__doc__)
    parser.add_argument("--only", default="*", help="model types that match")
    parser.add_argument("--card", action="store_true", help="the accelerator of this machine in their place")
    options = parser.parse_args()
    torch.set_num_threads(1)
    said: Counter[str] = Counter()
    for model_type in fnmatch.filter(model_types(), options.only):
        for kind in (CARD,) if options.card else backend.KINDS:
            try:
                why, wrong = compared(model_type, kind)
            except NotBuildable:
                continue
            said["wrong" if wrong else "does not run there itself" if why else "alike"] += 1
            if why or wrong:
                print(model_type, kind, f"itself: {why}" if why else f"WRONG: {wrong[0]}", flush=True)
    print(dict(said))
    return int(bool(said["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
