"""Files that somebody changed who also wrote their hashes anew."""

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from attnscope.results.stored.document import KEY, sealed


def document(changed: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON document whose hashes fit it again."""
    return sealed({key: value for key, value in changed.items() if key != KEY})


def arrays_of(content: bytes) -> dict[str, np.ndarray]:
    """Every array of an npz, `meta` among them."""
    with np.load(io.BytesIO(content), allow_pickle=False) as read:
        return {name: read[name] for name in read.files}


def archive(changed: Mapping[str, np.ndarray]) -> bytes:
    """An npz of these arrays, with hashes that fit them."""
    arrays = dict(changed)
    meta = json.loads(str(arrays.pop("meta")))
    plain = {key: value for key, value in meta.items() if key != KEY}
    buffer = io.BytesIO()
    np.savez(buffer, meta=np.array(json.dumps(sealed(plain, arrays))), **arrays)
    return buffer.getvalue()


def but_proofs(document: Any) -> Any:
    """A document without what it says of proofs, and without hashes."""
    proofs = {"verdict", "verdicts", "verdict_of_each", "certified", "certificate", "certificates", KEY}
    if isinstance(document, dict):
        return {key: but_proofs(value) for key, value in document.items() if key not in proofs}
    return list(map(but_proofs, document)) if isinstance(document, list) else document
