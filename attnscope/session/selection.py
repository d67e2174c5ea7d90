"""Parse lists of layers and heads (`3`, `-1`, `0,3,7`, `4-8`, `all`), token ids, seeds, rows, windows."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnscope.errors import InputError

_TOKEN = re.compile(r"[0-9]{1,9}")
_PART = re.compile(r"(-?[0-9]{1,9})(?:-(-?[0-9]{1,9}))?")


MOST_CONTROLS = 10_000
_SOME = r"-?[0-9]{1,9}(?:--?[0-9]{1,9})?"
_NAMED = re.compile(rf"[Ll]({_SOME})(?:[ .]?[Hh]({_SOME}))?")


Ranges = list[tuple[int, int]]
Head = tuple[int, int]  # layer and head


@dataclass(frozen=True)
class Named:
    """Layers and heads as lists, parsed from heads named with their layer: `L3H11`, `L3`, `L3-5`.

    `apart` are single heads of several layers that are not all pairs of the two lists.
    """

    layers: str
    heads: str | None
    apart: tuple[Head, ...] = ()


def named_heads(text: str) -> Named | None:
    """Parse heads that are named with their layer; None for a list of bare numbers.

    Raises `InputError` for a list of both forms, and for ranges that do not go together.
    """
    parts = [part.strip() for part in text.split(",")]
    if not any(part[:1] in ("l", "L") and part[1:2].isdecimal() for part in parts):
        return None
    found = [_NAMED.fullmatch(part) for part in parts]
    if not all(found):
        raise InputError(f"--head '{text}' is no list of heads: write them as L3H11, L3 or L3-5")
    pairs = list(dict.fromkeys((match[1], match[2]) for match in found if match))
    layers, heads = (list(dict.fromkeys(side)) for side in zip(*pairs, strict=True))
    together = len(pairs) == len(layers) * len(heads)
    if together and None not in heads:
        return Named(",".join(layers), ",".join(heads))
    if heads == [None]:
        return Named(",".join(layers), None)
    if None in heads or not all(each.isdecimal() for pair in pairs for each in pair):
        raise InputError(f"--head '{text}': name whole layers (L3-5) or heads one by one (L3H11,L2H10)")
    single = tuple((int(layer), int(head)) for layer, head in pairs)
    return Named(",".join(layers), ",".join(heads), single)


def parse(wanted: str | int | Sequence[int] | None, what: str) -> Ranges | None:
    """Ranges (first, last) that `wanted` names, ends included; None for all. Raises `InputError`."""
    if wanted is None:
        return None
    if not isinstance(wanted, str):
        numbers = [wanted] if isinstance(wanted, int) else list(wanted)
        if not numbers:
            raise InputError(f"no {what} was asked for")
        return [(int(number), int(number)) for number in numbers]
    if wanted.strip().lower() == "all":
        return None
    parts = [_PART.fullmatch(part.strip()) for part in wanted.split(",")]
    if not all(parts):
        named = "; L3H11 and L3 name layers as well" if what == "head" else ""
        raise InputError(f"--{what} '{wanted}' is not a list: use 3, -1, 0,3,7, 4-8 or all{named}")
    return [(int(part[1]), int(part[2] or part[1])) for part in parts if part]


def check_seed(seed: int | None, option: str = "--seed") -> None:
    """Raises `InputError` for a seed outside 0 to 2**64 - 1; None passes."""
    if seed is not None and not 0 <= seed < 2**64:
        raise InputError(f"{option} is {seed}: it must be from 0 to {2**64 - 1}")


def check_controls(count: int, least: int = 1) -> None:
    """Raises `InputError` unless `count` is from `least` to `MOST_CONTROLS`."""
    if not least <= count <= MOST_CONTROLS:
        raise InputError(f"--controls {count}: give {least} to {MOST_CONTROLS}")


def parse_tokens(wanted: str | Sequence[int], option: str) -> tuple[int, ...]:
    """Token ids from text with commas or blanks, or from numbers; `InputError` for none or others."""
    if not isinstance(wanted, str):
        if not wanted or any(isinstance(id, bool) or int(id) != id or id < 0 for id in wanted):
            raise InputError(f"{option} takes numbers of tokens, from 0, at least one")
        return tuple(int(id) for id in wanted)
    parts = wanted.replace(",", " ").split()
    if not parts or not all(_TOKEN.fullmatch(part) for part in parts):
        shown = wanted if len(wanted) <= 40 else f"{wanted[:40]}..."
        raise InputError(f"{option} '{shown}' is no list of token numbers: use 101,2023,102")
    return tuple(map(int, parts))


def rows_listed(wanted: str | int | None) -> Mapping[str, Any]:
    """Keyword `rows`, the number of rows to list (None for `all`); empty where `wanted` is None."""
    if wanted is None:
        return {}
    named = str(wanted)
    if named.casefold() == "all":
        return {"rows": None}
    if not (named.isascii() and named.isdecimal()):
        raise InputError(f"no number of rows '{named}': 0, 1, 2, ... or all")
    return {"rows": int(named)}


def window(wanted: str, queries: int, keys: int) -> tuple[range, range]:
    """Ranges of queries and keys from `1000-1063:900-1100`, ends included.

    `1000-1063` alone is both, an empty side means all. Negatives count from the end. Raises `InputError` that
    says how many of each there are.
    """
    first, colon, second = wanted.partition(":")
    sides = (first, second if colon else first)
    windows = [
        _stretch(side.strip(), length, wanted, what)
        for side, length, what in zip(sides, (queries, keys), ("queries", "keys"), strict=True)
    ]
    return windows[0], windows[1]


def _stretch(text: str, length: int, wanted: str, what: str) -> range:
    if text in ("", "all"):
        return range(length)
    part = _PART.fullmatch(text)
    if part is None:
        raise InputError(f"--zoom '{wanted}' is no window: use QUERIES:KEYS, as in 1000-1063:900-1100")
    ends = [int(end) + length * (int(end) < 0) for end in (part[1], part[2] or part[1])]
    if not 0 <= ends[0] <= ends[1] < length:
        raise InputError(f"--zoom {wanted}: no {what} {text}, there are 0-{length - 1}")
    return range(ends[0], ends[1] + 1)


def choose(
    ranges: Ranges | None, there: tuple[int, ...], what: str, where: str, without: Collection[int] = ()
) -> tuple[int, ...]:
    """The numbers in `there` that `ranges` name, ascending; negatives count from the end.

    Raises `InputError` for a number that is not there; its message ends with `where`. `without` are layers of
    the model that have no attention.
    """
    if ranges is None:
        return there
    chosen: set[int] = set()
    for first, last in ranges:
        start, end = (_from_start(number, there) for number in (first, last))
        if start is None or end is None or end < start:
            named = str(first) if first == last else f"{first}-{last}"
            if {first, last} & set(without):
                number = first if first in without else last
                raise InputError(f"{what} {number} has no attention in {where}")
            raise InputError(f"no {what} {named} in {where}")
        chosen |= {number for number in there if start <= number <= end}
    return tuple(sorted(chosen))


def usual_or_middle(usual: int, there: Sequence[int]) -> int:
    """`usual` where it is in `there`, else the middle one."""
    return usual if usual in there else there[len(there) // 2]


def only_one(layers: tuple[int, ...], heads: tuple[int, ...]) -> tuple[int, int]:
    """The single layer and head; `InputError` where there are several."""
    if not len(layers) == len(heads) == 1:
        raise InputError("this needs one head: give one --layer and one --head")
    return layers[0], heads[0]


def _from_start(number: int, there: tuple[int, ...]) -> int | None:
    if number < 0:
        return there[number] if -len(there) <= number else None
    return number if number in there else None
