"""What modelling code imports and reading attention never calls: by name, measured on a cold `heads`."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from attnscope.startup.deferred import PutOff
from attnscope.startup.standing import (
    Meanwhile,
    false_if_int,
    made_when_used,
    marks,
    same_if_bool,
    wraps_when_there,
)


def _disable(meanwhile: Meanwhile, function: Any = None, recursive: bool = True, **named: Any) -> Any:
    """`torch._dynamo.disable` of a function, or with `recursive=False` the decorator that does it.

    It keeps the compiler from a function, and there is none before its module is loaded.
    """
    if function is None and not recursive:
        return lambda each: _disable(meanwhile, each, recursive, **named)
    return wraps_when_there(meanwhile, function, recursive, **named)


def _of_bools(connective: Callable[[Iterable[bool]], bool], _: Meanwhile, *given: Any, **named: Any) -> Any:
    """`and` or `or` of True and False, where the compiler would make a symbol of what is not known."""
    if named or not given or any(type(each) is not bool for each in given):
        return NotImplemented
    return connective(given)


def _of_shapes(_: Meanwhile, *given: Any, **named: Any) -> Any:
    """Whether two shapes are the same, all of whose sizes are known."""
    if named or len(given) != 2 or any(type(size) is not int for shape in given for size in _sizes(shape)):
        return NotImplemented
    return tuple(given[0]) == tuple(given[1])


def _sizes(shape: Any) -> Iterable[object]:
    return shape if type(shape) in (tuple, list) else (None,)


_COMPILER = PutOff(
    calls={"allow_in_graph": marks, "assume_constant_result": marks, "disable": _disable},
    inside={"_trace_wrapped_higher_order_op": PutOff(["TransformGetItemToIndex"])},
)
_TENSOR_OVER_MACHINES = PutOff(
    ["DTensor", "DeviceMesh", "distribute_tensor"],
    {"Partial": made_when_used, "Replicate": made_when_used, "Shard": made_when_used},
    inside={
        "_utils": PutOff(["compute_local_shape_and_global_offset"]),
        "placement_types": PutOff(["Shard", "_StridedShard"]),
    },
)
_MODEL_OVER_MACHINES = PutOff(["CPUOffloadPolicy", "FullyShardedDataParallel", "MixedPrecisionPolicy"])
_CHECKPOINT_OF_MACHINES = PutOff(
    inside={"hf_storage": PutOff(["HuggingFaceStorageReader", "HuggingFaceStorageWriter"])}
)
# questions of the compiler, which are answered where the number is known
_SYMBOLIC_SHAPES = PutOff(
    ["guarding_hint_or_throw", "has_guarding_hint"],
    {
        "expect_true": same_if_bool,
        "guard_or_false": same_if_bool,
        "guard_or_true": same_if_bool,
        "guard_size_oblivious": same_if_bool,
        "is_nested_int": false_if_int,
        "statically_known_true": same_if_bool,
        "sym_and": partial(_of_bools, all),
        "sym_eq": _of_shapes,
        "sym_or": partial(_of_bools, any),
    },
)

UNNEEDED = {
    "scipy.optimize": PutOff(["linear_sum_assignment"]),  # in a loss of models that find objects
    "sympy": PutOff(["Basic"]),  # numbers that are not known
    "torch._dynamo": _COMPILER,
    "torch.distributed._composable": PutOff(inside={"fsdp": PutOff(["fully_shard"])}),
    "torch.distributed.checkpoint": _CHECKPOINT_OF_MACHINES,
    "torch.distributed.fsdp": _MODEL_OVER_MACHINES,
    "torch.distributed.tensor": _TENSOR_OVER_MACHINES,
    "torch.fx.experimental.symbolic_shapes": _SYMBOLIC_SHAPES,
    "unittest.mock": PutOff(["patch"]),
}
