"""Which part of what does not fit is shown: a window that follows the cursor."""

from collections.abc import Sequence


def window(count: int, room: int, cursor: int) -> range:
    """`room` of `count` places around `cursor`; all of them where they fit."""
    if count <= room:
        return range(count)
    room = max(room, 1)
    first = min(max(cursor - room // 2, 0), count - room)
    return range(first, first + room)


def part_words(shown: range, count: int, noun: str, positions: Sequence[int] | None = None) -> str:
    """`queries 40-62 of 251`; empty where all are shown."""
    if len(shown) >= count or not shown:
        return ""
    ends = (shown[0], shown[-1]) if positions is None else (positions[shown[0]], positions[shown[-1]])
    return f"{noun} {ends[0]}-{ends[1]} of {count}"
