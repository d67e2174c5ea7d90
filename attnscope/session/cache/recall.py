"""The chosen heads of a text from the cache, in the place of a model that has read it.

Every answer is one that was kept, else `NotKeptError` is raised; no number is made here.
"""

import time
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from attnscope.analysis.heads.view import Name, pair_of
from attnscope.errors import InputError
from attnscope.results import Dimensions, HeadAttention, HeadTerms, Overview, Result, Rotation, Thumbnails
from attnscope.session import selection
from attnscope.session.cache.entry import DamagedEntryError, Part
from attnscope.session.cache.memory import Memory, NotKeptError
from attnscope.session.cache.packed import unpacked
from attnscope.session.listener import Quiet
from attnscope.session.wanted import Looking, Numbers, Wanted

Several = TypeVar("Several", Overview, Thumbnails)
TOWER, LAYER, ABOUT, RESULT = "tower", "layer", "about", "result"


class KeptHeads:
    """The chosen heads of one model and text, as far as they are kept."""

    def __init__(
        self, memory: Memory, layers: tuple[int, ...], heads: tuple[int, ...], block: int, by_depth: bool
    ) -> None:
        self._memory, self._layers, self._heads, self._block = memory, layers, heads, block
        self._depth = max(layers) + 1 if by_depth else None
        self._said = False

    @property
    def one(self) -> bool:
        """Whether a single head is chosen."""
        return len(self._layers) == len(self._heads) == 1

    def head(self) -> HeadAttention:
        """The head in full."""
        return self.terms().head

    def weights(self, stage: str) -> HeadAttention:
        """The same: only heads that could be recomputed are kept, with every stage."""
        return self.head()

    def terms(self) -> HeadTerms:
        """The head, its scores taken apart."""
        layer, head = selection.only_one(self._layers, self._heads)
        terms = self._result(f"H{head}", LAYER, layer, self._block)
        if not isinstance(terms, HeadTerms) or (terms.head.layer, terms.head.head) != (layer, head):
            raise NotKeptError
        return terms

    def dimensions(self, query: Name | None, key: Name | None) -> Dimensions:
        """One pair of tokens, by default the one with the strongest weight."""
        head = self.head()
        pair = pair_of(head, query, key)
        part = self._part(f"K{head.key_head}", LAYER, head.layer, self._block)
        values = {name: np.array(part.arrays[name]) for name in ("first", "second", "angle") if part.arrays}
        return Dimensions(head, *pair, Rotation(**values) if values else None, part.values["unpaired"])

    def overview(self, measures: Sequence[str], looking: Looking) -> Overview:
        """Every head by all of `measures`."""
        return self._several(Overview, looking, measures)

    def thumbnails(self, looking: Looking) -> Thumbnails:
        """The weights of every head in few cells."""
        return self._several(Thumbnails, looking)

    def _several(self, kind: type[Several], looking: Looking, measures: Sequence[str] = ()) -> Several:
        key = of_several(kind, self._layers, self._heads, self._block, looking, measures)
        result = self._result(RESULT, *key)
        if not isinstance(result, kind):
            raise NotKeptError
        return result

    def _result(self, name: str, *key: object) -> Result:
        try:
            return unpacked(self._part(name, *key))
        except (DamagedEntryError, InputError) as error:
            self._memory.complain(f"holds what cannot be read again ({error})")
            raise NotKeptError from error

    def _part(self, name: str, *key: object) -> Part:
        """A part, with everything said that its first answer said, and where it now comes from."""
        part, digest, made_at = self._memory.part(name, *key, self._depth)
        if not self._said:
            about, _, _ = self._memory.part(ABOUT, *key, self._depth)
            self._said = True
            for notice in about.values["notices"]:
                self._memory.listener.notice(notice)
            day = time.strftime("%Y-%m-%d", time.localtime(made_at))
            self._memory.listener.notice(
                f"from the cache: computed and checked on {day}, not a bit changed since "
                f"(sha256 {digest[:12]}); --no-cache computes it anew"
            )
        return part


def recall(memory: Memory, wanted: Wanted) -> KeptHeads:
    """The wanted heads as far as they are kept; `NotKeptError` where none are, or `wanted` names none."""
    tower, _, _ = memory.part(TOWER, TOWER)
    heads_of = {int(layer): count for layer, count in tower.values["heads"].items()}
    wanted = wanted.among(heads_of, Quiet())  # which head it is stands in the answer
    try:
        layers = _chosen(wanted.layer, tuple(heads_of), "layer")
        counts = {heads_of[layer] for layer in layers}
        if len(counts) != 1 or 0 in counts:
            raise NotKeptError
        heads = _chosen(wanted.head, tuple(range(counts.pop())), "head")
    except InputError as error:
        raise NotKeptError from error  # the model says it better
    return KeptHeads(memory, layers, heads, wanted.block, bool(tower.values["by_depth"]))


def _chosen(wanted: Numbers, there: tuple[int, ...], what: str) -> tuple[int, ...]:
    return selection.choose(selection.parse(wanted, what), there, what, "")


def of_several(
    kind: type[Overview | Thumbnails],
    layers: Sequence[int],
    heads: Sequence[int],
    block: int,
    looking: Looking,
    measures: Sequence[str],
) -> tuple[Any, ...]:
    """What a result of several heads is kept under: everything that it depends on besides the text."""
    looked = [str(looking.unit), str(looking.treatment), looking.links_among_all]
    return kind.__name__, list(layers), list(heads), block, looked, list(measures)
