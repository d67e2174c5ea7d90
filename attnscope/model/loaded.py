"""A loaded model with its tokenizer: encodes texts, decoder targets and chats, and names tokens."""

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnscope.errors import InputError, ModelUnavailableError
from attnscope.model.anatomy.placed import device_of
from attnscope.model.anatomy.sites import Site, find_sites
from attnscope.model.anatomy.towers import Tower, find_towers
from attnscope.model.inputs import target
from attnscope.model.inputs.generation import Words, encode_numbers, encode_words
from attnscope.model.inputs.given import Chat, Numbered, Unreadable
from attnscope.model.inputs.naming import Names
from attnscope.model.inputs.rendered import encode_chat
from attnscope.model.inputs.target import Target
from attnscope.model.inputs.text import Encoded, Settled, encode, limit_of
from attnscope.model.source.checkpoint import Checkpoint
from attnscope.tokens import Tokens
from attnscope.vocabulary import IN_MEMORY

_MEDIA = {"pixel_values": "image", "input_features": "audio", "input_values": "audio"}


@dataclass(frozen=True, eq=False)
class Model:
    """A model in memory with its tokenizer, which is None for a model without one.

    `layers` is how many leading layers are in memory (None: all). `missing` names weights that the model
    needs and the checkpoint lacks, `unread` trained weights of the checkpoint that the model has no place for
    (see `loading.partial`). `quantised` is the quantisation method, `checkpoint` holds the weight files that
    were read, `kernel` the attention kernel that was asked for by name (None: none), `run` the other
    command-line options of loading. A model that was not loaded here has no `checkpoint`; its `processor`
    makes the inputs from pictures and sounds.
    """

    checkpoint: Checkpoint | None
    module: Any
    tokenizer: Any
    layers: int | None
    missing: tuple[str, ...] = ()
    quantised: str | None = None
    processor: Any = None
    unread: tuple[str, ...] = ()
    kernel: str | None = None
    run: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        if self.checkpoint is not None:
            return self.checkpoint.source.name
        return getattr(self.module.config, "_name_or_path", "") or type(self.module).__name__

    @property
    def folder(self) -> Path:
        """Folder of the checkpoint's files; `InputError` for a model that was not loaded from one."""
        if self.checkpoint is None:
            raise InputError(f"{self.name} was given without a processor: give one that reads the file")
        return self.checkpoint.source.folder

    @property
    def skeleton(self) -> Any:
        """The module tree, for code that also takes a `Plan`, whose tree has no weights."""
        return self.module

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """The model's attention modules at first access; some models replace modules at their first run."""
        return find_sites(self.module)

    @cached_property
    def towers(self) -> tuple[Tower, ...]:
        """The model's towers: attention modules grouped by kind and place (see `anatomy.towers`)."""
        return find_towers(self.sites)

    @property
    def writes(self) -> bool:
        """True for an encoder-decoder."""
        return bool(self.module.config.is_encoder_decoder)

    def settled(self) -> "Model":
        """Copy whose tokenizer caches its attributes: faster for many texts; it must not be changed."""
        return replace(self, tokenizer=Settled.of(self.tokenizer))

    def target(self, encoded: Encoded, text: str | None, ids: tuple[int, ...] | None = None) -> Target:
        """Decoder input: `text`, exactly `ids`, or without either what the model itself generates."""
        if ids is not None:
            self.check_numbers(ids, "--target-ids")
            return target.given_by_number(self.module, self.tokenizer, ids, self.name)
        if text is not None and isinstance(self.tokenizer, Numbered):
            raise InputError(f"--target needs a tokenizer of {self.name}: --target-ids takes token numbers")
        if text is not None:
            prepared = target.given(self.module, self.tokenizer, text, self.name, encoded.inputs)
            self._check_ids(prepared.tokens)
            return prepared
        return target.written(self.module, self.tokenizer, encoded.inputs, self.name)

    def opening(self) -> Target:
        """The shortest decoder input with which the model runs: its start token."""
        return target.opening(self.module, self.tokenizer)

    def limit(self, most: int | None = None) -> int | None:
        """The most tokens that the model reads at once, at most `most`; None for no limit."""
        return min((limit for limit in (self._limit, most) if limit is not None), default=None)

    @cached_property
    def _limit(self) -> int | None:
        return limit_of(self.tokenizer, self.module)

    def encode(
        self,
        texts: tuple[str, ...],
        *,
        truncate: bool = False,
        pictured: bool = False,
        most: int | None = None,
    ) -> Encoded:
        """The model's inputs for one text or a pair, on the model's device, at most `most` tokens.

        `InputError` for a model that reads no text. A model that also takes a picture gets a blank one,
        unless the picture is given later (`pictured`).
        """
        self._check_reads_text()
        limit = self.limit(most)
        encoded = encode(self.tokenizer, texts, name=self.name, limit=limit, truncate=truncate)
        self._check_ids(encoded.tokens)
        return self._ready(encoded, pictured)

    def encode_words(
        self, texts: tuple[Words, ...], *, truncate: bool = False, most: int | None = None
    ) -> Encoded:
        """The model's inputs for a text, or a pair, that is already split into words."""
        self._check_reads_text()
        limit = self.limit(most)
        encoded = encode_words(self.tokenizer, texts, name=self.name, limit=limit, truncate=truncate)
        self._check_ids(encoded.tokens)
        return self._ready(encoded)

    def encode_chat(self, chat: Chat, *, truncate: bool = False) -> Encoded:
        """The model's inputs for a conversation, formatted by the model's own chat template."""
        self._check_reads_text()
        encoded = encode_chat(self.tokenizer, chat, name=self.name, limit=self.limit(), truncate=truncate)
        self._check_ids(encoded.tokens)
        return self._ready(encoded)

    def encode_numbers(self, ids: tuple[int, ...], *, truncate: bool = False) -> Encoded:
        """Inputs of exactly these token ids; `InputError` for an id without an embedding."""
        self._check_takes_tokens()
        self.check_numbers(ids, "--ids")
        encoded = encode_numbers(self.tokenizer, ids, name=self.name, limit=self.limit(), truncate=truncate)
        return self._ready(encoded)

    def by_number(self, pieces: Mapping[int, str] | None) -> "Model":
        """Copy for tokens given by id: spelled by `pieces`, else by the model's own tokenizer.

        Without `pieces` and without a readable tokenizer, tokens are shown by their ids.
        """
        if pieces is None and not isinstance(self.tokenizer, Unreadable | None):
            return self
        return replace(self, tokenizer=Numbered(self.module.config, pieces or {}))

    def check_numbers(self, ids: tuple[int, ...], option: str) -> None:
        """Raises `InputError` where one of `ids` is no row of the embeddings."""
        rows, strange = self.rows(), max(ids)
        if rows is not None and strange >= rows:
            message = f"{option}: {self.name} has no token {strange}, its vocabulary is 0-{rows - 1}"
            raise InputError(message)

    def _check_reads_text(self) -> None:
        self._check_takes_tokens()
        if self.tokenizer is None:
            raise InputError(f"{self.name} came without a tokenizer: give one, or token numbers (ids)")

    @cached_property
    def _known(self) -> Mapping[str, Any]:
        return inspect.signature(self.module.forward).parameters

    @property
    def medium(self) -> str | None:
        """The option that gives the model its input where that is no text: `image` or `audio`, else None."""
        known = self._known
        medium = next((option for name, option in _MEDIA.items() if name in known), None)
        return medium if "input_ids" not in known or self.tokenizer is None else None

    def _check_takes_tokens(self) -> None:
        if self.medium is not None:
            raise InputError(f"{self.name} reads no text: give it a file with --{self.medium}")

    def _ready(self, encoded: Encoded, pictured: bool = False) -> Encoded:
        known = self._known
        if "input_ids" in known:  # a wrapper of forward(**kwargs) names no inputs
            for unknown in encoded.inputs.keys() - known.keys():  # such as token_type_ids
                del encoded.inputs[unknown]
        if (
            "pixel_values" in known
            and not pictured
            and (blank := blank_pixels(self.module.config)) is not None
        ):
            encoded.inputs["pixel_values"] = blank.to(self.module.dtype)
            notice = f"{self.name} reads a picture beside the text (--image): it is given a blank one"
            encoded = replace(encoded, notices=(*encoded.notices, notice))
        encoded.inputs.to(device_of(self.module))
        return encoded

    def spell(self, token: int) -> str:
        """Name of a vocabulary token as an answer; `token` finds the id again by that name."""
        return self._names.name(token)

    def token(self, name: str) -> int | None:
        """Id of the one vocabulary token with this name; None where no token or several have it."""
        return self._names.token(name)

    @cached_property
    def _names(self) -> Names | Numbered:
        return self.tokenizer if isinstance(self.tokenizer, Numbered) else Names(self.tokenizer)

    def _check_ids(self, tokens: Tokens) -> None:
        rows, largest = self.rows(), max(tokens.ids)
        if rows is not None and largest >= rows:
            message = f"{self.name}: its tokenizer makes token {largest}, its embeddings end at {rows - 1}"
            raise ModelUnavailableError(message)

    def rows(self) -> int | None:
        """Number of input embeddings; None for a model of two halves, each with its own."""
        try:
            embeddings = self.module.get_input_embeddings()
        except NotImplementedError:
            return None
        within = getattr(embeddings, "original_module", getattr(embeddings, "base_layer", embeddings))
        return getattr(within, "num_embeddings", None)  # peft may wrap the embeddings

    def origin(self) -> dict[str, Any]:
        """The provenance fields that are known from loading: names, revision, hash, adapter."""
        if self.checkpoint is None:
            adapters = getattr(self.module, "peft_config", None) or ()
            return {"adapter": f"{', '.join(adapters)}{IN_MEMORY}"} if adapters else {}
        source, adapted = self.checkpoint.source, self.checkpoint.adapted
        adapter = () if adapted in (None, source.name) else ("--adapter", adapted)
        return {
            "requested": source.requested,
            "model": source.name,
            "revision": source.revision,
            "digest": self.checkpoint.digest.result(),
            "part": self.checkpoint.share,
            "demo": source.demo,
            "unread": self.unread,
            "adapter": adapted,
            "tokenizer": self.checkpoint.tokenizer and self.checkpoint.tokenizer.requested,
            "run": ("-m", source.name, *adapter, *self.run),
        }


def blank_pixels(config: Any) -> Tensor | None:
    """A grey picture, `1 x channels x height x width`, to run a two-tower model on text, or None."""
    vision = getattr(config, "vision_config", None)
    size, channels = getattr(vision, "image_size", None), getattr(vision, "num_channels", 3)
    if getattr(config, "image_token_id", None) is not None or size is None:
        return None  # pictures are part of its text: it needs none
    height, width = size if isinstance(size, list | tuple) else (size, size)
    return torch.zeros(1, channels, height, width)


def out_of_pipeline(given: Any, processor: Any) -> tuple[Any, Any]:
    """A pipeline's model and its processor (`processor` if given); any other `given` unchanged.

    `InputError` for a pipeline with a tokenizer and a feature extractor but no processor that holds both.
    """
    pipelines = sys.modules.get("transformers.pipelines.base")  # imported by whoever has a pipeline
    if pipelines is None or not isinstance(given, pipelines.Pipeline):
        return given, processor
    processor = processor or given.processor
    names = ("tokenizer", "feature_extractor", "image_processor")
    parts = [name for name in names if getattr(given, name, None) is not None]
    if processor is None and len(parts) > 1:
        told = "at.wrap(pipeline.model, AutoProcessor.from_pretrained(NAME))"
        raise InputError(f"the pipeline has {' and '.join(parts)} and no processor of both: write {told}")
    return given.model, processor or (getattr(given, parts[0]) if parts else None)
