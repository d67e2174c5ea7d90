"""A hash of the code that a run's numbers come from: ours, the library's for such models, the model's own."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attnscope.session.cache.witnesses import NO_NUMBERS_FROM

_OWN = "attnscope"
_LIBRARY = "transformers"


def code_of(model: Path) -> str:
    """SHA-256 over all files of code that may take part where the model in this folder runs.

    Of the library these are what all models share and the folders of the types of model that `config.json`
    names; all of its models where a folder has another name than the type, or the file cannot be read.
    """
    files = [*_own(), *_shared(), *_of_models(model), *sorted(model.glob("*.py"))]
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()


def _own() -> Iterator[Path]:
    root = _folder(_OWN)
    for file in sorted(root.rglob("*.py")):
        if file.relative_to(root).parts[0] not in NO_NUMBERS_FROM:
            yield file


def _shared() -> Iterator[Path]:
    root = _folder(_LIBRARY)
    for room in (root, root / "integrations"):
        yield from sorted(room.glob("*.py"))


def _of_models(model: Path) -> Iterator[Path]:
    rooms, types = _folder(_LIBRARY) / "models", set[str]()
    with suppress(OSError, ValueError, RecursionError):  # whoever loads it says what is wrong with it
        config = json.loads((model / "config.json").read_text("utf-8"))
        types = {each.replace("-", "_") for each in _types(config)}
    folders = [rooms / each for each in sorted(types)]
    for folder in folders if folders and all(each.is_dir() for each in folders) else [rooms]:
        yield from sorted(folder.rglob("*.py"))


def _types(config: Any) -> Iterator[str]:
    """The types of model that a configuration names, its parts' as well."""
    if isinstance(config, dict):
        if isinstance(named := config.get("model_type"), str) and named:
            yield named
        for part in config.values():
            yield from _types(part)


def _folder(package: str) -> Path:
    spec = find_spec(package)
    origin = None if spec is None else spec.origin
    assert origin is not None, "it is installed, else nothing ran"
    return Path(origin).parent
