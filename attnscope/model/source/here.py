"""Where a model lies on this machine, and which hub the environment names, without the hub's library.

Its import takes long, and trips over an address that is none. Only for who checks the answer against `find`,
or asks what is certain: None wherever anything but reading a folder would be needed. The layout of the hub's
cache is documented: refs/NAME holds a commit, and snapshots/COMMIT its files.
"""

import os
import re
import sys
from pathlib import Path
from urllib.parse import urlparse

from attnscope import demo
from attnscope.errors import InputError, ModelUnavailableError, one_line

DEFAULT = "bert-base-uncased"
HUB_ID = f"google-bert/{DEFAULT}"  # the hub's full name for it, under which it may also be cached
BUNDLED = ", ".join(demo.FOLDERS)  # as the help texts name them
_ID = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?", re.ASCII)
_REVISION = re.compile(r"[\w.-]{1,96}", re.ASCII)
_SINGLE = ("model.safetensors", "pytorch_model.bin")
_WEIGHTS = (*_SINGLE, *(f"{name}.index.json" for name in _SINGLE))

_SECONDS = ("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT")


def folder_here(requested: str | None, revision: str | None = None) -> Path | None:
    """The folder of a model that was found before: bundled, a folder, or in the cache of the hub."""
    name = requested or os.environ.get("ATTNSCOPE_MODEL") or DEFAULT
    if name in demo.FOLDERS:
        return demo.folder(name)
    path = os.path.expanduser(name)
    if name != DEFAULT or requested or os.environ.get("ATTNSCOPE_MODEL"):
        if os.path.isdir(path):
            return Path(path)
        if os.path.exists(path):
            return None
    names = (DEFAULT, HUB_ID) if name == DEFAULT else (name,)
    return next((each for one in names if (each := _cached(one, revision)) is not None), None)


def _cached(name: str, revision: str | None) -> Path | None:
    """The snapshot of one model of the hub, where its configuration and weights are there."""
    revision = revision or "main"
    if not _ID.fullmatch(name) or not _REVISION.fullmatch(revision) or ".." in name + revision:
        return None
    repository = _hub_cache() / f"models--{name.replace('/', '--')}"
    try:
        commit = (repository / "refs" / revision).read_text("utf-8")
    except (OSError, ValueError):
        commit = revision
    folder = repository / "snapshots" / commit
    if (repository / ".no_exist" / commit / "config.json").exists() or not _REVISION.fullmatch(commit):
        return None
    enough = (folder / "config.json").is_file() and any((folder / each).is_file() for each in _WEIGHTS)
    return folder if enough else None


def _hub_cache() -> Path:
    """As the hub's library has it."""
    own = os.path.join(os.path.expanduser("~"), ".cache")
    stated = os.environ.get("HF_HOME", os.path.join(os.environ.get("XDG_CACHE_HOME", own), "huggingface"))
    home = os.path.expandvars(os.path.expanduser(stated))
    usual = os.environ.get("HUGGINGFACE_HUB_CACHE", os.path.join(home, "hub"))
    return Path(os.path.expandvars(os.path.expanduser(os.environ.get("HF_HUB_CACHE", usual))))


def check_environment() -> None:
    """Refuse what the libraries cannot be imported with: no address, no number, no log, no docstrings."""
    if sys.flags.optimize > 1:
        raise InputError("transformers reads docstrings, which python -OO (PYTHONOPTIMIZE=2) leaves out")
    if endpoint := os.environ.get("HF_ENDPOINT"):
        host_and_port(endpoint, "HF_ENDPOINT")
    for variable in _SECONDS:
        seconds = os.environ.get(variable)
        try:
            int("0" if seconds is None else seconds)
        except ValueError as error:
            raise InputError(f"{variable} is not a number of seconds: '{seconds}': such as 10") from error
    check_logs()


def check_place(requested: str | None) -> None:
    """Refuse the path of a model that is a file, or not there: known before any library is imported."""
    if not requested or requested in demo.FOLDERS:
        return
    path = os.path.expanduser(requested)  # as it is where there is no such user
    if os.path.isdir(path) or (os.path.isfile(path) and path.lower().endswith(".gguf")):
        return
    if os.path.exists(path):
        raise InputError(
            f"{requested} is a file: name the folder that holds config.json and the weights, or a .gguf file"
        )
    if requested.startswith((".", "/", "~")) or requested.count("/") > 1:
        raise ModelUnavailableError(f"no folder {requested}")


def check_logs() -> None:
    """Refuse names of logs that torch cannot be imported with."""
    if logs := os.environ.get("TORCH_LOGS"):
        try:
            import torch  # noqa: F401
        except ValueError as error:
            raise InputError(f"TORCH_LOGS names no log of torch: '{logs}': such as +dynamo") from error


def host_and_port(url: str, variable: str) -> tuple[str, int]:
    """Whom `url` leads to; `InputError` that names the `variable` it stands in when it leads nowhere."""
    try:
        parts = urlparse(url)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        (host or "").encode("idna")
    except ValueError as error:
        raise InputError(f"{variable} is not an address: '{url}': {one_line(error)}") from error
    if not host:
        raise InputError(f"{variable} is not an address: '{url}': such as https://huggingface.co")
    return host, port
