"""The sheet of `ablate`: its rankings, grids and sentences, and the data of its script."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np

from attnscope.errors import InputError
from attnscope.printable import printable, word
from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.command import asking, finding, label, opening_head
from attnscope.render.kit.numbers import alike, give_or_take, largest_magnitude, number, signed, signed_cell
from attnscope.render.kit.words import quoted as quoted_tokens
from attnscope.render.kit.words import verdict_words
from attnscope.render.script import COARSE, EXACT, NATS, Told, of_run
from attnscope.render.sheet.blocks import Beside, Heap, Matrix, Names, Ranking
from attnscope.render.sheet.heads import HeadGrid, by_head
from attnscope.render.sheet.said import Place, in_sentence, name
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table, Values, both_ways, missing, only
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Kind, Verdict
from attnscope.results.claims.effect import (
    LITTLE,
    Asks,
    Effect,
    Group,
    HeadEffect,
    Measured,
    Method,
    Part,
    PlaceEffect,
)
from attnscope.results.claims.ranking import LEVEL
from attnscope.spelling import spelled, told
from attnscope.tokens import Tokens
from attnscope.verbs.ablate.result import Ablation, Case

_SHOWN, _PLACES_SHOWN = 12, 16  # heads, and places, that are shown
_OF_HEADS, _OF_PLACES = {"predicted", "drawn"}, {"position", "token", "enough", "share_enough"}  # columns
_HEADED = {
    "after",
    "change",
    "kl",
    "typical",
    "below",
    "predicted",
    "whole",
    "share",
    "share_enough",
    "instead",
}


class Row(NamedTuple):
    """A table row: a head, place, group or prediction, with its effect and its comparison."""

    name: str
    kind: Literal["", "group", "random", "foretold"]
    layer: int | None = None
    head: int | None = None
    effect: Effect | None = None
    beside: HeadEffect | PlaceEffect | Group | None = None
    predicted: float | None = None
    positions: tuple[int, ...] = ()
    enough: float | None = None


_FEW_OTHERS = 3  # of which a heap says something


def sheet(result: Ablation, focus: Focus = WHOLE) -> Sheet:
    say = said(result)
    best = result.by_size[0] if result.places else result.heads[0] if result.heads else None
    blocks = tuple(_blocks(result, say, focus.verbose))
    opens = {} if best is None or result.places else {"layer": best.layer, "head": best.head}
    position = result.answer.position
    if opens and result.kind is not Kind.CROSS and position is not None:
        opens["query"] = position
    part = (("part", result.part.value),) if result.places else ()
    path = () if result.path is None else (("via", via(result)),)
    return saying(
        say,
        blocks=blocks,
        table=lambda: _table(result, say, list(_every(result, say)), True),
        texts=tuple(texts(result)),
        details=tuple(say.lines("details")),
        departs=(f"seed {result.floor.seed}",) if result.floor.seed else (),
        proof=((result.verdict, say("proof")),),
        main=next((each for each in blocks if not isinstance(each, Beside)), None),
        whole=say("both_directions"),
        summary=(say("summary", short(result, say, best)),) if best is not None else (),
        record=(
            ("kind", result.kind.value),
            ("tower", result.tower),
            ("method", result.method.value),
            *part,
            *path,
        ),
        next=_next_of_places(result, say) if result.places else _next(result, say),
        more=tuple(_heap(result, say)),
        opens=opens,
    )


def _next(result: Ablation, say: Said) -> Next | None:
    if not result.heads:
        return None
    asked, first = asked_again(result), result.heads[0]
    if result.case in (Case.NO_GAP, Case.LITTLE, Case.ROUNDING):
        if result.case is Case.NO_GAP or len(result.heads) < 2:
            return Next(say("which_heads"), asking(result, "ablate", *asked))
    elif result.link is not None:
        return Next(say("because_of_words"), _finding(result, *result.link))
    elif result.case in (Case.EACH, Case.FLAT):
        two = ",".join(f"L{each.layer}H{each.head}" for each in result.heads[:2])
        means = ("--with", "mean") if result.method is Method.MEAN else ()
        return Next(say("without_both"), asking(result, "ablate", "--heads", two, *means, *asked))
    query = result.answer.position if result.kind is not Kind.CROSS else None
    opened = opening_head(result, first.layer, first.head, query)
    return Next(say("looks_at", name(first.layer, first.head)), opened)


def _finding(result: Ablation, query: int, key: int) -> str:
    if not result.link_spans:
        return finding(result, query, key)
    sides = zip((result.query_tokens, result.key_tokens), result.link_spans, strict=True)
    asked, given = (word(f"{spelled(tokens, span)}@{span[0]}") for tokens, span in sides)
    return asking(result, "find", "--from", asked, "--to", given)


def _next_of_places(result: Ablation, say: Said) -> Next | None:
    best = result.by_size[0]
    if best.layer < 0 or result.link is not None or not isinstance(best, PlaceEffect):
        return None
    asked = asked_again(result)
    if result.method is Method.MEAN:
        asked = (*asked, "--with", "mean")
    if result.other is not None and result.other.texts:
        asked = (*asked, "--patch-from", word(result.other.texts[0]))
    if not best.positions:
        ran = asking(result, "ablate", "--part", result.part.value, "--at", "pos:each", *asked)
        return Next(say("which_token"), ran)
    if result.part in (Part.ATTENTION, Part.RESIDUAL):
        ran = asking(result, "ablate", "--layer", str(best.layer), *asked)
        return Next(say("heads_of_layer", best.layer), ran)
    if best.head is not None:
        query = best.positions[0] if len(best.positions) == 1 else None
        opened = opening_head(result, best.layer, best.head, query)
        return Next(say("looks_at", name(best.layer, best.head)), opened)
    return None


def _head(say: Said, one: HeadEffect, kind: Literal["", "random"] = "") -> Row:
    named = name(one.layer, one.head)
    named = say("drawn", named) if kind else named
    return Row(named, kind, one.layer, one.head, one, one if one.controls else None, one.predicted)


def _group_row(result: Ablation, say: Said) -> list[Row]:
    group = result.group
    if group is None:
        return []
    return [Row(say("at_once"), "group", effect=group.effect, beside=group if group.controls else None)]


def _place(result: Ablation, say: Said, one: PlaceEffect) -> Row:
    layer, named = None if one.layer < 0 else one.layer, short(result, say, one)
    return Row(named, "", layer, one.head, one, one, positions=one.positions, enough=one.enough)


def _every(result: Ablation, say: Said) -> Iterator[Row]:
    yield from (_place(result, say, one) for one in result.places)
    yield from (_head(say, one) for one in result.heads)
    yield from (_head(say, one, "random") for one in result.floor.random)
    yield from _group_row(result, say)
    ran = {(one.layer, one.head) for one in result.heads}
    for each in result.predicted:
        if (each.layer, each.head) not in ran:
            named = name(each.layer, each.head)
            yield Row(named, "foretold", each.layer, each.head, predicted=each.change)


def _blocks(result: Ablation, say: Said, whole: bool) -> Iterator[Ranking | HeadGrid | Matrix | Beside]:
    if not result.places:
        shown = result.heads if whole else result.heads[:_SHOWN]
        drawn = sorted(result.floor.random, key=lambda one: -abs(one.change)) if whole else []
        rows = [*_group_row(result, say), *(_head(say, one) for one in shown)]
        rows += [_head(say, one, "random") for one in drawn]
        ordered = len(shown) > 1 and any(each.controls for each in shown)
        yield _ranking(result, say, rows, len(result.heads) - len(shown), ordered, whole)
        yield from grids(result, say)
    elif result.of_several_tokens and result.part is not Part.POSITION:
        yield from matrices(result, say)
    else:
        places = result.places
        if not whole and len(places) > _PLACES_SHOWN:
            places = tuple(sorted(places, key=lambda each: -abs(each.change))[:_PLACES_SHOWN])
        rows, hidden = [_place(result, say, one) for one in places], len(result.places) - len(places)
        yield _ranking(result, say, rows, hidden, hidden > 0, whole)


def _ranking(
    result: Ablation, say: Said, rows: Sequence[Row], hidden: int, ordered: bool, whole: bool
) -> Ranking:
    table = _table(result, say, rows, whole)
    values, others = table["change"].values, table["typical"].values
    asked, rounding = [row.kind != "random" for row in rows], result.floor.rounding
    random = only(values, (not own for own in asked))
    predicted = Mark("diamond", "control", say("predicted_mark"), [row.predicted for row in rows])
    marks = (
        Mark("band", "floor", say("typical"), others, [each and -each for each in others]),
        *both_ways(only(values, asked), say("loses"), say("gains")),
        Mark("bar", "faint", say("random_mark"), random),
        predicted,
        Mark("line", "noise", say("rounding_mark", give_or_take(rounding, None)), [-rounding, rounding]),
    )
    return Ranking(
        title=say("ordered") if ordered else "",
        of=say("rows"),
        names=tuple(row.name for row in rows),
        table=table,
        measured=say("measured_words"),
        marks=tuple(each for each in marks if not all(map(missing, each.at))),
        written="change",
        faint=frozenset(i for i, own in enumerate(asked) if not own),
        hidden=hidden,
        unshown=say("hidden", hidden) if hidden else "",
    )


def _table(result: Ablation, say: Said, rows: Sequence[Row], whole: bool) -> Table:
    extent = max((abs(each.change) for each in result.alone), default=0.0)
    places = 3 if extent >= LITTLE else 4 if extent >= LITTLE / 10 else 5  # so that two digits say something
    digits, change = partial(number, decimals=places), partial(signed_cell, decimals=places)

    def of_each(field: str) -> Values:
        return [getattr(row.effect, field, None) for row in rows]

    def beside(field: str) -> Values:
        return [getattr(row.beside, field, None) for row in rows]

    changes, back = of_each("change"), [row.enough for row in rows]
    shares = [share(result, each) for each in changes]
    shares_back = [share(result, each, True) for each in back]
    pairs = [
        "" if each is None else say("pair", each.before, each.after) for each in (row.effect for row in rows)
    ]
    ranks = [
        say("rank", 1 + of.controls - of.below, of.controls + 1, isinstance(of, Group))
        if of and of.controls
        else ""
        for of in (row.beside for row in rows)
    ]
    below = [row.beside and row.beside.controls and row.beside.below for row in rows]
    # fmt: off
    columns = (
        Column("layer", [row.layer for row in rows]),
        Column("head", [row.head for row in rows]),
        Column("position", [",".join(map(str, row.positions)) for row in rows]),
        Column("token", [printable(spelled(tokens_of(result), row.positions)) for row in rows]),
        Column("before", of_each("before")),
        Column("after", of_each("after"), told=pairs),
        Column("change", changes, form=change, scale=Scale.around([each or 0.0 for each in changes])),
        Column("kl", of_each("kl"), form=digits, spared=3),
        Column("typical", beside("typical"), form=digits, spared=1),
        Column("below", below, told=ranks),
        Column("controls", beside("controls")),
        Column("predicted", [row.predicted for row in rows], form=change),
        Column("drawn", ["" if row.kind == "foretold" else row.kind for row in rows]),
        Column("enough", back),
        Column("whole", of_each("whole"), form=change, spared=1),
        Column("share", shares, told=share_words(say, shares, changes)),
        Column("share_enough", shares_back, told=share_words(say, shares_back, back)),
        Column("instead", of_each("instead"), spared=2),
    )
    # fmt: on
    without = _OF_HEADS if result.places else _OF_PLACES
    brief = set() if whole else {"kl"} if result.places else {"kl", "instead"}
    headed = _HEADED - brief
    return Table(
        *(
            replace(each, heading=say("heading", each.name), says=say("says", each.name))
            if each.name in headed
            else each
            for each in columns
            if each.name not in without
        )
    )


# what numbers of a grid are told in where the largest of them is below so much, and how many go into one
_PARTS = {"millionths": (1e-4, 1e6), "thousandths": (0.1, 1e3)}


def grids(result: Ablation, say: Said) -> Iterator[HeadGrid]:
    """The grid of layers and heads: predicted changes, or measured ones of several; otherwise none."""
    if not result.predicted and min(len(result.layers), len(result.heads)) < 2:
        return
    changes = {(each.layer, each.head): each.change for each in result.predicted or result.heads}
    layers = tuple(sorted({layer for layer, _ in changes}))
    heads = tuple(range(1 + max(head for _, head in changes)))
    values, unit = by_head(layers, heads, changes), ""
    form = alike(values, 2, signed_cell)
    if not result.predicted:
        parts = (each for each, (most, _) in _PARTS.items() if 0 < largest_magnitude(values) < most)
        unit = next(parts, "")
        many = _PARTS[unit][1] if unit else 0.0
        form = (lambda value: signed_cell(many * value, 1)) if unit else signed_cell
    unit = say("in_parts", unit) if unit else ""
    yield HeadGrid(say("grid_title"), layers, heads, values, Scale.around(values), form, unit)


def matrices(result: Ablation, say: Said) -> Iterator[Matrix | Beside]:
    """Grids of layers or heads by tokens; between two texts shares of the gap, in both directions."""
    changes = [each.change for each in result.places]
    if result.case is not Case.CLOSES:
        yield _matrix(result, say, say("grid_title"), changes)
        return
    yield _direction(result, say, "needed_title", changes, False)
    if any(each.enough is not None for each in result.places):
        yield _direction(result, say, "enough_title", [each.enough for each in result.places], True)


def _direction(
    result: Ablation, say: Said, title: str, changes: Sequence[float | None], back: bool
) -> Matrix:
    shares = [share(result, each, back) for each in changes]
    if all(is_share(each) for each in shares if each is not None):
        return _matrix(result, say, say(title, True), shares)
    return _matrix(result, say, say(title, False), changes)


def _matrix(result: Ablation, say: Said, title: str, values: Sequence[float | None]) -> Matrix:
    tokens = tokens_of(result)
    rows = list(dict.fromkeys(row_words(result, each) for each in result.places))
    heads = any(each.head is not None for each in result.places)
    layers = tuple(dict.fromkeys(each.layer for each in result.places))
    cells = np.full((len(rows), len(tokens)), np.nan)
    for place, each in zip(result.places, values, strict=True):
        row = rows.index(row_words(result, place))
        cells[row, list(place.positions)] = np.nan if each is None else each
    return Matrix(
        title=title,
        words=("head" if heads else "layer", "key" if result.link is not None else "token"),
        rows=Names(tuple(rows), tuple(range(len(rows)))) if heads else Names(("",) * len(rows), layers),
        columns=tokens,
        values=cells,
        scale=Scale.around(cells[np.isfinite(cells)] if np.isfinite(cells).any() else [1.0]),
        form=alike(cells, 2, signed_cell),
        unanswered=say("unchanged"),
        blank=say("unchanged"),
    )


def _heap(result: Ablation, say: Said) -> Iterator[Heap]:
    """Changes by the other heads that were tried alone, as a heap of dots; none where they are few."""
    if not result.heads:
        return
    first, *others = result.heads
    tried = {(each.layer, each.head): each.change for each in (*others, *result.floor.random)}
    tried.pop((first.layer, first.head), None)
    if len(tried) < _FEW_OTHERS:
        return
    head = name(first.layer, first.head)
    larger = sum(abs(each) > abs(first.change) for each in tried.values())
    yield Heap(
        title=say("heap_title", head, larger, len(tried)),
        dots=say("heap_dots"),
        values=tuple(tried.values()),
        name=head,
        own=first.change,
        measured=say("measured_words"),
        form=signed,
    )


def figures(result: Ablation) -> Told:
    if result.method is Method.LINK:
        raise InputError("no script: a link is cut within the softmax, where no module can be told to")
    if result.path is not None:
        raise InputError("no script: in a program a change comes to everything, and not along one path")
    if result.places:
        raise InputError("no script: only heads are taken away in a program, at all tokens")
    if result.measured is not Measured.CHANCE:
        raise InputError(f"no script: a program measures probabilities, no {result.measured}")
    if result.answer.asks is Asks.SPAN:
        raise InputError("no script: a program reads one row of scores, and the ends of a span stand in two")
    told = of_run(result.provenance, result.tokens, result.kind, result.tower)
    answer, group = result.answer, result.group
    first = answer.position
    if first is None:  # what a decoder writes ends where its input does, behind what it was given
        written = result.provenance.inputs.get("decoder_input_ids", ())
        first = max(len(written) - 1 - len(answer.ids), 0)
    rows = list(range(first, first + len(answer.ids)))
    rows = rows if answer.asks is Asks.WRITTEN or answer.position is not None else []
    texts: list[dict[str, Any]] = [
        {side.input: side.ids[i % len(side.ids)].tolist() for side in result.mean_over}
        for i in range(max((len(side.ids) for side in result.mean_over), default=0))
    ]
    if result.other is not None:
        texts = [{"input_ids": result.other.ids}]
    return told | {
        "allowed": max(NATS if result.provenance.dtype in EXACT else COARSE, 4 * result.floor.rounding),
        "modules": result.modules,
        "texts": texts,
        "rows": rows,
        "answer": answer.ids,
        "said": answer.text,
        "probability": answer.probability,
        "heads": [(each.layer, each.head, each.change, each.kl) for each in result.heads],
        "random heads": [(each.layer, each.head, each.change) for each in result.floor.random],
        "group": [] if group is None else group.heads,
        "group change": None if group is None else group.effect.change,
        "drawn": [] if group is None else group.drawn,
        "drawn median": None if group is None else group.typical,
    }


_LONGEST, _HEADING = 60, 24  # cells of an answer in a sentence, and above a column
_BEYOND = 0.1  # of a gap: what lies further outside of it is no share
_AGREE = 0.1  # of a sum: so near to it two changes are as much as their sum
_NOTHING = 1e-4  # nats or logits, of an answer that something else moves by more
_NAMED = 3  # heads of a group that are named one by one
_INPUTS = 3  # of a head: queries, keys and values

Alone = HeadEffect | PlaceEffect


def said(result: Ablation) -> Said:
    """A `Said` that fills the sentence templates of `ablate` with the facts of this result."""
    answer, floor, part = result.answer, result.floor, result.part
    alone: Sequence[Alone] = result.alone
    # what changes it most, or goes furthest on the way to the other text
    best = None if not alone else result.by_size[0]
    if alone and result.case is Case.CLOSES:
        best = max(alone, key=lambda each: share(result, each.change) or 0.0)
    query = key = ""
    if result.link is not None:
        ends = result.link_spans or (result.link[:1], result.link[1:])  # positions only of what stands twice
        query, key = _spelled(result.query_tokens, ends[0]), _spelled(result.key_tokens, ends[1])
    total, path, against = result.total, result.path, result.against
    shares = [share(result, each.change) for each in result.alone]
    back = [share(result, each.enough, True) for each in result.places]
    closing = result.case is Case.CLOSES
    moved = share(result, None if best is None else best.change)
    half = _HEADING // (2 if result.measured is Measured.DIFFERENCE else 1)
    little, group = result.measured.little, _group(result)
    at_once = result.group if result.case is Case.TOGETHER else None
    grouped = at_once is not None and abs(at_once.effect.change) < little
    facts = {
        # what was changed, and how
        "part_of": part.value,
        "places": bool(result.places),
        "link": f"{query} → {key}" if result.link is not None else "",
        "query": query,
        "count": len(result.alone),
        "predicted": len(result.predicted),
        "path": path is not None,
        "readers": _readers(result),
        # what is measured
        "asks": answer.asks.value,
        "answer": _quoted(answer.text),
        "answer_short": _quoted(answer.text, half),
        "against": None if against is None else _quoted(against.text),
        "against_short": None if against is None else _quoted(against.text, half),
        "stands": None if answer.position is None else settled(result.tokens.named(answer.position)),
        "little": little,
        # what came out
        "best": None if best is None else _one(result, best),
        "second": _one(result, result.by_size[1]) if result.case is Case.FLAT else None,
        "group": group,
        "hardly": result.case is Case.LITTLE or grouped,
        "apart": any(map(result.is_the_answers_own, result.places)),
        "whole": None if best is None or path is None else best.whole,
        "others_read": _others_read(result),
        # another text
        "here": None if total is None else total.before,
        "there": None if total is None else total.after,
        "gap": None if total is None else total.change,
        "far": total is not None and abs(total.change) >= little,
        "closes": any(each and each > 0 for each in shares),
        "part": moved if is_share(moved) else None,
        "stretches": _stretches(result),
        "back": _back(result, back),
        "any_enough": total is not None and any(each.enough is not None for each in result.places),
        "beyond": closing and not all(is_share(each) for each in (*shares, *back) if each is not None),
        # beside what
        "all_others": result.beside,
        "random": len(floor.random),
        "random_layers": _layers([(each.layer, each.head) for each in floor.random]),
        "compared": any(each.controls for each in result.heads),
        "luck": f"{1 / LEVEL:.0f}",
        # whether it was done
        "verdict": verdict_words(result.verdict),
        "stored": result.verdict is Verdict.STORED,
    }
    return Said("ablate", result, facts)


def _quoted(text: str, longest: int = _LONGEST) -> str:
    return f"“{settled(fit(printable(text), longest))}”"


def share(result: Ablation, change: float | None, back: bool = False) -> float | None:
    """Share of the gap between two texts that a change closes, or brings `back` in the other text.

    None where there is no gap to speak of.
    """
    gap = 0.0 if result.total is None else result.total.change
    if change is None or not gap or not (back or result.case is Case.CLOSES):
        return None
    return (-change if back else change) / gap


def is_share(part: float | None) -> bool:
    """Whether a number reads as a share, from about 0 to 1: nobody understands -238 % of a gap."""
    return part is not None and -_BEYOND <= part <= 1 + _BEYOND


def share_words(say: Said, parts: Sequence[float | None], changes: Sequence[float | None]) -> list[str]:
    """Table cells: `38 %`, or where the number is no share by how much the answer changes."""
    both = zip(parts, changes, strict=True)
    return ["" if part is None else say("share", part if is_share(part) else None, by) for part, by in both]


def tokens_of(result: Ablation) -> Tokens:
    """The tokens that positions of places refer to: keys for a link, else queries."""
    return result.key_tokens if result.link is not None else result.query_tokens


def row_words(result: Ablation, one: Alone) -> str:
    if result.part is Part.POSITION:
        return ""
    return f"L{one.layer}" if one.head is None else name(one.layer, one.head)


def short(result: Ablation, say: Said, one: Alone) -> str:
    """Short name of a head or place: `L3 at 8 opened`, `L3 H11`."""
    positions = one.positions if isinstance(one, PlaceEffect) else ()
    where = settled(told(tokens_of(result), positions)) if positions else ""
    return say("short", row_words(result, one), where)


def texts(result: Ablation) -> Iterator[str]:
    """Lines that show the encoder's text, the decoder's text, and the text patched from."""
    both = result.kind is not Kind.ENCODER and result.target is not None
    first = "reads   " if both else "A " if result.other is not None else ""
    sides = (first, result.tokens), ("decoder ", result.target if both else None), ("B ", result.other)
    yield from (
        f"{side}{quoted_tokens(tokens).plain}"
        for side, tokens in sides
        if tokens is not None and tokens.texts
    )


def asked_again(result: Ablation) -> tuple[str, ...]:
    """Options that ask the same question again: --from, --answer, --against, --via."""
    answer = result.answer
    several = len(answer.ids) > 1 and answer.asks is Asks.NEXT  # without it one token would be asked about
    mine = () if answer.likeliest and not several else ("--answer", word(result.answer.text))
    if answer.asks is Asks.TAG and answer.position is not None:
        mine = ("--from", label(result.tokens, answer.position), *mine)
    mine = mine if result.against is None else (*mine, "--against", word(result.against.text))
    return mine if result.path is None else (*mine, "--via", via(result))


def via(result: Ablation) -> str:
    """The path as an option's value: `L1H3.k,L2H0,direct`, `L1.k`."""
    path, whole = result.path, _are_whole_layers(result)
    assert path is not None, "there is a path"
    ways = [
        f"L{each.layer}{'' if whole else f'H{each.head}'}"
        + ("" if len(each.inputs) == _INPUTS else f".{each.inputs}")
        for each in path.receivers
    ]
    return ",".join(dict.fromkeys([*ways, "direct"] if path.direct else ways))


def _are_whole_layers(result: Ablation) -> bool:
    """Whether the path's receivers are all heads of some layers, with other layers as controls."""
    if result.path is None:
        return False
    heads = [(each.layer, each.head) for each in result.path.receivers]
    mine = _layers(heads)
    same = any(_layers(one.heads) == mine for one in result.path.others)
    return not same and len(heads) > len(mine)


def _layers(heads: Sequence[Place]) -> list[int]:
    return sorted({layer for layer, _ in heads})


def _one(result: Ablation, one: Alone) -> dict[str, object]:
    """Facts about one head, layer part or position: its name, and the answer without it."""
    positions = one.positions if isinstance(one, PlaceEffect) else ()
    row = row_words(result, one)
    if result.link is not None and one.head is None:
        row = f"layer {one.layer}"
    return {
        "layer": one.layer,
        "row": row,
        "at": _spelled(tokens_of(result), positions) if positions else "",
        "before": one.before,
        "after": one.after,
        "change": one.change,
        "typical": _after(result, one, one.typical if one.controls else None),
        "more": one.controls - one.below,
        "others": one.controls,
        "instead": _quoted(one.instead) if one.instead else "",
    }


def _after(result: Ablation, effect: Effect, size: float | None) -> float | None:
    """The measured value after a change of this size in the direction of `effect`."""
    if size is None:
        return None
    change = math.copysign(size, effect.change)
    if result.measured is Measured.CHANCE:
        return min(1.0, effect.before * math.exp(change))
    return effect.before + change


def _spelled(tokens: Tokens, positions: Sequence[int]) -> str:
    return (
        in_sentence(tokens, positions[0])
        if len(positions) == 1
        else f"“{settled(spelled(tokens, positions))}”"
    )


def _group(result: Ablation) -> dict[str, object] | None:
    group = result.group
    if group is None:
        return None
    apart, effect = sum(each.change for each in result.heads), group.effect
    return {
        "size": len(group.heads),
        "names": [name(*each) for each in group.heads] if len(group.heads) <= _NAMED else [],
        "layers": _layers(group.heads),
        "of_layers": group.of_layers,
        "before": effect.before,
        "after": effect.after,
        "change": effect.change,
        "typical": _after(result, effect, group.typical),
        "others": group.controls,
        "apart": apart,
        "sum": _sum(result, effect.change, apart),
        "instead": _quoted(effect.instead) if effect.instead else "",
    }


def _sum(result: Ablation, together: float, apart: float) -> str:
    """The sum of single changes against the joint one: `opposite`, `same`, `less` or `more`."""
    if together * apart < 0:
        return "opposite"
    if abs(together - apart) <= max(_AGREE * abs(apart), result.floor.rounding):
        return "same"
    return "less" if abs(together) > abs(apart) else "more"


def _readers(result: Ablation) -> list[object]:
    """Facts about the path's receivers: heads grouped by their inputs, and `direct` for the answer."""
    path = result.path
    if path is None:
        return []
    groups: dict[str, list[Place]] = {}
    for each in path.receivers:
        groups.setdefault(each.inputs, []).append((each.layer, each.head))
    whole = _are_whole_layers(result)
    told: list[object] = [
        {
            "inputs": inputs,
            "names": [name(*each) for each in heads] if len(heads) <= _NAMED else [],
            "count": len(heads),
            "layers": _layers(heads),
            "whole": whole,
        }
        for inputs, heads in groups.items()
    ]
    return [*told, "direct"] if path.direct and told else told


def _others_read(result: Ablation) -> dict[str, object] | None:
    """Facts about the control receivers: their kind, count and layers, and the largest change by them."""
    path = result.path
    if path is None or not path.others:
        return None
    layers = _layers([head for one in path.others for head in one.heads])
    mine = sorted({each.layer for each in path.receivers})
    most = max((one.effect.change for one in path.others), key=abs)
    kind = "head" if len(path.others[0].heads) == 1 else "group"
    if layers != mine:
        kind = "layers" if len(mine) > 1 else "layer"
    nothing = abs(most) <= max(result.floor.rounding, _NOTHING)
    return {"kind": kind, "count": len(path.others), "layers": layers, "most": most, "nothing": nothing}


def _stretches(result: Ablation) -> list[dict[str, object]]:
    """Runs of layers whose largest share of the gap between two texts stands at the same token."""
    if result.part is not Part.RESIDUAL or not result.of_several_tokens or result.case is not Case.CLOSES:
        return []
    best = [
        max(places, key=lambda each: share(result, each.change) or 0.0)
        for _, places in groupby(result.places, key=lambda each: each.layer)
    ]
    told = []
    for at, places in groupby(best, key=lambda each: _spelled(tokens_of(result), each.positions)):
        there = list(places)
        least = min(share(result, each.change) or 0.0 for each in there)
        told.append({"at": at, "layers": [each.layer for each in there], "least": min(max(least, 0.0), 1.0)})
    return told


def _back(result: Ablation, parts: Sequence[float | None]) -> dict[str, object] | None:
    """Facts about the place that brings back most of the answer in the other text, and its share."""
    known = [(part, place) for part, place in zip(parts, result.places, strict=True) if part is not None]
    if not known:
        return None
    part, place = max(known, key=lambda each: each[0])
    return _one(result, place) | {"enough": part, "part": part if is_share(part) else None}
