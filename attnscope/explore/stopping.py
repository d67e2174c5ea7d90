"""Work that can be stopped half-way, on a thread of its own. Not for what leaves something to be put back."""

import ctypes
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any


class _Stopped(SystemExit):
    """Raised in the middle of the work; where it comes too late a thread ends of it in silence."""


class Work:
    """Begins `what` at once; it holds no lock that an end in the middle would leave closed."""

    def __init__(self, what: Callable[[], Any]) -> None:
        self._what = what
        self.answer: Any = None
        self.done = False
        self._thread = Thread(target=self._run, name="explore: stoppable", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(_Stopped):
            self.answer = self._what()
            self.done = True

    def stop(self) -> None:
        """It ends where it next comes to a line of Python; its answer is lost."""
        if self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(_Stopped)
            )
