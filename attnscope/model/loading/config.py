"""From a checkpoint's config.json to its config, and from that to a model without weights.

Both are the library's work, which answers a setting that it does not expect with whatever it trips over.
"""

from typing import Any

import torch
from torch import nn
from transformers import AutoConfig
from transformers.initialization import no_init_weights

from attnscope.model.loading.classes import needs_code
from attnscope.model.loading.plausible import check_counts, held_to
from attnscope.model.source.checkpoint import Checkpoint
from attnscope.model.source.foreign import calling


def read_config(checkpoint: Checkpoint, remote_code: bool) -> Any:
    """The config of a checkpoint; `ModelUnavailableError` in one line where it is none."""
    folder, name = checkpoint.source.folder, checkpoint.source.name
    check_counts(folder, name)
    with calling(f"{name}: cannot read config.json"):
        try:
            config = AutoConfig.from_pretrained(folder, trust_remote_code=remote_code)
        except ValueError as error:
            if "trust_remote_code" in str(error):
                raise needs_code(name) from error
            raise
    _settle(config)
    return config


def _settle(config: Any) -> None:
    """What is asked of a config here is of the sort that it should be, and results are named ones."""
    if not isinstance(config.architectures, list | tuple):
        config.architectures = None
    if not isinstance(getattr(config, "auto_map", {}), dict):
        config.auto_map = {}
    for part in (config, *(getattr(config, name, None) for name in config.sub_configs)):
        if part is not None:
            part.return_dict = True


def build_skeleton(model_class: type[nn.Module], config: Any, checkpoint: Checkpoint) -> nn.Module:
    """The whole model on the meta device; `ModelUnavailableError` where no model can be made of `config`.

    Without numbers to begin with, which its weights have no room for: as when the library loads a checkpoint.
    """
    trying = f"{checkpoint.source.name}: no {model_class.__name__} can be built from its config.json"
    with calling(trying), held_to(checkpoint), torch.device("meta"), no_init_weights():
        return model_class(config)
