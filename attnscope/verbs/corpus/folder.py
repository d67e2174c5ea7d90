"""The folder of a run: parts, rows and manifest on the disk, from which a run can be resumed.

    manifest.json                  what it is a run of, with provenance; written first
    parts/0-000012-8c1f….parquet   what split 12 gave (level 1: splits 192 to 207, and so on; see `Tree`)
    rows/000012-51ab….parquet      with --rows: what each of its texts gave (`rows_into`)
    rows/000003-0d2e….rows         such files of splits 768 to 1023, one after the other
    set-aside.jsonl                what could not be measured, why, and what stood there; written last

It lies on this machine or at any address (`store`). A file is there whole, or not at all, so a split whose
part is not found is measured again. The name of a part holds the digest of its bytes: one that was damaged
later is found, and the same part has the same name whoever writes it. A run that is refused before anything
was measured leaves nothing.

Only one process works on a run at a time. On this machine the system holds the lock, and it ends with its
holder however that ends. Elsewhere it is a file with a name that nobody else has, which its holder writes
again and again. Who finds one waits for longer than that takes, by a clock that does not jump, and takes over
what nobody has written since. Should two work on a run for a while after all, nothing is lost or counted
twice: the same part has the same name.
"""

import errno
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from attnscope.errors import InputError
from attnscope.process.ending import UNFINISHED
from attnscope.session.listener import Listener, Quiet
from attnscope.verbs.corpus.part import NotAPartError, Part, RowsFile, read
from attnscope.verbs.corpus.store import NotWrittenError, Place

SCHEMA = "attnscope.corpus-run/3"
MANIFEST, PARTS, ROWS, ASIDE, LOCK = "manifest.json", "parts", "rows", "set-aside.jsonl", "lock"
_NAMED = re.compile(r"([0-9])-([0-9]{6,})-([0-9a-f]{16})\.parquet")
_DIGITS = 16
GATHERED = 2**28  # bytes of a file of rows that were put together
_GATHERED_SUFFIX = ".rows"


@dataclass(frozen=True, order=True)
class Named:
    """A part's file name: its level, its number in the level, and the digest of its bytes."""

    level: int
    number: int
    digest: str

    @classmethod
    def of(cls, level: int, number: int, content: bytes) -> "Named":
        """The name of a part with these bytes."""
        return cls(level, number, _digest(content))

    @classmethod
    def parsed(cls, name: str) -> "Named | None":
        """The name parsed from a file's name; None where the file is no part."""
        match = _NAMED.fullmatch(name)
        return None if match is None else cls(int(match[1]), int(match[2]), match[3])

    def __str__(self) -> str:
        return f"{self.level}-{self.number:06d}-{self.digest}.parquet"


class DamagedError(Exception):
    """A file is missing or has changed: a part, by level and number, or the rows of a split."""

    def __init__(self, name: str, level: int, number: int) -> None:
        super().__init__(name)
        self.level, self.number = level, number


def _groups(rows: Sequence[RowsFile]) -> list[list[RowsFile]]:
    groups: list[list[RowsFile]] = []
    room = 0
    for each in rows:
        if each.size > room:
            groups.append([])
            room = GATHERED
        groups[-1].append(each)
        room -= each.size
    return groups


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


@dataclass(frozen=True)
class Folder:
    """The folder of one run: claims it, locks it, reads and writes its parts and rows."""

    place: Place

    def claim(self, identity: Mapping[str, Any], provenance: Mapping[str, Any]) -> bool:
        """Makes this run's manifest, or checks the one that is there; True where the run was begun before.

        `InputError` for a folder that holds another run, and says in what they differ.
        """
        if (manifest := self._manifest()) is not None:
            self._check_same(manifest.get("identity"), identity)
            return True
        local = self.place.local
        names = self.place.names() if local is None else [each.name for each in local.iterdir()]
        if any(name not in (LOCK, PARTS) for name in names):
            raise InputError(f"'{self.place}' is no folder of a run and not empty: name another with --run")
        content = {"schema": SCHEMA, "identity": identity, **provenance}
        (self.place / PARTS).make()
        plain = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        # half a character, in the name of a folder, becomes what JSON writes for it
        (self.place / MANIFEST).write(plain.encode("utf-8", "backslashreplace"))
        return False

    def _manifest(self) -> dict[str, Any] | None:
        place = self.place / MANIFEST
        try:
            manifest = json.loads(place.read())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise InputError(f"cannot read '{place}': it is no manifest of a run") from error
        there = manifest.get("schema") if isinstance(manifest, dict) else None
        if there != SCHEMA and str(there).startswith(SCHEMA.partition("/")[0]):
            raise InputError(
                f"'{self.place}' was begun by another attnscope ({there}): remove it, or name another folder "
                "with --run"
            )
        if not isinstance(manifest, dict) or there != SCHEMA:
            raise InputError(f"'{place}' is no manifest of a run that this attnscope knows")
        return manifest

    def _check_same(self, recorded: Any, identity: Mapping[str, Any]) -> None:
        there = recorded if isinstance(recorded, dict) else {}
        wanted = json.loads(json.dumps(identity))
        other = [name for name in {**there, **wanted} if there.get(name) != wanted.get(name)]
        if other:
            name = other[0]
            differs = f"{name} is {_short(there.get(name))} there and {_short(wanted.get(name))} here"
            more = f", and so do {', '.join(other[1:])}" if other[1:] else ""
            raise InputError(
                f"'{self.place}' belongs to another run: {differs}{more}; "
                f"give that command again, or name another folder with --run"
            )

    @contextmanager
    def locked(self, listener: Listener | None = None) -> Iterator[None]:
        """Context manager: holds the run's lock; `InputError` where another process has it."""
        local, place = self.place.local, self.place / LOCK
        ours = [local / name for name in (LOCK, MANIFEST, PARTS, ROWS)] if local is not None else []
        new = [each for each in (*ours, local, *local.parents) if not each.exists()] if local else []
        begun = local is not None or (self.place / MANIFEST).exists()
        of = str(self.place)
        with _flock(place, of) if local is not None else _lease(place, of, listener or Quiet()):
            try:
                yield
            except Exception:
                self._take_back(new, begun=begun)
                raise

    def _take_back(self, new: Sequence[Path], *, begun: bool) -> None:
        if self.parts():
            return
        if not begun:
            (self.place / MANIFEST).remove()
        for place in new:
            with suppress(OSError):
                place.unlink() if place.name in (LOCK, MANIFEST) else place.rmdir()

    def parts(self) -> list[Named]:
        """Names of all parts in the folder, ordered by level, number and digest."""
        found = map(Named.parsed, (self.place / PARTS).names())
        return sorted(named for named in found if named is not None)

    def part(self, named: Named) -> Part:
        """Reads a part; `DamagedError` where it is missing or its bytes do not match its name."""
        damaged = DamagedError(f"{PARTS}/{named}", named.level, named.number)
        try:
            content = (self.place / PARTS / str(named)).read()
            if Named.of(named.level, named.number, content) != named:
                raise damaged
            return read(content)
        except (FileNotFoundError, NotAPartError) as error:
            raise damaged from error

    def keep(self, part: Part, level: int, number: int) -> Named:
        """Writes a part; `NotWrittenError` where it cannot be, and what was done is kept."""
        content = part.written()
        named = Named.of(level, number, content)
        (self.place / PARTS).make()
        (self.place / PARTS / str(named)).write(content)
        return named

    def keep_rows(self, split: int, content: bytes) -> str:
        """Writes the rows of a split; returns the name of their file."""
        name = f"{split:06d}-{_digest(content)}.parquet"
        (self.place / ROWS).make()
        (self.place / ROWS / name).write(content)
        return name

    def rows(self, rows: RowsFile) -> bytes:
        """The bytes of a file of rows; `DamagedError` where they do not match its name."""
        file, (split, _, named) = rows.within or rows.name, rows.name.partition("-")
        content = b""
        with suppress(FileNotFoundError):
            content = (self.place / ROWS / file).read(rows.start, rows.start + rows.size)
        if named != f"{_digest(content)}.parquet":
            raise DamagedError(f"{ROWS}/{file}", 0, int(split))
        return content

    def gathered(self, rows: Sequence[RowsFile], number: int) -> tuple[RowsFile, ...]:
        """Joins the rows of consecutive splits into few files.

        A file takes no more than `GATHERED` bytes, or one of them alone. The `number` stands in its name.
        """
        put: list[RowsFile] = []
        for group in _groups([each for each in rows if each.name]):
            digest = _digest("".join(each.name for each in group).encode())
            within, start = f"{number:06d}-{digest}{_GATHERED_SUFFIX}", 0
            with (self.place / ROWS / within).writing() as file:
                for each in group:
                    file.write(self.rows(each))
                    put.append(replace(each, within=within, start=start))
                    start += each.size
        found = {each.name: each for each in put}
        return tuple(found.get(each.name, each) for each in rows)

    def clear_rows(self, is_gathered: Callable[[int], bool], fan: int) -> None:
        """Removes row files of gathered groups (`fan` splits each), and gathered files of other groups."""
        for name in (self.place / ROWS).names():
            number, whole = name.partition("-")[0], name.endswith(_GATHERED_SUFFIX)
            if number.isdecimal() and is_gathered(int(number) if whole else int(number) // fan) != whole:
                (self.place / ROWS / name).remove()

    def drop(self, named: Named) -> None:
        """Removes a part's file."""
        (self.place / PARTS / str(named)).remove()

    def clear_leftovers(self) -> None:
        """Removes unfinished files that an interrupted process left behind."""
        for room in (self.place, self.place / PARTS, self.place / ROWS):
            for name in room.names():
                if name.startswith(".") and name.endswith(UNFINISHED):
                    with suppress(NotWrittenError):
                        (room / name).remove()


def _short(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        value = [" ".join(str(field)[:12] for field in each.values()) for each in value]  # of each file
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 80 else shown[:77] + "..."


BEAT = 5.0  # seconds between two writes
SETTLED = 1.0  # seconds until what was written by two is what one of them wrote
_MISSED = 3  # beats


@contextmanager
def _flock(place: Place, of: str) -> Iterator[None]:
    """Context manager: holds the system's file lock on the run in the folder `of`."""
    from filelock import FileLock, Timeout

    try:
        Path(of).mkdir(parents=True, exist_ok=True)
        held: AbstractContextManager[object] = FileLock(place.address, timeout=0).acquire()
    except Timeout as error:
        raise _another(of) from error
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(f"'{of}' is no folder: name another with --run") from error
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise NotWrittenError(f"cannot write '{place}': {error.strerror or error}") from error
        held = nullcontext()  # a file system without locks
    with held:
        yield


def _another(of: str) -> InputError:
    return InputError(f"another process works on '{of}': wait for it")


@contextmanager
def _lease(place: Place, of: str, listener: Listener) -> Iterator[None]:
    mine, through = token_hex(16), threading.Event()
    with listener.working("looking whether another process works on it"):
        if (there := _read(place)) is not None:
            through.wait(_MISSED * BEAT)
            if _read(place) not in (there, None):
                raise _another(of)
        place.write(mine.encode())
        through.wait(SETTLED)
        if (_read(place) or b"").partition(b" ")[0] != mine.encode():
            raise _another(of)

    def beat() -> None:
        count = 0
        while not through.wait(BEAT):
            count += 1
            with suppress(InputError):  # of a network that is back at the next one
                place.write(f"{mine} {count}".encode())

    beating = threading.Thread(target=beat, daemon=True)
    beating.start()
    try:
        yield
    finally:
        through.set()
        beating.join()
        with suppress(InputError):
            place.remove()


def _read(place: Place) -> bytes | None:
    try:
        return place.read()
    except FileNotFoundError:
        return None
