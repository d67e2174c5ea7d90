"""From a model's name, or the default, to its folder on disk."""

import os
import shlex
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from attnscope import demo
from attnscope.errors import InputError, ModelUnavailableError
from attnscope.model.source import hub
from attnscope.model.source.here import DEFAULT, HUB_ID, check_place
from attnscope.model.source.weight_files import OF_TOKENIZER, base_of, has_adapter, is_adapter_alone

CONFIG = "config.json"
_LISTED = 4  # most folders in a message


@dataclass(frozen=True)
class Source:
    """A model's folder and the names that it goes by.

    `gguf` is the one file of the folder that holds the whole model. `repository` and `revision` are the hub
    id and the commit of a hub model. `adapter` is the folder of the adapter by which the model was named.
    """

    requested: str
    name: str
    folder: Path
    revision: str | None = None
    repository: str | None = None
    demo: bool = False
    notice: str | None = None
    adapter: Path | None = None
    gguf: str | None = None

    @property
    def file(self) -> dict[str, str]:
        """Keyword arguments of `from_pretrained` beside the folder: the GGUF file, if any."""
        return {} if self.gguf is None else {"gguf_file": self.gguf}

    def check_config(self) -> None:
        """Raises `ModelUnavailableError` without a config.json, naming subfolders that hold models."""
        if self.gguf is not None or (self.folder / CONFIG).is_file():
            return
        lacks = f"{self.name} has no config.json: a model folder holds config.json and weights"
        inside = [each for each in self.folder.glob("*/") if has_adapter(each) or _has_model(each / CONFIG)]
        names = sorted((each.name for each in inside), key=lambda name: (len(name), name))
        if not names or self.repository is not None:
            raise ModelUnavailableError(lacks)
        listed = ", ".join((*names[:2], "...", names[-1]) if len(names) > _LISTED else names)
        named = shlex.quote(os.path.join(self.requested, names[-1]))
        raise ModelUnavailableError(f"{self.name} holds no model, but {listed}: name one, such as -m {named}")

    @property
    def example(self) -> Path | None:
        """The picture or sound file that comes with a bundled model; None without one."""
        return demo.example(self.name) if self.demo else None


def _has_model(config: Path) -> bool:
    return config.is_file() and b'"model_type"' in config.read_bytes()  # other configs describe a pooling


def find(
    requested: str | None,
    *,
    revision: str | None = None,
    allow_pickle: bool = False,
    remote_code: bool = False,
    weights: bool = True,
    stand_in: bool = True,
) -> Source:
    """The folder of the model that `requested` names: a bundled one, a local folder, or a hub id.

    None means the default: ATTNSCOPE_MODEL, else bert-base-uncased from the cache or the hub, else, only
    where the hub cannot be reached at all and a `stand_in` will do, the bundled demo with a notice. A named
    model is never replaced.
    A folder with an adapter and no model stands for the model that the adapter was made for.
    Without `weights` the folder of a hub model need not hold more than its configuration.
    """
    if requested is not None and not requested.strip():
        raise InputError("the name of the model is empty")
    requested = requested or os.environ.get("ATTNSCOPE_MODEL") or None
    options = {"revision": revision, "allow_pickle": allow_pickle, "remote_code": remote_code}
    options |= {"weights": weights}
    if requested is None:
        return _default(stand_in=stand_in, **options)  # type: ignore[arg-type]
    if requested in demo.FOLDERS:
        return Source(requested, requested, demo.folder(requested), demo=True)
    path = Path(os.path.expanduser(requested))  # unchanged for an unknown user
    if os.path.isdir(path):
        alone = is_adapter_alone(path)
        return _base(requested, path, **options) if alone else Source(requested, requested, path)  # type: ignore[arg-type]
    check_place(requested)
    if os.path.isfile(path):
        return _gguf(requested, path)
    return _from_hub(requested, **options)  # type: ignore[arg-type]


def _gguf(requested: str, path: Path) -> Source:
    lacking = [name for name in ("gguf", "accelerate") if find_spec(name) is None]
    if lacking:
        raise ModelUnavailableError(
            f"{requested} needs the package {lacking[0]}: pip install 'attnscope[gguf]' puts it in"
        )
    notice = f"{path.name}: numbers of fewer bits are made floats as they are read"
    return Source(requested, requested, path.parent, notice=notice, gguf=path.name)


def _base(requested: str, folder: Path, *, revision: str | None, **options: bool) -> Source:
    name, own_revision = base_of(folder, requested)
    another = f"-m MODEL --adapter {requested} puts it into another"
    if is_adapter_alone(Path(os.path.expanduser(name))):
        raise ModelUnavailableError(f"{requested} holds an adapter of an adapter, '{name}': {another}")
    try:
        base = find(name, revision=revision or own_revision, **options)
    except (InputError, ModelUnavailableError) as error:
        raise ModelUnavailableError(
            f"{requested} holds an adapter of '{name}', which is not to be had: {error}; {another}"
        ) from error
    own = ", with a tokenizer of its own" if (folder / OF_TOKENIZER).is_file() else ""
    notice = f"{requested} holds an adapter of {base.name}{own}"
    return replace(base, requested=requested, adapter=folder, notice=notice)


def _default(*, revision: str | None, stand_in: bool, **options: bool) -> Source:
    try:
        return _from_hub(DEFAULT, revision=revision, **options)
    except hub.HubUnreachableError as error:
        if revision is not None:
            raise  # a revision names a model as exactly as a name does
        if not stand_in:
            raise ModelUnavailableError(f"no model was named (-m NAME), and {error}") from error
        return Source(
            DEFAULT,
            "demo",
            demo.folder(),
            demo=True,
            notice=f"{error}; using the bundled demo model",
        )


def _from_hub(requested: str, *, revision: str | None, weights: bool, **options: bool) -> Source:
    names = (DEFAULT, HUB_ID) if requested == DEFAULT else (requested,)
    for name in names:
        if (folder := hub.cached(name, revision, weights=weights)) is not None:
            return Source(requested, requested, folder, folder.name, name)
    folder = hub.download(names[-1], revision, weights=weights, **options)
    return Source(requested, requested, folder, folder.name, names[-1])
