"""Where a model lies on this machine, told without the hub's library, whose import takes long.

Only for who checks the answer against `find`, or asks what is certain: None wherever anything but reading a
folder would be needed. The layout of the hub's cache is documented: refs/NAME holds a commit, and
snapshots/COMMIT its files.
"""

import os
import re
from pathlib import Path

from attnscope import demo

DEFAULT = "bert-base-uncased"
HUB_ID = f"google-bert/{DEFAULT}"  # the hub's full name for it, under which it may also be cached
_ID = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?", re.ASCII)
_REVISION = re.compile(r"[\w.-]{1,96}", re.ASCII)
_SINGLE = ("model.safetensors", "pytorch_model.bin")
_WEIGHTS = (*_SINGLE, *(f"{name}.index.json" for name in _SINGLE))


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
    told = os.environ.get("HF_HOME", os.path.join(os.environ.get("XDG_CACHE_HOME", own), "huggingface"))
    home = os.path.expandvars(os.path.expanduser(told))
    usual = os.environ.get("HUGGINGFACE_HUB_CACHE", os.path.join(home, "hub"))
    return Path(os.path.expandvars(os.path.expanduser(os.environ.get("HF_HUB_CACHE", usual))))
