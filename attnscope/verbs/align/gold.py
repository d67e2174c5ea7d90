"""Reads gold files: word links, one sentence pair a line, or word times, one word a line.

Links are in Pharaoh's form, `0-0 1-2 2?1`: the place of the source's word, then of the target's, both from 0;
`-` is sure, `?` possible. A line is these alone, for the sentences that are read; or `source ||| target |||
links`, whose words stand between blanks. Times are lines of word, begin and end in seconds, parted by tabs,
for the sound that is read; or with the sound's file before them, found beside the gold.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from attnscope import incoming
from attnscope.errors import InputError

_LINK = re.compile(r"(\d{1,6})([-?])(\d{1,6})")
_BETWEEN = "|||"


@dataclass(frozen=True)
class GoldLinks:
    """Gold links of one sentence pair, as (source, target); `possible` includes the sure ones.

    `source` and `target` are None where the line has links alone. `place` is `file:line`.
    """

    place: str
    source: str | None
    target: str | None
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]

    @property
    def of_what_is_shown(self) -> bool:
        return self.source is None

    @property
    def counts(self) -> tuple[int, int]:
        """Number of words of the source and of the target, split at blanks."""
        return len((self.source or "").split()), len((self.target or "").split())

    def check(self, sources: int, targets: int) -> None:
        """Raises `InputError` for a link to a word that does not exist."""
        for i, j in sorted(self.possible):
            if i >= sources or j >= targets:
                raise InputError(
                    f"{self.place}: link {i}-{j} does not fit: the source has {sources} words, the target "
                    f"{targets}, both from 0"
                )

    def matrix(self, sources: int, targets: int, *, sure: bool) -> Bool[np.ndarray, "word other"]:
        """The links as a boolean matrix, target by source."""
        made = np.zeros((targets, sources), dtype=bool)
        for i, j in self.sure if sure else self.possible:
            made[j, i] = True
        return made


def read_links(file: Path) -> tuple[GoldLinks, ...]:
    """Reads every sentence pair of the file; `InputError` names the malformed line."""
    found = tuple(_links(f"{incoming.called(file)}:{n}", text) for n, text in _lines(file))
    if not found:
        raise InputError(f"no gold in {incoming.named(file)}: a line has links such as 0-0 1-2 2?1")
    if len({pair.source is None for pair in found}) > 1:
        raise InputError(f"{incoming.named(file)} has lines with sentences and lines without: leave one kind")
    if found[0].source is None and len(found) > 1:
        raise InputError(
            f"{found[1].place}: links of a second pair, whose sentences are not known: write source ||| "
            "target ||| links"
        )
    return found


def _links(place: str, text: str) -> GoldLinks:
    parts = [part.strip() for part in text.split(_BETWEEN)]
    if len(parts) not in (1, 3):
        raise InputError(f"{place}: neither links alone nor source ||| target ||| links")
    source, target = (None, None) if len(parts) == 1 else (parts[0], parts[1])
    if "" in (source, target):
        raise InputError(f"{place}: an empty {'source' if not source else 'target'}")
    every, sure = set[tuple[int, int]](), set[tuple[int, int]]()
    for each in parts[-1].split():
        if (match := _LINK.fullmatch(each)) is None:
            raise InputError(f"{place}: '{each[:30]}' is no link such as 3-2 (sure) or 3?2 (possible)")
        pair = int(match[1]), int(match[3])
        every.add(pair)
        if match[2] == "-":
            sure.add(pair)
    gold = GoldLinks(place, source, target, frozenset(sure), frozenset(every))
    if source is not None and target is not None:
        gold.check(*gold.counts)
    return gold


@dataclass(frozen=True)
class GoldTimes:
    """Gold times of the words of one sound; `file` is None where the lines name no sound."""

    place: str
    file: Path | None
    words: tuple[str, ...]
    times: tuple[tuple[float, float], ...]

    @property
    def of_what_is_shown(self) -> bool:
        return self.file is None

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def check(self, words: tuple[str, ...]) -> None:
        """Raises `InputError` where `words` are not the gold's words, ignoring case and punctuation."""
        ours, theirs = (
            ["".join(filter(str.isalnum, word.casefold())) or word.strip() for word in side]
            for side in (words, self.words)
        )
        if len(ours) != len(theirs):
            raise InputError(f"{self.place}: gold has {len(theirs)} words, what is timed has {len(ours)}")
        for n, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if one != other:
                raise InputError(
                    f"{self.place}: word {n} of the gold is '{self.words[n]}', of what is timed '{words[n]}'"
                )


def read_times(file: Path) -> tuple[GoldTimes, ...]:
    """Reads every sound of the file; `InputError` names the malformed line."""
    rows = [_time(file, n, text) for n, text in _lines(file)]
    if not rows:
        raise InputError(f"no gold in {incoming.named(file)}: a line has word, begin and end, parted by tabs")
    found = list[GoldTimes]()
    for name, group in groupby(rows, key=lambda row: row[1]):
        own = list(group)
        folder = None if name is None else file.parent / name
        found.append(GoldTimes(own[0][0], folder, tuple(r[2] for r in own), tuple((r[3], r[4]) for r in own)))
    if len({each.file is None for each in found}) > 1:
        raise InputError(f"{incoming.named(file)} has lines with a sound and lines without: leave one kind")
    return tuple(found)


def _time(file: Path, number: int, text: str) -> tuple[str, str | None, str, float, float]:
    place, parts = f"{incoming.called(file)}:{number}", text.split("\t")
    if len(parts) not in (3, 4):
        raise InputError(
            f"{place}: a line has word, begin and end, or sound, word, begin and end, parted by tabs"
        )
    try:
        begin, end = float(parts[-2]), float(parts[-1])
    except ValueError:
        raise InputError(f"{place}: begin and end are seconds, such as 0.52") from None
    if not 0 <= begin <= end < float("inf"):
        raise InputError(f"{place}: begin {begin:g} and end {end:g} are no stretch of time")
    return place, parts[0] if len(parts) == 4 else None, parts[-3].strip(), begin, end


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, decoded and numbered from 1."""
    for number, line in incoming.whole_lines(file, "gold"):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise InputError(f"{incoming.called(file)}:{number}: not UTF-8") from None
        if text.strip():
            yield number, text
