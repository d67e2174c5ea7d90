"""Joins an existing Ray cluster, and leaves it as it was, or starts and ends one on this machine.

What Ray says by itself reaches neither screen nor pipe. One that is started here keeps its files in a folder
that goes with it, and its processes end with this one however that ends: in order, by a signal, by kill -9.
"""

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

from attnscope.errors import InputError, one_line
from attnscope.process.ending import undone_by_a_signal
from attnscope.process.standard_error import hushed
from attnscope.session.listener import Listener

_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")


@contextmanager
def replaced(module: Any, name: str, other: Any) -> Iterator[None]:
    """Context manager: `module.name` is `other`, where the module has that name."""
    usual = getattr(module, name, None)
    if usual is not None:
        setattr(module, name, other)
    try:
        yield
    finally:
        if usual is not None:
            setattr(module, name, usual)


@contextmanager
def own_signals() -> Iterator[None]:
    """Context manager: restores the present signal handlers afterwards."""
    numbers = [getattr(signal, name) for name in _STOPPING if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, answer in before.items():
            with suppress(ValueError, TypeError):  # another thread than the first; an answer written in C
                signal.signal(number, answer)


@contextmanager
def environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Context manager: sets environment variables that the user has not set, and removes them afterwards."""
    new = [name for name in wanted if name not in os.environ]
    os.environ.update({name: wanted[name] for name in new})
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


ADDRESS = "RAY_ADDRESS"  # the environment variable that Ray itself, and its jobs, tell the address by
_TOKEN = "RAY_AUTH_MODE"  # of Ray: an address that is named is not asked whether it wants one
_QUIET = {
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_STORE = 256 * 2**20  # bytes: a window of splits and what they gave
_PATIENCE = 5.0  # seconds for an answer from a machine
_SECRET = token_hex(32)  # keeps others of this machine off; Ray reads it once a process
_SHORT = 24  # characters: a socket lies 70 below, and 104 is all that systems let it have


def the_library() -> Any:
    """The module `ray` with `ray.data`; `InputError` that says how to install it where it is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
            import ray.data
    except ImportError as error:
        raise InputError('--engine ray needs Ray: pip install "attnscope[ray]"') from error
    return ray


@contextmanager
def cluster(address: str | None, given: dict[str, int] | None, listener: Listener) -> Iterator[Any]:
    """`ray`, connected to `address` or to a cluster started here with the resources `given`.

    A Ray that this process has started or joined before is used as it is.
    """
    ray = the_library()
    if ray.is_initialized():
        yield ray
        return
    # it tells of a worker that died on standard output, and has no switch for that
    reports = replaced(ray._private.worker, "print_to_stdstream", lambda *_, **__: None)
    with environment(_QUIET), reports, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with _joined(ray, address, listener) if address else _started(ray, given or {}, listener):
            logging.getLogger("ray.data").setLevel(logging.CRITICAL)
            yield ray


@contextmanager
def _joined(ray: Any, address: str, listener: Listener) -> Iterator[None]:
    begun = time.monotonic()
    with hushed(), own_signals():
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise InputError(_not_joined(address, error)) from error
    listener.detail(f"joined the Ray cluster {address} in {time.monotonic() - begun:.1f} s")
    try:
        yield
    finally:
        ray.shutdown()


def check_answers(address: str) -> None:
    """Raises `InputError` where no Ray can be at `address`; Ray itself would try for a minute."""
    host, _, port = address.rpartition(":")
    if address == "auto":
        return
    if "//" in address:
        raise InputError(
            f"--ray-address is '{address}': it takes HOST:PORT of the head, "
            "or auto on a machine of the cluster"
        )
    if not host or not port.isdecimal():
        raise InputError(f"--ray-address is '{address}': it takes HOST:PORT, as in 10.0.0.1:6379, or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or one_line(error)
        raise InputError(f"no Ray cluster at '{address}': {why}") from error


def _not_joined(address: str, error: Exception) -> str:
    if address == "auto" and isinstance(error, ConnectionError):
        return "no Ray cluster runs on this machine: ray start --head starts one, HOST:PORT names another"
    refusal = f"no Ray cluster at '{address}': {one_line(error)}"
    if isinstance(error, ConnectionError) and _TOKEN not in os.environ:
        return f"{refusal}; one that asks for a token takes {_TOKEN}=token"
    return refusal


@contextmanager
def _started(ray: Any, given: dict[str, int], listener: Listener) -> Iterator[None]:
    folder, begun = _folder(), time.monotonic()
    own = environment({"RAY_AUTH_TOKEN": _SECRET})  # else Ray leaves one in the home
    with undone_by_a_signal(partial(_end, folder)), own:
        try:
            with hushed(), own_signals():
                try:
                    ray.init(
                        address="local",
                        **given,
                        include_dashboard=False,
                        log_to_driver=False,
                        logging_level=logging.CRITICAL,
                        object_store_memory=_STORE,
                        _temp_dir=str(folder),
                    )
                except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                    raise InputError(f"Ray does not start on this machine: {one_line(error)}") from error
            listener.detail(f"started Ray on this machine in {time.monotonic() - begun:.1f} s")
            yield
        finally:
            ray.shutdown()
            _remove(folder)


def _folder() -> Path:
    """A new temporary folder whose path is short enough for sockets."""
    usual = tempfile.gettempdir()
    short = usual if len(usual) <= _SHORT or not os.path.isdir("/tmp") else "/tmp"
    return Path(tempfile.mkdtemp(prefix="attnscope-", dir=short))


def _end(folder: Path) -> None:
    """On a signal: kills all descendants without calls to libraries, whose locks may be held."""
    if sys.platform != "win32":  # where nothing tells of them either
        for number in descendants(os.getpid()):
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)
    _remove(folder)


def descendants(parent: int) -> list[int]:
    """Process ids of all descendants of `parent`, the oldest first; empty where `ps` fails."""
    try:
        listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    pairs = [(int(own), int(its)) for own, its in map(bytes.split, listing.splitlines())]
    family = [parent]
    for one in family:
        family += [own for own, its in pairs if its == one]
    return family[1:]


def _remove(folder: Path) -> None:
    """Removes the folder, repeatedly for a while, since an ending process may still write to it."""
    until = time.monotonic() + _PATIENCE
    while folder.exists() and time.monotonic() < until:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            time.sleep(0.1)
