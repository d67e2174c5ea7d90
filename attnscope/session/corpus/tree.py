"""The parts of a run as it grows: sixteen neighbours become one, and sixteen of these one of the next level.

Which parts are merged, and in which order, depends on their numbers alone. So the sum is the same to the last
bit whoever measured, when, and how often the run was cut off; and however large a corpus is, its files are at
most `FAN` - 1 of each level below `TOP`, beside one for each `FAN` ** `TOP` splits. No part is larger than
that, as what is damaged is measured again. What was merged is removed after that is written, so a run that is
cut off between may hold both: the smaller ones are then removed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from attnscope.analysis.corpus.sketch import Sketch
from attnscope.session.corpus.folder import PARTS, DamagedError, DamagedRowsError, Folder, Named
from attnscope.session.corpus.part import Part

FAN, TOP = 16, 2


def size_of_parts(first: Part, splits: int) -> float:
    """How many bytes the parts of so many splits are, about, if all are like the first one.

    They grow by the rounded values that occur, of which large parts have fewer than so many small ones.
    """
    whole = len(first.written())
    none = Sketch(np.zeros(0, np.int64), np.zeros(0, np.int64))
    bare = len(replace(first, totals=replace(first.totals, sketch=none)).written())
    size = 0.0
    for level, count in ((TOP, splits // FAN**TOP), (1, splits % FAN**TOP // FAN), (0, splits % FAN)):
        size += count * (bare + (whole - bare) * first.totals.sketch.growth(FAN**level))
    return size


@dataclass
class Tree:
    """The parts of a run that are there; `damaged` are files that were found to be, whose part is removed."""

    folder: Folder
    parts: dict[tuple[int, int], Named] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Folder) -> "Tree":
        """Those in a folder, with what a run that was cut off did not come to."""
        tree = cls(folder)
        for named in reversed(folder.parts()):  # the highest level first
            at = named.level, named.number
            if at in tree.parts or tree._is_within(*at):
                folder.drop(named)
            else:
                tree.parts[at] = named
        for level, number in sorted(tree.parts):
            tree._grow(level, number)
        folder.clear_rows(tree._is_gathered, FAN**TOP)
        return tree

    def _is_gathered(self, number: int) -> bool:
        return (TOP, number) in self.parts

    @property
    def splits(self) -> int:
        """How many are measured."""
        return sum(FAN**level for level, _ in self.parts)

    def has(self, split: int) -> bool:
        """Whether a split is measured."""
        return (0, split) in self.parts or self._is_within(0, split)

    def _is_within(self, level: int, number: int) -> bool:
        above = ((higher, number // FAN ** (higher - level)) for higher in range(level + 1, TOP + 1))
        return any(at in self.parts for at in above)

    def add(self, named: Named) -> None:
        """The part of a split, which is there now."""
        if self._is_within(named.level, named.number):
            self.folder.drop(named)
            return
        self.parts[named.level, named.number] = named
        self._grow(named.level, named.number)

    def _grow(self, level: int, number: int) -> None:
        parent = number // FAN
        children = [(level, parent * FAN + i) for i in range(FAN)]
        if level == TOP or not all(each in self.parts for each in children):
            return
        try:
            whole = reduce(lambda whole, later: whole.merged(later), (self._read(*each) for each in children))
            if level + 1 == TOP and whole.rows:
                whole = replace(whole, rows=self.folder.gathered(whole.rows, parent))
        except DamagedError:
            return
        except DamagedRowsError as error:
            self.lose(error)
            return
        self.parts[level + 1, parent] = self.folder.keep(whole, level + 1, parent)
        for each in children:
            self.folder.drop(self.parts.pop(each))
        if level + 1 == TOP and whole.rows:
            self.folder.clear_rows(self._is_gathered, FAN**TOP)
        self._grow(level + 1, parent)

    def _read(self, level: int, number: int) -> Part:
        named = self.parts[level, number]
        try:
            return self.folder.part(named)
        except DamagedError:
            self.parts.pop((level, number))
            self._drop(named, f"{PARTS}/{named}")
            raise

    def lose(self, error: DamagedRowsError) -> None:
        """Remove the part whose rows are damaged: its splits are to be measured again."""
        at = next(at for at in self.parts if error.split // FAN ** at[0] == at[1])
        self._drop(self.parts.pop(at), str(error))

    def _drop(self, named: Named, damaged: str) -> None:
        self.damaged.append(damaged)
        self.folder.drop(named)
        if named.level == TOP:
            self.folder.clear_rows(self._is_gathered, FAN**TOP)

    def in_order(self, splits: int) -> Iterator[Part]:
        """The largest parts that hold so many splits; `DamagedError` where one is, which is removed."""
        at = 0
        while at < splits:
            level = next(level for level in range(TOP, -1, -1) if (level, at // FAN**level) in self.parts)
            yield self._read(level, at // FAN**level)
            at += FAN**level
