"""Bounds on what a config may ask for, so that an absurd one is refused in seconds and not built for hours.

A config is a handful of numbers that nothing holds to the weights beside it: a hundred thousand layers are as
quickly written as twelve. Building a model without weights takes time for every part of it, so the parts are
counted while it is built and held against the number of weights that are stored.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.nn.modules import module as hooks

from attnscope.errors import ModelUnavailableError
from attnscope.model.source import weight_files
from attnscope.model.source.checkpoint import Checkpoint

# what the library counts through while it reads a config, and more than any model has of it
_COUNTED = {
    re.compile("(layer|depth|block|group|stage|type)s?$"): 2_000,
    re.compile("labels?$"): 1_000_000,
}
_PARTS = 300_000  # where no weights are stored: twice what the largest mixtures of experts have
_SOME_PARTS, _PARTS_PER_WEIGHT = 2_000, 50  # where they are: a model may be cut up otherwise than its file


def check_counts(folder: Path, name: str) -> None:
    """Raises `ModelUnavailableError` for a config.json of `name` with absurdly many layers or labels."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (ValueError, RecursionError, OSError):
        return  # answered in one line by the library
    for setting, number in _numbers(config):
        for named, most in _COUNTED.items():
            if named.search(setting) and number > most:
                raise ModelUnavailableError(
                    f"{name}: cannot read config.json: {setting} is over {most:,}, which is no model's"
                )


def _numbers(node: Any, setting: str = "") -> Iterator[tuple[str, int]]:
    """Every whole number of a config with the name of its setting; those of a list have that of the list."""
    waiting = [(setting, node)]
    while waiting:
        setting, each = waiting.pop()
        if isinstance(each, dict):
            waiting += [(str(key), value) for key, value in each.items()]
        elif isinstance(each, list):
            waiting += [(setting, value) for value in each]
        elif isinstance(each, int) and not isinstance(each, bool):
            yield setting, each


@contextmanager
def held_to(checkpoint: Checkpoint) -> Iterator[None]:
    """While a model is built: `ModelUnavailableError` once it has far more parts than weights are stored."""
    stored = _stored(checkpoint)
    most = _PARTS if stored is None else _SOME_PARTS + _PARTS_PER_WEIGHT * stored
    beside = "any model has" if stored is None else f"its files have weights, which are {stored}"
    made = 0

    def count(*_: Any) -> None:
        nonlocal made
        made += 1
        if made > most:
            raise ModelUnavailableError(
                f"{checkpoint.source.name}: config.json describes a model of far more parts than {beside}"
            )

    counting = (
        hooks.register_module_parameter_registration_hook(count),
        hooks.register_module_module_registration_hook(count),
    )
    try:
        yield
    finally:
        for handle in counting:
            handle.remove()


def _stored(checkpoint: Checkpoint) -> int | None:
    """How many weights the checkpoint holds; None where no file tells."""
    if checkpoint.shards:
        return len(checkpoint.shards)
    if not checkpoint.files or checkpoint.pickled:
        return None
    return len(weight_files.types(checkpoint.there))
