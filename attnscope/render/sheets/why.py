"""Why a head looks there: what each part brings to the score, beside what taking it away does."""

from collections.abc import Sequence
from itertools import accumulate

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import counted, percent, signed, signed_cell, weight
from attnscope.render.kit.words.command import finding, opening_head
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.said import at, in_sentence, name, read, setting, text
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Table, both_ways
from attnscope.render.sheets import why_words as words
from attnscope.render.sheets.parts import marks, named, taken_away
from attnscope.results import Why
from attnscope.results.claims.why import Part, Side

_SHOWN = 6  # parts of a side


def sheet(result: Why, focus: Focus = WHOLE) -> Sheet:
    sides = Beside(tuple(_ranking(result, side, focus.verbose) for side in Side))
    head = name(result.layer, result.head)
    link = f"{at(result.query_tokens, result.query)} → {at(result.key_tokens, result.key)}"
    other = () if result.other_tokens is None else text(result.other_tokens)
    return Sheet(
        title=f"why {head} looks {link}",
        setting=setting(result),
        origins=(result.provenance,),
        answer=words.answer(result),
        blocks=(sides, *((_pairs(result),) if focus.verbose else ())),
        table=lambda: _table(result, result.side(Side.QUERY) + result.side(Side.KEY), True),
        texts=(*read(result.kind, result.query_tokens, result.key_tokens), *other),
        control=words.control(result),
        notes=tuple(words.notes(result)),
        legend=tuple(words.legend(result)),
        departs=() if result.other_tokens is None else ("parts of another text",),
        proof=tuple(words.proofs(result, focus.verbose)),
        verdicts={head: result.verdict},
        whole="each side of the score has a panel",
        record=(("layer", result.layer), ("head", result.head)),
        next=_next(result),
        more=() if focus.verbose else (_pairs(result),),
        opens={"layer": result.layer, "head": result.head, "query": result.query, "key": result.key},
    )


def _ranking(result: Why, side: Side, whole: bool) -> Ranking:
    """The parts of a side, the largest shares first; what has no row of its own is added up."""
    parts = result.side(side)
    first = parts if whole or len(parts) <= _SHOWN + 1 else parts[:_SHOWN]
    shown, names = [*first], [words.part_name(result, part) for part in first]
    if rest := parts[len(first) :]:
        of_score, of_contrast = (sum(getattr(each, name) for each in rest) for name in ("score", "contrast"))
        shown.append(Part(side, "", None, None, None, 0.0, of_score, of_contrast))
        names.append(f"{len(rest)} others")
    table = _table(result, shown, whole)
    return Ranking(
        title=words.side_words(result, side),
        of="part",
        names=tuple(names),
        table=table,
        measured="score above the others",
        marks=marks(table, "contrast", "score lost"),
        written="contrast",
        chosen=frozenset(i for i, part in enumerate(shown) if result.is_reason(part)),
    )


def _table(result: Why, parts: Sequence[Part], whole: bool) -> Table:
    contrasts, reasons = [part.contrast for part in parts], [result.is_reason(part) for part in parts]
    told = [
        "yes" if reason else "no" if part.removed else "" for part, reason in zip(parts, reasons, strict=True)
    ]
    left = [part.removed and part.removed.weight for part in parts]
    then = Column("weight", left, "weight left", weight, "what the head then gives to this key")
    # fmt: off
    return Table(
        Column("side", [part.side.value for part in parts]),
        *named(parts),
        Column("score", [part.score for part in parts], "of the score" if whole else "", signed,
               "share of the score itself, which the softmax does not see"),
        Column("contrast", contrasts, "brings", signed_cell,
               "what the part brings to the score above the others; all parts of a side sum to it",
               Scale.around(contrasts)),
        *taken_away(parts, "score", "the score", then, whole),
        Column("reason", [int(reason) for reason in reasons]),
        Column("called", told, "reason?", says="yes: it brings half of the score or more, and without it "
               "half of the weight is gone or more, far more than without any other of its kind"),
    )
    # fmt: on


def _pairs(result: Why) -> Ranking:
    """The largest pairs, and how much of the score they are together."""
    shares = [pair.contrast / result.contrast for pair in result.pairs]
    contrasts = [pair.contrast for pair in result.pairs]
    return Ranking(
        title="largest pairs of a part of the query and a part of the key",
        of="pair",
        names=tuple(f"{pair.query} x {pair.key}" for pair in result.pairs),
        table=Table(
            Column("contrast", contrasts, "share", signed, scale=Scale.around(contrasts)),
            Column("part", shares, "of all", percent),
            Column("summed", list(accumulate(shares)), "added up", percent),
        ),
        measured="score above the others",
        marks=both_ways(contrasts),
        says=f"{result.tried:,} pairs tried, of the largest parts of the query with all of the key",
        hidden=result.tried - len(result.pairs),
        unshown=f"{counted(result.tried - len(result.pairs), 'more pair')}",
    )


def _next(result: Why) -> Next | None:
    """What the head reads that is the reason, or who else looks there."""
    for side, place in (Side.KEY, result.key), (Side.QUERY, result.query):
        for part in result.reasons_of(side):
            if part.head is not None and part.layer is not None and part.name.startswith("L"):
                tokens = result.key_tokens if side is Side.KEY else result.query_tokens
                opened = opening_head(result, part.layer, part.head, place)
                return Next(f"what does {part.name} look at from {in_sentence(tokens, place)}?", opened)
    return Next("which heads look there, beside control texts?", finding(result, result.query, result.key))
