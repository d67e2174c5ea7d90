"""What a model is made of that has no attention to read: Mamba, RWKV, FNet, a convolution."""

from torch import nn


def without_attention(model: nn.Module, name: str) -> str:
    """One line that says what the layers of `model` are instead."""
    stacks = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module)]
    if not stacks:
        return f"{name} has no attention that can be read"
    layer = max(stacks, key=len)[0]
    parts = dict.fromkeys(type(part).__name__ for part in layer.children() if not _of_torch(part))
    made = f" ({', '.join(parts)})" if parts else ""
    return f"{name} has no attention that can be read: its layers are {type(layer).__name__}{made}"


def _of_torch(module: nn.Module) -> bool:
    return type(module).__module__.startswith("torch.")
