"""What an attention's own code tells, read off its compiled code; nothing is run.

Whether it asks transformers' interface for its kernel (`asks_interface`), and which modules make attention of
their own, past that interface. Of these one counts when its code multiplies, takes a softmax and multiplies
again. That is only a hint (a router or a pooling may read alike): what really happens is found out by the
tracer when the model runs.
"""

import dis
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import nn

_PRODUCTS = ("matmul", "bmm", "einsum")
_WHOLE = {"scaled_dot_product_attention", "multi_head_attention_forward"}
_OTHER_SOFTMAX = {"log_softmax", "gumbel_softmax"}


def asks_interface(module_class: type) -> bool:
    """Whether its forward asks transformers' interface for the function, which then can be stood in for."""
    return "get_interface" in _names(module_class)


def looks_up_by_hand(module_class: type) -> bool:
    """Whether its forward looks other kernels up in the interface, but has its own eager one at hand.

    Code of this older style, mostly from a model's own repository, never asks for a function called eager.
    """
    names = _names(module_class)
    asked_for_an_attribute = "getattr" in names  # which finds none of that name, whatever the name is
    return "ALL_ATTENTION_FUNCTIONS" in names and "get_interface" not in names and not asked_for_an_attribute


def _names(module_class: type) -> tuple[str, ...]:
    forward: Any = inspect.unwrap(getattr(module_class, "forward", module_class))
    code = getattr(forward, "__code__", None)
    return code.co_names if code else ()


@cache
def looks_traceable(module_class: type) -> bool:
    """Whether `module_class` multiplies, takes a softmax and multiplies, and never asks the interface.

    The code of its bases and of functions beside it counts as its own; a product may also stand in a small
    module that it holds. Whole models and what assigns predictions to targets are left out.
    """
    if issubclass(module_class, nn.MultiheadAttention):
        return True
    whole_model = hasattr(module_class, "from_pretrained")
    if whole_model or asks_interface(module_class) or _of_torch(module_class):
        return False
    mine = _operations(module_class)  # type: ignore[arg-type]
    if mine["whole"] or not mine["softmax"] or mine["assignment"]:
        return bool(mine["whole"])
    held = (_operations(part)["product"] for part in _parts(module_class))
    return mine["product"] + sum(held) > 1


def _of_torch(module_class: type) -> bool:
    return module_class.__module__.startswith(("torch.", "builtins"))


@cache
def _operations(module_class: type) -> Counter[str]:
    return Counter(operation for code in _codes(module_class) for operation in _named(code))


def _codes(module_class: type) -> Iterator[CodeType]:
    """The code of the methods and of the functions in the same source file that they call, each once."""
    seen: set[CodeType] = set()
    for cls in module_class.__mro__:
        if _of_torch(cls):
            continue
        waiting = [code for entry in vars(cls).values() if (code := _code(entry))]
        while waiting:
            code = waiting.pop()
            if code in seen:
                continue
            seen.add(code)
            yield code
            waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
            waiting += [inner for entry in _beside(cls, code) if (inner := _code(entry))]


def _parts(module_class: type) -> Iterator[type]:
    made = _code(getattr(module_class, "__init__", None))
    for entry in _beside(module_class, made) if made else ():
        if isinstance(entry, type) and issubclass(entry, nn.Module):
            yield entry


def _beside(cls: type, code: CodeType) -> Iterator[Any]:
    names = vars(sys.modules.get(cls.__module__, cls))
    for name in code.co_names:
        entry = names.get(name)
        inner = _code(entry)
        if getattr(entry, "__module__", None) == cls.__module__ or (
            inner and inner.co_filename == code.co_filename
        ):
            yield entry


def _code(entry: Any) -> CodeType | None:
    if isinstance(entry, torch.jit.ScriptFunction):
        entry = getattr(entry, "_torchdynamo_inline", None)
    entry = getattr(entry, "__func__", entry)
    while hasattr(entry, "__wrapped__"):
        entry = entry.__wrapped__
    return entry.__code__ if isinstance(entry, FunctionType) else None


def _named(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        name = str(instruction.argval)
        if instruction.opname == "BINARY_OP" and instruction.argrepr == "@":
            yield "product"
        if not instruction.opname.startswith(("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL")):
            continue
        if name in _WHOLE:
            yield "whole"
        elif any(product in name for product in _PRODUCTS):
            yield "product"
        elif name.lower().endswith("softmax") and name not in _OTHER_SOFTMAX:
            yield "softmax"
        elif name == "linear_sum_assignment":
            yield "assignment"
