"""What a model's answer becomes without some of its heads."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple

from attnscope.printable import word
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import (
    alike,
    counted,
    give_or_take,
    largest_magnitude,
    number,
    signed_cell,
)
from attnscope.render.kit.words.command import asking, finding, opening_head
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadGrid, by_head
from attnscope.render.sheet.said import name, setting
from attnscope.render.sheet.scale import Scale, missing
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table, Values, both_ways, only
from attnscope.render.sheets import ablation_labels as labels
from attnscope.render.sheets import ablation_measured as measured
from attnscope.render.sheets.ablation_places import of_places
from attnscope.render.sheets.ablation_words import answer
from attnscope.render.sheets.heaps import of_ablation
from attnscope.results import Ablation, Kind
from attnscope.results.claims.ablation import Case, Method
from attnscope.results.claims.effect import Asks, Effect, Group, HeadEffect
from attnscope.results.claims.intervention import Measured
from attnscope.spelling import spelled

# what numbers of a grid are told in where the largest of them is below so much
_PARTS = {"millionths": 1e-4, "thousandths": 0.1}
_SHOWN = 12  # heads that are shown
_FORETOLD = {
    "patching": "attribution patching",
    "importance": "importance with its sign, Michel et al. 2019",
    "attention-gradient": "weight x gradient that is gone",
    "logit": "what is gone straight from the answer's logit, in logits",
}


class Row(NamedTuple):
    """What was taken away, why it is in the table, what it did, beside what, and what was foretold of it."""

    name: str
    kind: Literal["", "group", "random", "foretold"]
    head: tuple[int, int] | tuple[None, None] = (None, None)
    effect: Effect | None = None
    beside: HeadEffect | Group | None = None
    predicted: float | None = None


def _answers(result: Ablation) -> dict[str, int]:
    position = result.answer.position
    own = result.kind is not Kind.CROSS and position is not None
    return {"query": position} if own and position is not None else {}


def sheet(result: Ablation, focus: Focus = WHOLE) -> Sheet:
    if result.places:
        return of_places(result, focus)
    ranking = _ranking(result, focus.verbose)
    best = labels.most(result) if result.heads else None
    return Sheet(
        title=f"{labels.done_words(result)} · answer {measured.answer_words(result)}",
        setting=setting(result),
        origins=(result.provenance,),
        answer=answer(result),
        blocks=(ranking, *_grids(result)),
        table=lambda: _table(result, list(_every(result)), True),
        texts=tuple(labels.texts(result)),
        control=labels.control(result),
        notes=result.notes,
        legend=tuple(labels.legend(result)),
        details=(labels.read_back(result),),
        departs=(f"seed {result.floor.seed}",) if result.floor.seed else (),
        proof=((result.verdict, labels.proof_words(result)),),
        main=ranking,
        summary=(f"most {name(*best)}",) if best else (),
        record=(
            ("kind", result.kind.value),
            ("tower", result.tower),
            ("method", result.method.value),
            *labels.path_record(result),
        ),
        next=_next(result),
        more=tuple(of_ablation(result)),
        opens={"layer": best[0], "head": best[1]} | _answers(result) if best else {},
    )


def _next(result: Ablation) -> Next | None:
    if not result.heads:
        return None
    named = labels.asked_again(result)
    if result.case in (Case.NO_GAP, Case.LITTLE, Case.ROUNDING):
        ran = asking(result, "ablate", *named)
        if result.case is Case.NO_GAP or len(result.heads) < 2:
            needs = "the text's vector" if result.answer.asks is Asks.VECTOR else "the answer"
            return Next(f"which heads does {needs} need?", ran)
    elif result.link is not None:
        return Next("do heads look there because of the words?", _finding(result, *result.link))
    elif result.case in (Case.EACH, Case.FLAT):
        two = ",".join(f"L{each.layer}H{each.head}" for each in result.heads[:2])
        means = ("--with", "mean") if result.method is Method.MEAN else ()
        return Next(
            "what does the answer become without both of the first two?",
            asking(result, "ablate", "--heads", two, *means, *named),
        )
    first = "that head" if len(result.heads) == 1 else name(*labels.most(result))
    query = result.answer.position if result.kind is not Kind.CROSS else None
    return Next(f"what does {first} look at?", opening_head(result, *labels.most(result), query))


def _finding(result: Ablation, query: int, key: int) -> str:
    if not result.link_spans:
        return finding(result, query, key)
    sides = zip((result.query_tokens, result.key_tokens), result.link_spans, strict=True)
    asked, given = (word(f"{spelled(tokens, span)}@{span[0]}") for tokens, span in sides)
    return asking(result, "find", "--from", asked, "--to", given)


def _head(one: HeadEffect, kind: Literal["", "random"] = "") -> Row:
    named = f"{name(one.layer, one.head)}{' random' if kind else ''}"
    return Row(named, kind, (one.layer, one.head), one, one, one.predicted)


def _group_row(result: Ablation) -> list[Row]:
    group = result.group
    return [] if group is None else [Row(labels.at_once(group), "group", effect=group.effect, beside=group)]


def _every(result: Ablation) -> Iterator[Row]:
    yield from map(_head, result.heads)
    yield from (_head(one, "random") for one in result.floor.random)
    yield from _group_row(result)
    ran = {(one.layer, one.head) for one in result.heads}
    for each in result.predicted:
        if (head := (each.layer, each.head)) not in ran:
            yield Row(name(*head), "foretold", head, predicted=each.change)


def _ranking(result: Ablation, whole: bool) -> Ranking:
    shown = result.heads if whole else result.heads[:_SHOWN]
    drawn = sorted(result.floor.random, key=lambda one: -abs(one.change)) if whole else []
    rows = [*_group_row(result), *map(_head, shown), *(_head(one, "random") for one in drawn)]
    table = _table(result, rows, whole)
    values, others = table["change"].values, table["typical"].values
    asked, rounding = [row.kind != "random" for row in rows], result.floor.rounding
    marks = (
        Mark("band", "floor", "typical head of its layer", others, [each and -each for each in others]),
        *both_ways(only(values, asked), "the answer loses", "the answer gains"),
        Mark("bar", "faint", "random heads of these layers", only(values, (not own for own in asked))),
        Mark("diamond", "control", "predicted", table["predicted"].values),
        Mark("line", "noise", f"rounding: {give_or_take(rounding, None)}", [-rounding, rounding]),
    )
    hidden = len(result.heads) - len(shown)
    ranked = len(shown) > 1 and any(each.controls for each in shown)
    return Ranking(
        title="ordered by how far a change goes beyond the typical head of its layer" if ranked else "",
        of=labels.removed(result),
        names=tuple(row.name for row in rows),
        table=table,
        measured=measured.changes(result),
        marks=tuple(each for each in marks if not all(map(missing, each.at))),
        written="change",
        faint=frozenset(i for i, own in enumerate(asked) if not own),
        hidden=hidden,
        unshown=f"{counted(hidden, 'more head')} (-v)" if hidden else "",
    )


def _table(result: Ablation, rows: Sequence[Row], whole: bool) -> Table:
    places = measured.decimals(result)
    digits, change = partial(number, decimals=places), partial(signed_cell, decimals=places)
    changes = [None if row.effect is None else row.effect.change for row in rows]
    shares = [None if row.effect is None else measured.share(result, row.effect.change) for row in rows]
    parts = [
        "" if row.effect is None else measured.told_share(result, part, row.effect.change)
        for part, row in zip(shares, rows, strict=True)
    ]
    beside = [row.beside if row.beside and row.beside.controls else None for row in rows]
    pairs = ["" if row.effect is None else measured.pair(result, row.effect) for row in rows]
    ranks = ["" if each is None else labels.rank(each, isinstance(each, Group)) for each in beside]
    of = "the whole text" if result.answer.asks is Asks.WRITTEN else "the answer"
    says = f"probability of {of} before and after"
    if result.measured is not Measured.CHANCE:
        says = f"{measured.subject(result)}, before and after"

    def of_each(field: str) -> Values:
        return [getattr(row.effect, field, None) for row in rows]

    # fmt: off
    return Table(
        Column("layer", [row.head[0] for row in rows]),
        Column("head", [row.head[1] for row in rows]),
        Column("before", of_each("before")),
        Column("after", of_each("after"), measured.heading(result), told=pairs,
               says=says),
        Column("change", changes, f"change ({result.unit})", change,
               "of its logarithm" if result.measured is Measured.CHANCE else "after less before",
               Scale.around([each or 0.0 for each in changes])),
        Column("kl", of_each("kl"), "all answers moved" if whole else "", digits,
               measured.moved_words(result), spared=3),
        Column("typical", [None if each is None else each.typical for each in beside],
               "typical of layer", digits, "median size of the change that others make alone", spared=1),
        Column("below", [each and each.below for each in beside], "in its layer", told=ranks,
               says="which it is of these by the size of its change: a rank, not a test"),
        Column("controls", [each and each.controls for each in beside]),
        Column("predicted", [row.predicted for row in rows], "predicted", change, _by(result)),
        Column("drawn", ["" if row.kind == "foretold" else row.kind for row in rows]),
        Column("whole", of_each("whole"), "by all ways", change,
               "change where everything reads it", spared=1),
        Column("share", shares, "share of the gap", told=parts,
               says="part of what the whole other text makes"),
        Column("instead", of_each("instead"), "then answers" if whole else "",
               says="what the model answers then, where that is another answer", spared=2),
)
    # fmt: on


def _by(result: Ablation) -> str:
    told = f"what one backward pass predicts ({_FORETOLD.get(result.predicted_by, result.predicted_by)})"
    if result.method is Method.ZERO and result.predicted_by == "patching":
        told += ", of zeros the head's importance (Michel et al. 2019) with its sign"
    return told


def _grids(result: Ablation) -> Iterator[HeadGrid]:
    if result.predicted:
        foretold = {(each.layer, each.head): each.change for each in result.predicted}
        layers = tuple(sorted({layer for layer, _ in foretold}))
        heads = tuple(range(1 + max(head for _, head in foretold)))
        values = by_head(layers, heads, foretold)
        form = alike(values, 2, signed_cell)
        title = f"change ({measured.less(result)}) predicted by the gradient"
        yield HeadGrid(title, layers, heads, values, Scale.around(values), form)
    elif len(result.layers) > 1 and len(result.heads) > 1:
        yield _grid(result)


def _grid(result: Ablation) -> HeadGrid:
    largest = largest_magnitude(result.grid)
    part = next((each for each, most in _PARTS.items() if 0 < largest < most), "")
    return HeadGrid(
        title=f"change ({measured.less(result)}) {labels.each_head(result)}",
        layers=result.layers,
        heads=tuple(range(result.grid.shape[1])),
        values=result.grid,
        scale=Scale.around(result.grid),
        form=_in(part, signed_cell) if part else signed_cell,
        unit=f"in {part}" if part else "",
    )


def _in(part: str, write: Callable[[float, int], str]) -> Callable[[float], str]:
    return lambda value: write((1e6 if part == "millionths" else 1e3) * value, 1)
