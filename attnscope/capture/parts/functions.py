"""Which of torch's functions are linear in what they are given; whatever is not named here cuts a run.

Names are those of `trace.operations.operation`; a graph's nodes have names of their own.
"""

from torch import Tensor

from attnscope.capture.trace.operations import BOUNDS, COPIES, MOVES

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
