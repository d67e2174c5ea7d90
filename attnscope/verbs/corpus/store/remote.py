"""Files on other machines, read and written through fsspec, which this module alone imports.

Every request is for just the bytes that are wanted, and is tried again where the network failed (`faults`).
"""

import hashlib
import io
import json
import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import fsspec
import fsspec.spec

from attnscope.errors import one_line
from attnscope.process.ending import temporary_folder, unfinished_name
from attnscope.verbs.corpus.store import Chunks, Place, RefusedError, faults

T = TypeVar("T")
BLOCK, TAIL = 2**20, 2**12  # bytes of a request; of the first one beyond what will be read for sure
FIRST = 2**16  # of the first where it is not said how far will be read
_WHOLE = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hf", "memory", "oci"}  # no file in part
_SIGNED_BY = (
    "ETag", "etag", "blob_id", "md5Hash", "content_settings", "VersionId", "version_id", "generation",
)  # fmt: skip
_DATED_BY = ("Last-Modified", "LastModified", "mtime", "updated", "created")
_TALKATIVE = ("aiobotocore", "asyncio", "botocore", "fsspec", "gcsfs", "huggingface_hub.utils._http", "s3fs")
_SMALL = 2**16  # bytes of a request, from which on it is not made smaller


@dataclass(frozen=True)
class RemotePlace(Place):
    """A remote address with its scheme; `options` (JSON) are for the file system that it names."""

    options: str = field(default="{}", repr=False)  # it may hold keys

    @property
    def local(self) -> None:
        return None

    def __truediv__(self, name: str) -> "RemotePlace":
        return replace(self, address=f"{self.address.rstrip('/')}/{name}")

    def _system(self) -> tuple[Any, str]:
        for library in _TALKATIVE:
            logging.getLogger(library).setLevel(logging.CRITICAL)
        try:
            system, path = fsspec.core.url_to_fs(self.address, **json.loads(self.options))
        except Exception as error:
            if isinstance(error, ImportError) or faults.UNKNOWN in str(error):
                raise faults.missing(self.address, set(fsspec.available_protocols()), error) from error
            if isinstance(error, OSError) or faults.passing(error):
                raise
            raise RefusedError(f"cannot open '{self.address}': {one_line(error)}") from error
        if hasattr(system, "retries"):
            system.retries = 1  # S3's: it would ask for all of a part again
        return system, path

    def _asking(self, doing: str, act: Callable[[Any, str], T], first: bool = False) -> T:
        with self.telling(doing):
            pauses = faults.PAUSES[: faults.FIRST] if first else None
            return faults.trying(lambda: act(*self._system()), doing, self.address, pauses)

    def ask_anew(self) -> None:
        facts.cache_clear()
        self._asking("read", lambda system, path: system.invalidate_cache())

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        if start == 0 and end is None:
            return self._asking("read", lambda system, path: bytes(system.cat_file(path)))
        return super().read(start, end)

    def open(self, start: int = 0, end: int | None = None) -> IO[bytes]:
        told = facts(self)
        whole = self._in_parts(start, end, told.size or 0) if told.by_range else self._in_order(start)
        return io.BufferedReader(Chunks(whole), BLOCK)

    def part(self, start: int, end: int) -> bytes:
        """Bytes from `start` to `end`, complete; after a fault it goes on from there, in smaller requests."""
        content, most = bytearray(), max(1, end - start)

        def act(system: Any, path: str) -> bytes:
            nonlocal most
            at, asked = start + len(content), most
            most = max(min(most, _SMALL), most // 2)
            given = _range(system, path, at, min(at + asked, end))
            most = asked
            return given

        while start + len(content) < end:
            content += self._asking("read", act)
        return bytes(content)

    def _in_parts(self, at: int, end: int | None, size: int) -> Generator[bytes]:
        """The bytes from `at` on, by range requests that grow: the first lines may be enough.

        Up to `end` it is read for sure; beyond it there is usually the rest of one line.
        """
        sure = size if end is None else min(end, size)
        block, tail = BLOCK if end is not None else min(FIRST, BLOCK), TAIL
        while at < size:
            if at < sure:
                stop, block = min(at + block, sure), min(2 * block, BLOCK)
            else:
                stop, tail = min(at + tail, size), min(2 * tail, BLOCK)
            yield self.part(at, stop)
            at = stop

    def _in_order(self, at: int) -> Generator[bytes]:
        """The bytes in order without range requests; after a fault the file is read again up to `at`."""
        file: Any = None

        def let_go() -> None:
            nonlocal file
            with suppress(Exception):
                file.close()
            file = None

        def more(system: Any, path: str) -> bytes:
            nonlocal file
            try:
                if file is None:
                    file, left = system.open(path, "rb", block_size=0), at
                    while left and (skipped := len(file.read(min(left, BLOCK)))):
                        left -= skipped
                return bytes(file.read(BLOCK))
            except BaseException:
                let_go()
                raise

        try:
            while content := self._asking("read", more):
                at += len(content)
                yield content
        finally:
            let_go()

    def at_random(self) -> IO[bytes]:
        if not facts(self).by_range:
            raise RefusedError(f"cannot read '{self}' here and there: its server gives no parts of files")
        return cast(IO[bytes], _AtRandom(self, facts(self).size or 0))

    @property
    def size(self) -> int | None:
        return facts(self).size

    @property
    def by_range(self) -> bool:
        return facts(self).by_range

    @property
    def signature(self) -> str:
        return facts(self).signature

    def exists(self) -> bool:
        def act(system: Any, path: str) -> bool:
            system.invalidate_cache()
            system.info(path)
            return True

        with suppress(FileNotFoundError):
            return self._asking("read", act)
        return False

    def is_folder(self) -> bool:
        with suppress(FileNotFoundError):
            told = self._asking("read", lambda system, path: system.info(path), first=True)
            return bool(told.get("type") == "directory")
        return False

    def names(self) -> list[str]:
        def act(system: Any, path: str) -> list[dict[str, Any]]:
            system.invalidate_cache()
            return list(system.ls(path, detail=True))

        with suppress(FileNotFoundError):
            found = self._asking("list", act)
            return sorted(each["name"].rpartition("/")[2] for each in found if each["type"] == "file")
        return []

    def files(self) -> list[Place]:
        def act(system: Any, path: str) -> list[Place]:
            if any(sign in path for sign in "*?["):
                found = system.glob(path, detail=True).items()
                names = [name for name, told in found if told["type"] == "file"]
            else:
                names = list(system.find(path))
            return [replace(self, address=system.unstrip_protocol(name)) for name in sorted(names)]

        return self._asking("list", act, first=True)

    def make(self) -> None:
        def act(system: Any, path: str) -> None:
            """Makes the folder, except in object stores, which have none and whose buckets are not made."""
            if not set(_protocols(system)) & (_WHOLE - {"memory"}):
                system.makedirs(path, exist_ok=True)

        self._asking("write", act)

    def write(self, content: bytes) -> None:
        self._asking("write", partial(_whole, lambda system, path: system.pipe_file(path, content)))

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        with temporary_folder() as folder:
            copy = Path(folder) / "part"
            with self.telling("write"), copy.open("wb") as file:
                yield file
            self._asking("write", partial(_whole, lambda system, path: system.put_file(str(copy), path)))

    def remove(self) -> None:
        def act(system: Any, path: str) -> None:
            system.invalidate_cache()
            system.rm(path, recursive=system.isdir(path))

        with suppress(FileNotFoundError):
            self._asking("remove", act)


@dataclass(frozen=True)
class Facts:
    """A store's facts about a file: `size` or None, whether it serves ranges, and its signature."""

    size: int | None
    by_range: bool
    signature: str


@lru_cache(maxsize=4096)
def facts(place: RemotePlace) -> Facts:
    """The store's facts about the file; asked once per process."""
    told = place._asking("read", lambda system, path: dict(system.info(path)), first=True)
    if told.get("type") == "directory":
        raise RefusedError(f"cannot read '{place}': it is a folder, name a file")
    size = told.get("size")
    signed = {name: told[name] for name in _SIGNED_BY if told.get(name)}
    if not signed:
        signed = {name: told[name] for name in _DATED_BY if told.get(name)}
    plain = json.dumps({"size": size, **signed}, sort_keys=True, default=str)
    by_range = size is not None and told.get("partial") is not False
    return Facts(size, by_range, hashlib.sha256(plain.encode()).hexdigest())


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
    """Arguments that keep a web server from compressing its answer, whose ranges would be useless."""
    if "https" not in _protocols(system):
        return {}
    return {"headers": {**system.kwargs.get("headers", {}), "Accept-Encoding": "identity"}}


def _protocols(system: Any) -> tuple[str, ...]:
    return (system.protocol,) if isinstance(system.protocol, str) else tuple(system.protocol)


def _whole(send: Callable[[Any, str], object], system: Any, path: str) -> None:
    """Sends a file under its name where the store is atomic, else under a temporary name, then moves it."""
    if set(_protocols(system)) & _WHOLE:
        send(system, path)
        return
    beside = f"{path.rpartition('/')[0]}/{unfinished_name()}"
    try:
        send(system, beside)
        system.mv(beside, path)
    except BaseException:
        with suppress(Exception):
            system.rm_file(beside)
        raise


class _AtRandom(fsspec.spec.AbstractBufferedFile):  # type: ignore[misc]
    """A remote file with random access: each read is one range request."""

    def __init__(self, place: RemotePlace, size: int) -> None:
        super().__init__(None, place.address, cache_type="none", size=size)
        self._place = place

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self._place.part(start, min(end, self.size))
