"""What besides question and model decides about a number to its last bit, found out without the libraries.

Two runs with the same surroundings give the same bytes; where anything of this differs, what is kept is of
another run and is not asked. It is rather too much than too little: what is too much costs a computation.
"""

import hashlib
import os
import platform
import re
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
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
        return [*installed, _hashed(*versions, *(_told(str(file), file.stat()) for file in compiled))]
    except OSError:
        return None


def _told(path: str, status: os.stat_result) -> str:
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
