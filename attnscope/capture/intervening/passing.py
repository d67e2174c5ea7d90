"""The outputs of attentions as they pass by, by layer, with what they are made of; where asked for replaced.

kernel's answer, or the product with the values  ->  handler  ->  the model goes on with what it says
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor, nn

from attnscope.capture.following.answers import Answered, Answers, answers
from attnscope.capture.following.answers import Place as ModulePlace
from attnscope.capture.following.takeover import KernelInputs, kernel_weights
from attnscope.capture.intervening.changes import Attended, Place
from attnscope.capture.trace.tracer import TracedAttention
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import Site

# what stands in the place of an output, None where it stays as it is
Handler = Callable[[Attended], Tensor | None]


@contextmanager
def passing(
    sites: Sequence[Site], handle: Handler, *, changing: bool, begun: Mapping[nn.Module, int] | None = None
) -> Iterator["Passage"]:
    """While open, `handle` gets every attention of the sites; what it returns is used only if `changing`.

    `begun` counts the forwards of modules that are not run, since their results are known.
    """
    passage = Passage(sites, handle)
    with answers(sites, passage.hand_on, changing=changing, begun=begun) as passage.answers:
        yield passage


class Passage:
    """Counts the attentions of each layer in one forward pass."""

    answers: Answers

    def __init__(self, sites: Sequence[Site], handle: Handler) -> None:
        self.site_of, self.handle = {site.module: site for site in sites}, handle
        self.attentions: Counter[tuple[nn.Module, int]] = Counter()
        self.places: dict[ModulePlace, Place] = {}

    @property
    def none(self) -> set[Place]:
        """Places that turned out to be none."""
        return {place for seen, place in self.places.items() if seen in self.answers.none}

    def hand_on(self, seen: Answered) -> Tensor | None:
        module, forward, _number = seen.place
        layer = self.site_of[module].layer_of(forward)
        place = layer, self.attentions[module, layer]
        self.attentions[module, layer] += 1
        self.places[seen.place] = place
        if isinstance(seen.source, KernelInputs):
            return self.handle(_of_kernel(seen.source, place, seen.output, seen.weights))
        return self.handle(_of_trace(seen.source, place, seen.output))


def _of_kernel(given: KernelInputs, place: Place, output: Tensor, weights: Tensor | None) -> Attended:
    @cache
    def seen_weights() -> Tensor:
        return _kernel_weights(given, output, weights)

    def answer_to(values: Tensor) -> Tensor:
        return replace(given, value=values).answer()[0].transpose(1, 2)

    return Attended(place, output, seen_weights, given.value, answer_to, _has_sinks(given))


def _of_trace(one: TracedAttention, place: Place, output: Tensor) -> Attended:
    def weights() -> Tensor:
        if one.reweighted is not None or one.blended:
            raise InputError(
                f"layer {place[0]}: the model mixes its weights, or its values, after the softmax, so that "
                "no single edge can be cut and no single value zeroed"
            )
        return one.weights

    def answer_to(values: Tensor) -> Tensor:
        met = weights().to(values.dtype)
        return met.matmul(values.repeat_interleave(met.shape[1] // values.shape[1], dim=1))

    return Attended(place, output, weights, one.value, answer_to)


def _has_sinks(given: KernelInputs) -> bool:
    return any(given.options.get(name) is not None for name in ("s_aux", "sinks"))


def _kernel_weights(given: KernelInputs, output: Tensor, weights: Tensor | None) -> Tensor:
    """The weights that the kernel returns, or is made to print; a sink is taken into account only then."""
    shape = (*output.shape[:3], given.key.shape[2])
    if weights is not None and not _has_sinks(given) and weights.shape == shape:
        return weights
    return torch.stack([kernel_weights(given, entry) for entry in range(len(output))])
