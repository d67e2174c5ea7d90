"""Rule that cuts a run into parts, so that every later score is a sum of them.

While a model runs, each torch function is met: linear ones stay in the graph of gradients; of all else
the result is cut off, as a frozen coefficient where it is one number a row (the scale of a norm), or else as
a part, a leaf of the graph. Weights of a softmax are frozen; what they make of values is a part a head.
A constant that is added to something is a part as well. So a query or a key is affine with all constants
as leaves, and the gradient of a sum times its leaf is what that leaf has of it (Euler).

Tables say which functions are linear in what they are given, by the names of `trace.operations.operation` (a
graph's nodes have names of their own); whatever they do not name cuts a run. In the place of functions that
are several in one the rule meets elementary ones (`SPELLED`).

The model computes what it always does. With `Changes` the same rule puts other values in the place of parts.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from attnscope.capture.trace.fused import stepwise
from attnscope.capture.trace.operations import BOUNDS, COPIES, FRESH, MOVES, operation, overwrites, tensors_in


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
# functions through which a score is still known: bounds, and a soft cap
SEEN_THROUGH = BOUNDS | {"tanh"}
# facts about a tensor, or new ones of its shape: not computed from its numbers
_ASIDE = """size dim stride is_contiguous len item tolist bool hash nelement get_device element_size
    is_complex storage_offset isnan isinf format repr shape dtype device ndim is_floating_point
    requires_grad numel layout is_cuda is_sparse data_ptr"""
ASIDE = frozenset(_ASIDE.split())

# a graph of only these autograd nodes is affine in its leaves; the rule makes sure that a product has
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
    """Name of a graph node behind a tensor that is not in `NODES`; None where there is none."""
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


Site = tuple[str, int]  # an attention module by its path, and how often it had been called before
Key = tuple[str, str, int]  # module, function, how often that was cut there before: the same in every run


class Cut(Enum):
    """Reason why a part (leaf) was cut from the run."""

    EMBEDDING = "looked up"
    INPUT = "what is read meets the first weight"
    ATTENTION = "weights of a softmax met values"
    NONLINEAR = "a function that is not linear"
    CONSTANT = "added, whatever is read"
    PRODUCT = "a product of two that are alive: queries and keys"
    TANGENT = "what is left over where a function behind the last layer is taken at its slope"


@dataclass(frozen=True, eq=False)
class Leaf:
    """One part of the run. `site` is the attention that runs or ran last, "" for none.

    `owner` names the weight that the part is, or was looked up in. For an attention, `pattern` gives rows of
    the weights, `values` are the values and `axis` is that of the heads; for a product, `operands` have
    gradients and `again` multiplies other ones. `source` is the input of a bound or cap, for scores.
    """

    key: Key
    cut: Cut
    tensor: Tensor
    site: Site
    owner: str = ""
    pattern: Callable[[Tensor], Tensor] | None = None
    values: Tensor | None = None
    axis: int | None = None
    operands: tuple[Tensor, Tensor] | None = None
    again: Callable[[Tensor, Tensor], Tensor] = torch.matmul
    source: Tensor | None = None

    @property
    def tokens(self) -> int:
        """The (negative) axis of the positions."""
        return -3 if self.axis is not None and self.axis - self.tensor.ndim == -2 else -2


@dataclass(frozen=True, eq=False)
class Softmax:
    """Scores with gradients, and their softmax: for these `queries`, None for all."""

    site: Site
    scores: Tensor
    weights: Tensor
    queries: Sequence[int] | None = None

    def row(self, query: int) -> int:
        """Row index of a query."""
        return query if self.queries is None else self.queries.index(query)


@dataclass(frozen=True, eq=False)
class Change:
    """Replacement for some rows of parts: by key the mask of the rows, and the new numbers."""

    parts: Mapping[Key, tuple[Tensor, Tensor]] = field(default_factory=dict)


def detached(values: Any, clone: bool = False) -> Any:
    """Nested values with their tensors detached from gradients, and copied if `clone`."""
    if isinstance(values, Tensor):
        return values.detach().clone() if clone else values.detach()
    if isinstance(values, dict):
        return {name: detached(each, clone) for name, each in values.items()}
    if isinstance(values, list | tuple) and not hasattr(values, "_fields"):
        return type(values)(detached(each, clone) for each in values)
    return values


@dataclass(frozen=True, eq=False)
class Changes:
    """One change for each text in a batch of copies, relative to the run `base`.

    Parts that are `held` stay as they were there, whatever they would become; so do coefficients if `frozen`.
    """

    base: "Rule"
    each: Sequence[Change]
    held: frozenset[Key] = frozenset()
    frozen: bool = False


class Misfit(Exception):
    """Raised where a part does not come once for every text of a batch."""


class Rule(TorchFunctionMode):
    """Torch function mode that cuts a run into parts; collects `leaves` and `softmaxes`, in order.

    `output` is what the model returned, None where the run ended before. Of a long text the scores of some
    `rows` alone are made, in the last attention (`answered_by_rows`).
    """

    def __init__(
        self, model: nn.Module, changes: Changes | None = None, rows: Sequence[int] | None = None
    ) -> None:
        super().__init__()
        self.changes = changes
        self.rows: Sequence[int] | None = rows if changes is None else changes.base.rows
        self.leaves: dict[Key, Leaf] = {}
        self.coefficients: dict[Key, Tensor] = {}
        self.softmaxes: list[Softmax] = []
        self.output: Any = None
        self.stack: list[str] = [""]
        self.site: Site = ("", 0)
        self._names = {id(each): name for name, each in (*model.named_parameters(), *model.named_buffers())}
        self._counts: Counter[tuple[str, str]] = Counter()

    # what is cut

    def _key(self, name: str) -> Key:
        place = self.stack[-1], name
        self._counts[place] += 1
        return *place, self._counts[place]

    def part(self, value: Tensor, name: str, cut: Cut, **told: Any) -> Tensor:
        """Make the value a part: a leaf of the graph, which later results depend on by gradient."""
        key = self._key(name)
        value = value.detach()
        value = value.clone() if self.changes is None else self._changed(self.changes, key, value)
        tensor = value.requires_grad_(True)
        self.leaves[key] = Leaf(key, cut, tensor, self.site, **told)
        return tensor.clone()  # the model may write over it

    def _changed(self, changes: Changes, key: Key, value: Tensor) -> Tensor:
        edits = {i: each.parts[key] for i, each in enumerate(changes.each) if key in each.parts}
        if not edits and key not in changes.held:
            return value.clone()
        base = changes.base.leaves[key].tensor.detach() if key in changes.base.leaves else None
        count = len(changes.each)
        if base is None:
            raise Misfit
        if value.shape == base.shape and count > 1 and not edits:
            return value.clone()  # one for all texts, such as the table of positions
        if value.shape != (count * base.shape[0], *base.shape[1:]):
            raise Misfit
        copies = (base if key in changes.held else value).clone()
        if key in changes.held:
            copies = copies.repeat(count, *[1] * (base.ndim - 1))
        several = copies.view(count, *base.shape)
        for i, (mask, other) in edits.items():
            several[i] = torch.where(mask, other, several[i])
        return copies

    def _coefficient(self, value: Tensor, name: str) -> Tensor:
        """The value detached: a factor, one number a row, fixed so that products with it are linear."""
        key, value = self._key(name), value.detach()
        if self.changes is not None and self.changes.frozen and key in self.changes.base.coefficients:
            base = self.changes.base.coefficients[key]
            value = base.repeat(len(self.changes.each), *[1] * (base.ndim - 1)) if base.ndim else base
        self.coefficients[key] = value
        return value

    def _term(self, value: Any, like: Tensor, name: str) -> Any:
        """One term of a sum; a constant becomes a part."""
        if isinstance(value, Tensor):
            if value.requires_grad or not value.is_floating_point():
                return value
            return self.part(value, name, Cut.CONSTANT, owner=self._names.get(id(value), ""))
        if isinstance(value, bool) or not isinstance(value, int | float) or not value:
            return value
        number = torch.full((), float(value), dtype=like.dtype, device=like.device)
        return self.part(number, name, Cut.CONSTANT)

    # the rule

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, operation(function)
        if name in ASIDE:
            return function(*args, **kwargs)
        if name in SPELLED:
            with self:
                return SPELLED[name](*args, **kwargs)
        tensors = list(tensors_in((args, kwargs)))
        alive = [each for each in tensors if each.requires_grad]
        if name == "embedding":
            with torch.no_grad():
                found = function(*args, **kwargs)
            table = kwargs.get("weight", args[1] if len(args) > 1 else None)
            return self.part(found, name, Cut.EMBEDDING, owner=self._names.get(id(table), ""))
        if not alive:
            return self._of_constants(function, name, tensors, args, kwargs)
        if name.startswith(FRESH):
            with torch.no_grad():
                return function(*args, **kwargs)
        if name in KEPT:
            return function(*args, **kwargs)
        if name in SUMS:
            return self._sum(function, name, alive[0], args, kwargs)
        if name in FACTORS:
            return self._product(function, name, args, kwargs)
        if name in MATRIX:
            return self._matrix(function, name, args, kwargs)
        if name == "einsum":
            return self._einsum(function, tensors, args, kwargs)
        if name == "linear":
            return self._affine(function, name, alive, args, kwargs, ())
        if name in CONVOLUTIONS:
            return self._affine(function, name, alive, args, kwargs, (1,) * CONVOLUTIONS[name])
        if name == "masked_fill":
            return self._filled(function, args, kwargs)
        if name == "softmax":
            return self._softmax(function, args, kwargs)
        return self._cut(function, name, alive[0], args, kwargs)

    def _of_constants(self, function: Any, name: str, tensors: Any, args: Any, kwargs: Any) -> Any:
        """Result of a function of constants: a part where a weight meets a picture, a sound or a table."""
        result = function(*args, **kwargs)
        weighs = name in MEETS_INPUT and any(id(each) in self._names for each in tensors[1:])
        if weighs and isinstance(result, Tensor) and result.is_floating_point():
            return self.part(result, name, Cut.INPUT, owner=self._names.get(id(tensors[0]), ""))
        return result

    def _sum(self, function: Any, name: str, like: Tensor, args: Any, kwargs: Any) -> Any:
        written = overwrites(function) and name != "add" and name != "sub"
        kept = args[:1] if written else ()  # what is written over stays itself
        return function(*kept, *(self._terms(each, like, name) for each in args[len(kept) :]), **kwargs)

    def _terms(self, value: Any, like: Tensor, name: str) -> Any:
        if isinstance(value, list | tuple):
            plain = not hasattr(value, "_fields")
            return type(value)(self._terms(each, like, name) for each in value) if plain else value
        counts = name in NUMBERED or isinstance(value, Tensor)
        return self._term(value, like, name) if counts else value

    def _product(self, function: Any, name: str, args: Any, kwargs: Any) -> Any:
        first, second = args[0], args[1]
        one, two = (isinstance(each, Tensor) and each.requires_grad for each in (first, second))
        if not two:
            return function(*args, **kwargs)
        if name == "mul" and not one:
            return function(*args, **kwargs)
        if one and second.ndim and second.shape[-1] == 1 and (first.shape[-1] != 1 or name == "div"):
            return function(first, self._coefficient(second, name), *args[2:], **kwargs)
        if one and name == "mul" and first.ndim and first.shape[-1] == 1 and second.shape[-1] != 1:
            return self._coefficient(first, name) * second
        return self._both(function, name, second, args, kwargs)

    def _both(self, function: Any, name: str, alive: Tensor, args: Any, kwargs: Any) -> Any:
        return self._cut(function, name, alive, args, kwargs)

    def _matrix(self, function: Any, name: str, args: Any, kwargs: Any) -> Any:
        first, second = args[0], args[1]
        if first.requires_grad and second.requires_grad:
            return self._scores(function(first.detach(), second.detach()), name, first, second, torch.matmul)
        if first.requires_grad or first.ndim < 3 or id(first) in self._names:
            return function(*args, **kwargs)
        made = function(first, second.detach())
        axis = 0 if made.ndim == 3 else made.ndim - 3
        rows = lambda some: first[..., some, :]  # noqa: E731 - as a long text's weights are asked for
        return self.part(made, name, Cut.ATTENTION, pattern=rows, values=second.detach(), axis=axis)

    def _scores(self, made: Tensor, name: str, first: Tensor, second: Tensor, again: Any) -> Tensor:
        return self.part(made, name, Cut.PRODUCT, operands=(first, second), again=again)

    def _einsum(self, function: Any, tensors: list[Tensor], args: Any, kwargs: Any) -> Any:
        if len(tensors) != 2:
            return self._cut(function, "einsum", tensors[0], args, kwargs)
        first, second = tensors
        if first.requires_grad and second.requires_grad:
            made = function(args[0], first.detach(), second.detach())
            return self._scores(made, "einsum", first, second, lambda a, b: torch.einsum(args[0], a, b))
        constant = second if first.requires_grad else first
        if constant.ndim < 3 or id(constant) in self._names:
            return function(*args, **kwargs)
        made = function(args[0], first.detach(), second.detach())
        return self.part(made, "einsum", Cut.ATTENTION)  # its heads cannot be told apart

    def _affine(
        self, function: Any, name: str, alive: list[Tensor], args: Any, kwargs: Any, over: tuple[int, ...]
    ) -> Any:
        given = {**dict(zip(("input", "weight", "bias"), args, strict=False)), **kwargs}
        bias, rest = given.pop("bias", None), args[3:]
        if given["weight"].requires_grad:
            return self._cut(function, name, alive[0], args, kwargs)
        read, weight = given.pop("input"), given.pop("weight")
        made = function(read, weight, None, *rest, **given)
        if bias is None:
            return made
        term = self.part(bias, "bias", Cut.CONSTANT, owner=self._names.get(id(bias), name))
        return made + term.reshape(-1, *over) if over else made + term

    def _filled(self, function: Any, args: Any, kwargs: Any) -> Any:
        given = {**dict(zip(("self", "mask", "value"), args, strict=False)), **kwargs}
        held, mask, value = given["self"], given["mask"], given["value"]
        zeros = torch.zeros_like(held.detach())
        with torch.no_grad():
            filled = zeros.masked_fill(mask, value.item() if isinstance(value, Tensor) else value)
        made = function(held, mask, 0.0)
        term = self.part(filled, "masked_fill", Cut.CONSTANT)
        return made.add_(term) if overwrites(function) else made + term

    def _softmax(self, function: Any, args: Any, kwargs: Any) -> Tensor:
        scores = args[0] if args else kwargs["input"]
        with torch.no_grad():
            weights: Tensor = function(*(detached(args)), **detached(kwargs))
        self.softmaxes.append(Softmax(self.site, scores, weights, self.rows))
        return weights

    def _cut(self, function: Any, name: str, alive: Tensor, args: Any, kwargs: Any) -> Any:
        with torch.no_grad():
            made = function(*detached(args, clone=overwrites(function)), **detached(kwargs))
        if not isinstance(made, Tensor) or not made.is_floating_point():
            return made
        if made.ndim == 0 or made.shape[-1] == 1:
            return self._coefficient(made, name)
        return self.part(made, name, Cut.NONLINEAR, source=alive if name in SEEN_THROUGH else None)
