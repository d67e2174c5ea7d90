"""Which of torch's functions are linear in what they are given; whatever is not named here cuts a run.

Names are those of `trace.operations.operation`; a graph's nodes have names of their own. In the place of
functions that are several in one the rule meets elementary ones (`SPELLED`).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attnscope.capture.trace.fused import stepwise
from attnscope.capture.trace.operations import BOUNDS, COPIES, MOVES


def _layer_norm(x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    axes = tuple(range(-len(shape), 0))
    centred = x - x.mean(axes, keepdim=True)
    made: Tensor = centred * (centred.pow(2).mean(axes, keepdim=True) + eps).rsqrt()
    made = made if weight is None else made * weight
    return made if bias is None else made + bias


def _rms_norm(x: Tensor, shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    axes = tuple(range(-len(shape), 0))
    least = torch.finfo(x.dtype).eps if eps is None else eps
    made: Tensor = x * (x.pow(2).mean(axes, keepdim=True) + least).rsqrt()
    return made if weight is None else made * weight


def _normalize(x: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: None = None) -> Tensor:
    made: Tensor = x / x.norm(p, dim, keepdim=True).clamp_min(eps)
    return made


def _addmm(input: Any, *operands: Any, beta: float = 1, alpha: float = 1, **named: Any) -> Tensor:
    first, second = (*operands, *named.values())  # mat1 and mat2, or batch1 and batch2
    made: Tensor = first @ second
    made = made if alpha == 1 else made * alpha
    return made if beta == 0 else made + (input if beta == 1 else input * beta)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    groups = query.shape[-3] // key.shape[-3] if enable_gqa else 1
    if groups > 1:
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        shape = query.shape[-2], key.shape[-2]
        later = torch.ones(shape, dtype=torch.bool, device=query.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return F.softmax(scores, -1) @ value


SPELLED: dict[str, Callable[..., Any]] = {
    "multi_head_attention_forward": stepwise,
    "scaled_dot_product_attention": _attention,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "normalize": _normalize,
    "addmm": _addmm,
    "baddbmm": _addmm,
}


# linear in their first argument, whatever the others are
_MORE = """sum mean neg negative cumsum pad constant_pad_nd gather take_along_dim masked_select diagonal
    as_strided ravel unfold view_as_complex view_as_real real lift hsplit vsplit avg_pool1d
    avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d pixel_shuffle pixel_unshuffle diff atleast_2d
    split_with_sizes zero"""
KEPT = MOVES | COPIES | frozenset(_MORE.split())
# sums: a constant among their terms is a part of its own, which may be a plain number in `NUMBERED`
NUMBERED = frozenset({"add", "sub", "rsub", "where"})
_JOINED = """cat stack concat concatenate hstack vstack setitem copy index_add index_copy index_put scatter
    scatter_add masked_scatter slice_scatter"""
SUMS = NUMBERED | frozenset(_JOINED.split())
FACTORS = frozenset({"mul", "div"})
MATRIX = frozenset({"matmul", "bmm", "mm"})
CONVOLUTIONS = {"conv1d": 1, "conv2d": 2, "conv3d": 3}
MEETS_INPUT = frozenset({"linear", "addmm", *CONVOLUTIONS})
# what a score may go through and stay what it is, or be known from: its bounds, and a soft cap
SEEN_THROUGH = BOUNDS | {"tanh"}
# what tells of a tensor, or makes one of its shape: nothing that is computed of its numbers
_ASIDE = """size dim stride is_contiguous len item tolist bool hash nelement get_device element_size
    is_complex storage_offset isnan isinf format repr shape dtype device ndim is_floating_point
    requires_grad numel layout is_cuda is_sparse data_ptr"""
ASIDE = frozenset(_ASIDE.split())

# what a graph of nothing but these is made of is affine in its leaves; the rule sees to it that a product has
# one factor that is fixed
_NODES = """AccumulateGrad Add Sub Rsub Mul Div Neg Clone View UnsafeView ReshapeAlias Reshape Alias
    Transpose T Permute Expand Squeeze Unsqueeze Slice Select Index IndexSelect Gather Cat Stack
    Split SplitWithSizes Unbind Chunk ToCopy CopySlices Copy Mm Bmm Addmm Mv Dot Convolution Im2Col
    Mean Sum Where MaskedFill ConstantPadNd Repeat RepeatInterleave Roll Flip Unfold AsStrided
    Cumsum IndexAdd IndexPut IndexCopy Scatter ScatterAdd Diagonal Linear MkldnnLinear MaskedScatter
    MaskedSelect SliceScatter ViewAsReal ViewAsComplex Real AvgPool2D Unflatten Swapaxes Movedim Mt
    PixelShuffle PixelUnshuffle"""
NODES = frozenset(_NODES.split())


def stranger(made: Tensor) -> str | None:
    """What in the graph behind a tensor is not in `NODES`; None: nothing."""
    seen, waiting = set[object](), [made.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        name = node.name().rpartition("::")[2]
        if name.rstrip("0123456789").removesuffix("Backward") not in NODES:
            return name
        waiting += [each for each, _ in node.next_functions]
    return None
