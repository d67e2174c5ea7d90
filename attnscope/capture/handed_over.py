"""What stands out about a model that was handed over in memory: what a run changes, or finds changed.

Whoever gets a number of such a model should know it, since `from_pretrained` makes none of this.
"""

from collections.abc import Iterator

from torch import nn

from attnscope.capture.evaluation_mode import is_compiled
from attnscope.capture.following.takeover import without_masks
from attnscope.model.anatomy.sites import find_sites


def remarks(model: nn.Module, name: str) -> Iterator[str]:
    """A sentence for each: training mode, compiled code, a kernel that is handed no mask."""
    if any(module.training for module in model.modules()):
        yield f"{name} is in training mode: it is read in evaluation mode, without dropout, and put back"
    if is_compiled(model):
        yield f"{name} is compiled: its code is read as it is written, not the kernels compiled from it"
    for kernel in without_masks(site.module for site in find_sites(model)):
        yield (
            f"transformers hands attention kernel {kernel} no mask, since AttentionMaskInterface has none of "
            "that name: padding, windows and causality are what the kernel itself makes of them"
        )
