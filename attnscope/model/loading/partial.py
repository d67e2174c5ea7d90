"""Leaving out what is not needed, and refusing to run on what is not there."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

from attnscope.errors import ModelUnavailableError
from attnscope.model.anatomy.sites import layer_stacks


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
    construction, which happens on the meta device, so their weights are never read. `is_cut` says
    that there were more.
    """

    def construct(self: nn.Module, config: Any, *args: Any, **kwargs: Any) -> None:
        model_class.__init__(self, config, *args, **kwargs)
        for stack in layer_stacks(self).values():
            self.is_cut = len(stack) > layers  # type: ignore[assignment]
            del stack[layers:]
        _forget_ties(self)

    return type(
        model_class.__name__, (model_class,), {"__init__": construct, "__module__": model_class.__module__}
    )


def _forget_ties(model: nn.Module) -> None:
    """Take out of the list of tied weights those that went with their layer: Zamba's share theirs."""
    for module in model.modules():
        ties = getattr(module, "all_tied_weights_keys", None)
        if isinstance(ties, dict):
            left = {tied: own for tied, own in ties.items() if _has(module, tied) and _has(module, own)}
            module.all_tied_weights_keys = left  # type: ignore[assignment]


def _has(module: nn.Module, weight: str) -> bool:
    try:
        module.get_parameter_or_buffer(weight)  # type: ignore[operator]
    except AttributeError:
        return False
    return True


def kept(skeleton: nn.Module, layers: int | None) -> dict[str, torch.Tensor]:
    """The weights, by name, that the model of `skeleton` has when it is cut after `layers` layers."""
    gone = cut_away(skeleton, layers)
    return {name: weight for name, weight in skeleton.state_dict().items() if not name.startswith(gone)}


def needed(stored: Iterable[str], skeleton: Any, layers: int | None) -> dict[str, str]:
    """Those of the `stored` weights that the model may read when cut after `layers`, with its names for them.

    A cut model is not run past its layers, so a norm after them is not needed. The names are changed as
    the library itself changes them when it loads. A weight that goes by no name of the model's (the scales
    of a quantised one) is needed when it belongs to a module that is kept.
    """
    conversions = get_model_conversion_mapping(skeleton)
    renamings = [each for each in conversions if isinstance(each, WeightRenaming)]
    converters = [each for each in conversions if isinstance(each, WeightConverter)]
    whole = skeleton.state_dict()
    gone = cut_away(skeleton, layers) + (() if layers is None else _closing(skeleton))
    places = {}
    for name in stored:
        own, _ = rename_source_key(name, renamings, converters, skeleton.base_model_prefix, whole)
        own = name if own not in whole and name in whole else own
        place = own if own in whole else placed(own, skeleton)
        if place is not None and not place.startswith(gone):
            places[name] = place
    return places


def refuse_missing(model: nn.Module, missing: Iterable[str], name: str) -> None:
    """Make every module whose weights the checkpoint lacks raise `ModelUnavailableError` when it is run.

    So the last layers of a run that ends early, or a head nobody asked for, may be absent, and nothing is
    ever computed from the random numbers that the library puts in their place. `is_absent` tells the modules.
    """
    for key in missing:
        owner = model.get_submodule(key.rpartition(".")[0])
        owner.is_absent = True  # type: ignore[assignment]
        owner.register_forward_pre_hook(_refusal(key, name))


def refuse_other_shapes(mismatched: Iterable[tuple[str, Any, Any]], name: str) -> None:
    for key, stored, expected in sorted(mismatched):
        shapes = f"{tuple(stored)} in the file, {tuple(expected)} by its config"
        raise ModelUnavailableError(f"{name}: cannot read the weights: {key} is {shapes}")


def drop_pooler(model: nn.Module, missing: Iterable[str]) -> None:
    """Take out a pooler that the checkpoint does not have: it stands after all layers and may be absent."""
    pooler = getattr(model, "pooler", None)
    if isinstance(pooler, nn.Module) and {f"pooler.{key}" for key in pooler.state_dict()} <= set(missing):
        model.pooler = None  # type: ignore[assignment]


def cut_away(skeleton: nn.Module, layers: int | None) -> tuple[str, ...]:
    """How the names of the weights begin that a cut after `layers` leaves out."""
    if layers is None:
        return ()
    stacks = layer_stacks(skeleton).items()
    return tuple(f"{path}.{layer}." for path, stack in stacks for layer in range(layers, len(stack)))


def _closing(skeleton: nn.Module) -> tuple[str, ...]:
    """How the names of the weights begin that stand after all layers: of a norm, alone behind their list."""
    prefixes: list[str] = []
    for path, stack in layer_stacks(skeleton).items():
        parent = path.rpartition(".")[0]
        siblings = list(skeleton.get_submodule(parent).named_children())
        place = next(number for number, (_, sibling) in enumerate(siblings) if sibling is stack)
        later = [(name, list(sibling.parameters())) for name, sibling in siblings[place + 1 :]]
        match [(name, weights) for name, weights in later if weights]:
            case [(name, weights)] if "emb" not in name and all(weight.ndim == 1 for weight in weights):
                prefixes.append(f"{parent}.{name}.".removeprefix("."))
    return tuple(prefixes)


def placed(name: str, skeleton: Any) -> str | None:
    """The name with the base model's prefix put on or taken off, as it begins with a part of the model."""
    prefix = skeleton.base_model_prefix
    base = getattr(skeleton, prefix, None) if prefix else None
    bare = name.removeprefix(f"{prefix}.")
    if _is_part(name, skeleton):
        return name
    if base is not None and _is_part(name, base):
        return f"{prefix}.{name}"
    return bare if _is_part(bare, skeleton) else None


def _is_part(name: str, module: nn.Module) -> bool:
    first, _, rest = name.partition(".")
    return bool(rest) and isinstance(getattr(module, first, None), nn.Module)


def _refusal(key: str, name: str) -> Any:
    def refuse(_module: nn.Module, _inputs: Any) -> None:
        raise ModelUnavailableError(f"{name} lacks weights that this run needs: {key}")

    return refuse
