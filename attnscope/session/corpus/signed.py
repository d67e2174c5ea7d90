"""Which texts a run is of: the digest of every source, found beside the start, and held against at the end.

A run that goes on must go on with the same texts, and where it is kept is called after them, so their digests
come first. A large local file is hashed by a thread while libraries are imported; and not again for as long
as the system tells of every change to it and tells of none (`digests`).
"""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from attnscope.errors import InputError
from attnscope.session.corpus.source import Source
from attnscope.session.corpus.store import ask_anew


class Signed:
    """Sources and their digests."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)
        self._stamps = [source.stamp for source in sources]
        self._found: Future[list[str]] = Future()
        # it ends with the program, which waits for no file that nobody wants to know of any more
        threading.Thread(target=self._find, name="attnscope-digests", daemon=True).start()

    def _find(self) -> None:
        try:
            self._found.set_result([source.digest for source in self.sources])
        except BaseException as error:
            self._found.set_exception(error)

    @property
    def digests(self) -> Sequence[str]:
        """One for each; waits for them."""
        return self._found.result()

    def check_unchanged(self) -> None:
        """`InputError` where one is another now: nobody knows which of its texts were read."""
        ask_anew()
        for source, stamp, digest in zip(self.sources, self._stamps, self.digests, strict=True):
            if _differs(source, stamp, digest):
                raise InputError(
                    f"'{source.name}' changed while it was measured, so what was read is neither it nor what "
                    "it was: remove the run's folder, or name another with --run"
                )


def _differs(source: Source, stamp: Any, digest: str) -> bool:
    if stamp is not None and source.stamp == stamp:
        return False
    return source.digest != digest
