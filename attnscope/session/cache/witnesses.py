"""What an answer was made with besides question and model, found out without the libraries.

`surroundings` is all that decides about a number to its last bit: two runs with the same ones give the same
bytes; where anything of them differs, what is kept is of another run and is not asked. It is rather too much
than too little: what is too much costs a computation. `Witnesses` look again, by content, at each thing that
an answer was made with, by its name:

code FILE        a module: its text, its time and the byte code beside it, which is all that Python goes by
modules FOLDER   which there are in a folder, since another one of the same name could come first
stamp FILE       of a module, of byte code, a folder or a file that comes with us: what the system tells
package NAME     where it is found, and in which version
weights FILE     of the model's folder: its SHA-256
unread FILE      of the model's folder: what says that it is the same, where that can be said
"""

import hashlib
import os
import platform
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from importlib.machinery import all_suffixes
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from attnscope.model.source import digests
from attnscope.version import __version__

LIBRARIES = {"torch", "transformers", "tokenizers", "safetensors", "numpy"}
_MARKS = ("__init__.py", "version.py", "_version.py")
_SETTINGS = re.compile(
    "(OMP|MKL|KMP|GOMP|OPENBLAS|ATEN|ONEDNN|DNNL|PYTORCH|CUDA|CUBLAS|CUDNN|NVIDIA|NCCL|HIP|HSA|ROCR"
    "|TRANSFORMERS|TOKENIZERS|LD|DYLD|USE)_|TORCH"
)
_SET_BY_LIBRARIES = ("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK")  # by scikit-learn, when it is imported
_DEVICES = ("/proc/driver/nvidia/version", "/proc/driver/nvidia/gpus", "/dev/nvidia0", "/dev/kfd", "/dev/dri")
_CHANGING = ("processor", "cpu MHz", "apicid", "initial apicid", "core id", "bogomips", "physical id")


def surroundings() -> dict[str, Any]:
    """Versions, machine and settings, as plain values."""
    return {
        "attnscope": __version__,
        "libraries": {name: library(name) for name in sorted(LIBRARIES)},
        "python": [sys.version, platform.machine(), sys.platform],
        "processor": _processor(),
        "threads": [_cores(), _threads()],
        "devices": _devices(),
        "settings": _hashed(*(f"{name}={os.environ[name]}" for name in _settings())),
    }


def _settings() -> list[str]:
    """The variables of the environment that libraries which compute look at."""
    return sorted(name for name in os.environ if _SETTINGS.match(name) and name not in _SET_BY_LIBRARIES)


def library(name: str) -> list[str] | None:
    """The version of a library by the folder that its installer leaves, and its own marks; not imported.

    What of it is Python's and takes part counts by its content besides (`witnesses`). What is compiled is
    large, is edited by nobody and is changed by an installer, which leaves new dates.
    """
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent
    try:
        installed = sorted(folder for folder in os.listdir(home.parent) if folder.startswith(f"{name}-"))
        marks = [home / name for name in _MARKS if (home / name).is_file()]
        compiled = sorted((home / "lib").glob("libtorch*"))
        versions = [f"{mark} {digests.sha256(mark)}" for mark in marks]
        return [*installed, _hashed(*versions, *(_status(str(file), file.stat()) for file in compiled))]
    except OSError:
        return None


def _status(path: str, status: os.stat_result) -> str:
    return f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def _processor() -> str:
    """Its model and what it can do, which decides which kernels run."""
    try:
        first = Path("/proc/cpuinfo").read_text("utf-8", "replace").partition("\n\n")[0]
    except OSError:
        return _hashed(platform.machine(), platform.processor())
    return _hashed(*(line for line in first.splitlines() if not line.startswith(_CHANGING)))


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _threads() -> int | None:
    """How many threads the library was told to take, where it is in memory already."""
    loaded = sys.modules.get("torch")
    return None if loaded is None else int(loaded.get_num_threads())


def _devices() -> str:
    """Graphics cards by what the system shows of them: `auto` takes the first."""
    signs: list[str] = []
    for place in map(Path, _DEVICES):
        signs.append(str(place) if place.exists() else "")
        with suppress(OSError, ValueError):
            signs += sorted(os.listdir(place)) if place.is_dir() else ()
            signs += [place.read_text("utf-8")] if place.is_file() else ()
    return _hashed(*signs)


def _hashed(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogateescape")).hexdigest()


_OWN = "attnscope"
_HOME = Path(__file__).parents[2]
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
            case "stamp":
                return _stamp(what)
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


def settled(status: os.stat_result, since: int) -> bool:
    """Whether a file was there, as it is, for so long before `since` that no newer one was taken for it."""
    return max(status.st_mtime_ns, status.st_ctime_ns) <= since - _LATEST


def _stamp(path: str) -> str:
    try:
        return _status(path, os.stat(path))
    except OSError:
        return f"{path} is not there"


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


def all_in_use(witnessed: Iterable[str], since: int) -> tuple[str, ...] | None:
    """The same of whatever was imported for an answer down to its print, by what the system tells of it.

    Also of all files that come with us, and of the modules that an answer in the cache was made with. None
    where one of them, or a folder of theirs, was changed after `since` or little before.
    """
    code = {file for module in sys.modules.copy().values() if (file := _file(module)) is not None}
    others = set[str]()
    for name in witnessed:
        kind, _, what = name.partition(" ")
        code.update([what] if kind == "code" else ())
        others.update([name] if kind not in ("code", "modules") else ())
    compiled = {cache_from_source(file) for file in code if file.endswith(".py")}
    with_us = (os.path.join(place, name) for place, _, names in os.walk(_HOME) for name in names)
    files = code | {file for file in with_us if not file.endswith(".pyc")}
    files |= {os.path.dirname(file) for file in files}
    try:
        if not all(settled(os.stat(file), since) for file in files):
            return None
    except OSError:
        return None
    folders = (f"modules {folder}" for folder in sys.path if os.path.isdir(folder))
    return (*sorted(others), *(f"stamp {file}" for file in sorted(files | compiled)), *folders)


def _files(packages: set[str]) -> Iterator[str]:
    silent = {f"{_OWN}.{package}" for package in NO_NUMBERS_FROM}
    for name, module in sys.modules.copy().items():
        parents = {name[:end] for end, letter in enumerate(name + ".") if letter == "."}
        if parents & packages and not parents & silent and (file := _file(module)) is not None:
            yield file


def _file(module: ModuleType) -> str | None:
    spec = getattr(module, "__spec__", None)
    return spec.origin if spec is not None and spec.has_location else None
