"""Listeners: objects that get notices for the user, details, and the start of slow work."""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, runtime_checkable


@runtime_checkable
class Listener(Protocol):
    """Gets one line of text at a time; `working` is a context manager around slow work."""

    def notice(self, text: str) -> None: ...

    def detail(self, text: str) -> None: ...

    def working(self, what: str) -> AbstractContextManager[None]: ...


class Quiet:
    """A listener that drops all messages, for runs that repeat an earlier one."""

    def notice(self, text: str) -> None: ...

    def detail(self, text: str) -> None: ...

    def working(self, what: str) -> AbstractContextManager[None]:
        return nullcontext()


class Log:
    """A listener that logs to `attnscope`: notices as warnings, details as info, work as debug."""

    _log = logging.getLogger("attnscope")

    def notice(self, text: str) -> None:
        self._log.warning("%s", text)

    def detail(self, text: str) -> None:
        self._log.info("%s", text)

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        self._log.debug("%s", what)
        yield
