"""Putting an adapter into a loaded model, with nothing of it missing, left over or made up."""

import re
from typing import Any

from attnscope.errors import ModelUnavailableError
from attnscope.model.loading.partial import refuse_other_shapes
from attnscope.model.loading.unread import left_unread
from attnscope.model.source.adapter import Adapter
from attnscope.model.source.foreign import calling


def put_in(module: Any, adapter: Adapter, skeleton: Any, *, ignore_unread: bool = False) -> tuple[str, ...]:
    """The names of its weights that the model does not read, after `adapter` was put into `module`.

    `skeleton` is the model as it was before. Raises `ModelUnavailableError` for an adapter that does not fit.
    """
    name = f"the adapter in {adapter.name}"
    with calling(f"cannot put in {name}"):
        info: dict[str, Any] = module.load_adapter(
            str(adapter.folder),
            use_safetensors=not adapter.pickled,
            ignore_mismatched_sizes=True,  # answered in our own words
        ).to_dict()
    refuse_other_shapes(info["mismatched_keys"], name)
    if missing := sorted(info["missing_keys"]):
        raise ModelUnavailableError(f"{name} lacks {len(missing)} of its weights: {missing[0]}")
    for config in module.peft_config.values():
        _refuse_other_names(module, config, name)
    unexpected = info["unexpected_keys"]
    return left_unread(unexpected, skeleton, (adapter.weights,), name, ignore=ignore_unread)


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
