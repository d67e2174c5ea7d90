"""Provenance and tokens of a run on a model object whose origin nobody told us."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from torch import nn

from attnscope import __version__
from attnscope.capture.takeover import kernel_name
from attnscope.model.anatomy import Site, sites
from attnscope.model.text import tokens_from_encoding
from attnscope.results import Kind, Provenance, Route
from attnscope.tokens import Token, Tokens


def versions() -> dict[str, str]:
    """The versions that decide about the numbers."""
    return {"attnscope": __version__, **{name: version(name) for name in ("torch", "transformers", "numpy")}}


def kernel_of(site: Site) -> str:
    """What computes the attention of one module."""
    return "the model's own code" if site.route is Route.TRACED else kernel_name(site.module)


def provenance_of(
    model: nn.Module, tokens: Tokens | None, known: Mapping[str, Any] | None = None
) -> Provenance:
    """What the model object itself tells; fields that are `known` better take its place."""
    config = model.config
    name = getattr(config, "_name_or_path", "") or type(model).__name__
    parameter = next(model.parameters())
    found = sites(model)
    told: dict[str, Any] = {
        "requested": name,
        "model": name,
        "architecture": type(model).__name__,
        "revision": getattr(config, "_commit_hash", None),
        "digest": None,
        "demo": False,
        "kernel": ", ".join(sorted({kernel_of(site) for site in found})),
        "route": ", ".join(sorted({str(site.route) for site in found})) or str(Route.RETURNED),
        "device": str(parameter.device),
        "dtype": str(parameter.dtype).removeprefix("torch."),
        "versions": versions(),
        "token_ids": () if tokens is None else tokens.ids,
    }
    return Provenance(**{**told, **(known or {})})


def tokens_of(inputs: Mapping[str, Any], row: int = 0) -> Tokens | None:
    """Tokens of one batch entry of a tokenizer's result, by their pieces; by their ids where that is all.

    None for inputs that hold no text.
    """
    encodings = getattr(inputs, "encodings", None)
    if encodings:
        return tokens_from_encoding(encodings[row])
    return tokens_by_id(inputs["input_ids"][row].tolist()) if "input_ids" in inputs else None


@dataclass(frozen=True)
class Sides:
    """The tokens that queries and keys stand for; `target` is what a decoder beside an encoder reads."""

    source: Tokens | None
    target: Tokens | None = None

    def of(self, kind: Kind, queries: int, keys: int) -> tuple[Tokens, Tokens]:
        """Tokens of the query side and of the key side of one kind of attention.

        Where the lengths are not those of the texts (windows, latents, pictures) positions are numbered;
        keys that are the decoder's own followed by the encoder's are called so.
        """
        own = self.source if self.target is None or kind is Kind.ENCODER else self.target
        query_tokens = _fitting(queries, own, self.source) or numbered(queries)
        other = self.source if kind is Kind.CROSS else query_tokens
        if (fits := _fitting(keys, other, query_tokens, self.source)) is not None:
            return query_tokens, fits
        if self.source is not None and keys == queries + len(self.source):
            texts = query_tokens.texts + self.source.texts
            return query_tokens, Tokens(texts, query_tokens.items + _second_part(self.source, query_tokens))
        return query_tokens, numbered(keys)


def sides_of(
    model: nn.Module,
    inputs: Mapping[str, Any],
    tokens: Tokens | None,
    target: Tokens | None = None,
    row: int = 0,
) -> Sides:
    """Both sides for a run of `model` whose `input_ids` are `tokens`, its `decoder_input_ids` `target`."""
    tokens = tokens or tokens_of(inputs, row)
    if target is None and "decoder_input_ids" in inputs:
        target = tokens_by_id(inputs["decoder_input_ids"][row].tolist())
    return Sides(tokens, target)


def numbered(count: int) -> Tokens:
    """Positions that stand for no text, called by their numbers."""
    return Tokens((), tuple(Token(-1, str(i), str(i), None, None) for i in range(count)))


def _fitting(count: int, *candidates: Tokens | None) -> Tokens | None:
    return next((each for each in candidates if each is not None and len(each) == count), None)


def _second_part(tokens: Tokens, first: Tokens) -> tuple[Token, ...]:
    return tuple(replace(token, part=token.part + len(first.texts)) for token in tokens.items)


def tokens_by_id(ids: list[int]) -> Tokens:
    return Tokens((), tuple(Token(i, str(i), str(i), None, None) for i in ids))
