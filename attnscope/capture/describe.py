"""Provenance and tokens of a run on a model object whose origin nobody told us."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from torch import nn

from attnscope import __version__
from attnscope.capture.anatomy import sites
from attnscope.capture.takeover import kernel_name
from attnscope.errors import InputError
from attnscope.results import Provenance
from attnscope.tokens import Token, Tokens


def versions() -> dict[str, str]:
    """The versions that decide about the numbers."""
    return {"attnscope": __version__, **{name: version(name) for name in ("torch", "transformers", "numpy")}}


def provenance_of(model: nn.Module, tokens: Tokens, **known: Any) -> Provenance:
    """What the model object itself tells; `known` fields take its place."""
    config = model.config
    name = getattr(config, "_name_or_path", "") or type(model).__name__
    parameter = next(model.parameters())
    told: dict[str, Any] = {
        "requested": name,
        "model": name,
        "architecture": type(model).__name__,
        "revision": getattr(config, "_commit_hash", None),
        "digest": None,
        "demo": False,
        "kernel": ", ".join(sorted({kernel_name(site.module) for site in sites(model)})),
        "route": "takeover",
        "device": str(parameter.device),
        "dtype": str(parameter.dtype).removeprefix("torch."),
        "versions": versions(),
        "token_ids": tokens.ids,
    }
    return Provenance(**(told | known))


def tokens_of(inputs: Mapping[str, Any], row: int = 0, texts: tuple[str, ...] = ()) -> Tokens:
    """Tokens of one batch entry of a tokenizer's result, cut from `texts` where these are known.

    Without the result of a fast tokenizer, only ids are known and stand in for the text.
    """
    encodings = getattr(inputs, "encodings", None)
    if encodings:
        return tokens_from_encoding(encodings[row], texts)
    if "input_ids" not in inputs:
        raise InputError("inputs hold no input_ids: pass tokens=... to say what the positions are")
    ids = inputs["input_ids"][row].tolist()
    return Tokens(texts, tuple(Token(i, str(i), str(i), None, None) for i in ids))


def tokens_from_encoding(encoding: Any, texts: tuple[str, ...] = (), unknown_id: int | None = None) -> Tokens:
    """Tokens from an `Encoding` of the tokenizers library."""
    items = []
    parts = encoding.sequence_ids
    for i, (start, end) in enumerate(encoding.offsets):
        part, added = parts[i] or 0, bool(encoding.special_tokens_mask[i])
        source = texts[part][start:end] if texts and not added else encoding.tokens[i]
        items.append(
            Token(
                id=encoding.ids[i],
                piece=encoding.tokens[i],
                text="" if added else source,
                span=None if added else (start, end),
                word=encoding.word_ids[i],
                part=part,
                special=added,
                unknown=encoding.ids[i] == unknown_id,
            )
        )
    return Tokens(texts, tuple(items))
