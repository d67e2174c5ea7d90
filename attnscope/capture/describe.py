"""Provenance and tokens of a run on a model object whose origin nobody told us."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from torch import nn

from attnscope import __version__
from attnscope.capture.takeover import kernel_name
from attnscope.errors import InputError
from attnscope.model.anatomy import sites
from attnscope.model.text import tokens_from_encoding
from attnscope.results import Kind, Provenance
from attnscope.tokens import Token, Tokens


def versions() -> dict[str, str]:
    """The versions that decide about the numbers."""
    return {"attnscope": __version__, **{name: version(name) for name in ("torch", "transformers", "numpy")}}


def provenance_of(model: nn.Module, tokens: Tokens, known: Mapping[str, Any] | None = None) -> Provenance:
    """What the model object itself tells; fields that are `known` better take its place."""
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
    return Provenance(**{**told, **(known or {})})


def tokens_of(inputs: Mapping[str, Any], row: int = 0) -> Tokens:
    """Tokens of one batch entry of a tokenizer's result, by their pieces; by their ids where that is all."""
    encodings = getattr(inputs, "encodings", None)
    if encodings:
        return tokens_from_encoding(encodings[row])
    if "input_ids" not in inputs:
        raise InputError("inputs hold no input_ids: pass tokens=... to say what the positions are")
    return _tokens_by_id(inputs["input_ids"][row].tolist())


@dataclass(frozen=True)
class Sides:
    """The tokens that queries and keys stand for; `target` is what a decoder beside an encoder reads."""

    source: Tokens
    target: Tokens | None = None

    def of(self, kind: Kind) -> tuple[Tokens, Tokens]:
        """Tokens of the query side and of the key side of one kind of attention."""
        if self.target is None or kind is Kind.ENCODER:
            return self.source, self.source
        return self.target, self.source if kind is Kind.CROSS else self.target


def sides_of(
    model: nn.Module, inputs: Mapping[str, Any], tokens: Tokens, target: Tokens | None = None, row: int = 0
) -> Sides:
    """Both sides for a run of `model` whose `input_ids` are `tokens`, its `decoder_input_ids` `target`."""
    if not getattr(model.config, "is_encoder_decoder", False):
        return Sides(tokens)
    if "decoder_input_ids" not in inputs:
        raise InputError("inputs of an encoder-decoder need decoder_input_ids")
    return Sides(tokens, target or _tokens_by_id(inputs["decoder_input_ids"][row].tolist()))


def _tokens_by_id(ids: list[int]) -> Tokens:
    return Tokens((), tuple(Token(i, str(i), str(i), None, None) for i in ids))
