"""What models rightly do around their attention: the row that asked is the row that receives."""

import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.capture.constructed.model import HEADS, HIDDEN, Attention, Model, Part, Place


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


def _by_head(own: Attention, x: Tensor, place: Place) -> Tensor:
    return x * own.learned("by_head", HEADS, 1)


def _norm_by_head(own: Attention, x: Tensor, _place: Place) -> Tensor:
    return F.layer_norm(x, x.shape[-1:]) * own.learned("norm", x.shape[-1])


def _features_shuffled(own: Attention, x: Tensor, _place: Place) -> Tensor:
    """Within every head, as a rotary embedding orders them (GPT-J)."""
    return x[..., [*range(0, x.shape[-1], 2), *range(1, x.shape[-1], 2)]]


def _added(of: Callable[[Attention], Tensor]) -> Part:
    return lambda own, x, place: (
        x + of(own).reshape(x.shape if of(own).numel() == x.numel() else (1, 1, *x.shape[2:]))
    )


def _values(own: Attention) -> Tensor:
    return own.now["value"].repeat_interleave(own.num_key_value_groups, 1).transpose(1, 2)


def _running(own: Attention) -> Tensor:
    values = _values(own)
    return values.cumsum(1) / torch.arange(1, values.shape[1] + 1).view(-1, 1, 1)


def _convolved(own: Attention, x: Tensor, place: Place) -> Tensor:
    """A depth-wise convolution of the values beside the attention (ConvBERT, lepe in CSWin)."""
    by_feature = _values(own).flatten(2).mT
    kernel = own.learned("kernel", by_feature.shape[1], 1, 3)
    return x + F.conv1d(by_feature, kernel, padding=1, groups=len(kernel)).mT.reshape(x.shape)


def _put_together(_own: Attention, x: Tensor, _place: Place) -> Tensor:
    return torch.cat([x[:, 3:], x[:, :3]], 1).roll(3, 1)


def _copied(_own: Attention, x: Tensor, _place: Place) -> Tensor:
    made = torch.empty_like(x)
    for row in range(x.shape[1]):
        made[:, row] = x[:, row]
    return made


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
    "half of it": _each(lambda x: 0.5 * x),
    "its negative": _each(lambda x: -x),
    "a layer scale of 1e-5": _each(lambda x: 1e-5 * x),
    "a learned scale": lambda own, x, place: x * own.learned(f"scale_{place.name}", x.shape[-1]),
    "one learned factor": lambda own, x, place: x * own.learned(f"one_{place.name}", 1).tanh(),
    "a norm of the row": lambda own, x, place: _norm(x.flatten(2)).view_as(x),
    "a norm of the row and its mean": lambda own, x, place: F.layer_norm(x, x.shape[2:]),
    "clamped": _each(lambda x: x.clamp(-0.8, 0.8)),
    "cubed": _each(lambda x: x**3),
    "bent": _each(F.gelu),
    "in NumPy": _in_numpy,
    "in place": _in_place,
    "written over unseen": _unseen,
    "copied row by row": _copied,
    "cut and put together": _put_together,
    "detached": _each(lambda x: x.detach().clone()),
    "another precision and back": _each(lambda x: x.double().to(x.dtype)),
    "dropout that is off": _each(lambda x: F.dropout(x, 0.5, training=False)),
    "a steering row added": lambda own, x, place: x + own.learned(f"steer_{place.name}", *x.shape[2:]),
    "rows sorted to experts and put back": _experts,
}
BEHIND_THE_KERNEL: dict[str, Part] = {
    "a scale for each head": _by_head,
    "a norm of each head": _norm_by_head,
    "features of each head in another order": _features_shuffled,
    "a head more and less again": lambda own, x, place: F.pad(x, (0, 0, 0, 1)).index_select(
        2, torch.arange(HEADS)
    ),
    "a residual of the values": lambda own, x, place: x + _values(own),
    "the mean of the values added": lambda own, x, place: x + _values(own).mean(1, keepdim=True),
    "a running mean of the values added": lambda own, x, place: x + _running(own),
    "a convolution of the values added": _convolved,
    "subtracted from the values": lambda own, x, place: _values(own) - x,
    "a gate for each head": lambda own, x, place: (
        x * torch.sigmoid(own.now["given"] @ own.learned("gates", HIDDEN, HEADS)).unsqueeze(-1)
    ),
}
ON_WEIGHTS: dict[str, Part] = {
    name: ANYWHERE[name]
    for name in ("nothing", "detached", "dropout that is off", "another precision and back")
}
ON_QUERIES_AND_KEYS: dict[str, Part] = {
    "a norm": _each(lambda x: 1.7 * _norm(x)),
    "a learned scale": lambda own, x, place: x * own.learned(f"scale_{place.name}", x.shape[-1]),
    "another scale for each row": lambda own, x, place: (
        x * torch.linspace(0.8, 1.3, x.shape[2]).to(x).view(-1, 1)
    ),
    "in NumPy": _in_numpy,
}


def _rotated(x: Tensor) -> Tensor:
    """A rotary embedding of the first four features."""
    angles = torch.arange(x.shape[2])[:, None] * torch.tensor([1.0, 0.1])
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    first, second, rest = x[..., :2], x[..., 2:4], x[..., 4:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], -1)


ROTARY = _each(_rotated)


def cut(windows: int, rolled: int = 0) -> Part:
    """The rows rolled and cut into windows, each a batch entry of its own (Swin)."""
    return lambda own, x, place: x.roll(-rolled, 1).unflatten(1, (windows, -1)).flatten(0, 1)


def joined(windows: int, rolled: int = 0) -> Part:
    return lambda own, x, place: x.unflatten(0, (-1, windows)).flatten(1, 2).roll(rolled, 1)


def without_padding(own: Attention, x: Tensor, _place: Place) -> Tensor:
    """Nothing of the rows that stand for no token."""
    return x * (own.now["mask"][:, 0, 0, :, None] >= 0)


def minus_another(own: Attention, answer_to: Callable[..., Tensor], answer: Tensor) -> Tensor:
    """Differential attention: less a second one over the same values (Ye et al. 2024)."""
    query, key, value = (own.now[name] for name in ("query", "key", "value"))
    weight = own.learned("difference", HEADS, 1)
    return answer - 0.4 * weight * answer_to(query.flip(-1).roll(1, -1), key, value)


def plus_another(own: Attention, answer_to: Callable[..., Tensor], answer: Tensor) -> Tensor:
    """Two attentions that meet in the same rows, the second of other queries."""
    query, key, value = (own.now[name] for name in ("query", "key", "value"))
    return answer + answer_to(-query, key, value)


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
