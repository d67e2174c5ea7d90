"""What another library does to this process as it starts, undone: its words, its signals, its environment."""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from attnscope.process.ending import undone_by_a_signal

_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")


@contextmanager
def hushed() -> Iterator[None]:
    """What is written to standard error past Python goes nowhere; Python itself still reaches it."""
    python = sys.stderr
    with suppress(OSError, ValueError):
        python.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    restore = partial(os.dup2, kept, 2)
    with undone_by_a_signal(restore):
        try:
            if _is_standard_error(python):
                sys.stderr = os.fdopen(os.dup(kept), "w", buffering=1, encoding=python.encoding)
            os.dup2(nowhere, 2)
            yield
        finally:
            restore()
            sys.stderr = python  # the other one is left open: a bar may be writing to it right now
            os.close(nowhere)
            os.close(kept)


def _is_standard_error(stream: Any) -> bool:
    try:
        return bool(stream.fileno() == 2)
    except (OSError, ValueError, AttributeError):
        return False


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
