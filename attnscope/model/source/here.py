"""Checks of the model's name and the environment that run before the slow imports of torch."""

import os
import sys
from urllib.parse import urlparse

from attnscope import demo
from attnscope.errors import InputError, ModelUnavailableError, one_line

DEFAULT = "bert-base-uncased"
HUB_ID = f"google-bert/{DEFAULT}"  # the hub's full name for it, under which it may also be cached
BUNDLED = ", ".join(demo.FOLDERS)  # as the help texts name them
_SECONDS = ("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT")


def check_environment() -> None:
    """Refuse settings that break the libraries' import: HF_ENDPOINT, time-outs, TORCH_LOGS, -OO."""
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
    """Refuse a path that is a file but no .gguf, or that does not exist."""
    if not requested or requested in demo.FOLDERS:
        return
    path = os.path.expanduser(requested)  # unchanged for an unknown user
    if os.path.isdir(path) or (os.path.isfile(path) and path.lower().endswith(".gguf")):
        return
    if os.path.exists(path):
        raise InputError(
            f"{requested} is a file: name the folder that holds config.json and the weights, or a .gguf file"
        )
    if requested.startswith((".", "/", "~")) or requested.count("/") > 1:
        raise ModelUnavailableError(f"no folder {requested}")


def check_logs() -> None:
    """Refuse a TORCH_LOGS with which torch cannot be imported."""
    if logs := os.environ.get("TORCH_LOGS"):
        try:
            import torch  # noqa: F401
        except ValueError as error:
            raise InputError(f"TORCH_LOGS names no log of torch: '{logs}': such as +dynamo") from error


def host_and_port(url: str, variable: str) -> tuple[str, int]:
    """Host and port of `url`; `InputError` that names `variable` where it has no host."""
    try:
        parts = urlparse(url)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        (host or "").encode("idna")
    except ValueError as error:
        raise InputError(f"{variable} is not an address: '{url}': {one_line(error)}") from error
    if not host:
        raise InputError(f"{variable} is not an address: '{url}': such as https://huggingface.co")
    return host, port
