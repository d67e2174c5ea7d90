"""How a model knows where its tokens stand: found in its modules and parameters, not in its name.

Tables of learned or fixed sinusoidal places and biases by distance; `rotation` has the rest. A table
belongs to the towers that share the most of its path: `encoder.embed_positions` to those of the encoder.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from attnscope.model.anatomy.rotation import closest, is_rotary, self_attention
from attnscope.model.anatomy.towers import Tower
from attnscope.results import Kind, Position

LEARNED, SINUSOIDAL, CONVOLUTION = "learned", "sinusoidal", "convolution"
ALIBI, RELATIVE = "ALiBi", "relative"

_TABLE = re.compile(r"(^|_)(wpe|pos|position|positions|positional)(_|$)")
_RELATIVE = re.compile(r"(^|_)(rel|relative|distance)(_|$)|continuous_position|(^|_)r_r_bias$|pos_bias_[uv]$")
_ALIBI_BUILDERS = ("build_alibi_tensor", "build_mpt_alibi_tensor", "_build_alibi_tensor")


@dataclass(frozen=True, eq=False)
class Table:
    """One table of places, or what stands for one, with the parameters that it is read from."""

    path: str
    position: Position
    parameters: tuple[nn.Parameter, ...]

    def is_used(self, used: Collection[nn.Parameter] | None) -> bool:
        """Whether a run that used the parameters `used` read it; taken for granted where there was no run."""
        return used is None or not self.parameters or any(each in used for each in self.parameters)


def tables(model: nn.Module, towers: Sequence[Tower]) -> dict[Tower, list[Table]]:
    """The tables of places by tower."""
    by_tower: dict[Tower, list[Table]] = {tower: [] for tower in towers}
    for table in _tables(model):
        for tower in closest(table.path, self_attention(towers)):
            by_tower[tower].append(table)
    return by_tower


def _tables(model: nn.Module) -> list[Table]:
    all_tables = []
    for path, module in model.named_modules():
        name, kind = path.rpartition(".")[2].lower(), type(module).__name__.lower()
        mine = tuple(module.parameters(recurse=False))
        if isinstance(module, nn.Embedding):
            if _names_a_table(name):
                fixed = "sinusoidal" in kind or not module.weight.requires_grad
                scheme = SINUSOIDAL if fixed else LEARNED
                all_tables.append(Table(path, Position(scheme, size=module.num_embeddings), mine))
        elif "sinusoidal" in kind and not is_rotary(module):
            all_tables.append(Table(path, Position(SINUSOIDAL), mine))
        elif name.startswith("pos_conv"):
            all_tables.append(Table(path, Position(CONVOLUTION), tuple(module.parameters())))
        else:
            for own, parameter in module.named_parameters(recurse=False):
                if parameter.ndim > 1 and _names_a_table(own.lower()):
                    scheme = LEARNED if parameter.requires_grad else SINUSOIDAL
                    position = Position(scheme, size=parameter.shape[-2])
                    all_tables.append(Table(f"{path}.{own}".lstrip("."), position, (parameter,)))
    return all_tables


def _names_a_table(name: str) -> bool:
    return bool(_TABLE.search(name)) and not _RELATIVE.search(name)


def by_distance(
    model: nn.Module, tower: Tower, towers: Sequence[Tower], used: Collection[nn.Parameter] | None
) -> bool:
    """Whether parameters by distance stand in the tower's attention, or beside its layers and closest to it.

    Where a run told which parameters it `used`, only these count.
    """
    inside = {module for each in towers for site in each.sites for module in site.module.modules()}
    holders = [(site.path, site.module) for site in tower.sites]
    if tower.kind is not Kind.CROSS:
        holders += [
            (path, module)
            for path, module in model.named_modules()
            if module not in inside and tower in closest(path, self_attention(towers))
        ]
    return any(
        _RELATIVE.search(part) and (used is None or parameter in used)
        for path, module in holders
        for name, parameter in module.named_parameters(recurse=module in inside)
        for part in f"{path}.{name}".lower().split(".")
    )


def has_alibi(model: nn.Module, config: Any) -> bool:
    """Whether a slope by distance is added to the scores (Press et al. 2022)."""
    for holder in (config, getattr(config, "attn_config", None)):
        if isinstance(stated := getattr(holder, "alibi", None), bool):
            return stated
    if getattr(config, "position_embedding_type", None) == "alibi":
        return True
    return any(hasattr(module, name) for module in model.modules() for name in _ALIBI_BUILDERS)
