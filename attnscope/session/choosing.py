"""Resolve which attention is meant: tower, layers and heads, in a model or its skeleton.

And the paths of a change: `--via L3H11`, `L3H11.q` (its queries), `L2H1,L3H4`, `all`, `direct`.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool

from attnscope.capture.run import Selection
from attnscope.errors import InputError, listed
from attnscope.model.anatomy.placed import without_numbers
from attnscope.model.anatomy.sites import find_sites
from attnscope.model.anatomy.towers import (
    Tower,
    choose_tower,
    find_towers,
    layers_without,
    reading_text,
    without_attention,
)
from attnscope.results.claims.effect import Path, Receiver
from attnscope.session import selection
from attnscope.session.listener import Listener
from attnscope.session.option import words
from attnscope.session.wanted import ROUTES, Wanted
from attnscope.vocabulary import Kind, Route

_LENGTH = 3  # tokens of the run that counts heads


@runtime_checkable
class Built(Protocol):
    """Protocol of a model, loaded or only planned: name, modules and towers."""

    @property
    def name(self) -> str: ...

    @property
    def skeleton(self) -> Any: ...

    @property
    def towers(self) -> Sequence[Tower]: ...


@dataclass(frozen=True, eq=False)
class Chosen:
    """The chosen layers and heads of one tower, and how they are to be read.

    `apart` are the only heads meant where heads of several layers were named one by one; `named` is True
    where heads were named, other than all. With `mean` their mean is meant. `which` are the command-line
    options that choose this attention in a model that has others.
    """

    tower: Tower
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    block: int = 0
    route: Route | None = None
    apart: tuple[selection.Head, ...] = ()
    mean: bool = False
    named: bool = False
    which: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        return self.tower.kind

    @property
    def one(self) -> bool:
        """True where a single head is meant, or the mean over some."""
        return self.mean or len(self.layers) == len(self.heads) == 1

    @property
    def left_out(self) -> Bool[np.ndarray, "layer head"] | None:
        """Mask of layers x heads that are not among `apart`; None where heads were not named apart."""
        if not self.apart:
            return None
        return np.array([[(layer, head) not in self.apart for head in self.heads] for layer in self.layers])

    def selection(self, layers: Sequence[int] | None = None, **how: Any) -> Selection:
        """The `Selection` to record: these layers (default: the chosen), all heads or those in `how`."""
        layers = self.layers if layers is None else layers
        return Selection(layers, kind=self.kind, tower=self.tower.pattern, route=self.route, **how)

    def only(self) -> tuple[int, int]:
        """The single layer and head; `InputError` for several heads or their mean."""
        if self.mean:
            raise InputError("the mean over heads has weights alone: this needs one head")
        return selection.only_one(self.layers, self.heads)


@dataclass(frozen=True, eq=False)
class _Counted:
    name: str
    skeleton: Any
    towers: tuple[Tower, ...]


def towers_of(built: Built) -> tuple[Tower, ...]:
    """The towers with head counts for each layer: stated by the modules, else seen in a run.

    That run has no weights; where it does not get that far the number is 0.
    """
    if all(all(tower.heads.values()) for tower in built.towers):
        return tuple(built.towers)
    from attnscope.analysis.outline import observe

    bare = without_numbers(built.skeleton)
    towers = find_towers(find_sites(bare))
    seen = observe(bare, towers, _LENGTH)
    made = {
        (tower.pattern, tower.kind, layer): calls[0].heads
        for tower in towers
        for layer in tower.layers
        if (calls := seen.of(tower, layer))
    }
    return tuple(
        replace(
            tower,
            heads={
                layer: count or made.get((tower.pattern, tower.kind, layer), 0)
                for layer, count in tower.heads.items()
            },
        )
        for tower in built.towers
    )


def choose(built: Built, wanted: Wanted, listener: Listener, *, sensed: bool) -> Chosen:
    """The layers and heads that `wanted` means in this model; defaults taken are told to the listener.

    `sensed` is True where the model reads a picture or a sound. Raises `InputError` that lists what there is.
    """
    if not built.towers:
        raise InputError(without_attention(built.skeleton, built.name))
    built = _Counted(built.name, built.skeleton, towers_of(built))
    kinds = list(dict.fromkeys(tower.kind for tower in built.towers))
    if wanted.takes.needs is not None and wanted.takes.needs[0] not in kinds:
        needed, otherwise = wanted.takes.needs
        has = " and ".join(kinds)
        raise InputError(f"{built.name} has no {needed}-attention, only {has} attention: {otherwise}")
    tower = _tower_that_senses(built, wanted, listener) if sensed else _tower(built, wanted, listener)
    apart, mean, wanted = wanted.apart, wanted.mean, wanted.among(tower.heads, listener)
    named = wanted.head not in (None, "all")
    ranges = selection.parse(wanted.layer, "layer"), selection.parse(wanted.head, "head")
    layers, heads = _layers_and_heads(built, tower, *ranges, listener)
    route = None if wanted.route is None else ROUTES[wanted.route]
    if mean and 1 < len(layers) < len(tower.layers):
        raise InputError("--head mean is over the heads of one layer, or without --layer over all of them")
    kind = ("--kind", tower.kind.value) if len(built.towers) > 1 else ()
    own = () if tower.alone else ("--tower", tower.name)
    which = (*kind, *own, *words(wanted, ("block", "route")))
    return Chosen(tower, layers, heads, wanted.block, route, apart, mean, named, which)


def choose_layers(built: Built, tower: Tower, wanted: str | int | Sequence[int] | None) -> tuple[int, ...]:
    """The layers of `tower` that `wanted` names."""
    where = f"{built.name}: layers {listed(tower.layers)}"
    ranges = selection.parse(wanted, "layer")
    return selection.choose(ranges, tower.layers, "layer", where, layers_without(built.skeleton, tower))


def _tower(built: Built, wanted: Wanted, listener: Listener) -> Tower:
    kind = None if wanted.kind is None else Kind(wanted.kind)
    if wanted.takes.reads and kind is None and any(tower.kind is Kind.CROSS for tower in built.towers):
        kind = Kind.CROSS
    if len(built.towers) < 2 or wanted.tower is not None:
        return choose_tower(built.towers, kind, wanted.tower, built.name)
    meant = [tower for tower in built.towers if kind in (None, tower.kind)]
    if not meant or (kind is not None and len(meant) == 1):
        return choose_tower(built.towers, kind, None, built.name)  # raises where there is none
    chosen = reading_text(meant)
    kinds = list(dict.fromkeys(tower.kind for tower in meant))
    if len(kinds) == len(meant):
        listener.notice(
            f"{built.name} has {', '.join(kinds)} attention: showing {chosen.kind} (--kind chooses)"
        )
    else:
        _tell_towers(built.name, meant, chosen, listener)
    return chosen


def _tower_that_senses(built: Built, wanted: Wanted, listener: Listener) -> Tower:
    from attnscope.model.media.perceive import sees, splices  # imports PIL and soundfile

    kind = None if wanted.kind is None else Kind(wanted.kind)
    if kind is not None or wanted.tower is not None or len(built.towers) < 2:
        return choose_tower(built.towers, kind, wanted.tower, built.name)
    crosses = any(tower.kind is Kind.CROSS for tower in built.towers)
    seeing = [tower for tower in built.towers if sees(built.skeleton, tower.sites)]
    in_text = crosses or splices(built.skeleton.config) or not seeing
    chosen = reading_text(built.towers) if in_text else seeing[0]
    _tell_towers(built.name, built.towers, chosen, listener)
    return chosen


def _tell_towers(name: str, meant: Sequence[Tower], chosen: Tower, listener: Listener) -> None:
    there = ", ".join(tower.called for tower in meant)
    listener.notice(f"{name} has attention in {there}: showing {chosen.called} (--tower chooses)")


def _layers_and_heads(
    built: Built,
    tower: Tower,
    layers: selection.Ranges | None,
    heads: selection.Ranges | None,
    listener: Listener,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Layer and head numbers; where layers differ in heads, those that all chosen layers have."""
    of_kind = f" ({tower.called})" if len(built.towers) > 1 else ""
    widest = range(max(tower.heads.values()))
    where = f"{built.name}{of_kind}: layers {listed(tower.layers)}, heads {listed(widest)}"
    chosen = selection.choose(layers, tower.layers, "layer", where, layers_without(built.skeleton, tower))
    counts = {tower.heads[layer] for layer in chosen}
    if 0 in counts:
        raise InputError(
            f"{built.name} does not say how many heads a layer has, nor does a run without weights"
        )
    if len(counts) > 1:
        listener.notice(f"the layers have {listed(sorted(counts))} heads: choosing from {min(counts)}")
    return chosen, selection.choose(heads, tuple(range(min(counts))), "head", where)


DIRECT = "direct"
_READ = re.compile(r"(.+?)(?:\.([qkv]{1,3}))?")


def path_of(chosen: Chosen, text: str) -> Path:
    """The receiving heads of a --via text in the chosen tower; `InputError` lists what there is."""
    names = [each.strip() for each in text.split(",")]
    found: dict[tuple[int, int], Receiver] = {}
    for each in names:
        if each.casefold() != DIRECT:
            found |= {(one.layer, one.head): one for one in _receivers(chosen, each, text)}
    return Path(tuple(found[place] for place in sorted(found)), any(n.casefold() == DIRECT for n in names))


def _receivers(chosen: Chosen, name: str, text: str) -> list[Receiver]:
    match, there = _READ.fullmatch(name), chosen.tower.heads
    whole = match is not None and match[1].casefold() == "all"
    named = None if match is None or whole or "." in match[1] else selection.named_heads(match[1])
    if match is None or (named is None and not whole):
        ways = "L3H11, L3H11.q (by its queries alone), L3, all, or direct (past all heads)"
        raise InputError(f"--via '{text}' is no list of heads: write {ways}")
    counts = set(there.values())
    if 0 in counts:
        raise InputError("--via: the model does not say how many heads a layer has")
    where = f"the model: layers {listed(chosen.tower.layers)}, heads {listed(range(max(counts)))}"
    layers = selection.choose(
        None if named is None else selection.parse(named.layers, "layer"), tuple(there), "layer", where
    )
    wanted = None if named is None or named.heads is None else selection.parse(named.heads, "head")
    inputs = "".join(each for each in "qkv" if each in (match[2] or "qkv"))
    return [
        Receiver(layer, head, inputs)
        for layer in layers
        for head in selection.choose(wanted, tuple(range(there[layer])), "head", where)
    ]


def with_senders(chosen: Chosen, part: str, path: Path) -> Chosen:
    """The choice cut to layers before the last receiver; `InputError` for a named layer after it."""
    last = math.inf if path.direct else max(each.layer for each in path.receivers)
    if part == "position" or all(layer < last for layer in chosen.layers):
        return chosen
    those = ", ".join(f"L{each.layer} H{each.head}" for each in path.receivers if each.layer == last)
    before = tuple(layer for layer in chosen.layers if layer < last)
    if not before:
        if last == min(chosen.tower.layers):
            raise InputError(f"--via: {those} is in the first layer: no other layer comes before it")
        raise InputError(f"--via: layer {listed(chosen.layers)} does not come before {those}")
    late = [layer for layer in chosen.layers if layer >= last]
    if chosen.apart or tuple(chosen.layers) != tuple(chosen.tower.layers):
        raise InputError(f"--via: nothing of layer {listed(late)} comes to {those}: leave it out")
    return replace(chosen, layers=before)
