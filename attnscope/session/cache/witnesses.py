"""What an answer was made with, each thing by a name, so that it can be looked at again: by its content.

code FILE        a module: its text, its time and the byte code beside it, which is all that Python goes by
modules FOLDER   which there are in a folder, since another one of the same name could come first
package NAME     where it is found, and in which version
weights FILE     of the model's folder: its SHA-256
unread FILE      of the model's folder: what says that it is the same, where that can be said
"""

import hashlib
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from importlib.machinery import all_suffixes
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType

from attnscope.model.source import digests
from attnscope.session.cache.surroundings import LIBRARIES, library

_OWN = "attnscope"
NO_NUMBERS_FROM = ("render", "cli", "explore", "demo")  # our packages in which no number of an answer is made
_SUFFIXES = tuple(all_suffixes())
_LATEST = 2 * 10**9  # nanoseconds that a module was there before the question, or it may be a newer one


class Witnesses:
    """Looks at things by their names, at each of them once."""

    def __init__(self, home: Path) -> None:
        self._home, self._seen = home, dict[str, str]()

    def together(self, names: Iterable[str]) -> str:
        """A hash of what all of these hold now."""
        held = "\0".join(f"{name}\0{self._hold(name)}" for name in sorted(names))
        return hashlib.sha256(held.encode("utf-8", "surrogatepass")).hexdigest()

    def _hold(self, name: str) -> str:
        if name not in self._seen:
            kind, _, what = name.partition(" ")
            try:
                self._seen[name] = self._look(kind, what)
            except OSError:
                self._seen[name] = "gone"
        return self._seen[name]

    def _look(self, kind: str, what: str) -> str:
        match kind:
            case "code":
                return _code(what)
            case "modules":
                return " ".join(sorted(file for file in os.listdir(what) if _importable(file)))
            case "package":
                return str(library(what))
            case "weights":
                return digests.sha256(self._home / what)
            case "unread":
                return str(digests.unread(self._home / what))
        raise ValueError(f"no witness of the kind {kind}")


def _code(path: str) -> str:
    if not path.endswith(".py"):
        return digests.sha256(Path(path))
    text, written = _read(path)
    try:
        compiled, _ = _read(cache_from_source(path))
    except (FileNotFoundError, NotADirectoryError, NotImplementedError):
        compiled = "no byte code"
    return f"{text} {written} {compiled}"


def _read(path: str) -> tuple[str, int]:
    """The SHA-256 of a small file and the second of its last change; each question reads a thousand."""
    with open(path, "rb", buffering=0) as file:
        return hashlib.sha256(file.readall()).hexdigest(), int(os.fstat(file.fileno()).st_mtime)


def _importable(name: str) -> bool:
    return name.endswith(_SUFFIXES) or ("." not in name and name != "__pycache__")


def code_in_use(packages: Collection[str], since: int) -> tuple[str, ...] | None:
    """The witnesses of all modules of these packages that were imported, and of our own that compute.

    None where one of them was written after `since`, or little before: it may be another one than was read.
    """
    files = sorted(set(_files({*packages, _OWN})))
    try:
        written = [max(status.st_mtime_ns, status.st_ctime_ns) for status in map(os.stat, files)]
    except OSError:
        return None  # in an archive, or gone
    if written and max(written) > since - _LATEST:
        return None
    folders = {os.path.dirname(file) for file in files}
    return (
        *(f"code {file}" for file in files),
        *(f"modules {folder}" for folder in sorted(folders)),
        *(
            f"package {name}"
            for name in sorted({package.partition(".")[0] for package in packages} - LIBRARIES)
        ),
    )


def _files(packages: set[str]) -> Iterator[str]:
    silent = {f"{_OWN}.{package}" for package in NO_NUMBERS_FROM}
    for name, module in sys.modules.copy().items():
        parents = {name[:end] for end, letter in enumerate(name + ".") if letter == "."}
        if parents & packages and not parents & silent and (file := _file(module)) is not None:
            yield file


def _file(module: ModuleType) -> str | None:
    spec = getattr(module, "__spec__", None)
    return spec.origin if spec is not None and spec.has_location else None
