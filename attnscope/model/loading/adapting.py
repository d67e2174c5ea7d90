"""Putting an adapter into a loaded model as peft does: nothing of it missing, left over or made up.

The model is the library's own and stays one; peft puts its modules into it. Where the adapter was trained
with another number of tokens the embeddings get as many rows, and each new one is the adapter's.
"""

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.errors import ModelUnavailableError, calling
from attnscope.model.loading.partial import WRAPPER, left_unread, placed
from attnscope.model.source.adapter import Adapter

_INSIDE = "default"  # what peft calls it within the model


def put_in_adapter(
    module: Any, adapter: Adapter, skeleton: Any, tokens: int, *, ignore_unread: bool
) -> tuple[str, ...]:
    """The names of its weights that the model does not read, after `adapter` was put into `module`.

    `skeleton` is the model as it was before, `tokens` how many its tokenizer knows. Raises
    `ModelUnavailableError` for an adapter that does not fit.
    """
    from peft import PeftConfig, inject_adapter_in_model
    from peft.utils import load_peft_weights, set_peft_model_state_dict

    name = f"the adapter in {adapter.name}"
    with calling(f"cannot put in {name}"):
        config = PeftConfig.from_pretrained(str(adapter.folder), inference_mode=True)
        stored = load_peft_weights(str(adapter.folder), device="cpu")
    if why := acts_by_text(config):
        raise ModelUnavailableError(f"{name} {why}")
    held = _without_copies({_own(key, skeleton): weight for key, weight in stored.items()})
    _resize(module, config, held, tokens, name)
    with calling(f"cannot put in {name}"):
        inject_adapter_in_model(config, module, _INSIDE)
        found: Any = set_peft_model_state_dict(module, held, _INSIDE)
    own = {key for key, _ in module.named_parameters()} | {key for key, _ in module.named_buffers()}
    missing = sorted(key for key in found.missing_keys if _INSIDE in key.split(".") and key in own)
    if missing:  # a weight that is shared stands in the file by one name
        raise ModelUnavailableError(f"{name} lacks {len(missing)} of its weights: {missing[0]}")
    _refuse_other_names(module, config, name)
    return left_unread(found.unexpected_keys, skeleton, (adapter.weights,), name, ignore=ignore_unread)


def acts_by_text(config: Any) -> str:
    """Why an adapter is no change of the model's weights alone; empty where it is."""
    if config.is_prompt_learning:
        return "puts vectors before the text that stand for no token: they are not read"
    if getattr(config, "alora_invocation_tokens", None):
        return "acts only behind certain tokens (activated LoRA): that is not read"
    if config.peft_type == "XLORA":
        return "mixes others by what the text says (X-LoRA): that is not read"
    return ""


def _own(key: str, skeleton: Any) -> str:
    """What the model calls a weight of the adapter, which may have been trained with another head."""
    bare = key.removeprefix(WRAPPER)
    return placed(bare, skeleton) or bare


def _without_copies(held: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Without what peft writes twice where tokens were added: trained modules by their names in the model."""
    inner = ".modules_to_save."
    plain = {key: held.get(key.replace(inner, ".")) for key in held if inner in key}
    copies = {key for key, own in plain.items() if own is not None and torch.equal(own, held[key])}
    return {key: weight for key, weight in held.items() if key not in copies}


def _resize(module: Any, config: Any, held: Mapping[str, Tensor], tokens: int, name: str) -> None:
    """Give the embeddings as many rows as the adapter was trained with.

    The library would draw new ones at random, so the adapter must hold each. Where it does not hold those of
    the output head, that stays as it was: no added token is predicted.
    """
    paths = {part: path for path, part in module.named_modules()}
    embeddings = module.get_input_embeddings()
    if not isinstance(embeddings, nn.Embedding):
        return
    rows, path = len(embeddings.weight), paths[embeddings]
    wanted = _rows(held, path)
    if wanted is None:
        trained = _trained(config, path, listed=True)
        if not any(row >= rows for row in trained):
            return
        wanted = max(tokens, *(row + 1 for row in trained))
        if lacking := sorted({*range(rows, wanted)} - trained):
            those = f"{len(lacking)} of {wanted - rows} added tokens, the first is {lacking[0]}"
            raise ModelUnavailableError(f"{name} lacks the embeddings of {those}")
    if wanted == rows:
        return
    head = module.get_output_embeddings()
    with calling(f"cannot put in {name}"):
        module.resize_token_embeddings(wanted, mean_resizing=False)
    if head is None or module.get_output_embeddings().weight is module.get_input_embeddings().weight:
        return
    replaced = _trained(config, paths[head], listed=False) >= {*range(rows, wanted)}
    if not replaced and _rows(held, paths[head]) is None:
        module.set_output_embeddings(head)


def _rows(held: Mapping[str, Tensor], path: str) -> int | None:
    names = ("weight", "base_layer.weight", "token_adapter.base_layer.weight")
    stored = (held.get(f"{path}.{name}") for name in names)
    return next((len(weight) for weight in stored if weight is not None), None)


def _trained(config: Any, path: str, *, listed: bool) -> set[int]:
    """The rows of the module at `path` that the adapter replaces; where it names no module those `listed`."""
    rows = getattr(config, "trainable_token_indices", None) or getattr(config, "token_indices", None) or ()
    if not isinstance(rows, dict):
        return {*rows} if listed else set()
    return {row for name, each in rows.items() if path.endswith(name) for row in each}


def _refuse_other_names(module: Any, config: Any, name: str) -> None:
    """Refuse an adapter that sets a scale or rank by names that only the model with a head has.

    They would go by the adapter's common scale and rank, without a word.
    """
    keys = {**(getattr(config, "alpha_pattern", None) or {}), **(getattr(config, "rank_pattern", None) or {})}
    paths = [path for path, _ in module.named_modules() if path]
    for key in keys:
        pattern = re.compile(rf"(.*\.)?({key})$")  # as peft itself looks for it
        if any(pattern.match(path) for path in paths):
            continue
        if any(pattern.match(f"{module.base_model_prefix}.{path}") for path in paths):
            where = f"which {type(module).__name__} calls otherwise"
            raise ModelUnavailableError(f"{name} has a setting of its own for {key}, {where}")
