"""The numbers by which an input enters a model: token embeddings, or values of a picture or a sound.

Gradients by the input end here. Other numbers can be put in their place, several at once, between the
input's own and those with every part replaced.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.analysis.controls import inputs_of
from attnscope.analysis.inputs.replacing import Blanked, Input, word_embeddings
from attnscope.capture.running import evaluating, hooked, without_cache
from attnscope.errors import InputError
from attnscope.reference import exact

ByPosition = Float[np.ndarray, " key"]


@dataclass(frozen=True, eq=False)
class Entrance:
    """The input's numbers, their fully replaced counterpart `blank`, and how to feed others to the model.

    `name` is the model input that is replaced. Tokens enter through `embedding`; a picture or a sound
    through the input itself, where `at` are the indices of the numbers of each of `places`.
    """

    inputs: Mapping[str, Any]
    name: str
    there: Tensor
    blank: Tensor
    tokens: int
    places: Sequence[int]
    embedding: nn.Module | None = None
    at: Sequence[Tensor] = ()

    @contextmanager
    def put(self, values: Sequence[Tensor]) -> Iterator[tuple[dict[str, Any], Tensor]]:
        """Context manager: batch inputs in which each of `values` enters, and their leaf tensor."""
        leaf = torch.cat([each.detach() for each in values]).requires_grad_()
        if self.embedding is None:
            given = [leaf[i : i + 1] for i in range(len(values))]
            yield self._batch(given), leaf
            return
        own = self.inputs[self.name]
        batch = self._batch([own] * len(values))
        used = list[int]()

        def enter(_module: nn.Module, args: Sequence[Any], made: Tensor) -> Tensor | None:
            if (
                not args
                or args[0].shape != batch[self.name].shape
                or not torch.equal(args[0], batch[self.name])
            ):
                return None
            used.append(1)
            with torch._C.DisableTorchFunction():
                return leaf.clone()

        with self.embedding.register_forward_hook(enter):
            yield batch, leaf
        if len(used) != 1:
            raise InputError("the model looks its tokens up otherwise when it goes back: no gradient of them")

    def _batch(self, values: Sequence[Tensor]) -> dict[str, Any]:
        made = inputs_of(self.inputs, self.name, values)
        if made is None:
            raise InputError("the inputs of this model cannot be put side by side")
        return made

    def by_position(self, products: Tensor) -> ByPosition:
        """The sum over the numbers of each position; NaN for positions without a part of the input."""
        exactly = exact(products.detach().cpu())
        if self.embedding is not None:
            return np.asarray(exactly[0].sum(-1).numpy())
        found, flat = np.full(self.tokens, np.nan), exactly.flatten()
        for place, at in zip(self.places, self.at, strict=True):
            found[place] = float(flat[at.cpu()].sum())
        return found


def of_tokens(model: nn.Module, inputs: Mapping[str, Any], asked: Input) -> Entrance:
    """The entrance of tokens through their one embedding; `InputError` where there is no single lookup."""
    ids, found = inputs[asked.name], list[nn.Module]()

    def look(module: nn.Module, args: Sequence[Any], _made: object) -> None:
        if args and isinstance(args[0], Tensor) and args[0].shape == ids.shape and torch.equal(args[0], ids):
            found.append(module)

    hooks = (module.register_forward_hook(look) for module in word_embeddings(model))
    with hooked(hooks), evaluating(model):
        model(**without_cache(model, inputs))
    if len(found) != 1:
        times = "nowhere that can be seen" if not found else f"{len(found)} times"
        raise InputError(f"the model looks its tokens up {times}: no gradient can be told of them")
    (embedding,), places = found, tuple(place for group in asked.places for place in group)
    with evaluating(model):
        there, blank = embedding(ids), embedding(ids).clone()
        instead = (
            embedding(torch.full_like(ids, asked.id)) if asked.id is not None else torch.zeros_like(blank)
        )
        blank[:, list(places)] = instead[:, list(places)]
    return Entrance(inputs, asked.name, there, blank, ids.shape[1], places, embedding)


def of_pieces(inputs: Mapping[str, Any], parts: Blanked, tokens: int) -> Entrance:
    """The entrance of a picture or a sound, with all its parts blanked."""
    pieces = parts.pieces
    every = [place for group in parts.groups for place in group]
    numbers = {place: number for number, place in enumerate(pieces.positions)}
    at = [pieces.at[numbers[place]] for place in every]
    return Entrance(inputs, pieces.name, pieces.values, parts.without(every), tokens, every, None, at)
