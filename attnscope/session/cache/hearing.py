"""What a run says on the way, so that an answer from the cache says it again."""

from contextlib import AbstractContextManager

from attnscope.session.listener import Listener


class Hearing:
    """A listener that passes everything on, and remembers what was said before the answer was asked for."""

    def __init__(self, listener: Listener) -> None:
        self._listener, self.heard = listener, list[str]()

    def notice(self, text: str) -> None:
        self.heard.append(text)
        self._listener.notice(text)

    def detail(self, text: str) -> None:
        self._listener.detail(text)

    def working(self, what: str) -> AbstractContextManager[None]:
        return self._listener.working(what)
