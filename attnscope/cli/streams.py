"""The streams that are written to, which may be closed, full or read by nobody; lines as they are.

What cannot be written to standard output is an error. A notice that nobody can read ends nothing: what cannot
be written to standard error is lost.
"""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from attnscope.errors import InputError, NobodyReadsError
from attnscope.printable import printable


class Narration(io.RawIOBase):
    """Standard error. Every write succeeds, whether anybody can read it or not."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream  # closes what is below when nobody holds it
        self._below = getattr(stream.buffer, "raw", stream.buffer)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._below.fileno())

    def isatty(self) -> bool:
        return bool(self._below.isatty())

    def write(self, data: Any) -> int:
        try:
            written: int | None = self._below.write(data)
            if written is not None:
                return written
            self.lost(BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)))
        except OSError as error:
            self.lost(error)
        return len(data)

    def lost(self, error: OSError) -> None:
        """What is done about bytes that could not be written."""


class Results(Narration):
    """Standard output. The first write that fails is an error; what comes after it goes nowhere.

    On Windows a pipe that nobody reads any more is an invalid argument.
    """

    failed = False

    def lost(self, error: OSError) -> None:
        """Raises `NobodyReadsError` or, where it is not for want of a reader, `InputError`."""
        if self.failed:
            return
        self.failed = True
        if isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL):
            raise NobodyReadsError from error
        raise InputError(f"cannot write the output: {error.strerror}") from error


def say(line: str, stream: TextIO | None = None) -> None:
    """One line on standard error, or on `stream`, with nothing in it that could steer a terminal."""
    print(printable(line), file=stream or sys.stderr)


def document(json: str) -> None:
    """One JSON document on standard output, in UTF-8 whatever the terminal speaks."""
    sys.stdout.flush()
    sys.stdout.buffer.write((json.rstrip("\n") + "\n").encode())


def guard() -> None:
    """Put output and error in place of Python's own; what is closed is opened upon nothing."""
    _occupy()
    sys.stdout = _guarded(sys.stdout, 1, Results)
    sys.stderr = _guarded(sys.stderr, 2, Narration)


@contextmanager
def ours_alone() -> Iterator[None]:
    """While open, what a library prints past Python on standard output goes nowhere: it is no result."""
    sys.stdout.flush()
    try:
        kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    except OSError:  # no more files may be open
        yield
        return
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _occupy() -> None:
    """No file may get the number of a closed stream: what a library prints there would go into it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free


def _guarded(stream: Any, number: int, kind: type[Narration]) -> io.TextIOWrapper:
    """Text that is written through `kind`; characters that the encoding lacks become question marks."""
    stream = stream or open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - open as long as the process
    return io.TextIOWrapper(
        io.BufferedWriter(kind(stream)),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
