"""`--timings`: where the time of a run went, on standard error, when everything else has been said."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from attnscope import stopwatch

_wanted = False


def want() -> None:
    """Have the times told at the end of this run."""
    global _wanted
    _wanted = True


@contextmanager
def told_at_the_end() -> Iterator[None]:
    """Around a run: its times are told where they are wanted, also of a run that fails."""
    global _wanted
    try:
        yield
    finally:
        if _wanted:
            for line in stopwatch.told():
                print(line, file=sys.stderr)
        _wanted = False
        stopwatch.running.restart()
