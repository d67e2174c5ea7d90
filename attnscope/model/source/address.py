"""The address of the hub, as the environment gives it, taken apart before any library trips over it."""

import os
from urllib.parse import urlparse

from attnscope.errors import InputError, one_line


def check_endpoint() -> None:
    """Refuse an HF_ENDPOINT that is no address: the hub's library cannot even be imported with it."""
    if endpoint := os.environ.get("HF_ENDPOINT"):
        host_and_port(endpoint, "HF_ENDPOINT")


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
