"""What in a tokenizer.json can end the process: looked for before the tokenizers library reads it.

That library answers most damage with an error. But at some it panics, which prints a trace of Rust on
standard error, and for some it asks for more memory than there is, at which the process ends. These alone
stand here; whether a tokenizer does what it should only its use shows.
"""

import base64
import binascii
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnscope.errors import ModelUnavailableError

FILE = "tokenizer.json"
_HEAD = 4  # bytes of a charsmap that say how long its table is


def check_tokenizer_file(folder: Path, name: str) -> None:
    """Raises `ModelUnavailableError` for a tokenizer.json of `name` that the library would not survive."""
    file = folder / FILE
    if not file.is_file():
        return
    try:
        tables = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError, OSError):
        return  # answered in one line by the library
    for fault in _faults(tables):
        raise ModelUnavailableError(f"{name}: cannot read the tokenizer: {FILE} {fault}")


def _faults(tables: Any) -> Iterator[str]:
    if not isinstance(tables, dict):
        return
    for part in ("normalizer", "pre_tokenizer", "post_processor"):
        for step in _steps(tables.get(part)):
            if check := _CHECKS.get(str(step.get("type"))):
                yield from check(step)
    model = tables.get("model")
    if isinstance(model, dict) and "merges" in model:
        yield from _merges(model)


def _steps(node: Any) -> Iterator[dict[str, Any]]:
    """Every step of one part, also those within a sequence; Python's JSON has bounded how deep it goes."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += [value for value in each.values() if isinstance(value, list)]
            if "type" in each:
                yield each


def _template(step: dict[str, Any]) -> Iterator[str]:
    """Each special token that a template names must be explained, an id for every token."""
    table = step.get("special_tokens")
    known = table if isinstance(table, dict) else {}
    for entry in known.values():
        if isinstance(entry, dict) and _length(entry.get("ids")) != _length(entry.get("tokens")):
            yield f"has other ids than tokens for {entry.get('id')!r}"
    for pieces in (step.get("single"), step.get("pair")):
        for piece in pieces if isinstance(pieces, list) else ():
            token = piece.get("SpecialToken") if isinstance(piece, dict) else None
            if isinstance(token, dict) and isinstance(token.get("id"), str) and token["id"] not in known:
                yield f"puts {token['id']!r} around texts and does not say what that is"


def _fixed(step: dict[str, Any]) -> Iterator[str]:
    if step.get("length") == 0:
        yield "cuts texts into pieces of length 0"


def _charsmap(step: dict[str, Any]) -> Iterator[str]:
    """Four bytes tell how many bytes of numbers follow; the rest is text."""
    charsmap = step.get("precompiled_charsmap")
    try:
        content = base64.b64decode(charsmap, validate=True) if isinstance(charsmap, str) else None
    except (binascii.Error, ValueError):
        return
    if content is None:
        return  # like what is no base64 answered in one line by the library
    size = int.from_bytes(content[:_HEAD], "little")
    if len(content) < _HEAD or size > len(content) - _HEAD:
        yield f"has a precompiled_charsmap that claims {size} bytes and has {len(content)}"


def _merges(model: dict[str, Any]) -> Iterator[str]:
    """Two pieces that are merged must make one that there is."""
    vocabulary, merges = model.get("vocab"), model.get("merges")
    prefix = model.get("continuing_subword_prefix") or ""
    if not isinstance(vocabulary, dict) or not isinstance(merges, list):
        return
    for merge in merges:
        if isinstance(merge, str) and merge.startswith("#version"):
            continue
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(each, str) for each in pair):
            return  # answered in one line by the library
        made = pair[0] + pair[1][len(str(prefix)) :]
        if made not in vocabulary:
            yield f"merges {pair[0]!r} and {pair[1]!r} into {made!r}, which is not in its vocabulary"


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else -1


_CHECKS = {"TemplateProcessing": _template, "FixedLength": _fixed, "Precompiled": _charsmap}
