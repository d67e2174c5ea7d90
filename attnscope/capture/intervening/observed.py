"""What heads answer to another input, and how an answer changes with what they answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.capture.evaluation_mode import evaluating, without_weights
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


@dataclass(frozen=True, eq=False)
class Observed:
    """One attention as it passed by: what its heads answer, and what that is made of.

    `weights` are None where the model mixes them, or the values, after the softmax, or nobody asked.
    """

    output: Float[Tensor, "batch head query value_dim"]
    value: Float[Tensor, "batch kv_head key value_dim"]
    weights: Float[Tensor, "batch head query key"] | None = None


@dataclass(frozen=True, eq=False)
class Slopes:
    """How each of several scores changes with every head's output, and what these outputs are, by place."""

    each: tuple[Mapping[Place, Float[Tensor, "batch head query value_dim"]], ...]
    seen: Mapping[Place, Observed]


def gradients(
    model: nn.Module, inputs: Mapping[str, Any], sites: Sequence[Site], score: Callable[[Any], Tensor]
) -> Mapping[Place, Tensor]:
    """How the `score` of what the model returns changes with every head's output, by place.

    Axes: batch head query value_dim, as those outputs have. One forward and one backward pass; the weights
    get no gradients. `InputError` for a model whose own code keeps gradients from passing.
    """
    return slopes(model, inputs, sites, lambda output: score(output)[None]).each[0]


def slopes(
    model: nn.Module,
    inputs: Mapping[str, Any],
    sites: Sequence[Site],
    scores: Callable[[Any], Float[Tensor, " score"]],
    *,
    weights: bool = False,
) -> Slopes:
    """The same for several scores: one forward pass, and one backward for each; with the `weights` seen."""
    probes: dict[Place, Tensor] = {}
    found: dict[Place, Observed] = {}

    def probe(seen: Attended) -> Tensor:
        nothing = torch.zeros_like(seen.output, requires_grad=True)
        probes[seen.place] = nothing
        with torch.no_grad():
            made = _weights_of(seen) if weights else None
            found[seen.place] = Observed(seen.output.detach().clone(), seen.value.detach(), made)
        return seen.output + nothing

    with (
        evaluating(model),
        without_weights(model),
        torch.enable_grad(),
        passing(sites, probe, changing=True) as passage,
    ):
        answers = scores(model(**without_cache(model, inputs)))
    mine = {place: each for place, each in probes.items() if place not in passage.none}
    if not answers.requires_grad:
        raise InputError(
            f"{type(model).__name__} lets no gradients pass: nothing can be foretold of its heads"
        )
    return Slopes(
        tuple(_back(score, mine, number < len(answers) - 1) for number, score in enumerate(answers)),
        {place: found[place] for place in mine},
    )


def _weights_of(seen: Attended) -> Tensor | None:
    try:
        return seen.weights().detach()
    except InputError:
        return None


def _back(score: Tensor, probes: Mapping[Place, Tensor], more: bool) -> dict[Place, Tensor]:
    """The gradients of one score; `more` are to come."""
    found = torch.autograd.grad(score, list(probes.values()), allow_unused=True, retain_graph=more)
    return {
        place: torch.zeros_like(probe) if each is None else each.detach()
        for (place, probe), each in zip(probes.items(), found, strict=True)
    }
