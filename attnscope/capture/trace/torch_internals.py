"""Where torch itself hides attention from whoever follows its functions: opened up here.

F.multi_head_attention_forward is one function to torch's function modes, nn.MultiheadAttention has a
native path that shows nothing, and functions compiled by torch.jit.script are not seen at all.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# the very code of torch, only that it does not hand itself over as a whole
stepwise: Callable[..., Any] = FunctionType(
    F.multi_head_attention_forward.__code__,
    {**vars(F), "has_torch_function": lambda tensors: False},
    "multi_head_attention_forward",
    F.multi_head_attention_forward.__defaults__,
)


@contextmanager
def unscripted(modules: Iterable[nn.Module]) -> Iterator[None]:
    """While open, functions that the modules' source files gave to torch.jit.script are plain Python."""
    sources = {cls.__module__ for module in modules for cls in type(module).__mro__}
    replaced: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for source in sources & set(sys.modules):
            names = vars(sys.modules[source])
            for name, entry in list(names.items()):
                original = getattr(entry, "_torchdynamo_inline", None)
                if isinstance(entry, torch.jit.ScriptFunction) and original is not None:
                    replaced.append((names, name, entry))
                    names[name] = original
        yield
    finally:
        for names, name, entry in replaced:
            names[name] = entry


@contextmanager
def native_answers(modules: Iterable[nn.Module]) -> Iterator[None]:
    """While open, nn.MultiheadAttention in `modules` still answers what torch's native path says.

    Under a function mode it goes step by step, which may round otherwise; the native path is then asked too.
    """
    handles = [
        module.register_forward_hook(_native_answer, with_kwargs=True)
        for module in dict.fromkeys(inner for module in modules for inner in module.modules())
        if isinstance(module, nn.MultiheadAttention)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _native_answer(module: nn.Module, args: Any, kwargs: Any, answer: Any) -> Any:
    given: list[Tensor] = [*args, *(kwargs[each] for each in ("query", "key", "value") if each in kwargs)]
    if not module.batch_first or given[0] is not given[1] or given[1] is not given[2]:
        return None
    with torch._C.DisableTorchFunction():
        return type(module).forward(module, *args, **kwargs)
