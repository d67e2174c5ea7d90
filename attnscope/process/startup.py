"""How the command starts faster than the libraries it is made of; whoever imports attnscope gets none of it.

Three measures, each switched off by a variable of the environment (`benchmarks/startup.py` measures the first
two): the names that transformers imports from modules which reading attention never uses are stand-ins;
Python's garbage collector waits until a model is in memory; and torch's threads that wait for one another
soon sleep, in place of turning in circles on cores that others could use.
"""

import builtins
import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from attnscope.process.stopwatch import running

EAGER_IMPORTS = "ATTNSCOPE_EAGER_IMPORTS"  # set to anything: no stand-ins
COLLECT = "ATTNSCOPE_COLLECT"  # set to anything: the collector works as Python has it
WAITING = "OMP_WAIT_POLICY"  # set to anything: threads wait as it says
_SPINS = "GOMP_SPINCOUNT", "1000"  # as libgomp does by itself where it has more threads than cores
_MANY = 50_000  # objects made before the collector looks at the youngest; Python's own number is 700
_hastened = False


def hasten() -> None:
    """Make this process, which is the command's own, start faster from here on."""
    global _hastened
    _hastened = True
    if not os.environ.get(COLLECT):
        gc.set_threshold(_MANY, *gc.get_threshold()[1:])
    if not os.environ.get(WAITING):
        os.environ.setdefault(*_SPINS)  # read when torch is imported


@contextmanager
def lean_loading() -> Iterator[None]:
    """Around importing transformers and loading a model: no garbage collection; stand-ins where hastened."""
    collecting = gc.isenabled()
    gc.disable()  # imports make hundreds of thousands of objects, and all of them stay
    try:
        if _hastened and not os.environ.get(EAGER_IMPORTS):
            with _stand_ins():
                yield
        else:
            yield
    finally:
        if _hastened and not os.environ.get(COLLECT):
            gc.freeze()  # what there is by now is never looked at again
        if collecting:
            gc.enable()


class StandIn:
    """In the place of a class or function whose module is not loaded: the module is, when this is used.

    Without loading it, nothing is an instance of the class, and `call` may know what a call returns
    (NotImplemented where only the real thing does).
    """

    def __init__(
        self, real: Callable[[], Any], loaded: Callable[[], Any], call: "Call | None" = None
    ) -> None:
        """`real` loads and returns it; `loaded` is None where it would have to be loaded."""
        self._real, self._loaded, self._call = real, loaded, call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real(), name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        if self._call is not None and self._loaded() is None:
            answer = self._call(self._real, *given, **named)
            if answer is not NotImplemented:
                return answer
        return self._real()(*given, **named)

    def __instancecheck__(self, instance: object) -> bool:
        kind = self._loaded()
        return kind is not None and isinstance(instance, kind)

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, self._real())

    def __mro_entries__(self, _: object) -> tuple[Any, ...]:
        return (self._real(),)

    def __or__(self, other: Any) -> Any:
        return self._real() | other

    def __ror__(self, other: Any) -> Any:
        return other | self._real()

    def __eq__(self, other: object) -> bool:
        return bool(self._real() == (other._real() if isinstance(other, StandIn) else other))

    def __hash__(self) -> int:
        return hash(self._real())


Call = Callable[..., Any]
"""What a call returns while the module is not loaded: `call(real, *given, **named)`."""


def _made_when_used(real: Callable[[], Any], *given: Any, **named: Any) -> StandIn:
    """An instance that is kept in a table until somebody uses it."""
    return StandIn(cache(lambda: real()(*given, **named)), lambda: None)


def _decided(_: Callable[[], Any], *given: Any, **named: Any) -> Any:
    """A condition that is True or False already."""
    return given[0] if not named and [type(value) for value in given] == [bool] else NotImplemented


def _is_no_number(_: Callable[[], Any], *given: Any, **named: Any) -> Any:
    """Whether a size is of the kind that only nested tensors have: an `int` is not."""
    return False if not named and [type(value) for value in given] == [int] else NotImplemented


def _all_or_any(connective: Callable[[Any], bool], _: Callable[[], Any], *given: Any, **named: Any) -> Any:
    """`and` or `or` of what is True or False already."""
    plain = given and not named and all(type(value) is bool for value in given)
    return connective(given) if plain else NotImplemented


def _same_sizes(_: Callable[[], Any], *given: Any, **named: Any) -> Any:
    """Whether two shapes are the same, all of whose sizes are numbers."""
    if named or len(given) != 2 or not all(isinstance(shape, tuple | list) for shape in given):
        return NotImplemented
    if any(type(size) is not int for shape in given for size in shape):
        return NotImplemented
    return tuple(given[0]) == tuple(given[1])


_PLACEMENTS: dict[str, Call | None] = dict.fromkeys(("Partial", "Replicate", "Shard"), _made_when_used)
_CONDITIONS: dict[str, Call | None] = {
    "expect_true": _decided,
    "guard_or_false": _decided,
    "guard_or_true": _decided,
    "guard_size_oblivious": _decided,
    "statically_known_true": _decided,
    "is_nested_int": _is_no_number,
    "sym_and": partial(_all_or_any, all),
    "sym_or": partial(_all_or_any, any),
    "sym_eq": _same_sizes,
    "guarding_hint_or_throw": None,
    "has_guarding_hint": None,
}  # what torch asks its solver for unknown sizes, and needs none for where the sizes are numbers
# by importing library and module, the names that have a stand-in
UNNEEDED: Mapping[tuple[str, str], Mapping[str, Call | None]] = {
    ("transformers", "accelerate"): {"dispatch_model": None},
    ("transformers", "accelerate.hooks"): {"add_hook_to_module": None},
    ("transformers", "accelerate.utils"): {"extract_model_from_parallel": None, "get_max_memory": None},
    ("transformers", "accelerate.utils.modeling"): {"clean_device_map": None, "get_max_layer_size": None},
    ("transformers", "scipy.optimize"): {"linear_sum_assignment": None},  # in the losses of detectors
    ("transformers", "torch._dynamo._trace_wrapped_higher_order_op"): {"TransformGetItemToIndex": None},
    ("transformers", "torch.distributed._composable.fsdp"): {"fully_shard": None},
    ("transformers", "torch.distributed.checkpoint.hf_storage"): {
        "HuggingFaceStorageReader": None,
        "HuggingFaceStorageWriter": None,
    },
    ("transformers", "torch.distributed.fsdp"): {
        "CPUOffloadPolicy": None,
        "FullyShardedDataParallel": None,
        "MixedPrecisionPolicy": None,
    },
    ("transformers", "torch.distributed.tensor"): {"DTensor": None, "distribute_tensor": None, **_PLACEMENTS},
    ("transformers", "torch.distributed.tensor._utils"): {"compute_local_shape_and_global_offset": None},
    ("transformers", "torch.distributed.tensor.placement_types"): {"Shard": None, "_StridedShard": None},
    ("torch", "torch.fx.experimental.symbolic_shapes"): _CONDITIONS,
}


class _Compiler:
    """In the place of `torch._dynamo`: what marks a function for the compiler leaves it as it is."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("torch._dynamo"), name)

    @staticmethod
    def mark(function: Any = None, *_: object, **__: object) -> Any:
        return _Compiler.mark if function is None else function

    disable = allow_in_graph = assume_constant_result = mark


class _Solver:
    """In the place of `sympy`: whether a number is one of its own is told without it, all else by itself."""

    def __init__(self, module: str) -> None:
        self.module, self.Basic = module, _stand_in(module, "Basic", None)

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.module), name)


@contextmanager
def _stand_ins() -> Iterator[None]:
    """What is imported in here gets stand-ins for what is unneeded, and keeps them; nobody else sees them."""
    with running.part("imports"):
        import torch

    ordinary: Any = builtins.__import__
    compiler: Any = _Compiler()
    solver: Any = _Solver("sympy")

    def with_stand_ins(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:  # by the names that Python's own has
        importer = (globals or {}).get("__name__", "").partition(".")[0]
        if importer == "torch" and name not in sys.modules and not fromlist:  # `import sympy`
            if name == "torch._dynamo":
                return torch
            if name == "sympy":
                return solver
        calls = UNNEEDED.get((importer, name), {})
        if not fromlist or name in sys.modules or not calls.keys() >= set(fromlist):
            return ordinary(name, globals, locals, fromlist, level)
        return SimpleNamespace(**{each: _stand_in(name, each, calls[each]) for each in fromlist})

    builtins.__import__ = with_stand_ins  # type: ignore[assignment]
    if "torch._dynamo" not in sys.modules:
        torch._dynamo = compiler
    try:
        yield
    finally:
        builtins.__import__ = ordinary
        if vars(torch).get("_dynamo") is compiler:
            del torch._dynamo


def _stand_in(module: str, name: str, call: Call | None) -> StandIn:
    return StandIn(
        lambda: getattr(import_module(module), name),
        lambda: getattr(sys.modules.get(module), name, None),
        call,
    )
