"""One thread at a time, in the whole process: for what changes a model in memory, or what libraries share.

Reading attention puts our functions into registries that transformers has once a process, and hooks into the
model. Both are taken out again; between the two another thread would see them, or take out what is not its.
A thread that has the lock may take it again, so that nothing waits for itself.
"""

import functools
import inspect
from collections.abc import Callable
from threading import RLock
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=type)

ALONE = RLock()


def alone(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, which waits until no other thread is in one of these."""

    @functools.wraps(function)
    def waiting(*args: P.args, **kwargs: P.kwargs) -> T:
        with ALONE:
            return function(*args, **kwargs)

    return waiting


def each_alone(cls: C) -> C:
    """The class, all of whose public methods and properties wait so, and its making."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name not in ("__init__", "__repr__"):
            continue
        if inspect.isfunction(member):
            setattr(cls, name, alone(member))
        elif isinstance(member, property) and member.fget is not None:
            setattr(cls, name, property(alone(member.fget)))
    return cls
