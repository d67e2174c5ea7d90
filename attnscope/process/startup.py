"""How the command starts faster than the libraries it is made of; whoever imports attnscope gets none of it.

Two measures, each switched off by a variable of the environment: Python's garbage collector waits until a
model is in memory (`benchmarks/startup.py` measures it), and torch's threads that wait for one another soon
sleep, in place of turning in circles on cores that others could use. Every library is imported as it is.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

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
    """Around importing transformers and loading a model: no garbage collection."""
    collecting = gc.isenabled()
    gc.disable()  # imports make hundreds of thousands of objects, and all of them stay
    try:
        yield
    finally:
        if _hastened and not os.environ.get(COLLECT):
            gc.freeze()  # what there is by now is never looked at again
        if collecting:
            gc.enable()
