"""Provenance, tokens and remarks for a run on a model that is already in memory."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import Any, Protocol

from torch import Tensor, nn

from attnscope.attention import AttentionCall
from attnscope.capture.following.takeover import kernel_name, without_masks
from attnscope.capture.running import is_compiled
from attnscope.model.anatomy.placed import places_of
from attnscope.model.anatomy.sites import Site, find_sites
from attnscope.model.anatomy.towers import Tower, named_after_senses
from attnscope.model.inputs.text import tokens_from_encoding
from attnscope.model.media.patches import reader_of
from attnscope.results import Kind, Provenance, Route
from attnscope.tokens import Token, Tokens
from attnscope.version import __version__


def versions() -> dict[str, str]:
    """Versions of attnscope, torch, transformers and NumPy."""
    return {"attnscope": __version__, **_of_libraries()}


@cache
def _of_libraries() -> dict[str, str]:
    return {name: version(name) for name in ("torch", "transformers", "numpy")}


def kernel_of(site: Site) -> str:
    """Name of the kernel that computes the attention of one module."""
    return "the model's own code" if site.route is Route.TRACED else kernel_name(site.module)


def provenance_of(
    model: nn.Module,
    tokens: Tokens | None,
    source: Mapping[str, Any] | None = None,
    watched: Sequence[Site] | None = None,
    inputs: Mapping[str, Any] | None = None,
    row: int = 0,
) -> Provenance:
    """Provenance read off the model object; the fields that `source` gives take precedence.

    `watched` are the modules that the attention was read from, all that there are where none are given.
    `inputs` are what the model was called with, and `row` the entry of that batch that the tokens are.
    """
    config = model.config
    name = getattr(config, "_name_or_path", "") or type(model).__name__
    parameter = next(model.parameters())
    there = find_sites(model) if watched is None else watched
    itself: dict[str, Any] = {
        "requested": name,
        "model": name,
        "architecture": type(model).__name__,
        "revision": getattr(config, "_commit_hash", None),
        "digest": None,
        "demo": False,
        "kernel": ", ".join(sorted({kernel_of(site) for site in there})),
        "route": ", ".join(sorted({str(site.route) for site in there})) or str(Route.RETURNED),
        "device": places_of(model),
        "dtype": str(parameter.dtype).removeprefix("torch."),
        "versions": versions(),
        "token_ids": () if tokens is None else tokens.ids,
        "inputs": _numbers_read(inputs or {}, row),
    }
    return Provenance(**{**itself, **(source or {})})


def _numbers_read(inputs: Mapping[str, Any], row: int) -> dict[str, tuple[int, ...]]:
    """One batch entry of each input tensor, as integers; empty if a tensor is no matrix of integers."""
    tensors = {name: value for name, value in inputs.items() if isinstance(value, Tensor)}
    if any(each.ndim != 2 or each.is_floating_point() or each.is_complex() for each in tensors.values()):
        return {}
    return {name: tuple(map(int, each[row].tolist())) for name, each in tensors.items()}


def as_read(
    model: nn.Module,
    tower: Tower,
    calls: Sequence[AttentionCall],
    tokens: Tokens | None,
    source: Mapping[str, Any] | None,
    inputs: Mapping[str, Any] | None = None,
    row: int = 0,
) -> Provenance:
    """The provenance with the route of `calls`; without calls, that of weights the model returned."""
    route = ", ".join(dict.fromkeys(str(call.route) for call in calls)) or str(Route.RETURNED)
    return replace(provenance_of(model, tokens, source, tower.sites, inputs, row), route=route)


def tokens_of(inputs: Mapping[str, Any], row: int = 0, texts: tuple[str, ...] = ()) -> Tokens | None:
    """Tokens of one batch entry of a tokenizer's result: cut from `texts`, or by their pieces, or only ids.

    None for inputs that hold no text.
    """
    encodings = getattr(inputs, "encodings", None)
    if encodings:
        return tokens_from_encoding(encodings[row], texts)
    return tokens_by_id(inputs["input_ids"][row].tolist()) if "input_ids" in inputs else None


@dataclass(frozen=True)
class Sides:
    """The tokens that queries and keys stand for; `target` is what a decoder beside an encoder reads.

    The towers in `sensing` read a picture or a sound: words do not stand for their positions, however many
    these are. Where `looks_at_them` is True, cross-attention looks at the picture or sound.
    """

    source: Tokens | None
    target: Tokens | None = None
    sensing: frozenset[str] = frozenset()
    looks_at_them: bool = False

    def of(self, kind: Kind, queries: int, keys: int, tower: str = "") -> tuple[Tokens, Tokens]:
        """Query tokens and key tokens of an attention of this kind and size.

        Where the lengths are not those of the texts (windows, latents, pictures) positions are numbered;
        keys that are the decoder's own followed by the encoder's get the tokens of both.
        """
        source, target = self.source, self.target
        if tower in self.sensing:
            source, target = _wordless(source), _wordless(target)
        own = source if target is None or kind is Kind.ENCODER else target
        query_tokens = _fitting(queries, own, source) or numbered(queries)
        if kind is Kind.CROSS:
            others: tuple[Tokens | None, ...] = (_wordless(source) if self.looks_at_them else source,)
        else:
            others = query_tokens, source
        if (fits := _fitting(keys, *others)) is not None:
            return query_tokens, fits
        if source is not None and keys == queries + len(source):
            texts = query_tokens.texts + source.texts
            return query_tokens, Tokens(texts, query_tokens.items + _second_part(source, query_tokens))
        return query_tokens, numbered(keys)


def sides_of(
    model: nn.Module,
    inputs: Mapping[str, Any],
    tokens: Tokens | None,
    target: Tokens | None = None,
    row: int = 0,
) -> Sides:
    """`Sides` of a run of `model` whose `input_ids` are `tokens`, and its `decoder_input_ids` `target`."""
    tokens = tokens or tokens_of(inputs, row)
    if target is None and "decoder_input_ids" in inputs:
        target = tokens_by_id(inputs["decoder_input_ids"][row].tolist())
    if tokens is None and "inputs_embeds" in inputs:
        tokens = numbered(inputs["inputs_embeds"].shape[1])
    tokens = _padding_marked(tokens, inputs.get("attention_mask"), row)
    target = _padding_marked(target, _decoder_mask(model, inputs), row)
    sensing = _sensing(model, inputs, 0 if tokens is None else len(tokens))
    spoken_to = getattr(model.config, "is_encoder_decoder", False)
    return Sides(tokens, target, sensing, bool(sensing) and not spoken_to)


def _padding_marked(tokens: Tokens | None, mask: Any, row: int) -> Tokens | None:
    """The tokens, marked as padding at either end where `mask` is 0, if the mask has their length."""
    if tokens is None or not isinstance(mask, Tensor) or mask.ndim != 2 or mask.shape[1] != len(tokens):
        return tokens
    there = mask[row].nonzero().flatten().tolist()
    if not there or len(there) == len(tokens):
        return tokens
    items = (
        token if there[0] <= i <= there[-1] else replace(token, padding=True)
        for i, token in enumerate(tokens.items)
    )
    return replace(tokens, items=tuple(items))


def _decoder_mask(model: nn.Module, inputs: Mapping[str, Any]) -> Any:
    """Mask of a decoder's tokens; in a batch without one, all up to the last that is no pad token.

    Causal models do not need this mask, and callers hardly ever give it.
    """
    mask, ids = inputs.get("decoder_attention_mask"), inputs.get("decoder_input_ids")
    padding = getattr(model.config, "pad_token_id", None)
    if mask is not None or ids is None or len(ids) < 2 or padding is None:
        return mask
    return (ids != padding).flip(1).cumsum(1).flip(1) > 0


def _sensing(model: nn.Module, inputs: Mapping[str, Any], words: int) -> frozenset[str]:
    """The towers, by their pattern, that read only pictures or sounds in `inputs`.

    All of them where a row of features is as long as the text: then a length tells nothing.
    """
    senses = [n for n, v in inputs.items() if isinstance(v, Tensor) and v.is_floating_point() and v.ndim > 2]
    if not senses:
        return frozenset()
    found = find_sites(model)
    if any(inputs[name].ndim == 3 and inputs[name].shape[1] == words for name in senses):
        return frozenset(site.tower for site in found)
    readers = (reader_of(model, found, name) for name in ("pixel_values", "input_features", "input_values"))
    reading = {
        reader.first.tower
        for reader in readers
        if reader and "input_ids" not in inspect.signature(type(reader.module).forward).parameters
    }
    return frozenset(reading | {site.tower for site in found if named_after_senses(site.tower)})


def numbered(count: int) -> Tokens:
    """`count` tokens that stand for no text, named by their positions."""
    return Tokens((), tuple(Token(-1, str(i), str(i), None, None) for i in range(count)))


class Named(Protocol):
    """Protocol of a layer whose queries and keys have names."""

    @property
    def query_tokens(self) -> Tokens: ...

    @property
    def key_tokens(self) -> Tokens: ...


def names_in(layers: Sequence[Named]) -> tuple[Tokens, Tokens]:
    """Query and key tokens for several layers of one size: numbered if any of them is."""
    sides = [each.query_tokens for each in layers], [each.key_tokens for each in layers]
    queries, keys = (next(filter(_are_numbers, side), side[0]) for side in sides)
    return queries, keys


def _are_numbers(tokens: Tokens) -> bool:
    return not tokens.texts and tokens.names == numbered(len(tokens)).names


def _fitting(count: int, *candidates: Tokens | None) -> Tokens | None:
    return next((each for each in candidates if each is not None and len(each) == count), None)


def _wordless(tokens: Tokens | None) -> Tokens | None:
    return None if tokens is None or any(token.id >= 0 for token in tokens.items) else tokens


def _second_part(tokens: Tokens, first: Tokens) -> tuple[Token, ...]:
    return tuple(replace(token, part=token.part + len(first.texts)) for token in tokens.items)


def tokens_by_id(ids: list[int]) -> Tokens:
    """Tokens that are named by their ids, since their text is unknown."""
    return Tokens((), tuple(Token(i, str(i), str(i), None, None) for i in ids))


def remarks(model: nn.Module, name: str) -> Iterator[str]:
    """Remarks about a model, a sentence each: training mode, compiled code, a kernel without a mask."""
    if any(module.training for module in model.modules()):
        yield f"{name} is in training mode: it is read in evaluation mode, without dropout, and put back"
    if is_compiled(model):
        yield f"{name} is compiled: its code is read as it is written, not the kernels compiled from it"
    for kernel in without_masks(site.module for site in find_sites(model)):
        yield (
            f"transformers hands attention kernel {kernel} no mask, since AttentionMaskInterface has none of "
            "that name: padding, windows and causality are what the kernel itself makes of them"
        )
