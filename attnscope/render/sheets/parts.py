"""What `why` and `why --answer` alike say of a part: who it is, and what taking it away does."""

from collections.abc import Sequence
from dataclasses import replace

from attnscope.render.kit.numbers import signed_cell, significant
from attnscope.render.sheet.table import Column, Mark, Table, both_ways
from attnscope.results.claims.contributions import Contribution
from attnscope.results.claims.why import Part

Parts = Sequence[Part] | Sequence[Contribution]
_UNDER = "when it is taken away"


def named(parts: Parts) -> tuple[Column, ...]:
    """Which part each is, and where a head's share comes from."""
    return tuple(
        Column(name, [getattr(part, name) for part in parts])
        for name in ("name", "layer", "head", "source", "source_share")
    )


def taken_away(parts: Parts, total: str, of: str, and_then: Column, whole: bool) -> tuple[Column, ...]:
    """What changes without each, in the unit of `of`; the column of the `total` is called so."""
    removed = [part.removed for part in parts]
    most = [max(map(abs, part.controls)) if part.controls else None for part in parts]
    # fmt: off
    return (
        Column("held", [each and each.held for each in removed], "rest fixed" if whole else "", signed_cell,
               f"change of {of} where all other parts stay as they are and only norms follow", under=_UNDER),
        Column("total", [each and each.total for each in removed], total, signed_cell,
               f"change of {of} where everything after the part is computed again", under=_UNDER),
        Column("controls", most, "others", lambda each: f"±{significant(each)}",
               f"the most that taking any other part of its kind away changes {of}: another head of the "
               "layer, another MLP", under=_UNDER),
        replace(and_then, under=_UNDER),
        Column("norm", [each and each.norm for each in removed], "norm" if whole else "", _times,
               "by what factor the scale of a norm moved, of the one that moved most, the rest fixed",
               under=_UNDER),
        Column("stands", [int(part.stands) for part in parts]),
    )
    # fmt: on


def _times(factor: float) -> str:
    return f"x{factor:.2f}"


def marks(table: Table, brings: str, lost: str) -> tuple[Mark, ...]:
    """What each part brings, beside what is lost without it and without others of its kind."""
    shares, most = table[brings].values, table["controls"].values
    gone, held = ([value and -value for value in table[name].values] for name in ("total", "held"))
    return (
        *both_ways(shares, "brings less" if min(shares) < 0 else "", "brings"),
        Mark("span", "control", "others taken away, at most", [each and -each for each in most], most),
        Mark("ring", "peers", f"{lost} without it, the rest held fixed", held),
        Mark("diamond", "limit", f"{lost} without it", gone),
    )
