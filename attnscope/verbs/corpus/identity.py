"""Workers' instructions, and the identity of a run: all that its numbers depend on.

How many workers there are, which engine they run on and where the results are written is not part of it.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.incoming import settings
from attnscope.session.request import ModelRequest
from attnscope.session.wanted import Wanted
from attnscope.verbs.corpus.question import BATCH, LONGEST, Linked
from attnscope.verbs.corpus.source import Source
from attnscope.version import __version__

if TYPE_CHECKING:
    from attnscope.model.source.checkpoint import Checkpoint

_LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")
_SETTINGS = (".json", ".txt", ".model")  # the small files beside the weights: configuration and tokenizer


@dataclass(frozen=True)
class Instructions:
    """All that a worker must know to measure, and to keep its parts in the folder `into`.

    `rows` says whether the values of each text are kept.
    """

    request: ModelRequest
    wanted: Wanted
    measures: tuple[str, ...]
    longest: int = LONGEST
    batch: int = BATCH
    truncate: bool = False
    rows: bool = False
    linked: Linked | None = None
    into: str = ""


def identity_of(
    recipe: Instructions,
    sources: Sequence[Source],
    digests: Sequence[str],
    checkpoint: "Checkpoint",
    limit: int | None,
    split: int,
) -> dict[str, Any]:
    """The identity of a run as plain values by name; `split` is the size of a split in bytes."""
    request = asdict(recipe.request)
    device, spread = request.pop("device"), request["device_map"]
    files = [
        {"name": source.name, "form": source.form.value}
        | ({"field": source.field} if source.form in ("jsonl", "parquet") else {})
        | {"sha256": digest}
        for source, digest in zip(sources, digests, strict=True)
    ]
    return {
        "attnscope": __version__,
        "versions": versions(),
        "code": code_of(checkpoint.source.folder),
        "files": files,
        "limit": limit,
        "model": checkpoint.source.name,
        "weights": checkpoint.told_apart,
        "tokenizer": settings_digest(checkpoint),
        "device": device.partition(":")[0] if spread is None else "several",
        "how": {name: value for name, value in request.items() if name != "name"},
        "attention": asdict(recipe.wanted),
        "measures": list(recipe.measures),
        "linked": None if recipe.linked is None else asdict(recipe.linked),
        "longest": recipe.longest,
        "truncate": recipe.truncate,
        "batch": recipe.batch,
        "split": split,
        "rows": recipe.rows,
    }


def key_of(identity: dict[str, Any]) -> str:
    """Sixteen hexadecimal characters of the identity's SHA-256."""
    plain = json.dumps(identity, sort_keys=True).encode()
    return hashlib.sha256(plain).hexdigest()[:16]


_OWN = "attnscope"
_LIBRARY = "transformers"
_NO_NUMBERS_FROM = ("render", "cli", "explore", "demo")  # ours that make no number of an answer


def code_of(model: Path) -> str:
    """SHA-256 over all files of code that may take part when the model in this folder runs.

    Of the library these are what all models share and the folders of the types of model that `config.json`
    names; all of its models where a folder has another name than the type, or the file cannot be read.
    """
    own, library, types = _folder(_OWN), _folder(_LIBRARY), set[str]()
    with suppress(OSError, ValueError, RecursionError):  # whoever loads it says what is wrong with it
        types = set(_types(settings(model / "config.json")))
    rooms = [library / "models" / name.replace("-", "_") for name in sorted(types)]
    if not rooms or not all(room.is_dir() for room in rooms):
        rooms = [library / "models"]
    files = [each for each in _code(own, "**/") if each.relative_to(own).parts[0] not in _NO_NUMBERS_FROM]
    files += [*_code(library), *_code(library / "integrations")]
    files += [each for room in rooms for each in _code(room, "**/")] + _code(model)
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()


def _code(folder: Path, below: str = "") -> list[Path]:
    return sorted(folder.glob(f"{below}*.py"))


def _types(config: Any) -> Iterator[str]:
    if isinstance(config, dict):
        if isinstance(named := config.get("model_type"), str) and named:
            yield named
        for part in config.values():
            yield from _types(part)


def _folder(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None, "it is installed, else nothing ran"
    return Path(str(spec.origin)).parent


def versions() -> dict[str, str]:
    """Versions of the libraries whose release decides about the last bits."""
    return {name: metadata.version(name) for name in _LIBRARIES}


def settings_digest(checkpoint: "Checkpoint") -> str:
    """SHA-256 over the files of configuration and tokenizer, of the model and of its adapter."""
    whole = hashlib.sha256()
    folders = dict.fromkeys((checkpoint.source.folder, checkpoint.words.folder))
    for place in (place for folder in folders for place in sorted(folder.iterdir())):
        if place.suffix in _SETTINGS and place.is_file():
            whole.update(os.fsencode(f"{place.name}\n") + hashlib.sha256(place.read_bytes()).digest())
    return whole.hexdigest()
