"""How many heads an attention module has, by any of the names in use: its own, else its config's."""

from torch import nn

_NAMES = (
    "num_heads",
    "num_attention_heads",
    "n_heads",
    "n_head",
    "num_attn_heads",
    "attention_heads",
    "encoder_attention_heads",
    "nhead",
    "heads",
)


def head_count(module: nn.Module) -> int | None:
    """Query heads by the module, by one of its parts or by its config; None where none of them tells."""
    for holder in (module, *module.children(), getattr(module, "config", None)):
        for name in _NAMES:
            count = getattr(holder, name, None)
            if isinstance(count, int) and not isinstance(count, bool) and count > 0:
                return count
    return None
