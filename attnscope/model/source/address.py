"""The hub as the environment describes it, looked at before any library trips over it."""

import os
from urllib.parse import urlparse

from attnscope.errors import InputError, one_line

_SECONDS = ("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT")


def check_environment() -> None:
    """Refuse what the hub's library cannot even be imported with: no address, seconds that are no number."""
    if endpoint := os.environ.get("HF_ENDPOINT"):
        host_and_port(endpoint, "HF_ENDPOINT")
    for variable in _SECONDS:
        seconds = os.environ.get(variable)
        try:
            int("0" if seconds is None else seconds)
        except ValueError as error:
            raise InputError(f"{variable} is not a number of seconds: '{seconds}': such as 10") from error


def host_and_port(url: str, variable: str) -> tuple[str, int]:
    """Whom `url` leads to; `InputError` that names the `variable` it stands in when it leads nowhere."""
    try:
        parts = urlparse(url)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        (host or "").encode("idna")
    except ValueError as error:
        raise InputError(f"{variable} is not an address: '{url}': {one_line(error)}") from error
    if not host:
        raise InputError(f"{variable} is not an address: '{url}': such as https://huggingface.co")
    return host, port
