"""Adapters that change one head: low-rank changes of its own rows of the query and key weights, and no other.

The adapter's norm is stated as the size of the change over the size of the head's own rows (Frobenius).
"""

import copy
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

RANK = 4
PARTS = ("query", "key")


def low_rank(weight: Tensor, rows: slice, norm: float, seed: int) -> tuple[Tensor, Tensor]:
    """B and A, whose product is `norm` times as large as these rows of the weight, and 0 in all others."""
    random = torch.Generator().manual_seed(seed)
    a = torch.randn(RANK, weight.shape[1], generator=random)
    b = torch.zeros(weight.shape[0], RANK)
    b[rows] = torch.randn(rows.stop - rows.start, RANK, generator=random)
    return b * (norm * weight[rows].norm() / (b @ a).norm()), a


def own_rows(module: nn.Module, head: int) -> slice:
    size = module.config.hidden_size // module.config.num_attention_heads
    return slice(head * size, (head + 1) * size)


def tuned(
    module: nn.Module,
    layer: int,
    head: int,
    norm: float,
    seed: int = 0,
    parts: tuple[str, ...] = ("query", "key"),
) -> nn.Module:
    """A copy of a BERT with the adapter of one head merged into it."""
    other = copy.deepcopy(module)
    attention = other.bert.encoder.layer[layer].attention.self
    for number, part in enumerate(parts):
        weight = getattr(attention, part).weight.data
        b, a = low_rank(weight, own_rows(module, head), norm, 2 * seed + number)
        weight += b @ a
    return other


def adapter(
    folder: Path, base: str, module: nn.Module, layer: int, head: int, norm: float, seed: int = 0
) -> Path:
    """The same as an adapter's folder, as peft writes one."""
    folder.mkdir(exist_ok=True)
    settings = {
        "peft_type": "LORA", "base_model_name_or_path": base, "r": RANK, "lora_alpha": RANK,
        "target_modules": list(PARTS), "layers_to_transform": [layer], "lora_dropout": 0.0,
        "bias": "none", "inference_mode": True,
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    attention, weights = module.bert.encoder.layer[layer].attention.self, {}
    for number, part in enumerate(PARTS):
        weight = getattr(attention, part).weight.data
        b, a = low_rank(weight, own_rows(module, head), norm, 2 * seed + number)
        stem = f"base_model.model.bert.encoder.layer.{layer}.attention.self.{part}"
        weights |= {f"{stem}.lora_A.weight": a, f"{stem}.lora_B.weight": b.contiguous()}
    save_file(weights, folder / "adapter_model.safetensors", {"format": "pt"})
    return folder
