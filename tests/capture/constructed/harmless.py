"""Constructions that are odd and right: everything that is shown acts, on the row that asked.

First what models rightly do around their attention, then products of it with places and routes.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.modeling_outputs import BaseModelOutput

from tests.capture.constructed.construction import EVERY, OWN, SOME, SPREAD, Construction, by_name, on_routes
from tests.capture.constructed.model import HEADS, HIDDEN, Attention, Model, Part, Place
from tests.capture.constructed.rows import TEXTS_EXCHANGED, rows, undone, values_of


def _each(function: Callable[[Tensor], Tensor]) -> Part:
    """A part that makes every number of itself alone."""
    return lambda own, x, place: function(x)


def _norm(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def _gate(own: Attention, x: Tensor, place: Place) -> Tensor:
    """A gate that the row makes of what it was given (Qwen3-Next, AFMoE)."""
    given = own.now["given" if place in (Place.ANSWER, Place.RESULT) else "entered"]
    gate = torch.sigmoid(given @ own.learned(f"to_gate_{place.name}", HIDDEN, x[0, 0].numel()))
    return x * gate.view_as(x)


def _in_place(own: Attention, x: Tensor, _place: Place) -> Tensor:
    return x.mul_(0.5).add_(0.25)


def _unseen(own: Attention, x: Tensor, _place: Place) -> Tensor:
    x.detach().numpy()[...] *= 0.5
    return x


def _in_numpy(_own: Attention, x: Tensor, _place: Place) -> Tensor:
    return torch.from_numpy(np.tanh(x.detach().numpy()) * 1.5)


def _norm_by_head(own: Attention, x: Tensor, _place: Place) -> Tensor:
    return F.layer_norm(x, x.shape[-1:]) * own.learned("norm", x.shape[-1])


def _features_shuffled(own: Attention, x: Tensor, _place: Place) -> Tensor:
    """Within every head, as a rotary embedding orders them (GPT-J)."""
    return x[..., [*range(0, x.shape[-1], 2), *range(1, x.shape[-1], 2)]]


def _convolved(own: Attention, x: Tensor, place: Place) -> Tensor:
    """A depth-wise convolution of the values beside the attention (ConvBERT, lepe in CSWin)."""
    by_feature = values_of(own).flatten(2).mT
    kernel = own.learned("kernel", by_feature.shape[1], 1, 3)
    return x + F.conv1d(by_feature, kernel, padding=1, groups=len(kernel)).mT.reshape(x.shape)


def _experts(own: Attention, x: Tensor, place: Place) -> Tensor:
    """Rows sorted by the expert that each goes to, worked on and put back (JetMoE)."""
    flat = x.flatten(0, 1)
    expert = (flat.flatten(1)[:, 0] > 0).long()
    order = expert.argsort(stable=True)
    scale = torch.tensor([0.5, 1.5]).to(x)[expert[order]]
    made = flat[order] * scale.view(-1, *[1] * (flat.ndim - 1))
    return torch.empty_like(made).index_copy(0, order, made).view_as(x)


# after the kernel, the output projection, in a hook or in the block alike
ANYWHERE: dict[str, Part] = {
    "nothing": _each(lambda x: x),
    "a gate of its own row": _gate,
    "a layer scale of 1e-5": _each(lambda x: 1e-5 * x),
    "a norm of the row": lambda own, x, place: _norm(x.flatten(2)).view_as(x),
    "cubed": _each(lambda x: x**3),
    "in NumPy": _in_numpy,
    "in place": _in_place,
    "written over unseen": _unseen,
    "rows sorted to experts and put back": _experts,
}
BEHIND_THE_KERNEL: dict[str, Part] = {
    "a norm of each head": _norm_by_head,
    "features of each head in another order": _features_shuffled,
    "a convolution of the values added": _convolved,
}
ON_QUERIES_AND_KEYS: dict[str, Part] = {
    "a norm": _each(lambda x: 1.7 * _norm(x)),
    "another scale for each row": lambda own, x, place: (
        x * torch.linspace(0.8, 1.3, x.shape[2]).to(x).view(-1, 1)
    ),
}


def _rotated(x: Tensor) -> Tensor:
    """A rotary embedding of the first four features."""
    angles = torch.arange(x.shape[2])[:, None] * torch.tensor([1.0, 0.1])
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    first, second, rest = x[..., :2], x[..., 2:4], x[..., 4:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], -1)


ROTARY = _each(_rotated)


def without_padding(own: Attention, x: Tensor, _place: Place) -> Tensor:
    """Nothing of the rows that stand for no token."""
    return x * (own.now["mask"][:, 0, 0, :, None] >= 0)


def minus_another(own: Attention, answer_to: Callable[..., Tensor], answer: Tensor) -> Tensor:
    """Differential attention: less a second one over the same values (Ye et al. 2024)."""
    query, key, value = (own.now[name] for name in ("query", "key", "value"))
    weight = own.learned("difference", HEADS, 1)
    return answer - 0.4 * weight * answer_to(query.flip(-1).roll(1, -1), key, value)


def quantised(model: Model) -> None:
    """Linear layers in dynamic int8: scales are those of the whole tensor."""
    with warnings.catch_warnings(action="ignore"):  # it is to move to another package
        torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8, inplace=True)


def compiled(model: Model) -> None:
    """The output projections compiled, by the back end that needs no compiler."""
    for layer in model.layers:
        layer.attention.o_proj.compile(backend="eager")


def precision(dtype: torch.dtype) -> Callable[[Model], None]:
    return lambda model: model.to(dtype)


def _parts(made: Mapping[str, Part], place: Place, routes: Iterable[str]) -> Iterator[Construction]:
    for what, part in made.items():
        yield from on_routes(f"{what} {place}", {place: part}, routes)


_THERE_AND_BACK = (
    (Place.GIVEN, Place.RESULT),
    (Place.GIVEN, Place.ANSWER),
    (Place.PRE_HOOK, Place.HOOK),
    (Place.BEFORE, Place.PASSED),
)
_SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "key heads shared": {"key_heads": 1},
    "causal": {"causal": True},
    "norms behind": {"norm_behind": True},
    "a tensor returned": {"returned": lambda result: result},
    "an output object returned": {"returned": lambda result: BaseModelOutput(last_hidden_state=result)},
    "a differential attention": {"twice": minus_another},
}
_CHANGES: dict[str, Any] = {
    "quantised": quantised,
    "compiled projections": compiled,
    "bfloat16": precision(torch.bfloat16),
    "float16": precision(torch.float16),
}


def _in_other_models() -> Iterator[Construction]:
    for what in ("causal", "key heads shared", "norms behind"):
        for name in ("a gate of its own row", "a layer scale of 1e-5"):
            parts = {Place.ANSWER: ANYWHERE[name]}
            yield from on_routes(f"{what}, {name} {Place.ANSWER}", parts, SPREAD, shape=_SHAPES[what])
    for what in ("quantised", "bfloat16", "float16"):
        parts, told = {Place.ANSWER: ANYWHERE["cubed"]}, f"{what}, cubed {Place.ANSWER}"
        yield from on_routes(told, parts, SPREAD, change=_CHANGES[what], weak="float16" in what)


def _made() -> Iterator[Construction]:
    for what, shape in _SHAPES.items():
        yield from on_routes(what, {}, EVERY, shape=shape)
    for what, change in _CHANGES.items():
        yield from on_routes(what, {}, EVERY, change=change, weak="float16" in what)
    yield from _parts(ANYWHERE, Place.ANSWER, SPREAD)
    yield from _parts(ANYWHERE, Place.RESULT, SOME)
    yield from _parts(ANYWHERE, Place.HOOK, ("fused",))
    yield from _parts(ANYWHERE, Place.PASSED, ("tiled",))
    yield from _parts(BEHIND_THE_KERNEL, Place.ANSWER, EVERY)
    yield from _parts({"nothing": ANYWHERE["nothing"]}, Place.WEIGHTS, OWN)
    yield from _parts(ON_QUERIES_AND_KEYS, Place.QUERY, SPREAD)
    yield from _parts(ON_QUERIES_AND_KEYS, Place.KEY, SPREAD)
    yield from on_routes("a rotary position", {Place.QUERY: ROTARY, Place.KEY: ROTARY}, EVERY)
    exchanged = {Place.GIVEN: TEXTS_EXCHANGED, Place.RESULT: TEXTS_EXCHANGED}
    for what, parts in (("several texts", {}), ("texts exchanged and put back", exchanged)):
        yield from on_routes(what, parts, EVERY, texts=2)
    for what, parts in (("padding", {}), ("padding left out", {Place.RESULT: without_padding})):
        yield from on_routes(what, parts, EVERY, padded=2)
    for there, back in _THERE_AND_BACK:
        parts = {there: rows("shuffled"), back: undone("shuffled")}
        yield from on_routes(f"rows shuffled {there} and put back {back}", parts, SPREAD)
    # as a convolution behind the attention does (Conformer)
    yield from on_routes(f"rows leaking {Place.STREAM}", {Place.STREAM: rows("leaking")}, SPREAD)
    for place in (Place.COLUMNS, Place.PROJECTED):
        made = {name: ANYWHERE[name] for name in ("in NumPy", "in place", "a norm of the row")}
        yield from _parts(made, place, SPREAD)
    both = {place: rows("rolled in part") for place in (Place.KEY, Place.VALUE)}
    yield from on_routes("rows rolled in part on keys and values", both, ("fused", "tiled"))
    yield from _in_other_models()


HARMLESS = by_name(_made())
