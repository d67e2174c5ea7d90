"""Running a model that has no weights: on the meta device an operation gives a shape and costs nothing.

So what each attention will be handed (shapes, scale, soft cap, window, sinks), how many products there are
until then, and whether positions are rotated there, is known at any length before a weight is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from attnscope.capture.dry_run.inputs import empty_inputs
from attnscope.capture.dry_run.watch import Handed, Watch
from attnscope.capture.run import evaluating
from attnscope.errors import one_line
from attnscope.model.anatomy.sites import Site


@dataclass(frozen=True, eq=False)
class EmptyRun:
    """What was seen, by module, and why the run ended early, if it did.

    `rotated` has the modules that used a rotation, with the number of its cosines for a token; `used` are
    the parameters that anything used.
    """

    handed: Mapping[nn.Module, Sequence[Handed]]
    rotated: Mapping[nn.Module, int]
    used: frozenset[nn.Parameter]
    problem: str = ""


def run_empty(model: nn.Module, watched: Sequence[Site], length: int) -> EmptyRun:
    """One pass of `model`, which is on the meta device, for `length` tokens, as far as shapes suffice.

    Mixtures of experts are run with as many experts a token as the model chooses.
    """
    seen = Watch(watched)
    problem = ""
    try:
        with evaluating(model), _few_experts(model), seen.watching(model), torch.device("meta"):
            model(**empty_inputs(model, length))
    except Exception as error:  # whatever a model does with numbers that are not there
        problem = one_line(error).partition(". ")[0]
    return EmptyRun(seen.handed, seen.rotated, frozenset(seen.used), problem)


@contextmanager
def _few_experts(model: nn.Module) -> Iterator[None]:
    """While open, experts are run as batched products, which no number decides about."""
    configs = {
        id(config): config for module in model.modules() if (config := getattr(module, "config", None))
    }
    held = {key: vars(config).get("_experts_implementation_internal", "") for key, config in configs.items()}
    try:
        for key, config in configs.items():
            if held[key] != "":
                config._experts_implementation_internal = "batched_mm"
        yield
    finally:
        for key, config in configs.items():
            if held[key] != "":
                config._experts_implementation_internal = held[key]
