"""Sheet of `why` for a link: contribution of each part to the score, beside the effect of replacing it."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import nan

from attnscope.render.kit.cells import settled
from attnscope.render.kit.command import finding, opening_head
from attnscope.render.kit.numbers import counted, percent, signed, signed_cell, significant, weight
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.said import at, certified, in_sentence, name, read, text, unit
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table, both_ways
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results.base.origin import Verdict
from attnscope.verbs.why.contributions_result import Contribution
from attnscope.verbs.why.result import EXACT, FEWEST, MUCH, SPREADS, TWICE, Case, Lack, Part, Side, Why

_SHOWN = 6  # most parts shown of a side
_NAMED = 2  # most reasons of a side named in a sentence
_PAIRS = 3
_STRETCHED = 1.25  # change factor of a norm from which it is reported


def sheet(result: Why, focus: Focus = WHOLE) -> Sheet:
    say = said(result)
    sides = Beside(tuple(_ranking(result, say, side, focus.verbose) for side in Side))
    other = () if result.other_tokens is None else text(result.other_tokens)
    return saying(
        say,
        blocks=(sides, *((_pairs(result, say),) if focus.verbose else ())),
        table=lambda: _table(result, say, result.side(Side.QUERY) + result.side(Side.KEY), True),
        texts=(*read(result.kind, result.query_tokens, result.key_tokens), *other),
        departs=() if result.other_tokens is None else ("parts of another text",),
        proof=(*certified(result.certificate, focus.verbose), _summed(result, say)),
        verdicts={name(result.layer, result.head): result.verdict},
        whole="each side of the score has a panel",
        record=(("layer", result.layer), ("head", result.head)),
        next=_next(result, say),
        more=() if focus.verbose else (_pairs(result, say),),
        opens={"layer": result.layer, "head": result.head, "query": result.query, "key": result.key},
    )


def _ranking(result: Why, say: Said, side: Side, whole: bool) -> Ranking:
    parts = result.side(side)
    first = parts if whole or len(parts) <= _SHOWN + 1 else parts[:_SHOWN]
    shown, names = [*first], [_part_name(result, say, part) for part in first]
    if rest := parts[len(first) :]:
        of_score, of_contrast = (sum(getattr(each, name) for each in rest) for name in ("score", "contrast"))
        shown.append(Part(side, "", None, None, None, 0.0, of_score, of_contrast))
        names.append(say("rest", len(rest)))
    table = _table(result, say, shown, whole)
    return Ranking(
        title=say("of_side", side),
        of="part",
        names=tuple(names),
        table=table,
        measured="score above the others",
        marks=marks(table, "contrast", "score lost"),
        written="contrast",
        chosen=frozenset(i for i, part in enumerate(shown) if result.is_reason(part)),
    )


def _part_name(result: Why, say: Said, part: Part) -> str:
    """Name of a part with the source of a head's share: `L0 H0 (reads river@1)`."""
    if part.source is None or not part.name.startswith("L"):
        return part.name
    return say("reads", part.name, settled(result.key_tokens.labels[part.source]))


def _table(result: Why, say: Said, parts: Sequence[Part], whole: bool) -> Table:
    contrasts, reasons = [part.contrast for part in parts], [result.is_reason(part) for part in parts]
    told = [
        "yes" if reason else "no" if part.removed else "" for part, reason in zip(parts, reasons, strict=True)
    ]
    left = [part.removed and part.removed.weight for part in parts]
    then = Column("weight", left, "weight left", weight, say("says_left"))
    # fmt: off
    return Table(
        Column("side", [part.side.value for part in parts]),
        *named(parts),
        Column("score", [part.score for part in parts], "of the score" if whole else "", signed,
               say("says_score")),
        Column("contrast", contrasts, "brings", signed_cell, say("says_brings"),
               Scale.around(contrasts)),
        *taken_away(parts, "score", "the score", then, whole),
        Column("reason", [int(reason) for reason in reasons]),
        Column("called", told, "reason?", says=say("says_reason")),
    )
    # fmt: on


def _pairs(result: Why, say: Said) -> Ranking:
    shares = [pair.contrast / (result.contrast or nan) for pair in result.pairs]
    contrasts = [pair.contrast for pair in result.pairs]
    return Ranking(
        title=say("pairs_title"),
        of="pair",
        names=tuple(f"{pair.query} x {pair.key}" for pair in result.pairs),
        table=Table(
            Column("contrast", contrasts, "share", signed, scale=Scale.around(contrasts)),
            Column("part", shares, "of all", percent),
            Column("summed", list(accumulate(shares)), "added up", percent),
        ),
        measured="score above the others",
        marks=both_ways(contrasts),
        says=say("pairs_tried"),
        hidden=result.tried - len(result.pairs),
        unshown=f"{counted(result.tried - len(result.pairs), 'more pair')}",
    )


def _summed(result: Why, say: Said) -> tuple[Verdict, str]:
    if result.verdict is Verdict.STORED:  # only the stored file says so
        return Verdict.STORED, say("stored")
    return Verdict.CERTIFIED, say("exact")


def _next(result: Why, say: Said) -> Next | None:
    for side, place in (Side.KEY, result.key), (Side.QUERY, result.query):
        for part in result.reasons_of(side):
            if part.head is not None and part.layer is not None and part.name.startswith("L"):
                opened = opening_head(result, part.layer, part.head, place)
                return Next(say("next_head", fact_of(result, part)), opened)
    return Next(say("next_find"), finding(result, result.query, result.key))


def said(result: Why) -> Said:
    """Sentences of `why` about this result, and the facts they use."""
    named = result.largest if result.case is Case.SHARE else result.missed
    much = [part for part in result.parts if _stretch(part) >= _STRETCHED]
    stretched = max(much, key=_stretch, default=None)
    facts = {
        "head": name(result.layer, result.head),
        "query": in_sentence(result.query_tokens, result.query),
        "key": in_sentence(result.key_tokens, result.key),
        "from": at(result.query_tokens, result.query),
        "to": at(result.key_tokens, result.key),
        "against": None if result.against is None else in_sentence(result.key_tokens, result.against),
        "unit": unit(result.key_tokens),
        "even": None if result.against is not None else 1 / (result.others + 1),
        "twice": TWICE,
        "reasons": [fact_of(result, part) for side in Side for part in result.reasons_of(side)[:_NAMED]],
        "part": named and fact_of(result, named),
        "taken": sum(part.removed is not None for part in result.parts),
        "pairs": result.pairs[:_PAIRS] if result.contrast else (),
        "other_text": result.other_tokens is not None,
        "stretched": stretched
        and (fact_of(result, stretched) if _stretch(stretched) >= _STRETCHED else None),
        "fewest": FEWEST,
        "spreads": f"{SPREADS:g}",
        "allowed": EXACT,
    }
    return Said("why", result, facts)


def fact_of(result: Why, part: Part) -> dict[str, object]:
    """Facts about one part for sentences: share, weight left, change, controls."""
    tokens, end = (
        (result.query_tokens, result.query) if part.side is Side.QUERY else (result.key_tokens, result.key)
    )
    carries = part.source not in (None, end) and part.source_share * part.contrast >= MUCH * part.contrast**2
    removed, lack = part.removed, result.lack_of(part)
    most = max(part.controls, key=abs, default=None)
    return {
        "name": part.name,
        "end": in_sentence(tokens, end),
        "source": in_sentence(result.key_tokens, part.source) if carries and part.source else None,
        "mlp": part.head is None,
        "share": max(part.contrast, 0.0) / (result.contrast or nan),
        "left": removed and removed.weight,
        "stays": removed is not None and removed.weight > MUCH * result.weight,
        "change": removed and removed.total,
        "norm": removed and f"{removed.norm:.2f}",
        "lack": Lack.SMALL if lack is Lack.AGAINST and part.contrast <= 0 else lack,
        "controls": len(part.controls),
        "most": most,
        "near": removed is not None and most is not None and abs(removed.total) >= abs(most),
    }


def _stretch(part: Part) -> float:
    """Change factor of the most changed norm without the part, at least 1."""
    norm = 1.0 if part.removed is None else part.removed.norm
    return max(norm, 1 / norm) if norm > 0 else 1.0


Parts = Sequence[Part] | Sequence[Contribution]


def named(parts: Parts) -> tuple[Column, ...]:
    """Table columns that identify parts: name, layer, head, source token and its share."""
    return tuple(
        Column(name, [getattr(part, name) for part in parts])
        for name in ("name", "layer", "head", "source", "source_share")
    )


def taken_away(parts: Parts, total: str, of: str, and_then: Column, whole: bool) -> tuple[Column, ...]:
    """Table columns on replacing each part, in the unit of `of`; `total` heads the total-effect column."""
    say = Said("common")
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
    """Chart marks: contribution of each part, loss without it, range of losses without its controls."""
    say = Said("common")
    shares, most = table[brings].values, table["controls"].values
    gone, held = ([value and -value for value in table[name].values] for name in ("total", "held"))
    return (
        *both_ways(shares, say("less_mark") if min(shares) < 0 else "", "brings"),
        Mark("span", "control", say("others_mark"), [each and -each for each in most], most),
        Mark("ring", "peers", say("held_mark", lost), held),
        Mark("diamond", "limit", say("total_mark", lost), gone),
    )
