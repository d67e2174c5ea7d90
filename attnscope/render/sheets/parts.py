"""What `why` and `why --answer` alike say of a part: who it is, and what taking it away does."""

from collections.abc import Sequence
from dataclasses import replace

from attnscope.render.kit.numbers import signed_cell, significant
from attnscope.render.sheet.table import Column, Mark, Table, both_ways
from attnscope.render.words import Said
from attnscope.results.claims.contributions import Contribution
from attnscope.results.claims.why import Part

Parts = Sequence[Part] | Sequence[Contribution]


def named(parts: Parts) -> tuple[Column, ...]:
    """Which part each is, and where a head's share comes from."""
    return tuple(
        Column(name, [getattr(part, name) for part in parts])
        for name in ("name", "layer", "head", "source", "source_share")
    )


def taken_away(parts: Parts, total: str, of: str, and_then: Column, whole: bool) -> tuple[Column, ...]:
    """What changes without each, in the unit of `of`; the column of the `total` is called so."""
    say = Said("common", {})
    removed, under = [part.removed for part in parts], say("taken_away")
    most = [max(map(abs, part.controls)) if part.controls else None for part in parts]
    # fmt: off
    return (
        Column("held", [each and each.held for each in removed], "rest fixed" if whole else "", signed_cell,
               say("says_held", of), under=under),
        Column("total", [each and each.total for each in removed], total, signed_cell,
               say("says_total", of), under=under),
        Column("controls", most, "others", lambda each: f"±{significant(each)}",
               say("says_others", of), under=under),
        replace(and_then, under=under),
        Column("norm", [each and each.norm for each in removed], "norm" if whole else "",
               lambda factor: f"x{factor:.2f}", say("says_norm"), under=under),
        Column("stands", [int(part.stands) for part in parts]),
    )
    # fmt: on


def marks(table: Table, brings: str, lost: str) -> tuple[Mark, ...]:
    """What each part brings, beside what is lost without it and without others of its kind."""
    say = Said("common", {})
    shares, most = table[brings].values, table["controls"].values
    gone, held = ([value and -value for value in table[name].values] for name in ("total", "held"))
    return (
        *both_ways(shares, say("less_mark") if min(shares) < 0 else "", "brings"),
        Mark("span", "control", say("others_mark"), [each and -each for each in most], most),
        Mark("ring", "peers", say("held_mark", lost), held),
        Mark("diamond", "limit", say("total_mark", lost), gone),
    )
