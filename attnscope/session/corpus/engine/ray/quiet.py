"""What another library does to this process as it starts, undone: its signals, its environment."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")


@contextmanager
def replaced(module: Any, name: str, other: Any) -> Iterator[None]:
    """`module` has `other` under that name, where it had anything."""
    usual = getattr(module, name, None)
    if usual is not None:
        setattr(module, name, other)
    try:
        yield
    finally:
        if usual is not None:
            setattr(module, name, usual)


@contextmanager
def own_signals() -> Iterator[None]:
    """Whatever answers signals now answers them afterwards."""
    numbers = [getattr(signal, name) for name in _STOPPING if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, answer in before.items():
            with suppress(ValueError, TypeError):  # another thread than the first; an answer written in C
                signal.signal(number, answer)


@contextmanager
def environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """These variables, but for those that the user has set; afterwards they are gone again."""
    new = [name for name in wanted if name not in os.environ]
    os.environ.update({name: wanted[name] for name in new})
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)
