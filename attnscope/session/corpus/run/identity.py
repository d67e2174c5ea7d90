"""What makes two runs the same run: everything that their numbers depend on, and nothing else.

How many workers there are, which engine they run on and where the results are written is not part of it.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.session.corpus.engine.places import described
from attnscope.session.corpus.measuring.told import Told
from attnscope.session.corpus.reading.chunks import CHUNK, Census
from attnscope.session.corpus.reading.source import Source
from attnscope.session.corpus.run.code import code_of
from attnscope.version import __version__

if TYPE_CHECKING:
    from attnscope.model.source.checkpoint import Checkpoint

_COUNT = ("torch", "transformers", "tokenizers", "numpy")


def identity_of(
    recipe: Told, sources: Sequence[Source], census: Census, checkpoint: "Checkpoint", limit: int | None
) -> dict[str, Any]:
    """By name, as plain values."""
    request = asdict(recipe.request)
    device, spread = request.pop("device"), request["device_map"]
    files = [
        {"name": source.name, "form": source.form.value, "field": source.field, "sha256": digest}
        for source, digest in zip(sources, census.digests, strict=True)
    ]
    for told in files:
        if told["form"] not in ("jsonl", "parquet"):
            del told["field"]
    return {
        "attnscope": __version__,
        "versions": {name: metadata.version(name) for name in _COUNT},
        "code": code_of(checkpoint.source.folder),
        "files": files,
        "limit": limit,
        "model": checkpoint.source.name,
        "weights": checkpoint.digest.result() or checkpoint.source.revision,
        "tokenizer": _tokenizer(checkpoint.source.folder),
        "device": described(device) if spread is None else "several",
        "how": {name: value for name, value in request.items() if name != "model"},
        "attention": asdict(recipe.wanted),
        "measures": list(recipe.measures),
        "linked": None if recipe.linked is None else asdict(recipe.linked),
        "longest": recipe.longest,
        "truncate": recipe.truncate,
        "batch": recipe.batch,
        "chunk": CHUNK,
        "rows": recipe.rows,
    }


def _tokenizer(folder: Path) -> str:
    """SHA-256 over the small files beside the weights: tokenizer and configuration."""
    whole = hashlib.sha256()
    for place in sorted(folder.iterdir()):
        if place.suffix in (".json", ".txt", ".model") and place.is_file():
            whole.update(f"{place.name}\n".encode() + hashlib.sha256(place.read_bytes()).digest())
    return whole.hexdigest()


def key_of(identity: dict[str, Any]) -> str:
    """Sixteen characters that another run does not have."""
    plain = json.dumps(identity, sort_keys=True).encode()
    return hashlib.sha256(plain).hexdigest()[:16]
