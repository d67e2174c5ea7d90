"""What heads answer to another input, and how an answer changes with what they answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.capture.evaluation_mode import evaluating
from attnscope.capture.intervening.changes import Attended, Place
from attnscope.capture.intervening.experiments import without_cache
from attnscope.capture.intervening.passing import passing
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import Site


def answers_to(
    model: nn.Module, inputs: Mapping[str, Any], sites: Sequence[Site]
) -> tuple[dict[Place, Tensor], Any]:
    """What heads answer to `inputs`, by place as `batch head query value_dim`, and what the model returns."""
    found: dict[Place, Tensor] = {}

    def look(seen: Attended) -> None:
        found[seen.place] = seen.output.detach().clone()

    with evaluating(model), passing(sites, look, changing=False) as passage:
        output = model(**without_cache(model, inputs))
    return {place: each for place, each in found.items() if place not in passage.none}, output


def gradients(
    model: nn.Module, inputs: Mapping[str, Any], sites: Sequence[Site], score: Callable[[Any], Tensor]
) -> dict[Place, Tensor]:
    """How the `score` of what the model returns changes with every head's output, by place.

    Axes: batch head query value_dim, as those outputs have. One forward and one backward pass; the weights
    get no gradients. `InputError` for a model whose own code keeps gradients from passing.
    """
    probes: dict[Place, Tensor] = {}

    def probe(seen: Attended) -> Tensor:
        nothing = torch.zeros_like(seen.output, requires_grad=True)
        probes[seen.place] = nothing
        return seen.output + nothing

    with evaluating(model), torch.enable_grad(), passing(sites, probe, changing=True) as passage:
        answer = score(model(**without_cache(model, inputs)))
        mine = {place: each for place, each in probes.items() if place not in passage.none}
        if not answer.requires_grad:
            raise InputError(f"{type(model).__name__} lets no gradients pass: leave --rank out")
        found = torch.autograd.grad(answer, list(mine.values()), allow_unused=True)
    return {
        place: torch.zeros_like(mine[place]) if each is None else each.detach()
        for place, each in zip(mine, found, strict=True)
    }
