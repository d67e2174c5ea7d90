"""How a model encodes token positions, found in its modules and parameters, not in its name.

Tables of learned or fixed sinusoidal positions, biases by distance, and rotary positions with their base and
scaling. A table belongs to the towers that share the most of its path: `encoder.embed_positions` to those of
the encoder.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from attnscope.model.anatomy.towers import Tower, config_of
from attnscope.results import Kind, Position

ROTARY = "rotary"

LEARNED, SINUSOIDAL, CONVOLUTION = "learned", "sinusoidal", "convolution"
ALIBI, RELATIVE = "ALiBi", "relative"
_TABLE = re.compile(r"(^|_)(wpe|pos|position|positions|positional)(_|$)")
_RELATIVE = re.compile(r"(^|_)(rel|relative|distance)(_|$)|continuous_position|(^|_)r_r_bias$|pos_bias_[uv]$")
_ALIBI_BUILDERS = ("build_alibi_tensor", "build_mpt_alibi_tensor", "_build_alibi_tensor")


def find_rotation(
    model: nn.Module, towers: Sequence[Tower], tower: Tower, layer: int, width: int | None
) -> Position | None:
    """Rotary positions of a layer's queries and keys; None where neither module nor config has any.

    `width` is the number of cosines for a token in a run without weights. Without such a run (None) the
    rotary module must belong to the tower by its path, and the number of rotated dimensions is unknown.
    """
    path = tower.sites[0].path
    config = config_of(model, path)
    own = getattr(config, "rotary_dim", None)
    rotary = _rotary(model, path, self_attention(towers) if width is None else None, tower)
    if rotary is None and not own:
        return None
    sorts = getattr(config, "layer_types", None) or ()
    sort = sorts[layer] if layer < len(sorts) else ""
    parameters = getattr(config, "rope_parameters", None) or {}
    parameters = parameters.get(sort, parameters) or {}
    base = parameters.get("rope_theta") or getattr(config, "rotary_emb_base", None)
    return Position(
        ROTARY,
        dims=own if rotary is None or width is None else _turned(rotary, sort, width),
        base=float(base) if isinstance(base, int | float) else None,
        variant=None if (variant := parameters.get("rope_type", "default")) == "default" else variant,
    )


def is_rotary(module: nn.Module) -> bool:
    """True where the module's class name says rotary positions (Su et al. 2021)."""
    return bool(re.search("Rotary|RoPE|Rope", type(module).__name__))


def self_attention(towers: Sequence[Tower]) -> list[Tower]:
    return [tower for tower in towers if tower.kind is not Kind.CROSS]


def closest(path: str, towers: Sequence[Tower]) -> list[Tower]:
    """The towers whose module paths share the longest beginning with `path`."""
    shared = {tower: _shared(path, tower.pattern) for tower in towers}
    return [tower for tower in towers if shared[tower] == max(shared.values())]


def _shared(one: str, other: str) -> int:
    mine, yours = one.split("."), other.split(".")
    pairs = list(zip(mine, yours, strict=False))
    return next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))


def _rotary(model: nn.Module, path: str, others: Sequence[Tower] | None, tower: Tower) -> nn.Module | None:
    """The rotary module closest to `path`; where `others` are given, only the tower's own count."""
    rotary = {each: module for each, module in model.named_modules() if is_rotary(module)}
    mine = [each for each in rotary if others is None or tower in closest(each, others)]
    return rotary[max(mine, key=lambda each: _shared(each, path))] if mine else None


def _turned(rotary: nn.Module, sort: str, width: int) -> int | None:
    """Number of rotated dimensions: two for each nonzero frequency and axis; None where it is unknown.

    A picture has two axes, so that there are four cosines for each frequency.
    """
    names = [name for name in (f"{sort}_inv_freq", "inv_freq") if hasattr(rotary, name)]
    if not names or getattr(rotary, names[0]).ndim != 1:
        return None
    count = int(getattr(rotary, names[0]).numel())
    turning = count
    if (real := _with_numbers(rotary)) is not None:
        turning = int(getattr(real, names[0]).count_nonzero())
    return turning * max(width // count, 2)


def _with_numbers(rotary: nn.Module) -> Any:
    """The rotary module rebuilt from its config off the meta device; None where that fails."""
    try:
        with torch.device("cpu"):
            return type(rotary)(rotary.config)
    except Exception:  # not built from a config alone: all frequencies count as nonzero
        return None


@dataclass(frozen=True, eq=False)
class Table:
    """One position table, or a module that takes its place, and the parameters it reads.

    `most` is the number of tokens with a position in a table that begins behind its padding row; else None.
    """

    path: str
    position: Position
    parameters: tuple[nn.Parameter, ...]
    most: int | None = None

    def is_used(self, used: Collection[nn.Parameter] | None) -> bool:
        """True where one of the parameters `used` by a run is the table's; True without a run."""
        return used is None or not self.parameters or any(each in used for each in self.parameters)


def tables(model: nn.Module, towers: Sequence[Tower]) -> dict[Tower, list[Table]]:
    """The position tables of each tower."""
    by_tower: dict[Tower, list[Table]] = {tower: [] for tower in towers}
    for table in all_tables(model):
        for tower in closest(table.path, self_attention(towers)):
            by_tower[tower].append(table)
    return by_tower


def all_tables(model: nn.Module) -> list[Table]:
    """The position tables of the whole model."""
    found = []
    for path, module in model.named_modules():
        name, kind = path.rpartition(".")[2].lower(), type(module).__name__.lower()
        mine = tuple(module.parameters(recurse=False))
        if isinstance(module, nn.Embedding) or ("embedding" in kind and hasattr(module, "weight")):
            if _names_a_table(name):
                fixed = "sinusoidal" in kind or not module.weight.requires_grad
                position = Position(SINUSOIDAL if fixed else LEARNED, size=len(module.weight))
                found.append(Table(path, position, mine, _behind_padding(model, path, module)))
        elif "sinusoidal" in kind and not is_rotary(module):
            found.append(Table(path, Position(SINUSOIDAL), mine))
        elif name.startswith("pos_conv"):
            found.append(Table(path, Position(CONVOLUTION), tuple(module.parameters())))
        else:
            for own, parameter in module.named_parameters(recurse=False):
                if parameter.ndim > 1 and _names_a_table(own.lower()):
                    scheme = LEARNED if parameter.requires_grad else SINUSOIDAL
                    position = Position(scheme, size=parameter.shape[-2])
                    found.append(Table(f"{path}.{own}".lstrip("."), position, (parameter,)))
    return found


def _behind_padding(model: nn.Module, path: str, table: Any) -> int | None:
    """Rows of a table behind its padding row, where the holder counts positions from there.

    Both then have the same `padding_idx`, as in RoBERTa (Liu et al. 2019): the rows up to it are no
    positions.
    """
    holder = model.get_submodule(path.rpartition(".")[0])
    first, counted = (getattr(each, "padding_idx", None) for each in (table, holder))
    return None if first is None or first != counted else len(table.weight) - first - 1


def _names_a_table(name: str) -> bool:
    return bool(_TABLE.search(name)) and not _RELATIVE.search(name)


def by_distance(
    model: nn.Module, tower: Tower, towers: Sequence[Tower], used: Collection[nn.Parameter] | None
) -> bool:
    """True where the tower's attention, or a module closest to it, has parameters by distance.

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
    """True where ALiBi adds a slope by distance to the scores (Press et al. 2022)."""
    for holder in (config, getattr(config, "attn_config", None)):
        if isinstance(stated := getattr(holder, "alibi", None), bool):
            return stated
    if getattr(config, "position_embedding_type", None) == "alibi":
        return True
    return any(hasattr(module, name) for module in model.modules() for name in _ALIBI_BUILDERS)
