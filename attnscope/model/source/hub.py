"""The Hugging Face hub: its local cache, its reachability, and downloads with one-line errors."""

import os
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from huggingface_hub import HfApi, constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub import errors as hub_errors
from huggingface_hub.utils import disable_progress_bars

from attnscope.errors import InputError, ModelUnavailableError, one_line
from attnscope.model.source import weight_files
from attnscope.model.source.here import host_and_port

SAFETENSORS, PICKLES = "model.safetensors", "pytorch_model.bin"  # or shards, listed in an index beside them
_CONFIGURATION = ["*.json", "*.txt", "*.model", "*.tiktoken", "*.jinja"]
_INDEX = "*.index.json"
_CONNECT_SECONDS = 2.0
_ANSWER_SECONDS = 20.0  # for the list of files; downloads have the client's own time-outs


class HubUnreachableError(ModelUnavailableError):
    """The hub cannot be reached at all: offline mode, no name resolution, connection refused."""


def index_of(single: str) -> str:
    """File name of the shard index that may replace a single weight file."""
    return f"{single}.index.json"


def cached(repo: str, revision: str | None, *, weights: bool = True) -> Path | None:
    """The folder of `repo` in the local cache; None unless its config and weight files are there.

    One weight file is enough, or the index of several, not all of which need be there; without `weights` the
    config is enough. Raises `InputError` when `repo` cannot be the id of a model.
    """
    try:
        config = try_to_load_from_cache(repo, "config.json", revision=revision)
    except hub_errors.HFValidationError as error:
        message = f"'{repo}' is neither a folder nor a hub id such as google-bert/bert-base-uncased"
        raise InputError(message) from error
    folder = Path(config).parent if isinstance(config, str) else None
    known = [name for single in (SAFETENSORS, PICKLES) for name in (single, index_of(single))]
    enough = folder and (not weights or any((folder / name).is_file() for name in known))
    return folder if enough else None


def download(
    repo: str, revision: str | None, *, allow_pickle: bool, remote_code: bool, weights: bool = True
) -> Path:
    """Fetch config, tokenizer and weights of `repo`, but no shards, and return its cache folder.

    Shards are fetched later, as a run may need only some. Without `weights` it fetches config.json alone, and
    the model's code where that may be run. Everything comes from the commit that `revision` stood for. Raises
    `ModelUnavailableError` in one line.
    """
    _refuse_unreachable(f"{repo} is not in the local cache")
    with _explained(repo, revision):
        info = HfApi().model_info(repo, revision=revision, timeout=_ANSWER_SECONDS)
        files = [file.rfilename for file in info.siblings or []]
        config, *others = (
            _wanted(repo, files, allow_pickle=allow_pickle, remote_code=remote_code)
            if weights
            else ["config.json", *_code(files, remote_code)]
        )
        folder = Path(hf_hub_download(repo, config, revision=revision)).parent
        # one by one: snapshot_download asks for its own list without any time-out
        for file in others:
            hf_hub_download(repo, file, revision=folder.name)
    return folder


def fetch(repo: str, commit: str, files: Iterable[str], lacking: str) -> None:
    """Download `files` of one commit into the cache; errors begin with `lacking` where the hub is away."""
    _refuse_unreachable(lacking)
    with _explained(repo, commit):
        for file in files:
            hf_hub_download(repo, file, revision=commit)


@contextmanager
def _explained(repo: str, revision: str | None) -> Iterator[None]:
    if not sys.stderr.isatty():
        disable_progress_bars()
    try:
        yield
    except hub_errors.GatedRepoError as error:
        raise ModelUnavailableError(
            f"{repo} is gated: accept its terms on the hub and set HF_TOKEN or run `hf auth login`"
        ) from error
    except hub_errors.RevisionNotFoundError as error:
        raise ModelUnavailableError(f"{repo} has no revision '{revision}'") from error
    except hub_errors.RepositoryNotFoundError as error:
        raise ModelUnavailableError(
            f"no model '{repo}' on the hub (or it is private: set HF_TOKEN); "
            "a folder on disk is named by its path, the bundled model by 'demo'"
        ) from error
    except (hub_errors.HTTPError, OSError) as error:
        raise ModelUnavailableError(f"downloading {repo} failed: {one_line(error)}") from error


def _refuse_unreachable(lacking: str) -> None:
    if (obstacle := unreachable()) is not None:
        raise HubUnreachableError(f"{lacking} and the hub cannot be reached: {obstacle} (-m demo is bundled)")


def unreachable() -> str | None:
    """Why the hub cannot be reached, found within two seconds; None where it seems reachable.

    A host that accepts connections slowly counts as reachable.
    """
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    if os.environ.get("TRANSFORMERS_OFFLINE") in {"1", "true", "True"}:
        return "TRANSFORMERS_OFFLINE is set"
    host, port = _first_hop()
    outcome: list[OSError | None] = []
    probe = threading.Thread(target=lambda: outcome.append(_connect(host, port)), daemon=True)
    probe.start()
    probe.join(_CONNECT_SECONDS)
    if not outcome:
        return f"no answer to the look-up of {host}"
    failure = outcome[0]
    if failure is None or isinstance(failure, TimeoutError):
        return None
    return f"{host}: {failure.strerror or failure}"


def _first_hop() -> tuple[str, int]:
    scheme = "https" if constants.ENDPOINT.startswith("https:") else "http"
    for variable in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY"):
        if proxy := os.environ.get(variable):
            return host_and_port(proxy, variable)
    return host_and_port(constants.ENDPOINT, "HF_ENDPOINT")


def _connect(host: str, port: int) -> OSError | None:
    try:
        address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(*address[:3]) as connection:
            connection.settimeout(_CONNECT_SECONDS * 0.9)
            connection.connect(address[4])
    except OSError as error:
        return error
    return None


def _wanted(repo: str, files: list[str], *, allow_pickle: bool, remote_code: bool) -> list[str]:
    """The files to fetch, config.json first: safetensors where there are any, pickles only when allowed.

    The weights, or the index of their shards, come last: once they are there, so is everything else.
    """
    weights = [name for name in _weights(files) if name.startswith(SAFETENSORS) or allow_pickle]
    if weight_files.CONFIG in files and "config.json" not in files:
        raise ModelUnavailableError(f"{repo} is an adapter alone: download it and name its folder")
    if "config.json" not in files or not _weights(files):
        raise ModelUnavailableError(f"{repo} has no config.json or no weights that transformers can load")
    if not weights:
        raise ModelUnavailableError(
            f"{repo} has only pickled weights, which can run code: --allow-pickle loads them"
        )
    others = [name for name in _matching(files, _CONFIGURATION) if name != "config.json"]
    others = [name for name in others if not fnmatch(name, _INDEX)]
    if weight_files.CONFIG in files:
        own = [weight_files.WEIGHTS, *([weight_files.PICKLE] if allow_pickle else [])]
        others += [name for name in own if name in files]
    return ["config.json", *others, *_code(files, remote_code), weights[0]]


def _code(files: list[str], remote_code: bool) -> list[str]:
    return _matching(files, ["*.py"]) if remote_code else []


def _weights(files: list[str]) -> list[str]:
    known = (SAFETENSORS, index_of(SAFETENSORS), PICKLES, index_of(PICKLES))
    return [name for name in known if name in files]


def _matching(files: list[str], patterns: list[str]) -> list[str]:
    top = [name for name in files if "/" not in name]
    return [name for name in top if any(fnmatch(name, pattern) for pattern in patterns)]
