"""A checkpoint's own tokenizer: its files looked at, read by the library, and put behind one door.

The library answers most damage of a tokenizer.json with an error. But at some it panics, which prints a trace
of Rust on standard error, and for some it asks for more memory than there is, at which the process ends. Only
these are looked for here; whether a tokenizer does what it should its use shows.
"""

import base64
import binascii
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn
from transformers import AutoTokenizer

from attnscope.errors import ModelUnavailableError, calling
from attnscope.incoming import settings
from attnscope.model.inputs.numbered import Unreadable
from attnscope.model.inputs.tokenizer import REMEDY, Tokenizer
from attnscope.model.loading.config import needs_code
from attnscope.model.source.find import Source

FILE = "tokenizer.json"
_HEAD = 4  # bytes of a charsmap that say how long its table is


def check_tokenizer_file(folder: Path, name: str) -> None:
    """Raises `ModelUnavailableError` for a tokenizer.json of `name` that the library would not survive."""
    file = folder / FILE
    if not file.is_file():
        return
    try:
        tables = settings(file)
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


def tokenizer_for(model_class: type[nn.Module], source: Source, remote_code: bool, words: bool = True) -> Any:
    """The tokenizer, which must be there where the model is to read `words`; else None is as good.

    Where that is not known yet, one that cannot be read says so when it is asked for anything.
    """
    try:
        return open_tokenizer(source, remote_code)
    except ModelUnavailableError as error:
        takes = inspect.signature(model_class.forward).parameters
        if {"pixel_values", "input_features", "input_values"} & takes.keys() and "input_ids" not in takes:
            return Unreadable(error) if "decoder_input_ids" in takes else None
        refusal = ModelUnavailableError(
            f"{error}; --tokenizer NAME takes another's, token numbers need none (--ids)"
        )
        if not words:
            return Unreadable(refusal)
        raise refusal from error


def open_tokenizer(source: Source, remote_code: bool = False) -> Tokenizer:
    """The tokenizer in the folder of `source`; `ModelUnavailableError` where it has none that is sound."""
    folder, name = source.folder, source.name
    if source.gguf is None:
        check_tokenizer_file(folder, name)
    with calling(f"{name}: cannot read the tokenizer", REMEDY):
        try:
            own = AutoTokenizer.from_pretrained(folder, trust_remote_code=remote_code, **source.file)
        except ValueError as error:
            if "trust_remote_code" in str(error):
                raise needs_code(name) from error
            raise
    _check(own, source)
    return Tokenizer(own, name)


def _check(own: Any, source: Source) -> None:
    """Without files the library makes a tokenizer that reads all as unknown."""
    folder, cannot = source.folder, f"{source.name}: cannot read the tokenizer"
    if not isinstance(own.model_max_length, int | float):
        raise ModelUnavailableError(f"{cannot}: model_max_length is '{own.model_max_length}', not a number")
    files = set(own.vocab_files_names.values()) | ({FILE} if own.is_fast else set())
    if source.gguf is None and own.vocab_files_names and not any((folder / file).is_file() for file in files):
        raise ModelUnavailableError(f"{cannot}: there is no {' or '.join(sorted(files))}")
