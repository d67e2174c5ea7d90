"""What a module does with its kernel's answer: followed from the kernel's return until the module is through.

    answer -> views, casts -> the next operation -> ... -> the module's result

A certificate speaks of the answer. It stands for the layer only where that answer goes on: as it is, features
in their order, to the layer or the product that comes next, or to something that the model computes for it (a
gate, a norm, another attention to subtract), which is no part of the certificate, but part of the model. An
answer that is thrown away, written over, rearranged or changed by plain numbers does not go on.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.capture.following.trail import Steps, Trail

UNFOLLOWED = "what the module makes of what its kernel returned could not be followed"


@contextmanager
def following(modules: Iterable[nn.Module]) -> Iterator["Follower"]:
    """While open, the answers that the follower is told of are followed until their module is through."""
    before, follower = _modes(), Follower()
    handles = []
    try:
        for module in dict.fromkeys(modules):
            handles.append(module.register_forward_pre_hook(follower.enter))
            handles.append(module.register_forward_hook(follower.leave, always_call=True))
            for part in module.modules():
                if part is not module and _has_numbers(part):
                    handles.append(part.register_forward_pre_hook(follower.enter_part, with_kwargs=True))
                    handles.append(part.register_forward_hook(follower.leave_part, with_kwargs=True))
        yield follower
    finally:
        for handle in handles:
            handle.remove()
        while _modes() > before:  # an interrupt calls no hooks
            torch._C._pop_torch_function_stack()


class Follower:
    """The answers that are under way in the watched modules that run."""

    def __init__(self) -> None:
        self.running: list[_Running] = []  # innermost last

    def enter(self, module: nn.Module, _inputs: Any) -> None:
        self.running.append(_Running(module))

    def leave(self, _module: nn.Module, _inputs: Any, result: Any) -> None:
        self.running.pop().finish(result)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Around a kernel: what happens in there is none of the module's doing."""
        run = self.running[-1] if self.running else None
        lifted = run is not None and run.lift()
        try:
            yield
        finally:
            if run is not None and lifted:
                run.put()

    def answered(self, module: nn.Module, output: Tensor) -> Trail | None:
        """Follows what a kernel has returned to `module`; None where that cannot be."""
        if not self.running or self.running[-1].module is not module or not self.running[-1].put():
            return None
        with torch._C.DisableTorchFunction():
            return self.running[-1].steps.begin(output)

    def enter_part(self, _part: nn.Module, args: Any, kwargs: Any) -> None:
        with torch._C.DisableTorchFunction():
            for run in self.running:
                run.steps.used((args, kwargs))

    def leave_part(self, _part: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
        with torch._C.DisableTorchFunction():
            for run in self.running:
                run.steps.made((args, kwargs), result)


class _Running:
    """One forward of a watched module: its steps are followed from its kernel's first return on."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.depth, self.on = module, _modes(), False
        self.steps = Steps(module)

    def put(self) -> bool:
        """Begins to follow; False within a mode of the module's own, which would have to end first."""
        if not self.on and _modes() == self.depth:
            self.steps.__enter__()  # type: ignore[no-untyped-call]
            self.on = True
        return self.on

    def lift(self) -> bool:
        """Ceases to follow; False where that was not the case, or cannot be now."""
        if not self.on or torch._C._get_function_stack_at(_modes() - 1) is not self.steps:
            return False
        self.steps.__exit__(None, None, None)
        self.on = False
        return True

    def finish(self, result: Any) -> None:
        self.lift()
        with torch._C.DisableTorchFunction():
            self.steps.finish(result)


def _modes() -> int:
    return torch._C._len_torch_function_stack()


def _has_numbers(part: nn.Module) -> bool:
    """Whether a module holds parameters, or what a quantised one has in their place, itself."""
    return any(True for _ in part.parameters(recurse=False)) or any(True for _ in part.buffers(recurse=False))
