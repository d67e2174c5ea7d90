"""A model's weight files: which are there, which are read, whether they are sound, their SHA-256."""

import hashlib
import json
import os
import shutil
from collections.abc import Container, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from attnscope.errors import ModelUnavailableError, one_line
from attnscope.incoming import check_settings, settings
from attnscope.model.source import digests, hub
from attnscope.model.source import weight_files as stored
from attnscope.model.source.find import Source
from attnscope.model.source.weight_files import NONE, OF_TOKENIZER, Adapter, has_adapter, open_adapter
from attnscope.process.ending import temporary_folder

_HASH_AT_MOST = 4 * 2**30  # bytes; hashing them takes a few seconds
_SHARD = 5 * 10**9  # bytes of the largest shard that transformers writes


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model's folder, the weight files to read, and the adapter to put in.

    `tokenizer` is the source of a tokenizer that replaces the model's own. `shards` maps each weight of a
    sharded checkpoint to its file; it is empty for a single file. Shards outside the chosen `part` may be
    missing.
    """

    source: Source
    files: tuple[Path, ...]
    shards: dict[str, str]
    adapter: Adapter | None = None
    tokenizer: Source | None = None

    @property
    def words(self) -> Source:
        """Source of the tokenizer: the one that was named, the adapter's own, else the model's."""
        own = self.adapter is not None and (self.adapter.folder / OF_TOKENIZER).is_file()
        beside = replace(self.source, folder=self.adapter.folder, gguf=None) if self.adapter and own else None
        return self.tokenizer or beside or self.source

    @property
    def adapted(self) -> str | None:
        """Name of the adapter, `none` where it has one that is left out, None where it has none."""
        if self.adapter is not None:
            return self.adapter.name
        return NONE if _beside(self.source) or self.source.adapter is not None else None

    @property
    def pickled(self) -> bool:
        return self.files[0].suffix != ".safetensors"

    @property
    def size(self) -> int:
        """Bytes of the weight files that are on this machine."""
        return sum(file.stat().st_size for file in self.there)

    @property
    def whole(self) -> int:
        """Bytes of all weights, fetched or not: by the index, else the largest possible for its shards."""
        if not self.shards:
            return self.files[0].stat().st_size
        index = settings(self.source.folder / hub.index_of(hub.PICKLES if self.pickled else hub.SAFETENSORS))
        told = index.get("metadata")
        size = told.get("total_size") if isinstance(told, dict) else None
        return int(size) if isinstance(size, int | float) else _SHARD * len(set(self.shards.values()))

    @property
    def there(self) -> tuple[Path, ...]:
        """The weight files that are on this machine."""
        return tuple(file for file in self.files if os.path.isfile(file))

    @property
    def share(self) -> str | None:
        """The part of the shards that is read, `2 of 7 shards`; None for all of them."""
        whole = len(set(self.shards.values()))
        return f"{len(self.files)} of {whole} shards" if len(self.files) < whole else None

    @property
    def precision(self) -> str | None:
        """Torch's name of the main floating type of the weights; None where the files do not tell."""
        self._check(self.there)
        return None if self.pickled else stored.precision(self.there)

    @cached_property
    def digest(self) -> Future[str | None]:
        """Future of the SHA-256 of weight files and adapter; its result is None above 4 GiB."""
        worker = ThreadPoolExecutor(1)
        future = worker.submit(digest, self.files + (self.adapter.files if self.adapter else ()))
        worker.shutdown(wait=False)
        return future

    @property
    def told_apart(self) -> str:
        """An id of these weights: their SHA-256, or above 4 GiB the hub commit.

        With an adapter or without a commit everything is hashed, however large.
        """
        if (hashed := self.digest.result()) is not None:
            return hashed
        if self.adapter is None and self.source.revision is not None:
            return self.source.revision
        return _hashed(self.files + (self.adapter.files if self.adapter else ()))

    def part(self, needed: Container[str]) -> "Checkpoint":
        """The checkpoint with only the shards that hold weights in `needed`; checks those present."""
        if not self.shards:
            return self
        names = sorted({shard for weight, shard in self.shards.items() if weight in needed})
        if not names:  # no weight has a known name: read all shards
            names = sorted(set(self.shards.values()))
        part = replace(self, files=tuple(self.source.folder / name for name in names))
        part._check(part.there)
        return part

    def complete(self) -> None:
        """Fetch missing weight files; `ModelUnavailableError` where that cannot be.

        The files are hashed while they are read, and before that where a later change could go unseen.
        """
        if missing := [file for file in self.files if not os.path.isfile(file)]:
            whole = len(set(self.shards.values()))
            lacking = f"{self.source.name} lacks {len(missing)} of {whole} weight files: {missing[0].name}"
            if self.source.repository is None or self.source.revision is None:
                raise ModelUnavailableError(lacking)
            names = [file.name for file in missing]
            hub.fetch(self.source.repository, self.source.revision, names, lacking)
            self._check(missing)
        hashed = self.digest
        if any(digests.unread(file, lasting=True) is None for file in self.files):
            hashed.result()

    @contextmanager
    def readable(self) -> Iterator[Path]:
        """Context manager: a folder to load from, with an index of only the shards that are read."""
        if not self.shards:
            yield self.source.folder
            return
        read = {file.name: str(file.absolute()) for file in self.files}
        index = {weight: read[shard] for weight, shard in self.shards.items() if shard in read}
        single = hub.PICKLES if self.pickled else hub.SAFETENSORS
        with temporary_folder() as made:
            for settings in ("config.json", "generation_config.json"):
                if (self.source.folder / settings).is_file():
                    shutil.copy(self.source.folder / settings, made)
            content = json.dumps({"metadata": {}, "weight_map": index})
            (Path(made) / hub.index_of(single)).write_text(content, "utf-8", newline="\n")
            yield Path(made)

    def _check(self, files: Iterable[Path]) -> None:
        for file in () if self.pickled else files:
            stored.check_head(file, self.source.name)


def open_checkpoint(
    source: Source,
    *,
    allow_pickle: bool = False,
    adapter: str | None = None,
    tokenizer: Source | None = None,
) -> Checkpoint:
    """The checkpoint in the folder of `source`: safetensors, else pickles where allowed.

    `adapter` is the folder of the adapter to put in, or `none`; by default the one beside the weights, or the
    one that the model is named by. `tokenizer` replaces the model's own. Raises `ModelUnavailableError` when
    the folder has no config, no weights, only pickled weights that were not allowed, or a file that is
    truncated or corrupt. Shards may be missing as long as they are not read.
    """
    folder, name = source.folder, source.name
    source.check_config()
    if source.gguf is None:
        check_settings(*(file for file in folder.glob("*.json") if file.is_file()))
    opened = weight_files(source, hub.SAFETENSORS)
    pickles = None if opened else weight_files(source, hub.PICKLES)
    if pickles and not allow_pickle:
        raise ModelUnavailableError(
            f"{name} has only pickled weights, which can run code: --allow-pickle loads them"
        )
    opened = opened or pickles
    if opened is None:
        raise ModelUnavailableError(f"{name} has no weights: expected model.safetensors")
    opened = replace(opened, adapter=_adapter(source, adapter, allow_pickle), tokenizer=tokenizer)
    if not opened.shards:
        opened._check(opened.files)
        _ = opened.digest  # starts hashing beside the slow imports
    return opened


def _adapter(source: Source, wanted: str | None, allow_pickle: bool) -> Adapter | None:
    if wanted == NONE:
        return None
    if wanted is not None:
        return open_adapter(Path(os.path.expanduser(wanted)), wanted, allow_pickle=allow_pickle)
    if source.adapter is not None:
        return open_adapter(source.adapter, source.requested, allow_pickle=allow_pickle)
    return open_adapter(source.folder, source.name, allow_pickle=allow_pickle) if _beside(source) else None


def _beside(source: Source) -> bool:
    return source.gguf is None and has_adapter(source.folder)


def weight_files(source: Source, single: str) -> Checkpoint | None:
    """A checkpoint of the file `single`, or of the shards that its index lists; None without both."""
    folder, name = source.folder, source.name
    if source.gguf is not None:
        return Checkpoint(source, (folder / source.gguf,), {})
    if (folder / single).is_file():
        return Checkpoint(source, (folder / single,), {})
    index = folder / hub.index_of(single)
    if not index.is_file():
        return None
    try:
        shards = dict(settings(index)["weight_map"])
        if outside := [shard for shard in shards.values() if Path(shard).name != shard]:
            raise ValueError(f"'{outside[0]}' is not a file beside it")
        if not shards:
            raise ValueError("it lists no weights")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelUnavailableError(
            f"{name}: {index.name} is not a weight index: {one_line(error)}"
        ) from error
    return Checkpoint(source, tuple(folder / shard for shard in sorted(set(shards.values()))), shards)


def digest(files: tuple[Path, ...]) -> str | None:
    """SHA-256 of one file, or of the joined hashes of several, as `sha256:...`; None above 4 GiB in all."""
    if sum(file.stat().st_size for file in files) > _HASH_AT_MOST:
        return None
    return _hashed(files)


def _hashed(files: tuple[Path, ...]) -> str:
    each = [digests.sha256(file) for file in files]
    whole = each[0] if len(each) == 1 else hashlib.sha256("".join(each).encode()).hexdigest()
    return f"sha256:{whole}"
