"""transformers' table of its own modules, kept on disk in place of being made anew in every process.

To know what every module of its models exports, the library reads some 1,600 files, which takes most of its
import. What came out is kept for what it depends on: version, place, and the name, size and time of change of
every file that was read and of the one that reads. A table that is kept for anything else, or that is
damaged, counts for nothing and is made anew. One that cannot be kept is not.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any

from attnscope.cachedir import kept_in
from attnscope.ending import undone_by_a_signal

MODULE, FUNCTION = "transformers.utils.import_utils", "define_import_structure"
Table = dict[frozenset[str], dict[str, set[str]]]
_FORM = 1  # of the file
_LARGEST = 1 << 24  # bytes of a table: fifty times what there is
_DIGEST = 64  # letters
_NAME, _MOST = "modules-", 8  # files


def keep_table(module: ModuleType) -> None:
    """Give `module`, just imported, the function that looks on disk first, if it has it."""
    made = getattr(module, FUNCTION, None)
    if callable(made):
        setattr(module, FUNCTION, kept(made, module.__file__))


def kept(make: Callable[..., Any], reader: str | None) -> Callable[..., Any]:
    """`make`, the library's own function, asked only where its answer for a folder is not on disk."""

    def define_import_structure(module_path: Any, prefix: str | None = None) -> Any:
        folder = kept_in()
        if folder is None or not os.path.isdir(module_path):
            return make(module_path, prefix)
        depends = _depends_on(os.fspath(module_path), prefix, reader)
        file = folder / "startup" / f"{_NAME}{depends[:16]}.json"
        table = _read(file, depends)
        if table is None:
            table = make(module_path, prefix)
            _write(file, depends, table)
        return table

    return define_import_structure


def _depends_on(folder: str, prefix: str | None, reader: str | None) -> str:
    """A digest of everything that the table of `folder` is made from."""
    library = sys.modules.get(MODULE.partition(".")[0])
    found = blake2b(digest_size=_DIGEST // 2)
    parts = (_FORM, getattr(library, "__version__", ""), folder, prefix)
    found.update(repr(parts).encode())
    for each in (*_files(folder), *([_stamp(reader, os.stat(reader))] if reader else [])):
        found.update(repr(each).encode())
    return found.hexdigest()


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """Every file of Python in it, in order."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            elif entry.name.endswith(".py"):
                yield _stamp(entry.path, entry.stat())


def _stamp(path: str, of: os.stat_result) -> tuple[str, int, int]:
    return path, of.st_size, of.st_mtime_ns


def _read(file: Path, depends: str) -> Table | None:
    """The table that is kept for just this, None where there is none that is whole."""
    try:
        with open(file, "rb") as stream:
            data = stream.read(_LARGEST)
        body = data[_DIGEST + 1 :]
        return _decoded(body) if data[:_DIGEST] == _digest(depends, body) else None
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _write(file: Path, depends: str, table: Table) -> None:
    """Keep the table, whole or not at all; one that would not come back as it is, or has no place, is not."""
    try:
        entries = [
            [sorted(needs), {name: sorted(all_) for name, all_ in of.items()}] for needs, of in table.items()
        ]
        body = json.dumps(entries, separators=(",", ":")).encode()
        if _decoded(body) != table:
            return
    except (TypeError, ValueError, AttributeError):
        return
    partial = file.with_name(f"{file.name}.{os.getpid()}")
    with undone_by_a_signal(partial.unlink), suppress(OSError):
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(_digest(depends, body) + b"\n" + body)
            os.replace(partial, file)
            _forget_all_but_the_newest(file.parent)
        except OSError:
            partial.unlink()


def _decoded(body: bytes) -> Table:
    return {
        frozenset(needs): {module: set(names) for module, names in modules.items()}
        for needs, modules in json.loads(body)
    }


def _digest(depends: str, body: bytes) -> bytes:
    """What a whole file begins with: of the table, and of all that it depends on."""
    return blake2b(depends.encode() + body, digest_size=_DIGEST // 2).hexdigest().encode()


def _forget_all_but_the_newest(folder: Path) -> None:
    """One for each library that is in use: tables of libraries that are no more go."""
    found = sorted(folder.glob(f"{_NAME}*"), key=lambda each: each.stat().st_mtime_ns, reverse=True)
    for each in found[_MOST:]:
        each.unlink()
