"""The path that a change was let along, in words: who reads it, who else was tried, and all ways."""

from collections.abc import Sequence

from attnscope.errors import listed
from attnscope.render.kit.numbers import counted, signed
from attnscope.render.sheet.said import Place, name
from attnscope.results import Ablation

_NOTHING = 1e-4  # nats or logits, of an answer that something else moves by more
NAMED = 3  # heads of a group that are named one by one
_INPUTS = {"q": "queries", "k": "keys", "v": "values"}


def only(result: Ablation) -> str:
    """`for the keys of L1 H3 only`: what alone reads the change; empty where everything does."""
    path = result.path
    if path is None:
        return ""
    if not path.receivers:
        return "for the answer only, past all later heads"
    groups: dict[str, list[Place]] = {}
    for each in path.receivers:
        groups.setdefault(each.inputs, []).append((each.layer, each.head))
    told = [f"{_read_by(inputs)}{_together(result, heads)}" for inputs, heads in groups.items()]
    told += ["the answer itself"] if path.direct else []
    return f"for {listed_words(told)} only"


def _read_by(inputs: str) -> str:
    named = [_INPUTS[each] for each in inputs]
    return "" if len(named) == len(_INPUTS) else f"the {' and '.join(named)} of "


def _together(result: Ablation, heads: Sequence[Place]) -> str:
    """Some heads, or whole layers."""
    if len(heads) <= NAMED:
        return listed_words([name(*each) for each in heads])
    layers = sorted({layer for layer, _ in heads})
    where = f"layer {layers[0]}" if len(layers) == 1 else f"layers {listed(layers)}"
    return where if _are_whole_layers(result) else f"{len(heads)} heads of {where}"


def _are_whole_layers(result: Ablation) -> bool:
    """Whether all heads of some layers read the change: otherwise others of the same layers were tried."""
    assert result.path is not None, "there is a path"
    heads = [(each.layer, each.head) for each in result.path.receivers]
    mine = {layer for layer, _ in heads}
    same = any({layer for layer, _ in one.heads} == mine for one in result.path.others)
    return not same and len(heads) > len(mine)


def listed_words(told: Sequence[str]) -> str:
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"


def via(result: Ablation) -> str:
    """`L1H3.k,L2H0,direct`, `L1.k`: the same way as an option."""
    path = result.path
    assert path is not None, "there is a path"
    whole = _are_whole_layers(result)
    told = [
        f"L{each.layer}{'' if whole else f'H{each.head}'}"
        + ("" if len(each.inputs) == len(_INPUTS) else f".{each.inputs}")
        for each in path.receivers
    ]
    return ",".join(dict.fromkeys([*told, "direct"] if path.direct else told))


def receivers(result: Ablation) -> str:
    """`11 other heads of layer 1`: what else reads the change that moves the answer most, one by one."""
    path = result.path
    if path is None or not path.others:
        return ""
    count, size = len(path.others), len(path.others[0].heads)
    layers = sorted({layer for one in path.others for layer, _ in one.heads})
    mine = sorted({each.layer for each in path.receivers})
    if layers != mine:
        return (
            f"{counted(count, 'other set')} of whole layers"
            if len(mine) > 1
            else counted(count, "other layer")
        )
    where = f"layer {layers[0]}" if len(layers) == 1 else "the same layers"
    return (
        f"{counted(count, 'other head')} of {where}"
        if size == 1
        else f"{count} other groups of heads of {where}"
    )


def other_ways(result: Ablation, called: str) -> str:
    """What the change that moves the answer most, of what is `called` so, does where others read it."""
    if result.path is None or not result.alone or result.moves_most.whole is None:
        return ""
    best, unit = result.moves_most, result.unit
    moves = f"moves it by {signed(best.whole or 0.0)} {unit} instead of {signed(best.change)}"
    told = f" The change of {called} alone, read by everything, {moves}"
    if others := result.path.others:
        most, any_of = max((one.effect.change for one in others), key=abs), "any of " * (len(others) > 1)
        nothing = abs(most) <= max(result.floor.rounding, _NOTHING)
        far = "by next to nothing" if nothing else f"by {signed(most)} at most"
        told += f"; read by {any_of}{receivers(result)} instead, {far}"
    return f"{told}."
