"""Files on other machines, through fsspec, which this module alone imports.

Every request is for just the bytes that are wanted, and is tried again where the network failed (`faults`).
"""

import hashlib
import json
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, TypeVar, cast
from weakref import WeakSet

from attnscope.errors import InputError, one_line
from attnscope.process.ending import unfinished_name
from attnscope.verbs.corpus.store.faults import (
    FIRST,
    PAUSES,
    UNKNOWN,
    RefusedError,
    missing,
    passing,
    trying,
)
from attnscope.verbs.corpus.store.streams import AtRandom, Once, Stream

__all__ = ["RefusedError"]
T = TypeVar("T")
_WHOLE = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hf", "memory", "oci"}  # no file in part
_SIGNED_BY = (
    "ETag",
    "etag",
    "blob_id",
    "md5Hash",
    "content_settings",
    "VersionId",
    "version_id",
    "generation",
)
_DATED_BY = ("Last-Modified", "LastModified", "mtime", "updated", "created")
_TALKATIVE = ("aiobotocore", "asyncio", "botocore", "fsspec", "gcsfs", "huggingface_hub.utils._http", "s3fs")
_SMALL = 2**16  # bytes of a request, from which on it is not made smaller
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_remote(address: str) -> bool:
    """Whether it is an address with a scheme, and none of this machine's."""
    return _REMOTE.match(address) is not None and not address.startswith(("file://", "local://"))


@dataclass(frozen=True)
class Facts:
    """What a store says of a file: `size` None where it does not; whether it gives parts of it."""

    size: int | None
    by_range: bool
    signature: str


def _system(address: str, options: str) -> tuple[Any, str]:
    import fsspec

    for library in _TALKATIVE:
        logging.getLogger(library).setLevel(logging.CRITICAL)
    try:
        system, path = fsspec.core.url_to_fs(address, **json.loads(options))
    except Exception as error:
        if isinstance(error, ImportError) or UNKNOWN in str(error):
            raise missing(address, set(fsspec.available_protocols()), error) from error
        if isinstance(error, OSError) or passing(error):
            raise
        raise RefusedError(f"cannot open '{address}': {one_line(error)}") from error
    if hasattr(system, "retries"):
        system.retries = 1  # S3's: it would ask for all of a part again
    _asked.add(system)
    return system, path


_asked: WeakSet[Any] = WeakSet()


def ask_anew() -> None:
    """Forgets what stores said of their files: they may have changed since."""
    facts.cache_clear()
    for system in list(_asked):
        system.invalidate_cache()


def _asking(address: str, options: str, doing: str, act: Callable[[Any, str], T], first: bool = False) -> T:
    def asked() -> T:
        return act(*_system(address, options))

    return trying(asked, doing, address, PAUSES[:FIRST] if first else None)


@lru_cache(maxsize=4096)
def facts(address: str, options: str) -> Facts:
    """What the store says of the file; asked once in a process."""
    told = _asking(address, options, "read", lambda system, path: dict(system.info(path)), first=True)
    if told.get("type") == "directory":
        raise RefusedError(f"cannot read '{address}': it is a folder, name a file")
    size = told.get("size")
    signed = {name: told[name] for name in _SIGNED_BY if told.get(name)}
    if not signed:
        signed = {name: told[name] for name in _DATED_BY if told.get(name)}
    plain = json.dumps({"size": size, **signed}, sort_keys=True, default=str)
    by_range = size is not None and told.get("partial") is not False
    return Facts(size, by_range, hashlib.sha256(plain.encode()).hexdigest())


def part(address: str, options: str, start: int, end: int) -> bytes:
    """Its bytes from `start` to `end`, all of them; after a fault on from there, in smaller requests."""
    content, most = bytearray(), max(1, end - start)

    def act(system: Any, path: str) -> bytes:
        nonlocal most
        at, asked = start + len(content), most
        most = max(min(most, _SMALL), most // 2)
        given = _range(system, path, at, min(at + asked, end))
        most = asked
        return given

    while start + len(content) < end:
        content += _asking(address, options, "read", act)
    return bytes(content)


def _range(system: Any, path: str, start: int, end: int) -> bytes:
    if system.async_impl:
        content: bytes = system.cat_file(path, start=start, end=end, **_as_it_is(system))
    else:
        with system.open(path, "rb", cache_type="none") as file:
            file.seek(start)
            content = file.read(end - start)
    if len(content) > end - start:
        raise NotImplementedError("its server gives no parts of files")
    if len(content) < end - start:
        raise EOFError(f"{len(content):,} bytes from byte {start:,} on in place of {end - start:,}")
    return content


def _as_it_is(system: Any) -> dict[str, Any]:
    """What keeps a web server from compressing what it gives: parts of that are of no use."""
    if "https" not in _protocols(system):
        return {}
    return {"headers": {**system.kwargs.get("headers", {}), "Accept-Encoding": "identity"}}


def _protocols(system: Any) -> tuple[str, ...]:
    return (system.protocol,) if isinstance(system.protocol, str) else tuple(system.protocol)


def read(address: str, options: str, start: int, end: int | None) -> bytes:
    """The bytes from `start` up to `end`, or to the end."""
    if start == 0 and end is None:
        return _asking(address, options, "read", lambda system, path: bytes(system.cat_file(path)))
    with stream(address, options, start, end) as file:
        return file.read() if end is None else file.read(max(0, end - start))


def stream(address: str, options: str, start: int, end: int | None) -> IO[bytes]:
    """The bytes from `start` on, fetched ahead up to `end`."""
    told = facts(address, options)
    if told.by_range and told.size is not None:
        return Stream(lambda a, b: part(address, options, a, b), start, end, told.size).buffered()

    def again(at: int) -> IO[bytes]:
        opened: IO[bytes] = _asking(
            address, options, "read", lambda system, path: system.open(path, "rb", block_size=0)
        )
        while at and (skipped := len(opened.read(min(at, 2**20)))):
            at -= skipped
        return opened

    return Once(again, start, address).buffered()


def at_random(address: str, options: str) -> IO[bytes]:
    """The file to be read here and there."""
    told = facts(address, options)
    if not told.by_range or told.size is None:
        raise RefusedError(f"cannot read '{address}' here and there: its server gives no parts of files")
    file: Any = AtRandom(lambda a, b: part(address, options, a, b), told.size)
    return cast(IO[bytes], file)


def exists(address: str, options: str) -> bool:
    """Whether the store has a file or folder of that name, now."""

    def act(system: Any, path: str) -> bool:
        system.invalidate_cache()
        system.info(path)
        return True

    try:
        return _asking(address, options, "read", act)
    except FileNotFoundError:
        return False


def is_folder(address: str, options: str) -> bool:
    """Whether there are files below it."""
    try:
        told = _asking(address, options, "read", lambda system, path: system.info(path), first=True)
    except FileNotFoundError:
        return False
    return bool(told.get("type") == "directory")


def names(address: str, options: str) -> list[str]:
    """The names of the files directly below it, as they are now; none where there are none."""

    def act(system: Any, path: str) -> list[dict[str, Any]]:
        system.invalidate_cache()
        return list(system.ls(path, detail=True))

    try:
        found = _asking(address, options, "list", act)
    except FileNotFoundError:
        return []
    return sorted(each["name"].rpartition("/")[2] for each in found if each["type"] == "file")


def files(address: str, options: str) -> list[str]:
    """The addresses of all files below it, or that the pattern names."""

    def act(system: Any, path: str) -> list[str]:
        if any(sign in path for sign in "*?["):
            found = [name for name, told in system.glob(path, detail=True).items() if told["type"] == "file"]
        else:
            found = list(system.find(path))
        return [system.unstrip_protocol(name) for name in sorted(found)]

    return _asking(address, options, "list", act, first=True)


def make(address: str, options: str) -> None:
    """Make the folder where there are such; a store of objects has none, and its buckets are not made."""

    def act(system: Any, path: str) -> None:
        if not set(_protocols(system)) & (_WHOLE - {"memory"}):
            system.makedirs(path, exist_ok=True)

    _asking(address, options, "write", act)


def write(address: str, options: str, content: bytes) -> None:
    """Put it there, whole or not at all."""

    def act(system: Any, path: str) -> None:
        _whole(system, path, lambda place: system.pipe_file(place, content))

    _asking(address, options, "write", act)


def put(address: str, options: str, file: Path) -> None:
    """Writes what stands in a file of this machine."""

    def act(system: Any, path: str) -> None:
        _whole(system, path, lambda place: system.put_file(str(file), place))

    _asking(address, options, "write", act)


def _whole(system: Any, path: str, send: Callable[[str], object]) -> None:
    """Sent to its name where the store shows nothing in part, else beside it and moved there."""
    if set(_protocols(system)) & _WHOLE:
        send(path)
        return
    folder = path.rpartition("/")[0]
    beside = f"{folder}/{unfinished_name()}"
    try:
        send(beside)
        system.mv(beside, path)
    except BaseException:
        with suppress(Exception):
            system.rm_file(beside)
        raise


def remove(address: str, options: str) -> None:
    """Remove the file, or all below it; nothing where there is none."""

    def act(system: Any, path: str) -> None:
        system.invalidate_cache()
        system.rm(path, recursive=system.isdir(path))

    try:
        _asking(address, options, "remove", act)
    except (FileNotFoundError, InputError) as error:
        if not isinstance(error, FileNotFoundError):
            raise
