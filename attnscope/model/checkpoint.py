"""The weight files of a model folder: which there are, whether they are sound, and their hash."""

import hashlib
import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open

from attnscope.errors import ModelUnavailableError, one_line
from attnscope.model.source import Source

_HASH_AT_MOST = 4 * 2**30  # bytes; a few seconds


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model folder with sound weight files. Their hash is computed beside the slow imports."""

    source: Source
    files: tuple[Path, ...]
    digest: Future[str | None]

    @property
    def pickled(self) -> bool:
        return self.files[0].suffix != ".safetensors"

    @property
    def size(self) -> int:
        """Bytes of weights on disk."""
        return sum(file.stat().st_size for file in self.files)


def open_checkpoint(source: Source, *, allow_pickle: bool = False) -> Checkpoint:
    """The weight files of `source`; raises `ModelUnavailableError` as `weight_files` does."""
    files = weight_files(source.folder, source.name, allow_pickle=allow_pickle)
    worker = ThreadPoolExecutor(1)
    future = worker.submit(digest, files)
    worker.shutdown(wait=False)
    return Checkpoint(source, files, future)


def weight_files(folder: Path, name: str, *, allow_pickle: bool = False) -> tuple[Path, ...]:
    """The files to load, safetensors first, each with a sound header.

    Raises `ModelUnavailableError` when the folder has no config, no weights, only pickled weights that
    were not allowed, or a file that is missing, truncated or corrupt.
    """
    if not (folder / "config.json").is_file():
        raise ModelUnavailableError(
            f"{name} has no config.json: a model folder holds config.json and weights"
        )
    files = _listed(folder, "model.safetensors", name)
    for file in files:
        _check_header(file, name)
    if files:
        return files
    pickles = _listed(folder, "pytorch_model.bin", name)
    if pickles and not allow_pickle:
        raise ModelUnavailableError(
            f"{name} has only pickled weights, which can run code: --allow-pickle loads them"
        )
    if not pickles:
        raise ModelUnavailableError(f"{name} has no weights: expected model.safetensors")
    return pickles


def _listed(folder: Path, single: str, name: str) -> tuple[Path, ...]:
    """The one file, or the shards that its index lists; nothing when there is neither."""
    if (folder / single).is_file():
        return (folder / single,)
    index = folder / f"{single}.index.json"
    if not index.is_file():
        return ()
    try:
        shards = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
        if outside := [shard for shard in shards if Path(shard).name != shard]:
            raise ValueError(f"'{outside[0]}' is not a file beside it")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelUnavailableError(
            f"{name}: {index.name} is not a weight index: {one_line(error)}"
        ) from error
    if missing := [shard for shard in shards if not (folder / shard).is_file()]:
        raise ModelUnavailableError(
            f"{name} lacks {len(missing)} of {len(shards)} weight files: {missing[0]}"
        )
    return tuple(folder / shard for shard in shards)


def _check_header(file: Path, name: str) -> None:
    try:
        with safe_open(file, framework="np"):
            pass
    except (SafetensorError, OSError) as error:
        raise ModelUnavailableError(
            f"{name}: {file.name} is truncated or corrupt: {one_line(error)}"
        ) from error


def digest(files: tuple[Path, ...]) -> str | None:
    """SHA-256 of the weight files, as `sha256sum` prints it for a single one; None above 4 GiB in all."""
    if sum(file.stat().st_size for file in files) > _HASH_AT_MOST:
        return None
    each = []
    for file in files:
        with file.open("rb") as stream:
            each.append(hashlib.file_digest(stream, "sha256").hexdigest())
    whole = each[0] if len(each) == 1 else hashlib.sha256("".join(each).encode()).hexdigest()
    return f"sha256:{whole}"
