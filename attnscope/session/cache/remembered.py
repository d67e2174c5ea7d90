"""A reading from the cache: what stands in the place of a model that has read the text.

It answers from what is kept or says that it cannot (`NotKeptError`); it never makes a number of its own.
"""

import time
from dataclasses import dataclass

import numpy as np

from attnscope.errors import InputError
from attnscope.results import Dimensions, HeadAttention, HeadTerms, Result, Rotation
from attnscope.session import selection
from attnscope.session.cache.entry import DamagedEntryError, Part
from attnscope.session.cache.memory import Memory, NotKeptError
from attnscope.session.cache.packed import unpacked
from attnscope.session.listener import Listener
from attnscope.session.request import Wanted
from attnscope.vocabulary import Kind

TOWER, LAYER, ABOUT, RESULT = "tower", "layer", "about", "result"


@dataclass(frozen=True)
class Meant:
    """The layers and heads that are meant, as `session.choosing.Chosen` has them."""

    layers: tuple[int, ...]
    heads: tuple[int, ...]
    kind: Kind
    block: int

    @property
    def one(self) -> bool:
        return len(self.layers) == len(self.heads) == 1

    def only(self) -> tuple[int, int]:
        """The one layer and head; `InputError` where several are meant."""
        if not self.one:
            raise InputError("this needs one head: give one --layer and one --head")
        return self.layers[0], self.heads[0]


class Remembered:
    """What is kept of one model and text; `meant` is what of it is asked for."""

    def __init__(self, memory: Memory, meant: Meant, by_depth: bool) -> None:
        self._memory, self.meant = memory, meant
        self._depth = max(meant.layers) + 1 if by_depth else None
        self._told = False

    @property
    def listener(self) -> Listener:
        return self._memory.listener

    def head(self, layer: int, head: int) -> HeadAttention:
        """One head in full."""
        return self.terms(layer, head).head

    def terms(self, layer: int, head: int) -> HeadTerms:
        """One head, its scores taken apart."""
        found = self._result(f"H{head}", LAYER, layer, self.meant.block, self._depth)
        if not isinstance(found, HeadTerms) or (found.head.layer, found.head.head) != (layer, head):
            raise NotKeptError
        return found

    def dimensions(self, layer: int, head: int, query: int, key: int) -> Dimensions:
        """One pair of one head; what turns its keys is kept for each key head."""
        found = self.head(layer, head)
        part = self._part(f"K{found.key_head}", LAYER, layer, self.meant.block, self._depth)
        values = {name: np.array(part.arrays[name]) for name in ("first", "second", "angle") if part.arrays}
        return Dimensions(found, query, key, Rotation(**values) if values else None, part.told["unpaired"])

    def result(self, *what: object) -> Result:
        """What was made of several heads at once."""
        return self._result(RESULT, *what, self._depth)

    def _result(self, name: str, *what: object) -> Result:
        try:
            return unpacked(self._part(name, *what))
        except (DamagedEntryError, InputError) as error:
            self._memory.complain(f"holds what cannot be read again ({error})")
            raise NotKeptError from error

    def _part(self, name: str, *what: object) -> Part:
        """A part, with everything said that its first answer said, and where it now comes from."""
        part, digest, made = self._memory.part(name, *what)
        if not self._told:
            about, _, _ = self._memory.part(ABOUT, *what)
            self._told = True
            for notice in about.told["notices"]:
                self.listener.notice(notice)
            day = time.strftime("%Y-%m-%d", time.localtime(made))
            self.listener.notice(
                f"from the cache: computed and checked on {day}, not a bit changed since "
                f"(sha256 {digest[:12]}); --no-cache computes it anew"
            )
        return part


def recall(memory: Memory, wanted: Wanted) -> Remembered:
    """The reading that is kept; `NotKeptError` where there is none, or what is wanted of it is not clear."""
    tower, _, _ = memory.part(TOWER, TOWER)
    counts = {int(layer): heads for layer, heads in tower.told["heads"].items()}
    try:
        layers = _those(wanted.layer, tuple(counts), "layer")
        several = {counts[layer] for layer in layers}
        if len(several) != 1 or 0 in several:
            raise NotKeptError
        heads = _those(wanted.head, tuple(range(several.pop())), "head")
    except InputError as error:
        raise NotKeptError from error  # the model says it better
    meant = Meant(layers, heads, Kind(tower.told["kind"]), wanted.block)
    return Remembered(memory, meant, bool(tower.told["by_depth"]))


def _those(wanted: object, there: tuple[int, ...], what: str) -> tuple[int, ...]:
    ranges = selection.parse(wanted, what)  # type: ignore[arg-type]
    return selection.choose(ranges, there, what, "")
