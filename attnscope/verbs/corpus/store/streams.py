"""What lies elsewhere as files that Python reads: in their order, fetched ahead, or here and there."""

import io
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any

from attnscope.verbs.corpus.store.faults import trying

BLOCK, TAIL = 2**20, 2**12  # bytes of a request; of the first one beyond what will be read for sure
FIRST = 2**16  # of the first where it is not said how far will be read
AHEAD = 2  # blocks that are fetched while one is read
Part = Callable[[int, int], bytes]


class _Read(io.RawIOBase):
    """A file of which `_more` gives the next bytes, none at its end."""

    def __init__(self) -> None:
        self._held = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._held:
            self._held = memoryview(self._more())
        given = self._held[: len(buffer)]
        buffer[: len(given)] = given
        self._held = self._held[len(given) :]
        return len(given)

    def _more(self) -> bytes:
        raise NotImplementedError

    def buffered(self) -> IO[bytes]:
        return io.BufferedReader(self, BLOCK)


class Stream(_Read):
    """The bytes from `start` on, by requests for parts; up to `end`, which is read for sure, ahead.

    Beyond it there is usually the rest of one line: small requests, which grow.
    """

    def __init__(self, part: Part, start: int, end: int | None, size: int) -> None:
        super().__init__()
        self._part, self._size = part, size
        self._sure = size if end is None else min(end, size)
        self._asked, self._tail = start, TAIL
        self._block = (
            BLOCK if end is not None else min(FIRST, BLOCK)
        )  # it grows: the first lines may be enough
        self._coming: deque[Future[bytes]] = deque()
        self._threads: ThreadPoolExecutor | None = None

    def _more(self) -> bytes:
        self._ask_ahead()
        if self._coming:
            content = self._coming.popleft().result()
            self._ask_ahead()
            return content
        start, self._asked = self._asked, min(self._asked + self._tail, self._size)
        self._tail = min(self._tail * 2, BLOCK)
        return self._part(start, self._asked)

    def _ask_ahead(self) -> None:
        while self._asked < self._sure and len(self._coming) < AHEAD:
            self._threads = self._threads or ThreadPoolExecutor(1, "attnscope-fetch")
            start, self._asked = self._asked, min(self._asked + self._block, self._sure)
            self._block = min(2 * self._block, BLOCK)
            self._coming.append(self._threads.submit(self._part, start, self._asked))

    def close(self) -> None:
        """Ends what is fetched ahead."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        super().close()


class Once(_Read):
    """A file of which no parts are given; where it breaks off it is opened again and read up to there."""

    def __init__(self, opened: Callable[[int], IO[bytes]], start: int, address: str) -> None:
        super().__init__()
        self._opened, self._at, self._address = opened, start, address
        self._file: IO[bytes] | None = None

    def _more(self) -> bytes:
        content = trying(self._next, "read", self._address)
        self._at += len(content)
        return content

    def _next(self) -> bytes:
        self._file = self._file or self._opened(self._at)
        try:
            return self._file.read(BLOCK)
        except BaseException:
            self.let_go()
            raise

    def let_go(self) -> None:
        """Closes the connection."""
        if self._file is not None:
            with suppress(Exception):
                self._file.close()
        self._file = None

    def close(self) -> None:
        """Closes the connection, too."""
        self.let_go()
        super().close()


class AtRandom(_Read):
    """A file that is read here and there: each reading is one request for just that."""

    def __init__(self, part: Part, size: int) -> None:
        super().__init__()
        self._part, self._size, self._at = part, size, 0

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where the next reading begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to where the next reading begins."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes, or all up to the end."""
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        content = self._part(self._at, end) if end > self._at else b""
        self._at += len(content)
        return content

    def readinto(self, buffer: Any) -> int:
        """Reads into a buffer."""
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)
