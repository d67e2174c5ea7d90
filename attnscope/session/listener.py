"""Who is told what happens on the way: notices that a user should read, details, and what takes time."""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, runtime_checkable


@runtime_checkable
class Listener(Protocol):
    """Gets one line of text at a time; `working` stands around what takes a while."""

    def notice(self, text: str) -> None: ...

    def detail(self, text: str) -> None: ...

    def working(self, what: str) -> AbstractContextManager[None]: ...


class Quiet:
    """Tells nobody: for what is run again, when all has been said."""

    def notice(self, text: str) -> None: ...

    def detail(self, text: str) -> None: ...

    def working(self, what: str) -> AbstractContextManager[None]:
        return nullcontext()


class Log:
    """Notices as warnings of the logger `attnscope`, where Python's own settings decide what is seen."""

    _log = logging.getLogger("attnscope")

    def notice(self, text: str) -> None:
        self._log.warning("%s", text)

    def detail(self, text: str) -> None:
        self._log.info("%s", text)

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        self._log.debug("%s", what)
        yield
