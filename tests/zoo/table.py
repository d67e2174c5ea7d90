"""The sweep's findings as `docs/models.md`, and what of an earlier one no longer holds."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import torch
import transformers

from .survey import Survey

CLASSES = {
    "certified": "every attention layer certified, each head of it",
    "in part": "certified, but it has attention modules besides that made no dense softmax attention",
    "inconclusive": "recomputed right, but some fault would not have been seen in some head",
    "partial": "part of the scores is known only as a remainder",
    "uncertified": "only the weights that the model returns",
    "failed": "the recomputation disagrees",
    "no attention": "ran, and made no softmax over query-key products: convolutions, state spaces, hashing",
    "not read": "ran and has attention that cannot be read",
    "not tried": "no tiny model of it could be built or run here",
}


def standing(survey: Survey) -> str:
    """Which of `CLASSES` a model type belongs to."""
    if survey.verdict != "none":
        return "in part" if survey.silent and survey.verdict == "certified" else survey.verdict
    if survey.reason.startswith(("not built", "build", "not done", "the process")):
        return "not tried"
    return "not read" if survey.reason or survey.silent or survey.returned else "no attention"


def document(found: Sequence[Survey], date: str, seconds: float) -> str:
    """The whole file."""
    counts = Counter(standing(each) for each in found)
    told = "\n".join(f"| {name} | {counts[name]} | {words} |" for name, words in CLASSES.items())
    return f"""\
# What attnscope reads of every model type

Made by `python -m tests.zoo.sweep --write docs/models.md` on {date} in {seconds:.0f} s: \
transformers {transformers.__version__}, torch {torch.__version__.split("+")[0]}, CPU, float32.

For every one of the {len(found)} model types of the installed transformers a tiny model is made \
from its config, with weights drawn so that attention is peaked and its mechanisms do something \
(windows shorter than the input, soft caps, sinks, relative positions, grouped queries, padding). \
Each attention layer of it is read as `attnscope verify` reads it: recomputed in float64 from the \
query, key and value vectors that the model used, and held against the model's own weights and \
output. The model's results must be the same to the bit as those of a run that nobody watched. What \
a type's row says holds for that tiny model and this version of the library; a checkpoint is \
certified by running `attnscope verify` on it.

| | model types | |
|---|---|---|
{told}

**error**: largest difference of a weight from the model's own. **faintest fault**: the mistake, put in on \
purpose, that was nearest to passing, and how many tolerances off it was (above 1: it would have been seen). \
**plain run**: how many of the weight matrices that an unwatched run returns are equal to what was read.

| type | class | verdict | route | kinds | layers | error | faintest fault | plain run | special |
|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(_row(each) for each in found)}
"""


def _row(survey: Survey) -> str:
    state = standing(survey)
    if not survey.layers:
        why = survey.reason.removeprefix("not built: ").replace("|", "/") or ", ".join(survey.silent)
        return f"| {survey.model_type} | {survey.architecture} | {state} | | | | | | | {why} |"
    verdicts = ", ".join(f"{count} {name}" for name, count in survey.verdicts.items())
    layers = str(survey.layers) if len(survey.verdicts) == 1 else verdicts
    fault = f"{survey.faintest} {survey.power:.2g}"
    plain = f"{survey.matched}/{survey.returned}" if survey.returned else ""
    silent = f"not read: {', '.join(survey.silent)}" if survey.silent else ""
    special = "; ".join(part for part in (", ".join(survey.special), survey.reason, silent) if part)
    cells = (
        survey.model_type, survey.architecture, state, ", ".join(survey.routes), ", ".join(survey.kinds),
        layers, f"{survey.weight_error:.0e}", fault, plain, special.replace("|", "/"),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def standings(document: str) -> dict[str, str]:
    """Verdict by model type, as a written document tells it."""
    rows = re.findall(r"^\| ([\w.-]+) \| \w* \| ([a-z ]+) \|", document, re.MULTILINE)
    return {name: verdict for name, verdict in rows if verdict in CLASSES}


def worse(before: Mapping[str, str], found: Sequence[Survey]) -> list[str]:
    """One line for every type that was certified and is no longer, or fails now."""
    now = {each.model_type: standing(each) for each in found}
    return [
        f"{name}: {before.get(name, 'not there')} before, {state} now"
        for name, state in now.items()
        if state == "failed" or (before.get(name) == "certified" and state != "certified")
    ]
