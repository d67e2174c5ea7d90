"""What a file holds, told by hashes: a key or an array that was changed afterwards is named.

They find what was damaged, edited or mixed up. Who changes a file on purpose can write them anew: what is
shown with a tick was computed again (`again`).
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping

import numpy as np

from attnscope.errors import CertificateError
from attnscope.results.base.parts import Arrays, Value

KEY = "digests"
# other programs write 1.0 as 1; what stands in a text stays
_WHOLE = re.compile(r'("(?:[^"\\]|\\.)*")|\.0(?=[,\]}]|$)')


def sealed(plain: dict[str, Value], arrays: Arrays | None = None) -> dict[str, Value]:
    """The document of a file with a hash of each of its keys and, in an npz, of each array."""
    return plain | {KEY: dict(_hashes(plain, arrays))}


def check_seal(plain: dict[str, Value], arrays: Arrays | None, name: str) -> None:
    """Takes the hashes out of a document; `CertificateError` where it is not what they say."""
    said = plain.pop(KEY, None)
    found = dict(_hashes(plain, arrays))
    if not isinstance(said, dict) or (changed := sorted(_differing(said, found))):
        what = ", ".join(f"'{each}'" for each in changed[:3]) if isinstance(said, dict) else f"'{KEY}'"
        more = f" and {len(changed) - 3} more" if isinstance(said, dict) and len(changed) > 3 else ""
        raise CertificateError(f"'{name}' was changed after it was written: {what}{more} is not as it was")


def _differing(said: Mapping[str, Value], found: Mapping[str, str]) -> Iterator[str]:
    for key in {*said, *found}:
        if said.get(key) != found.get(key):
            yield ascii(str(key))[1:-1][:60]


def _hashes(plain: Mapping[str, Value], arrays: Arrays | None) -> Iterator[tuple[str, str]]:
    for key, value in plain.items():
        yield key, _hash(_WHOLE.sub(r"\1", json.dumps(value, sort_keys=True)).encode())
    for name, values in (arrays or {}).items():
        about = f"{values.dtype.str} {values.shape}".encode()
        yield f"{name}.npy", _hash(about, np.ascontiguousarray(values).tobytes())


def _hash(*contents: bytes) -> str:
    whole = hashlib.sha256()
    for content in contents:
        whole.update(content)
    return whole.hexdigest()[:32]
