"""The emulated accelerator: built with the compiler at hand, loaded into this process, seen at work.

    backend.load("cuda")                 # `auto` from now on, and `emulated`, `emulated:1`
    with backend.present("mps"): ...     # only meanwhile, where others share the process
    with backend.watched() as done: ...  # what was moved and what was computed meanwhile

Its tensors are the processor's memory and its results the processor's, so it says nothing about speed; but a
tensor that meets one of another device is an error, as on a card, and as `mps` it refuses float64. Slopes
(`backward`) need a process that loads it before its first one: torch counts the devices there, once.
`environment` is for the processes that attnscope starts: torch itself loads the backend there, as it loads
any that is installed (`plugin/`).
"""

import ctypes
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAME = "emulated"
KINDS = ("cuda", "mps")  # with float64 and without
VARIABLE = "ATTNSCOPE_EMULATED"
_HERE = Path(__file__).resolve().parent
_SOURCE = _HERE / "backend.cpp"
_OPTIONS = ("-O0", "-w", "-std=c++20", "-fPIC", "-shared")


class CannotBuildError(Exception):
    """Why there is no emulated accelerator here."""


@dataclass(frozen=True)
class Transfer:
    """A tensor that was copied from one device to another; -1 is the processor."""

    source: int
    target: int
    bytes: int
    shape: tuple[int, ...]
    dtype: str


@dataclass
class Done:
    """What the emulated devices did while they were watched; filled in at the end.

    `operations` are how often each was computed there, `values_read` the single numbers that were read
    (`.item()`, `if tensor:`).
    """

    transfers: tuple[Transfer, ...] = ()
    operations: dict[str, int] = field(default_factory=dict)
    values_read: int = 0

    def moved(self, source: int = 0, target: int = -1) -> int:
        """Bytes from one device to the other."""
        return sum(each.bytes for each in self.transfers if (each.source, each.target) == (source, target))

    def largest(self, source: int = 0, target: int = -1) -> int:
        """Bytes of the largest single transfer."""
        there = (each.bytes for each in self.transfers if (each.source, each.target) == (source, target))
        return max(there, default=0)


def built() -> Path:
    """The backend for this source, torch and compiler options, built where it is not yet (15 seconds).

    It is kept outside the tree. `CannotBuildError` where there is no compiler.
    """
    import torch

    told = (_SOURCE.read_text(), torch.__version__, *_OPTIONS)
    key = hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"attnscope-emulated-{os.getuid() if hasattr(os, 'getuid') else 0}"
    file = folder / f"{key}.so"
    if file.exists():
        return file
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None or sys.platform != "linux":
        raise CannotBuildError("no C++ compiler for Linux here (g++)")
    folder.mkdir(mode=0o700, exist_ok=True)
    with _alone(folder / "building"):
        if not file.exists():
            _compile(compiler, Path(torch.__file__).parent, file, abi=torch.compiled_with_cxx11_abi())
    return file


def _compile(compiler: str, torch: Path, file: Path, *, abi: bool) -> None:
    include, made = torch / "include", file.with_suffix(".making")
    command = [compiler, *_OPTIONS, f"-D_GLIBCXX_USE_CXX11_ABI={int(abi)}"]
    for folder in (include, include / "torch" / "csrc" / "api" / "include", sysconfig.get_paths()["include"]):
        command += ["-isystem", str(folder)]
    command += [str(_SOURCE), "-o", str(made), f"-L{torch / 'lib'}", "-ltorch_cpu", "-lc10"]
    ran = subprocess.run([*command, f"-Wl,-rpath,{torch / 'lib'}"], capture_output=True, text=True)
    if ran.returncode:
        raise CannotBuildError(f"{compiler} cannot build the emulated accelerator:\n{ran.stderr[-2000:]}")
    made.replace(file)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Only one process at a time; the others wait."""
    import fcntl

    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@functools.cache
def _library() -> ctypes.CDLL:
    """The backend, registered with torch under its name; there are no devices before `load`."""
    import torch

    library = ctypes.CDLL(str(built()))
    library.emulated_done.restype = ctypes.c_char_p
    library.emulated_spoil.argtypes = [ctypes.c_char_p, ctypes.c_double]
    library.emulated_memory.argtypes = [ctypes.c_int, ctypes.c_size_t]
    if not hasattr(torch, NAME):
        torch.utils.rename_privateuse1_backend(NAME)
        torch._register_device_module(NAME, _device_module(library.emulated_devices()))
        torch.utils.generate_methods_for_privateuse1_backend(unsupported_dtype=[])
    return library


def _device_module(devices: int) -> Any:
    """`torch.emulated`, as far as torch asks for it."""
    import torch

    module: Any = types.ModuleType(f"torch.{NAME}")
    module.there = False
    module.is_available = lambda: module.there
    module.device_count = lambda: devices if module.there else 0
    module.is_initialized = lambda: True
    module.current_device = torch.accelerator.current_device_index
    module.set_device = torch.accelerator.set_device_index
    module.device = lambda device: torch.accelerator.device_index(torch.device(device).index)
    module.synchronize = lambda device=None: None
    module.empty_cache = lambda: None
    module.mem_get_info = torch.accelerator.get_memory_info
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    module._is_in_bad_fork = lambda: False
    module._lazy_init = lambda: None
    module.manual_seed = module.manual_seed_all = lambda seed: None
    module.get_rng_state = lambda device=0: torch.get_rng_state()
    module.set_rng_state = lambda state, device=0: torch.set_rng_state(state)
    return module


def register() -> None:
    """Builds the backend and names it to torch; there are no devices before they are `present`."""
    _library()


def load(kind: str) -> None:
    """From now on this process has the emulated devices, as `cuda` (float64) or as `mps` (none)."""
    import torch

    if kind not in KINDS:
        raise ValueError(f"unknown kind of accelerator '{kind}': {', '.join(KINDS)}")
    _library().emulated_without_double(int(kind == "mps"))
    getattr(torch, NAME).there = True


@contextmanager
def present(kind: str) -> Iterator[None]:
    """The emulated devices for as long as this lasts."""
    import torch

    load(kind)
    try:
        yield
    finally:
        _library().emulated_without_double(0)
        getattr(torch, NAME).there = False


@contextmanager
def watched() -> Iterator[Done]:
    """What the devices do meanwhile, known when it ends."""
    _library().emulated_forget()
    done = Done()
    yield done
    told = json.loads(_library().emulated_done())
    done.transfers = tuple(Transfer(**each | {"shape": tuple(each["shape"])}) for each in told["transfers"])
    done.operations, done.values_read = told["operations"], told["values_read"]


@contextmanager
def spoiled(operation: str, by: float) -> Iterator[None]:
    """An operation (`aten::addmm`) that answers too much by this part of it, as a broken kernel."""
    _library().emulated_spoil(operation.encode(), by)
    try:
        yield
    finally:
        _library().emulated_spoil(b"", 0.0)


@contextmanager
def memory(most: int, device: int = 0) -> Iterator[None]:
    """A device of so many bytes: torch's `OutOfMemoryError` for what does not fit."""
    _library().emulated_memory(device, most)
    try:
        yield
    finally:
        _library().emulated_memory(device, 2**34)


def environment(kind: str) -> dict[str, str]:
    """What a process is told so that its torch has the emulated devices, and those that it starts."""
    paths = filter(None, [str(_HERE / "plugin"), os.environ.get("PYTHONPATH")])
    return {"PYTHONPATH": os.pathsep.join(paths), VARIABLE: kind}
