"""A head in a file that attnscope wrote, in the place of arrays."""

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from attnscope.errors import InputError

if TYPE_CHECKING:
    from attnscope.results import HeadAttention

_SEEN = 4096  # bytes of a JSON file in which its schema stands


def is_result(path: Path) -> bool:
    """Whether attnscope wrote the file; False also for one that cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(_SEEN)
        if start.startswith(b"PK"):
            with zipfile.ZipFile(path) as archive:
                return "meta.npy" in archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile):
        return False
    return b'"attnscope.' in start and b'"schema"' in start


def read_head(path: Path) -> "HeadAttention":
    """The head in `path`; `InputError` for another result, and for weights that a model only returned."""
    from attnscope.results import HeadAttention, HeadWeights, load

    result = load(path)
    head = result if isinstance(result, HeadWeights) else getattr(result, "head", None)
    if isinstance(head, HeadAttention):
        return head
    what = type(result).__name__
    if isinstance(head, HeadWeights):
        raise InputError(f"'{path}' has only weights as the model returned them: no q, k and v to work with")
    raise InputError(f"'{path}' is a {what} and not one head: attnscope show {path} shows it")
