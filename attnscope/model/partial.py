"""Leaving out what is not needed, and refusing to run on what is not there."""

from collections.abc import Iterable
from typing import Any

from torch import nn

from attnscope.errors import ModelUnavailableError
from attnscope.model.anatomy import layer_stacks


def can_be_cut(skeleton: nn.Module, config: Any) -> bool:
    """Whether the layers after a chosen one are surely not needed: one stack, as deep as the config says.

    A decoder that reads an encoder needs all of the encoder, so models of several stacks are left whole.
    """
    stacks = layer_stacks(skeleton)
    depth = getattr(config.get_text_config(), "num_hidden_layers", None)
    return [len(stack) for stack in stacks.values()] == [depth]


def cut(model_class: type[nn.Module], layers: int) -> type[nn.Module]:
    """A subclass whose models have only the first `layers` layers.

    The config stays as it is: some models scale by the depth that it names. The layers go right after
    construction, which happens on the meta device, so their weights are never read.
    """

    def construct(self: nn.Module, config: Any, *args: Any, **kwargs: Any) -> None:
        model_class.__init__(self, config, *args, **kwargs)
        for stack in layer_stacks(self).values():
            del stack[layers:]

    return type(
        model_class.__name__, (model_class,), {"__init__": construct, "__module__": model_class.__module__}
    )


def refuse_missing(model: nn.Module, missing: Iterable[str], name: str) -> None:
    """Make every module whose weights the checkpoint lacks raise `ModelUnavailableError` when it is run.

    So the last layers of a run that ends early, or a head nobody asked for, may be absent, and nothing is
    ever computed from the random numbers that the library puts in their place.
    """
    for key in missing:
        owner = model.get_submodule(key.rpartition(".")[0])
        owner.register_forward_pre_hook(_refusal(key, name))


def drop_pooler(model: nn.Module, missing: Iterable[str]) -> None:
    """Take out a pooler that the checkpoint does not have: it stands after all layers and may be absent."""
    pooler = getattr(model, "pooler", None)
    if isinstance(pooler, nn.Module) and {f"pooler.{key}" for key in pooler.state_dict()} <= set(missing):
        model.pooler = None  # type: ignore[assignment]


def _refusal(key: str, name: str) -> Any:
    def refuse(_module: nn.Module, _inputs: Any) -> None:
        raise ModelUnavailableError(f"{name} lacks weights that this run needs: {key}")

    return refuse
