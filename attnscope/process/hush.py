"""What libraries write to standard error past Python, kept from the reader's terminal."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from attnscope.process.ending import undone_by_a_signal


@contextmanager
def hushed() -> Iterator[None]:
    """What is written to standard error past Python goes nowhere; Python itself still reaches it."""
    python = sys.stderr
    with suppress(OSError, ValueError):
        python.flush()
    try:
        kept = os.dup(2)
    except OSError:  # it is closed: nobody hears anything
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
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
