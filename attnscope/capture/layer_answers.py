"""What a model would answer if an earlier layer were its last: the logit lens, for any stack of layers.

    an untouched run                     ->  the state that enters the first layer, and that each one leaves
    a run whose last layer leaves these  ->  what stands behind the layers (norm, word head) answers to each

Nothing has to be known of what stands behind the layers: the model's own code runs. In the second run the
first layer reads other numbers, so that only the replaced states carry the text to the head. The last of them
must then give the untouched answer again: that is the proof (`Layered.own` beside the last of `answers`).
nostalgebraist 2020, "interpreting GPT: the logit lens".
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from attnscope.capture.evaluation_mode import evaluating
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import layer_stacks

EMBEDDINGS = -1  # before the first layer
_MOST = 2**27  # numbers that one run answers with
Pick = Callable[[Any], Float[Tensor, "answer place choice"]]


@dataclass(frozen=True, eq=False)
class Layered:
    """The logits of an untouched run, and those that follow from the state of each of the `layers`.

    The last of these is the model's last layer. `EMBEDDINGS` is among them where what enters the first
    layer has the shape of what leaves it.
    """

    own: Float[Tensor, "place choice"]
    layers: tuple[int, ...]
    answers: Float[Tensor, "layer place choice"]


def answers_by_layer(model: nn.Module, inputs: Mapping[str, Any], pick: Pick) -> Layered:
    """`pick` takes from the model's output the logits of the places that are asked about.

    Raises `InputError` for a model without layers that follow one another in one shape.
    """
    stacks = [Stack(frozenset(each)) for each in layer_stacks(model).values()]
    own = _run(model, inputs, stacks, pick)
    left = [each for each in stacks if each.states]
    if not left:
        raise InputError("no layers are found that follow one another")
    stack = max(left, key=lambda each: each.ended)
    entered, states = stack.states[0], stack.states[1:]
    if {(each.shape, each.shape[0]) for each in states} != {(states[0].shape, 1)}:
        raise InputError("its layers leave states of several shapes: none can stand in the place of the last")
    layers = tuple(range(len(states)))
    if entered.shape == states[0].shape:
        states, layers = stack.states, (EMBEDDINGS, *layers)
    at_once = max(1, _MOST // own.numel())
    answers = []
    for start in range(0, len(states), at_once):
        given = torch.cat(list(states[start : start + at_once]))
        instead = Stack(stack.layers, given, last=stack.calls - 1)
        answers.append(_run(model, inputs, [instead], pick))
    return Layered(own[0], layers, torch.cat(answers))


def _run(
    model: nn.Module, inputs: Mapping[str, Any], stacks: Sequence["Stack"], pick: Pick
) -> Float[Tensor, "answer place choice"]:
    with evaluating(model), ExitStack() as hooked:
        for stack in stacks:
            for layer in stack.layers:
                hooked.enter_context(layer.register_forward_pre_hook(stack.enter, with_kwargs=True))
                hooked.enter_context(layer.register_forward_hook(stack.leave))
        return pick(model(**inputs))


@dataclass(eq=False)
class Stack:
    """The layers of one stack in one run. With `put`, the `last` call leaves these states.

    `states` are what entered the first call, and what each left; `ended` says when the last of them was.
    """

    layers: frozenset[nn.Module]
    put: Tensor | None = None
    last: int = -1
    calls: int = 0
    ended: int = 0
    states: list[Tensor] = field(default_factory=list)
    _running: int = 0

    def enter(self, _layer: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self._running += 1
        if self.calls or self._running > 1:
            return None
        if self.put is None:
            return self._exchanged((args, named), None)
        return self._exchanged((args, named), lambda state: -state.roll(1, -2))

    def leave(self, _layer: nn.Module, _args: Any, result: Any) -> Any:
        self._running -= 1
        if self._running:
            return None
        self.calls += 1
        put = self.put if self.calls - 1 == self.last else None
        return self._exchanged(result, None if put is None else lambda _: put)

    def _exchanged(self, value: Any, change: Callable[[Tensor], Tensor] | None) -> Any:
        """`value` with the first hidden state in it changed; None, and the state kept, where it stays."""
        leaves, tree = tree_flatten(value)
        place = next((i for i, each in enumerate(leaves) if _is_state(each)), None)
        if place is None:
            raise InputError("a layer has no hidden state: it cannot be put in the place of the last")
        if change is None:
            self.states.append(leaves[place])
            return None
        leaves[place] = change(leaves[place])
        return tree_unflatten(leaves, tree)


def _is_state(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 3 and value.is_floating_point()
