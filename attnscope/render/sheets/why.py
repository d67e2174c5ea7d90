"""Why a head looks there: what each part brings to the score, beside what taking it away does."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import counted, number, percent, signed, signed_cell, significant, weight
from attnscope.render.kit.words.command import finding, opening_head
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.said import at, certified, in_sentence, name, read, setting, text
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Table, both_ways
from attnscope.render.sheets.parts import marks, named, taken_away
from attnscope.results import Why
from attnscope.results.base.origin import Verdict
from attnscope.results.claims.why import EXACT, FEWEST, MUCH, SPREADS, TWICE, Case, Lack, Part, Side

_SHOWN = 6  # parts of a side
_NAMED = 2  # reasons of a side that a sentence names
_PAIRS = 3
_STRETCHED = 1.25  # times that a norm moved: from there on it is said


def sheet(result: Why, focus: Focus = WHOLE) -> Sheet:
    sides = Beside(tuple(_ranking(result, side, focus.verbose) for side in Side))
    head = name(result.layer, result.head)
    link = f"{at(result.query_tokens, result.query)} → {at(result.key_tokens, result.key)}"
    other = () if result.other_tokens is None else text(result.other_tokens)
    return Sheet(
        title=f"why {head} looks {link}",
        setting=setting(result),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(sides, *((_pairs(result),) if focus.verbose else ())),
        table=lambda: _table(result, result.side(Side.QUERY) + result.side(Side.KEY), True),
        texts=(*read(result.kind, result.query_tokens, result.key_tokens), *other),
        control=_control(result),
        notes=tuple(_notes(result)),
        legend=tuple(_legend(result)),
        departs=() if result.other_tokens is None else ("parts of another text",),
        proof=tuple(_proofs(result, focus.verbose)),
        verdicts={head: result.verdict},
        whole="each side of the score has a panel",
        record=(("layer", result.layer), ("head", result.head)),
        next=_next(result),
        more=() if focus.verbose else (_pairs(result),),
        opens={"layer": result.layer, "head": result.head, "query": result.query, "key": result.key},
    )


def _ranking(result: Why, side: Side, whole: bool) -> Ranking:
    parts = result.side(side)
    first = parts if whole or len(parts) <= _SHOWN + 1 else parts[:_SHOWN]
    shown, names = [*first], [_part_name(result, part) for part in first]
    if rest := parts[len(first) :]:
        of_score, of_contrast = (sum(getattr(each, name) for each in rest) for name in ("score", "contrast"))
        shown.append(Part(side, "", None, None, None, 0.0, of_score, of_contrast))
        names.append(f"{len(rest)} others")
    table = _table(result, shown, whole)
    return Ranking(
        title=_side_words(result, side),
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
    for side, place in (Side.KEY, result.key), (Side.QUERY, result.query):
        for part in result.reasons_of(side):
            if part.head is not None and part.layer is not None and part.name.startswith("L"):
                tokens = result.key_tokens if side is Side.KEY else result.query_tokens
                opened = opening_head(result, part.layer, part.head, place)
                return Next(f"what does {part.name} look at from {in_sentence(tokens, place)}?", opened)
    return Next("which heads look there, beside control texts?", finding(result, result.query, result.key))


def _head(result: Why) -> str:
    return name(result.layer, result.head)


def _query(result: Why) -> str:
    return in_sentence(result.query_tokens, result.query)


def _key(result: Why) -> str:
    return in_sentence(result.key_tokens, result.key)


def _above(result: Why) -> str:
    """What the score is set against."""
    if result.against is not None:
        return in_sentence(result.key_tokens, result.against)
    if result.others == 1:
        return "the one other key"
    return f"the mean of the other {result.others} keys"


def _answer(result: Why) -> str:
    """One sentence for the case that it is, and what limits it."""
    return _SAID[result.case](result)


def _looks(result: Why) -> str:
    return f"{_head(result)} looks from {_query(result)} at {_key(result)} ({weight(result.weight)})"


def _reasons(result: Why) -> str:
    told, lost = list[str](), list[str]()
    for side in Side:
        if parts := result.reasons_of(side)[:_NAMED]:
            told.append(f"{' and '.join(part.name for part in parts)} on the {side} side")
            lost += [f"without {part.name} {{}}to {_then(part)}" for part in parts]
    falls = ", ".join(each.format("" if i else "the weight falls ") for i, each in enumerate(lost))
    none = "" if len(told) > 1 else f" No part of the {_other(result)} side alone does that."
    return f"{_looks(result)} because of {' and '.join(told)}: {falls}.{none}"


def _other(result: Why) -> Side:
    return Side.KEY if result.case is Case.QUERY else Side.QUERY


def _then(part: Part) -> str:
    assert part.removed is not None, "a reason was taken away"
    return weight(part.removed.weight)


def _none(result: Why) -> str:
    told = f"No single reason why {_looks(result)}"
    tried = [part for part in result.parts if part.removed is not None]
    if not tried:
        return f"{told}: no head and no MLP comes before it, only embeddings and biases."
    least = min(tried, key=lambda part: part.removed.weight if part.removed else 1.0)
    most = f"of {counted(len(tried), 'part')} taken away, each alone, {least.name} on the {least.side} side "
    if least.removed is None or least.removed.weight > MUCH * result.weight:
        most += f"matters most, and without it the weight is still {_then(least)}"
    else:
        most += f"leaves least of the weight, {_then(least)}, but {but(result, least)}"
    return f"{told}: {most}. {_spread(result)}"


def _spread(result: Why) -> str:
    first = result.pairs[:8]
    share = sum(pair.contrast for pair in first) / result.contrast
    return (
        f"The {len(first)} largest of {result.tried:,} pairs of parts make up {percent(share)} of the score."
    )


def _share(result: Why) -> str:
    part = result.largest
    assert part is not None, "there is one with a large share"
    share = percent(part.contrast / result.contrast)
    return (
        f"{part.name} on the {part.side} side has {share} of what lifts {_key(result)} above "
        f"{_above(result)}, but it cannot be called the reason why {_looks(result)}: {but(result, part)}."
    )


def but(result: Why, part: Part) -> str:
    """What keeps a part that was taken away from being a reason."""
    assert part.removed is not None, "it was taken away"
    lack, moves = result.lack_of(part), signed(part.removed.total)
    if lack is Lack.AGAINST and part.contrast > 0:
        return f"without it the score does not fall ({moves})"
    if lack is Lack.FEW:
        other, of = ("other MLP", "") if part.head is None else ("other head", " of its layer")
        if not part.controls:
            return f"there is no {other}{of} to hold it against"
        return f"only {counted(len(part.controls), other)}{of} can be held against it, too few"
    if lack is Lack.CONTROLLED:
        near = "" if abs(part.removed.total) < max(map(abs, part.controls)) else ", which is too near"
        return f"without it the score moves by {moves}, without a control by {_weight_of(part)}{near}"
    if lack is Lack.STAYS:
        return f"without it the weight is still {_then(part)}"
    share = percent(max(part.contrast, 0.0) / result.contrast)
    return f"it brings only {share} of what lifts {_key(result)} above {_above(result)} itself"


def _weight_of(part: Part) -> str:
    """The control that moves the score most."""
    return signed(max(part.controls, key=abs))


def _not_above(result: Why) -> str:
    nothing = "There is nothing to give a reason for"
    gives = f"{_head(result)} gives {_key(result)} {weight(result.weight)} from {_query(result)}"
    if result.contrast >= TWICE:
        return f"{nothing}: {gives}, less than even attention ({weight(1 / (result.others + 1))})."
    side = "above" if result.contrast > 0 else "below"
    lies = f"its score lies {number(abs(result.contrast))} {side} {_above(result)}"
    return f"{nothing}: {gives}, and {lies}, where {number(TWICE)} makes the weight twice as much."


_SAID = {
    Case.NOT_ABOVE: _not_above,
    Case.BOTH: _reasons,
    Case.QUERY: _reasons,
    Case.KEY: _reasons,
    Case.SHARE: _share,
    Case.NONE: _none,
}


def _side_words(result: Why, side: Side) -> str:
    """The heading of a side's parts: it tells the whole."""
    own = f"query side: what {_query(result)} brings"
    if side is Side.KEY:
        own = f"key side: what {_key(result)} brings beyond {_above(result)}"
    return f"{own}, in all {signed(result.contrast)}"


def _how_to_read(result: Why) -> str:
    """What stands in the columns, for somebody who sees them for the first time."""
    lies = "above" if result.contrast > 0 else "below"
    return (
        f"to read it: the score of {_key(result)} lies {number(abs(result.contrast))} {lies} "
        f"{_above(result)}, and each side tells all of that. A part brings so much of it. When it is taken "
        "away the score changes so much (without any other of its kind at most as much as under others), and "
        "this weight is left."
    )


def _part_name(result: Why, part: Part) -> str:
    """`L0 H0 (reads river@1)`."""
    if part.source is None or not part.name.startswith("L"):
        return part.name
    return f"{part.name} (reads {settled(result.key_tokens.labels[part.source])})"


def _instead(result: Why) -> str:
    """What stands in the place of a part."""
    if result.other_tokens is not None:
        return "what it is in the other text"
    if result.against is not None:
        return f"what it is at {_above(result)} (of the query: its mean over the other tokens)"
    return "its mean over the other keys (of the query: over the other tokens)"


def _control(result: Why) -> str:
    return (
        "others are the other heads of the layer, of an MLP the other MLPs, each taken away alone in the "
        f"same way: replaced by {_instead(result)}"
    )


def _notes(result: Why) -> Iterator[str]:
    yield _how_to_read(result)
    if result.contrast and result.pairs:
        pairs = ", ".join(
            f"{pair.query} with {pair.key} {signed(pair.contrast)} "
            f"({percent(pair.contrast / result.contrast)})"
            for pair in result.pairs[:_PAIRS]
        )
        yield f"largest pairs of a part of the query with a part of the key: {pairs}"
    moved = max(
        (part for part in result.parts if part.removed is not None and part.removed.norm > 0),
        key=lambda part: max(part.removed.norm, 1 / part.removed.norm) if part.removed else 1.0,
        default=None,
    )
    if moved is not None and moved.removed is not None:
        factor = max(moved.removed.norm, 1 / moved.removed.norm)
        if factor >= _STRETCHED:
            side = f"without {moved.name} on the {moved.side} side"
            yield (
                "what a part brings does not foretell what is lost without it: the model rescales what is "
                f"left ({side} x{moved.removed.norm:.2f}), and later parts are made of earlier ones"
            )
    if result.capped:
        yield "the score is told before the model's soft cap"
    yield from result.notes


def _proofs(result: Why, full: bool) -> Iterator[tuple[Verdict, str]]:
    yield from certified(result.certificate, full)
    off = significant(result.residual)
    if result.verdict is Verdict.STORED:  # a file says so, and nothing more
        yield Verdict.STORED, f"the parts of each side summed to the score when it was run (off {off} of it)"
        return
    yield (
        Verdict.CERTIFIED,
        f"✓ the parts of each side sum to the score (off {off} of it, {significant(EXACT, 1)} allowed)",
    )


def _legend(result: Why) -> Iterator[str]:
    yield "each side is the whole score, told from its end: the two are never added"
    yield (
        "MLP: whatever is not linear after the attention of a layer; token, position and segment are "
        "embeddings, which like biases have shares and are never called reasons"
    )
    yield (
        "a reason: it brings half or more of the score above the others, and without it half of the weight "
        f"is gone or more; the score falls by more than without any of {FEWEST} or more controls, and by "
        f"{SPREADS:g} of their spreads more than in their mean"
    )
