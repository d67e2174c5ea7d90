"""The pooled vector of a text: its pooling, the weight of each token in it, and code that computes it."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.analysis.inputs.replacing import Pool, vectors
from attnscope.capture.running import evaluating
from attnscope.errors import InputError
from attnscope.model.pooling import Pooling, is_pooled, named_pooling, pooler_of, pooling_of
from attnscope.reference import exact
from attnscope.results.claims.attributed import Pooled
from attnscope.session.choosing import Chosen
from attnscope.session.reading import Reading
from attnscope.vocabulary import Kind


def pooling_asked(reading: Reading, chosen: Chosen, name: str | int) -> Pooling | None:
    """The pooling that `name` asks about, or None; `InputError` where the model cannot pool so.

    A word of the text that is called `pooled` is that word.
    """
    if not isinstance(name, str) or not is_pooled(name, reading.tokens_of(chosen.kind).sentence):
        return None
    how = named_pooling(name) or pooling_of(reading.model)
    if reading.perceived is not None or reading.asked.goes_on:
        raise InputError("a pooled vector is asked about of a text that is there: no picture, no --generate")
    if how is Pooling.POOLER and pooler_of(reading.model) is None:
        raise InputError(f"{reading.model.name} has no pooler: --from pooled:mean, pooled:first, pooled:last")
    if chosen.kind is Kind.DECODER and reading.model.writes:
        raise InputError("a pooled vector is one of what the encoder reads: --kind encoder")
    if list(chosen.layers) != list(chosen.tower.layers):
        raise InputError("a pooled vector stands behind all layers: leave --layer out")
    return how


def last_of(module: Any, encoder: bool) -> Any:
    """The module that returns the last hidden states: the encoder, or the model without its head."""
    return module.get_encoder() if encoder else getattr(module, "base_model", module)


def pooled_by(reading: Reading, chosen: Chosen, how: Pooling, count: int) -> Pooled:
    """Each token's weight in the pooled vector and, for a mean, its share of that vector."""
    weights = how.weights(count)
    if how is not Pooling.MEAN:
        return Pooled(how.value, weights)
    model = reading.model
    last = last_of(model.module, chosen.kind is Kind.ENCODER and model.writes)
    with evaluating(model.module), reading.running():
        found = vectors(model.module, reading.inputs, last, nullcontext())
    if found is None or found.shape[1] != count:
        raise InputError(f"{model.name} returns no last vector of each token: nothing can be pooled")
    return Pooled(how.value, weights, _along(found[0].cpu().numpy(), weights))


def _along(
    each: Float[np.ndarray, "token hidden"], weights: Float[np.ndarray, " token"]
) -> Float[np.ndarray, " token"]:
    """p_i x_i . s / ||s||^2 with s the sum of p_i x_i: each token's share of s; shares sum to 1."""
    whole = weights @ each
    return np.asarray(weights * (each @ whole) / (whole @ whole))


def pool_by(how: Pooling, last: nn.Module) -> Pool:
    """A function that runs a model and returns the pooled vectors of a batch, `batch x hidden`, float64."""

    def pool(model: nn.Module, inputs: Mapping[str, Any], within: Any) -> Tensor:
        if how is Pooling.POOLER:
            return _by_pooler(model, inputs, last, within)
        found = vectors(model, inputs, last, within)
        if found is None:
            raise InputError("the model returns no last vector of each token: nothing can be pooled")
        weights = torch.from_numpy(how.weights(found.shape[1])).to(found)
        return torch.einsum("k,ekh->eh", weights, found)

    return pool


def _by_pooler(model: nn.Module, inputs: Mapping[str, Any], last: nn.Module, within: Any) -> Tensor:
    found: list[Tensor] = []
    pooler = last.pooler
    assert isinstance(pooler, nn.Module), "checked before"

    def keep(_module: nn.Module, _given: object, made: Any) -> None:
        found.append(exact(made.detach()))

    handle = pooler.register_forward_hook(keep)
    try:
        with within:
            model(**inputs)
    finally:
        handle.remove()
    if not found or found[-1].ndim != 2:
        raise InputError("the model did not run its pooler: name how, --from pooled:mean")
    return found[-1]


__all__ = ["is_pooled", "last_of", "pool_by", "pooled_by", "pooling_asked"]
