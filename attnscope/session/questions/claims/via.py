"""Along which way a change is let: `--via L3H11`, `L3H11.q` (its queries), `L2H1,L3H4`, `all`, `direct`."""

import math
import re
from dataclasses import replace

from attnscope.errors import InputError, listed
from attnscope.results.claims.effect import Path, Receiver
from attnscope.session import selection
from attnscope.session.choosing import Chosen

DIRECT = "direct"
_READ = re.compile(r"(.+?)(?:\.([qkv]{1,3}))?")


def path_of(chosen: Chosen, text: str) -> Path:
    """The heads of the chosen tower that a change comes to; `InputError` that lists what there is."""
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
    """The choice with what comes before a receiver; `InputError` for what was named and comes after them."""
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
