"""List a model's weights without reading or fetching them: files, sizes, precision.

For a local model the files themselves tell; for a hub model the hub's list of files, the index of its shards
and the header of its first weight file, which is requested alone.
"""

from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import (
    HfHubHTTPError,
    HTTPError,
    NotASafetensorsRepoError,
    SafetensorsParsingError,
)

from attnscope.incoming import settings
from attnscope.model.source import hub
from attnscope.model.source.checkpoint import Checkpoint, weight_files
from attnscope.model.source.find import Source
from attnscope.model.source.weight_files import FLOATS, check_head
from attnscope.process.ending import temporary_folder
from attnscope.results import Storage

HERE, ON_THE_HUB = "on this machine", "on the hub"


@dataclass(frozen=True, eq=False)
class Listing:
    """A model's weight files as far as they are known; `why` says why `storage` is None.

    `shards` maps each weight of a sharded checkpoint to its file.
    """

    checkpoint: Checkpoint
    storage: Storage | None
    shards: dict[str, str]
    why: str = ""


def list_files(source: Source) -> Listing:
    """The listing of the model in the folder of `source`; `ModelUnavailableError` without a config."""
    source.check_config()
    here = weight_files(source, hub.SAFETENSORS) or weight_files(source, hub.PICKLES)
    if here is not None:
        for file in () if here.pickled else here.there:
            check_head(file, source.name)
        return Listing(here, _stored_here(here), here.shards)
    bare = Checkpoint(source, (), {})
    if source.repository is None or source.revision is None:
        return Listing(bare, None, {}, "there are no weights beside its config.json")
    if (obstacle := hub.unreachable()) is not None:
        return Listing(bare, None, {}, f"no weights are in the local cache, and {obstacle}")
    try:
        storage, shards = _stored_there(source.repository, source.revision)
    except (HTTPError, OSError, LookupError, ValueError) as error:
        return Listing(bare, None, {}, f"the hub does not tell of its weights: {type(error).__name__}")
    return Listing(bare, storage, shards)


def _stored_here(opened: Checkpoint) -> Storage:
    sizes = {file.name: file.stat().st_size if file.is_file() else None for file in opened.files}
    known = [size for size in sizes.values() if size is not None]
    return Storage(
        place=HERE,
        files=len(sizes),
        size=sum(known) if len(known) == len(sizes) else None,
        precision=opened.precision,
        shards=sizes if opened.shards else {},
    )


def _stored_there(repo: str, commit: str) -> tuple[Storage, dict[str, str]]:
    info = HfApi().model_info(repo, revision=commit, files_metadata=True, timeout=20)
    sizes = {file.rfilename: file.size for file in info.siblings or []}
    single = next(
        single for single in (hub.SAFETENSORS, hub.PICKLES) if {single, hub.index_of(single)} & sizes.keys()
    )
    shards = {} if single in sizes else _index(repo, commit, hub.index_of(single))
    files = sorted(set(shards.values())) or [single]
    known = [size for file in files if (size := sizes.get(file)) is not None]
    storage = Storage(
        place=ON_THE_HUB,
        files=len(files),
        size=sum(known) if len(known) == len(files) else None,
        precision=_precision(repo, commit, files[0]) if single == hub.SAFETENSORS else None,
        shards={file: sizes.get(file) for file in files} if shards else {},
    )
    return storage, shards


def _index(repo: str, commit: str, name: str) -> dict[str, str]:
    """Map from weight to shard file of a hub model, fetched past the cache, which it would mislead."""
    with temporary_folder() as made:
        file = hf_hub_download(repo, name, revision=commit, local_dir=made)
        return dict(settings(Path(file))["weight_map"])


def _precision(repo: str, commit: str, file: str) -> str | None:
    try:
        counts = HfApi().parse_safetensors_file_metadata(repo, file, revision=commit).parameter_count
    except (HfHubHTTPError, NotASafetensorsRepoError, SafetensorsParsingError):
        return None
    floats = {FLOATS[kind]: count for kind, count in counts.items() if kind in FLOATS}
    return max(floats, key=lambda kind: floats[kind], default=None)
