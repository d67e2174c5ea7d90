"""Logit lens for any stack of layers: the model's answer if an earlier layer were its last.

    an untouched run                     ->  the state that enters the first layer, and that each one leaves
    a run whose last layer leaves these  ->  what stands behind the layers (norm, word head) answers to each

Nothing has to be known of what stands behind the layers: the model's own code runs. In the second run no
layer is computed again: all but the last leave other numbers, so that only the replaced states carry the text
to the head. The last of them must then give the untouched answer again: that is the proof (`Layered.own`
beside the last of `answers`).

nostalgebraist 2020, "interpreting GPT: the logit lens".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from attnscope.capture.intervening.changes import AnswerRows, rows_only
from attnscope.capture.running import evaluating, hooked, standing_in, without_cache
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import find_sites, layer_stacks

EMBEDDINGS = -1  # before the first layer
_MOST = 2**27  # logits of one run
_turns = count(1)


@dataclass(frozen=True, eq=False)
class Layered:
    """Logits of an untouched run, and those that follow from the state after each of the `layers`.

    The last of these is the model's last layer. `EMBEDDINGS` is among them where what enters the first
    layer has the shape of what leaves it.
    """

    own: Float[Tensor, "place choice"]
    layers: tuple[int, ...]
    answers: Float[Tensor, "layer place choice"]


def answers_by_layer(model: nn.Module, inputs: Mapping[str, Any], asked: AnswerRows) -> Layered:
    """Logits from every layer's state, at the rows that are `asked`.

    Raises `InputError` for a model without layers that follow one another in one shape.
    """
    stacks = [Stack(frozenset(each)) for each in layer_stacks(model, find_sites(model)).values()]
    inputs = without_cache(model, inputs)
    own = _run(model, inputs, stacks, asked).clone()
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
        instead = Stack(stack.layers, stack.results, given)
        with rows_only(model, asked):
            answers.append(_run(model, inputs, [instead], asked))
    return Layered(own[0], layers, torch.cat(answers))


def entering(
    model: nn.Module, inputs: Mapping[str, Any], layers: Iterable[nn.Module]
) -> list[Float[Tensor, "text token hidden"]]:
    """Hidden states that enter each of the `layers` of one stack, in an untouched run.

    Raises `InputError` where these are handed no hidden state.
    """
    stack = Stack(frozenset(layers))
    with evaluating(model), torch.no_grad(), hooked(stack.hooks()):
        model(**without_cache(model, inputs))
    return stack.states[:-1]


def _run(
    model: nn.Module, inputs: Mapping[str, Any], stacks: Sequence["Stack"], asked: AnswerRows
) -> Float[Tensor, "answer place choice"]:
    with evaluating(model), hooked(hook for stack in stacks for hook in stack.hooks()):
        return asked.of(model(**inputs))


@dataclass(eq=False)
class Stack:
    """Records the states of one stack of layers in one run; with `put`, replaces the last layer's by these.

    With `put` no layer runs. `results` are what each call returned, `states` what entered the first call and
    what each left; `ended` says when the last of them did.
    """

    layers: frozenset[nn.Module]
    results: list[Any] = field(default_factory=list)
    put: Tensor | None = None
    calls: int = 0
    ended: int = 0
    states: list[Tensor] = field(default_factory=list)
    _running: int = 0

    def hooks(self) -> Iterator[AbstractContextManager[object]]:
        """Hooks that record the states, or with `put` stand-ins for the layers."""
        for layer in self.layers:
            if self.put is not None:
                yield standing_in(layer, self.again)
            else:
                yield layer.register_forward_pre_hook(self.enter, with_kwargs=True)
                yield layer.register_forward_hook(self.leave)

    def enter(self, _layer: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._running += 1
        if not self.calls and self._running == 1:
            self.states.append(_state((args, named)))

    def leave(self, _layer: nn.Module, _args: Any, result: Any) -> None:
        self._running -= 1
        if not self._running:
            self.states.append(_state(result))
            self.results.append(result)
            self.calls, self.ended = self.calls + 1, next(_turns)

    def again(self, *_args: Any, **_named: Any) -> Any:
        """Output of a replaced layer: the last one leaves `put`, the others their kept states scrambled."""
        assert self.put is not None, "the layers of this run are replaced"
        leaves, tree, place = _parted(self.results[self.calls])
        self.calls += 1
        leaves[place] = self.put if self.calls == len(self.results) else -leaves[place].roll(1, -2)
        return tree_unflatten(leaves, tree)


def _parted(value: Any) -> tuple[list[Any], Any, int]:
    leaves, tree = tree_flatten(value)
    place = next((i for i, each in enumerate(leaves) if _is_state(each)), None)
    if place is None:
        raise InputError("a layer has no hidden state: it cannot be put in the place of the last")
    return leaves, tree, place


def _state(value: Any) -> Tensor:
    leaves, _, place = _parted(value)
    state: Tensor = leaves[place]
    return state


def _is_state(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 3 and value.is_floating_point()
