"""Gradients of the answer along the direct path alone, returned only after a check against the answer.

Three things must hold, or there are none and it is said why:

    the run gives the scores of the untouched model; keeping gradients, torch may multiply in another order
    what every layer hands on is a sum in which the heads before it stand
    all parts together - every head's, and everything that was added on the way - are the answer's score

The last could fail: where anything on the way were not linear, parts times gradients would not add up to it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.capture.arithmetic import epsilon_of
from attnscope.capture.intervening.changes import AnswerRows, Attended, Logits, Place, strays
from attnscope.capture.intervening.direct_path import ENDED, RULES, DirectPath, Role
from attnscope.capture.intervening.passing import holding, passing
from attnscope.capture.running import evaluating, without_cache, without_weights
from attnscope.capture.trace.fused import unscripted
from attnscope.capture.trace.operations import tensors_in
from attnscope.model.anatomy.sites import Site
from attnscope.reference import exact

_ROUNDINGS = 64  # machine epsilons of the sum of the sizes of all parts
_ON_THE_WAY = (Role.HEAD, Role.STREAM)
_LINEAR_ONLY = "sum, matrix or norm"

# functions of the answer's scores, several at once
Scores = Callable[[Logits], Float[Tensor, " score"]]


@dataclass(frozen=True, eq=False)
class Direct:
    """Gradient of each score with respect to every head's output, along the direct path.

    `norms` are held fixed on the longest of these ways; `off` is how far all parts together lie from the
    first score.
    """

    slopes: tuple[Mapping[Place, Float[Tensor, "batch head query value_dim"]], ...]
    norms: int
    off: float


def direct_gradients(
    model: nn.Module,
    inputs: Mapping[str, Any],
    sites: Sequence[Site],
    asked: AnswerRows,
    untouched: Logits,
    scores: Scores,
) -> Direct | str:
    """Gradients along the direct path for all heads of `sites`, or a phrase that says why there are none."""
    path, broken = DirectPath(RULES), []
    probes: dict[Place, tuple[Tensor, Tensor]] = {}

    def probe(seen: Attended) -> Tensor:
        with torch._C.DisableTorchFunction():
            answered = seen.output.detach()
            nothing = torch.zeros_like(answered, requires_grad=True)
            probes[seen.place] = nothing, answered.clone()
            made = answered + nothing
        path.mark(made, Role.HEAD)
        return made

    def hands_on(module: nn.Module, _given: Any, made: Any) -> None:
        first = next(
            tensors_in(made if isinstance(made, Tensor | tuple | list) else list(made.values())), None
        )
        if first is not None and path.role(first) not in _ON_THE_WAY:
            broken.append(path.cause(first) or "nothing of them")

    with ExitStack() as stack:
        stack.enter_context(evaluating(model))
        stack.enter_context(without_weights(model))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(unscripted(model.modules()))
        stacked = [inside[-1] for site in sites if (inside := holding(model, site.path))]
        for layer in dict.fromkeys(stacked):
            stack.enter_context(layer.register_forward_hook(hands_on))
        stack.enter_context(path)
        passage = stack.enter_context(passing(sites, probe, changing=True))
        answer = asked.of(model(**without_cache(model, inputs)))
    if strays(answer.detach(), untouched):
        return "following what it computes changed the model's answer"
    role = path.role(answer)
    if role is None or role in ENDED:
        return (
            f"between its heads and its answer stands {path.cause(answer) or 'something'}, no {_LINEAR_ONLY}"
        )
    if broken:
        return f"what a layer hands on is made by {broken[0]}, no {_LINEAR_ONLY}"
    mine = {place: each for place, each in probes.items() if place not in passage.none}
    return _checked(mine, path, scores(answer), path.norms_to(answer))


def _checked(
    probes: Mapping[Place, tuple[Tensor, Tensor]],
    path: DirectPath,
    wanted: Float[Tensor, " score"],
    norms: int,
) -> Direct | str:
    nothing = [each for each, _ in probes.values()]
    found, off = [], 0.0
    for number, score in enumerate(wanted):
        more = path.leaves if number == 0 else []
        slopes = torch.autograd.grad(
            score, [*nothing, *more], allow_unused=True, retain_graph=number < len(wanted) - 1
        )
        mine = dict(zip(probes, slopes, strict=False))
        for place, slope in mine.items():
            if slope is None or not bool(slope.any()):
                return f"what layer {place[0]} writes reaches the answer by no {_LINEAR_ONLY} alone"
        found.append({place: each.detach() for place, each in mine.items() if each is not None})
        if number == 0:
            parts = [*(there for _, there in probes.values()), *path.leaves]
            size, off = _apart(parts, slopes, score)
            tolerance = _ROUNDINGS * epsilon_of(score) * size
            if not off <= tolerance:
                how_far = f"{off:.2g} off, where rounding makes {tolerance:.2g}"
                return f"the parts of its answer's score do not add up to it: {how_far}"
    return Direct(tuple(found), norms, off)


def _apart(parts: Sequence[Tensor], slopes: Sequence[Tensor | None], score: Tensor) -> tuple[float, float]:
    total = size = 0.0
    for part, slope in zip(parts, slopes, strict=True):
        if slope is not None:
            each = exact(part.detach().cpu()) * exact(slope.cpu())
            total, size = total + float(each.sum()), size + float(each.abs().sum())
    return size, abs(total - float(score.detach()))
