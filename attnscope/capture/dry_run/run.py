"""Running a model that has no weights: on the meta device an operation gives a shape and costs nothing.

So what each attention will be handed (shapes, scale, soft cap, window, sinks), how many products there are
until then, and whether positions are rotated there, is known at any length before a weight is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from attnscope.capture.dry_run.inputs import placeholder_inputs
from attnscope.capture.dry_run.watch import DryCall, StandIns, Watch
from attnscope.capture.evaluation_mode import evaluating
from attnscope.errors import one_line
from attnscope.model.anatomy.sites import Site


@dataclass(frozen=True, eq=False)
class DryRun:
    """What was seen, by module, and why the run ended early, if it did.

    `rotated` has the modules that used a rotation, with the number of its cosines for a token; `used` are
    the parameters that anything used.
    """

    calls: Mapping[nn.Module, Sequence[DryCall]]
    rotated: Mapping[nn.Module, int]
    used: frozenset[nn.Parameter]
    problem: str = ""


def run_dry(model: nn.Module, watched: Sequence[Site], length: int, stand_ins: StandIns) -> DryRun:
    """One pass of `model`, which is on the meta device, for `length` tokens, as far as shapes suffice.

    `stand_ins` say how to stand in for the kernels of each route that has kernels. Mixtures of experts are
    run with as many experts a token as the model chooses.
    """
    watch = Watch(watched, stand_ins)
    problem = ""
    try:
        with evaluating(model), _few_experts(model), watch.watching(model), torch.device("meta"):
            model(**placeholder_inputs(model, length))
    except Exception as error:  # whatever a model does with numbers that are not there
        problem = one_line(error).partition(". ")[0]
    return DryRun(watch.calls, watch.rotated, frozenset(watch.used), problem)


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
