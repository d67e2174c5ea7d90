"""The Hugging Face hub: its cache, whether it can be reached, and downloads, each failure in one line."""

import os
import socket
import sys
import threading
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import urlparse

from huggingface_hub import HfApi, constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub import errors as hub_errors
from huggingface_hub.utils import disable_progress_bars

from attnscope.errors import InputError, ModelUnavailableError, one_line

_CONFIGURATION = ["*.json", "*.txt", "*.model", "*.tiktoken", "*.jinja"]
_SAFETENSORS = ["model.safetensors", "model-*-of-*.safetensors"]
_PICKLES = ["pytorch_model.bin", "pytorch_model-*-of-*.bin"]
_CONNECT_SECONDS = 2.0
_ANSWER_SECONDS = 20.0  # for the list of files; downloads have the client's own time-outs


class HubUnreachableError(ModelUnavailableError):
    """There is no way to the hub at all: offline by choice, no name resolution, connection refused."""


def cached(repo: str, revision: str | None) -> Path | None:
    """The folder of `repo` in the local cache when its configuration and weights are both there.

    Raises `InputError` when `repo` cannot be the id of a model.
    """
    try:
        config = try_to_load_from_cache(repo, "config.json", revision=revision)
    except hub_errors.HFValidationError as error:
        message = f"'{repo}' is neither a folder nor a hub id such as google-bert/bert-base-uncased"
        raise InputError(message) from error
    folder = Path(config).parent if isinstance(config, str) else None
    weights = [*folder.glob("*.safetensors"), *folder.glob("*.bin")] if folder else []
    return folder if weights else None


def download(repo: str, revision: str | None, *, allow_pickle: bool, remote_code: bool) -> Path:
    """The folder of `repo` after fetching what a run needs. Raises `ModelUnavailableError` in one line."""
    if (obstacle := unreachable()) is not None:
        raise HubUnreachableError(
            f"{repo} is not in the local cache and the hub cannot be reached: {obstacle}"
        )
    if not sys.stderr.isatty():
        disable_progress_bars()
    try:
        info = HfApi().model_info(repo, revision=revision, timeout=_ANSWER_SECONDS)
        files = [file.rfilename for file in info.siblings or []]
        wanted = _wanted(repo, files, allow_pickle=allow_pickle, remote_code=remote_code)
        # one by one: snapshot_download asks for its own list without any time-out
        fetched = [hf_hub_download(repo, file, revision=revision) for file in wanted]
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
    return Path(fetched[0]).parent


def unreachable() -> str | None:
    """Why the hub cannot be reached at all, found out in at most two seconds; None when it seems it can.

    A host that is there but slow counts as reachable: it is waited for.
    """
    if constants.HF_HUB_OFFLINE or os.environ.get("TRANSFORMERS_OFFLINE") in {"1", "true", "True"}:
        return "offline mode is set"
    try:
        host, port = _first_hop()
    except ValueError as error:
        raise InputError(f"HF_ENDPOINT or a proxy variable is not an address: {one_line(error)}") from error
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
    """Host and port that a request to the hub goes to first: a proxy where one is set, else the hub."""
    scheme = urlparse(constants.ENDPOINT).scheme
    proxy = os.environ.get(f"{scheme}_proxy") or os.environ.get(f"{scheme.upper()}_PROXY")
    url = urlparse(proxy if proxy else constants.ENDPOINT)
    if not url.hostname:
        raise ValueError(proxy or constants.ENDPOINT)
    return url.hostname, url.port or (443 if url.scheme == "https" else 80)


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
    """The files to fetch, config.json first: safetensors where there are any, pickles only when allowed."""
    safe = _matching(files, _SAFETENSORS)
    pickles = _matching(files, _PICKLES)
    if "config.json" not in files or not (safe or pickles):
        raise ModelUnavailableError(f"{repo} has no config.json or no weights that transformers can load")
    if not safe and not allow_pickle:
        raise ModelUnavailableError(
            f"{repo} has only pickled weights, which can run code: --allow-pickle loads them"
        )
    others = [name for name in _matching(files, _CONFIGURATION) if name != "config.json"]
    code = _matching(files, ["*.py"]) if remote_code else []
    return ["config.json", *others, *code, *(safe or pickles)]


def _matching(files: list[str], patterns: list[str]) -> list[str]:
    """The files of the repository's top folder that match one of `patterns`."""
    top = [name for name in files if "/" not in name]
    return [name for name in top if any(fnmatch(name, pattern) for pattern in patterns)]
