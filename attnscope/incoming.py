"""Reads files, pipes and standard input that a user names, within limits.

Nothing else reads them. A file must fit in memory by its size. An input without a size is read once, up to a
limit, and kept for whoever reads it again. Every error is one line that says what cannot be read and why.
"""

import errno
import hashlib
import io
import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any
from weakref import WeakKeyDictionary

from attnscope.errors import DoesNotFitError, InputError, one_line
from attnscope.printable import printable
from attnscope.process.machine import bytes_of, gigabytes, left

STANDARD_INPUT = Path("-")
LIMIT, USUAL_LIMIT = "ATTNSCOPE_INPUT_LIMIT", 256 * 10**6  # bytes of what has no size
LONGEST_LINE, LONGEST_NAME = 16 * 10**6, 1000  # bytes, characters
BOM = b"\xef\xbb\xbf"  # in front of a text in UTF-8, and no part of it
_COPIES = 2  # of a file in memory: its bytes, and what is made of them
_PARSED = {",": 80, "[": 88, "{": 232, ":": 120}  # bytes of the objects that stand behind a sign of JSON
_OFTEN, _SPARE = 2**16, 256 * 10**6  # lines after which so many bytes of memory must still be left
_SETTINGS, _SMALL = 10, 10**7  # bytes of memory for a byte of a model's settings; files that always fit
_CHUNK = 2**20
_OPEN_ALREADY = ("/dev/", "/proc/")  # where the name of a pipe is that of an open one

_limit: ContextVar[str | None] = ContextVar("limit", default=None)
_kept: dict[tuple[object, ...], bytes] = {}
_typed: WeakKeyDictionary[IO[str], bytes] = WeakKeyDictionary()


def limit_to(size: str | None) -> None:
    """Sets the size limit of inputs without a size, such as `2GB`; None for the environment's."""
    _limit.set(size)
    if size is not None:
        limit()


def limit() -> int:
    """The size limit in bytes of inputs without a size; `InputError` where the setting is invalid."""
    size, name = _limit.get(), "--input-limit"
    if size is None:
        size, name = os.environ.get(LIMIT, "").strip() or None, LIMIT
    most = USUAL_LIMIT if size is None else bytes_of(size.strip())
    if most is None:
        raise InputError(f"{name} is no size: '{str(size)[:30]}': such as 500MB or 2GB")
    return most


def called(path: str | Path) -> str:
    """The display name of an input: `texts.txt` or `standard input`."""
    return "standard input" if Path(path) == STANDARD_INPUT else printable(str(path))


def named(path: str | Path, what: str = "") -> str:
    """The display name in a sentence: `picture 'door.png'` or `standard input`."""
    return called(path) if Path(path) == STANDARD_INPUT else f"{what} '{called(path)}'".lstrip()


def check_there(path: str | Path | None, what: str = "") -> None:
    """Raises `InputError` where the input does not exist or cannot be read.

    Nothing is opened: a pipe gives what it has to whoever reads it first.
    """
    if path is None or Path(path) == STANDARD_INPUT:
        return
    name = named(path, what)
    with _refusing(name):
        _status(Path(path), name)
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def content(path: str | Path, what: str = "", most: int = -1) -> bytes:
    """The bytes of an input, at most `most`; `InputError` if unreadable, `DoesNotFitError` if too large."""
    with opened(path, what, held=most < 0) as file:
        return file.read(most)


def lines(path: str | Path, what: str = "", *, held: bool = True) -> Iterator[bytes]:
    """Lines of an input without line ends; longer ones are cut to `LONGEST_LINE` bytes and one.

    `held` says that the caller keeps the lines, so that the whole file must fit in memory.
    """
    with opened(path, what, held) as file:
        for at, line in lines_of(file):
            yield line if at else line.removeprefix(BOM)


def lines_of(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Byte offset and line for each line from an open file's position on, cut as in `lines`."""
    at = 0
    while line := file.readline(LONGEST_LINE + 2):
        rest, size = line, len(line)
        while len(rest) > LONGEST_LINE and not rest.endswith(b"\n"):
            rest = file.readline(LONGEST_LINE + 2)
            size += len(rest)
        yield at, without_end(line)[: LONGEST_LINE + 1]
        at += size


def without_end(raw: bytes) -> bytes:
    """`raw` without one final line end."""
    return raw.removesuffix(b"\n").removesuffix(b"\r")


def whole_lines(path: str | Path, what: str = "") -> Iterator[tuple[int, bytes]]:
    """Line numbers (from 1) and lines of an input; `InputError` for one that is too long."""
    name = named(path, what)
    for number, line in enumerate(lines(path, what), start=1):
        if len(line) > LONGEST_LINE:
            where = f"cannot read {name}: line {number}"
            raise InputError(f"{where} is longer than {LONGEST_LINE:,} bytes: it takes lines of text")
        if number % _OFTEN == 0:
            check_room(_SPARE, f"the rest of {name}")
        yield number, line


def sha256(path: str | Path) -> str:
    """The SHA-256 of an input, without holding it in memory."""
    with opened(path, held=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def as_file(path: Path, folder: Path) -> Path:
    """The path, or that of a copy in `folder` for an input without a size, such as a pipe."""
    name = named(path)
    with _refusing(name):
        if path != STANDARD_INPUT and _size(_status(path, name)):
            return path
        copy = folder / f"{len(os.listdir(folder))}"
        with copy.open("xb") as file, _stream(path) as stream:
            _pour(stream, file, name)
    return copy


def settings(file: Path) -> Any:
    """The parsed JSON file of a model folder; raises `OSError` or `ValueError`."""
    check_settings(file)
    with file.open("rb") as opened:
        content = opened.read().decode("utf-8")
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("its brackets are nested too deeply") from error


def check_settings(*files: Path) -> None:
    """Raises `DoesNotFitError` where a settings file is too large for memory."""
    for file in files:
        if (size := file.stat().st_size) > _SMALL:
            check_room(_SETTINGS * size, f"reading '{printable(file.name)}'")


def text(raw: bytes, name: str) -> str:
    """`raw` decoded as UTF-8; `InputError` where it is not valid."""
    try:
        return raw.decode("utf-8")
    except UnicodeError as error:
        raise InputError(f"{name} is not valid UTF-8") from error


def parsed(raw: str | bytes, name: str, **hooks: Any) -> Any:
    """The parsed JSON; `InputError` where it is invalid. `hooks` are arguments of `json.loads`."""
    check_json_room(raw, name)
    try:
        return json.loads(text(raw.removeprefix(BOM), name) if isinstance(raw, bytes) else raw, **hooks)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is no JSON: {one_line(error)}") from error


def check_json_room(raw: str | bytes, name: str) -> None:
    """Raises `DoesNotFitError` where the parsed JSON would not fit in memory."""
    counted: Any = raw.count
    signs = {sign: counted(sign.encode() if isinstance(raw, bytes) else sign) for sign in _PARSED}
    check_room(sum(_PARSED[sign] * signs[sign] for sign in signs), f"{name} as JSON")


def check_name(name: str, where: str) -> None:
    """Raises `InputError` for a name longer than `LONGEST_NAME`."""
    if len(name) > LONGEST_NAME:
        raise InputError(f"{where}: '{name[:30]}…' has {len(name):,} characters, a name has {LONGEST_NAME}")


def check_room(size: int, what: str, note: str = "") -> None:
    """Raises `DoesNotFitError` where `size` bytes are not free; `what` names them."""
    room = left()
    if room is not None and size > room:
        raise DoesNotFitError(f"{what} takes {gigabytes(size)}{note}, and memory has {gigabytes(room)} free")


@contextmanager
def opened(path: str | Path, what: str = "", held: bool = True) -> Iterator[io.BufferedReader | io.BytesIO]:
    """Context manager: the open file, or a buffer with all of an input without a size."""
    path, name = Path(path), named(path, what)
    with _refusing(name):
        if path == STANDARD_INPUT:
            yield io.BytesIO(_standard_input())
            return
        status = _status(path, name)
        if size := _size(status):
            if held:
                check_room(_COPIES * size, f"reading {name}")
            with path.open("rb") as file:
                yield file
            return
        yield io.BytesIO(_once(path, status, name))


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"cannot read {name}: no such file") from error
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror or one_line(error)}") from error
    except ValueError as error:
        raise InputError(f"cannot read {name}: no file can be called that") from error


def _status(path: Path, name: str) -> os.stat_result:
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"cannot read {name}: it is a folder, name a file")
    if stat.S_ISSOCK(status.st_mode):
        raise InputError(f"cannot read {name}: it is a socket, name a file or a pipe")
    return status


def _size(status: os.stat_result) -> int:
    """The size of a regular file in bytes; 0 for anything else."""
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _once(path: Path, status: os.stat_result, name: str) -> bytes:
    """The bytes of an input without a size, cached unless it has been written to since."""
    key = _identity(path, status)
    if key not in _kept:
        with path.open("rb") as stream:
            given = _held(stream, name)
        if stat.S_ISREG(status.st_mode):
            return given
        key = _identity(path, path.stat())
        _kept[key] = given
    return _kept[key]


def _identity(path: Path, status: os.stat_result) -> tuple[object, ...]:
    written = 0 if str(path).startswith(_OPEN_ALREADY) else status.st_mtime_ns
    return str(path), status.st_dev, status.st_ino, written


def _standard_input() -> bytes:
    if (typed := sys.stdin) is None:
        return b""
    if typed not in _typed:
        with _stream(STANDARD_INPUT) as stream:
            _typed[typed] = _held(stream, named(STANDARD_INPUT))
    return _typed[typed]


@contextmanager
def _stream(path: Path) -> Iterator[IO[bytes]]:
    if path != STANDARD_INPUT:
        with path.open("rb") as file:
            yield file
    else:
        yield sys.stdin.buffer if sys.stdin else io.BytesIO()


def argument(text: str) -> str:
    """A command-line argument as text; `InputError` when its bytes are not UTF-8."""
    try:
        # an argument that Python could not decode holds its bytes as surrogates
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError as error:
        raise InputError("the text is not valid UTF-8") from error


def _held(stream: IO[bytes], name: str) -> bytes:
    held = io.BytesIO()
    _pour(stream, held, name, left())
    return held.getvalue()


def _pour(stream: IO[bytes], into: IO[bytes], name: str, room: int | None = None) -> None:
    """Copies a stream into a file; raises where it exceeds the limit or free memory."""
    most = limit()
    while chunk := stream.read(_CHUNK):
        into.write(chunk)
        if into.tell() > most:
            raise InputError(
                f"{name} gives more than {most:,} bytes: --input-limit, or {LIMIT}, sets how much is read"
            )
        if room is not None and _COPIES * into.tell() > room:
            raise DoesNotFitError(f"{name} gives more than fits: memory has {gigabytes(room)} free")
    if chunk is None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
