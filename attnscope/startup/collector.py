"""Garbage is not looked for while a program starts, and what it is made of is never looked at again.

Imports make hundreds of thousands of objects that stay, and Python's collector walks over them each time.
"""

import gc
import os

COLLECT = "ATTNSCOPE_COLLECT"  # set to anything: the collector works as Python has it
_MANY = 50_000  # objects made before the youngest are looked at; Python's own number is 700
_in_force = False


def look_less_often() -> None:
    """From here on, the collector of this process waits until there is much to look at."""
    global _in_force
    if not os.environ.get(COLLECT):
        _in_force = True
        gc.set_threshold(_MANY, *gc.get_threshold()[1:])


def leave_alone() -> None:
    """What there is by now stays as long as the process, if the process is the command's own."""
    if _in_force:
        gc.freeze()
