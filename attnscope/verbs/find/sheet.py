"""Heads ranked by the evidence for them, each beside its controls."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from attnscope.printable import word
from attnscope.render.kit.command import asking, finding, label, looked_at, opening_head
from attnscope.render.kit.numbers import alike, cell, counted, signed, signed_cell, weight, weight_cell
from attnscope.render.sheet.blocks import Heap, Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import (
    Place,
    departures,
    grid_size,
    in_sentence,
    limits,
    name,
    named,
    patch_words,
    proof,
    read,
    setting,
    span_notes,
)
from attnscope.render.sheet.sheet import Next, Sheet, by_head
from attnscope.render.sheet.table import Column, Mark, Scale, Table, Tint, Values, only
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Kind, Special
from attnscope.results.claims.ranking import STEADIEST, DependsOn, Group
from attnscope.verbs.find import words_sheet as words
from attnscope.verbs.find.result import Case, Finding

_NAMED = 6  # heads that are named one by one
_CONTROLS_TOLD = 3  # under -v; JSON has all of them


def sheet(result: Finding, focus: Focus = WHOLE) -> Sheet:
    best = result.ranking[0] if result.ranking else None
    say = words.said(result)
    best_first = ranking(result, focus.verbose)
    measured, change = (
        "divergence" if result.smaller_is_better else "weight",
        Scale.around(result.above_control),
    )
    beside = Companion.numbers("mean of its controls", result.controls.mean, weight_cell)
    sought, changed = result.question, departures(result.by, result.special)
    pieces = " by tokens" if changed or sought.query_span or sought.key_span else ""
    grids = (
        _grid(result, "above the mean of its controls", result.above_control, change),
        _grid(result, measured, result.weights, scale_of(result), beside),
    )
    return Sheet(
        title=say("title"),
        setting=setting(result, _size(result)),
        origins=(result.provenance,),
        answer=words.answer(result),
        blocks=(best_first, *(grids if focus.verbose else ())),
        table=lambda: table_of(result, result.ranking, True),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        control=say("control"),
        notes=(*_spans(result), *say.lines("notes"), *limits(result)),
        legend=(*patch_words(result.query_tokens, result.key_tokens), *say.lines("legend")),
        details=tuple(_details(result, say)),
        departs=(*changed, *_departures(result)),
        proof=proof(
            result.every_verdict, "head", pieces, "the rows asked about in " if result.by_rows else ""
        ),
        verdicts=by_head(result.layers, result.heads, result.verdicts),
        main=best_first,
        summary=(counted(len(result.places), "head"), f"best {named(result, best)}" if best else ""),
        record=(("kind", result.kind.value), ("tower", result.tower)),
        next=_next(result, say),
        more=(*_heap(result), *(() if focus.verbose else grids)),
        opens=_opens(result, best or (0, 0)),
    )


def _size(result: Finding) -> str:
    if not result.apart:
        return grid_size(result.layers, result.heads)
    return ", ".join(name(*each) for each in result.apart[:_NAMED]) + (", ..." * (len(result.apart) > _NAMED))


def _spans(result: Finding) -> Iterator[str]:
    sides, sought = words.sides(result), result.question
    return span_notes(sides[0], sought.query_span, sides[1], sought.key_span)


def _grid(
    result: Finding, title: str, values: np.ndarray, scale: Scale, control: Companion | None = None
) -> HeadGrid:
    form = alike(values, 2, signed_cell if scale.kind == "signed" else weight_cell)
    unit = "nats" if result.smaller_is_better else ""
    return HeadGrid(title, result.layers, result.heads, values, scale, form, unit, companion=control)


def _departures(result: Finding) -> Iterator[str]:
    controls = result.controls
    if controls.count != controls.wanted:
        yield f"{controls.count} of {controls.wanted} controls"
    if controls.seed:
        yield f"seed {controls.seed}"


def _details(result: Finding, say: Said) -> Iterator[str]:
    yield from (f"control {i}: {text}" for i, text in enumerate(result.control_texts[:_CONTROLS_TOLD]))
    yield from say.lines("details")


def _next(result: Finding, say: Said) -> Next | None:
    sought = result.question
    if not result.ranking:
        return None
    i, j = result.ranking[0]
    looking = looked_at(result.by, result.special)
    crosses = result.kind is Kind.CROSS and result.query_tokens.texts
    if sought.query is None or sought.key is None:
        i, j = words.first_named(result) or (i, j)
        opened = opening_head(result, result.layers[i], result.heads[j])
        return Next(say("look_of_that_head"), f"{opened}{looking}")
    if crosses and sought.query > 0:
        before = finding(result, sought.query - 1, sought.key)
        return Next(say("row_before"), f"{before}{looking}")
    if result.case not in (Case.ONE, Case.SEVERAL):
        query = label(result.query_tokens, sought.query)
        if result.by_rows:
            opened = opening_head(result, result.layers[i], result.heads[j], sought.query)
            return Next(say("first_of_these"), f"{opened}{looking}")
        return Next(say("heads_from_there"), f"{asking(result, 'heads', '--query', query)}{looking}")
    if _is_mask(result) and not looking:
        link = f"{result.query_tokens.labels[sought.query]}->{result.key_tokens.labels[sought.key]}"
        cut = asking(result, "ablate", "--layer", str(result.layers[i]), "--link", word(link))
        return Next(say("needed"), cut)
    over = not result.query_tokens.texts and result.key_tokens.stretches  # where every key is shown
    opened = opening_head(result, result.layers[i], result.heads[j], sought.query if over else None)
    return Next(say("whole_head"), f"{opened}{looking}")


def _is_mask(result: Finding) -> bool:
    query = result.question.query
    token = None if query is None else result.query_tokens.items[query]
    return token is not None and "mask" in token.name.casefold() and not token.name.isalpha()


def _opens(result: Finding, best: Place) -> dict[str, object]:
    found = result.question
    pair = {"query": found.query, "key": found.key}
    if found.query_span or found.key_span:
        sides = (result.query_tokens, found.query), (result.key_tokens, found.key)
        places = [tokens.positions[place] for tokens, place in sides if place is not None]
        pair = dict(zip(pair, places, strict=True)) if result.special is Special.SHOW else {}
    return {
        "layer": result.layers[best[0]],
        "head": result.heads[best[1]],
        **pair,
        "words": result.by.joins,
        "special": result.special,
    }


# heads of a group that are shown; the rest is counted
_SHOWN = {Group.STANDS_OUT: 8, Group.ABOVE_ITS_OWN: 4, Group.POSITION: 3, Group.KEY: 3, Group.NEITHER: 0}
_FEW = 5  # that are shown where there is none of a group
_BARS: dict[DependsOn | None, Tint] = {
    DependsOn.CONTEXT: "own",
    DependsOn.WORD: "kin",
    DependsOn.POSITION: "faint",
    DependsOn.KEY: "peers",
    None: "floor",
}


def ranking(result: Finding, whole: bool) -> Ranking:
    """The heads by their groups, the best first, as bars in the colour of what they depend on."""
    shown = {group: result.evidence.of_group(group) for group in result.evidence.groups}
    if not whole:
        few = not shown[Group.STANDS_OUT] and not shown[Group.ABOVE_ITS_OWN]
        most = _SHOWN | ({Group.NEITHER: _FEW} if few else {})
        said = words.places_named(result)
        shown = {
            group: tuple(each for i, each in enumerate(places) if i < most[group] or each in said)
            for group, places in shown.items()
        }
    places = [place for there in shown.values() for place in there]
    sections, begins = [], 0
    for group, there in shown.items():
        if there:
            sections.append((begins, words.group_words(result, group, len(there))))
            begins += len(there)
    table = table_of(result, places, whole)
    listed = len(shown.get(Group.NEITHER, ()))
    hidden = len(result.evidence.of_group(Group.NEITHER)) - listed
    say = words.said(result)
    ends = table["control_low"].values, table["control_high"].values
    return Ranking(
        title="",
        of="head",
        names=tuple(named(result, place) for place in places),
        table=table,
        sections=tuple(sections),
        measured="divergence in nats" if result.smaller_is_better else "weight",
        marks=(
            *_bars(result, say, places, table["weight"].values),
            Mark("span", "control", "", *ends),
            Mark("ring", "control", say("its_controls"), table["control_mean"].values),
        ),
        axis=(0.0, 1.02) if scale_of(result).high == 1.0 and not result.smaller_is_better else None,
        unshown=say("hidden", hidden, listed) if hidden else "",
        hidden=len(result.ranking) - len(places),
    )


def _bars(result: Finding, say: Said, places: Sequence[Place], values: Sequence[float]) -> list[Mark]:
    of, accounts = result.controls.of, [result.evidence.depends_on(place) for place in places]
    if result.smaller_is_better:
        return [Mark("bar", "own", f"this {of.value}", values)]
    return [
        Mark("bar", tint, say("bar", account), only(values, (each is account for each in accounts)))
        for account, tint in _BARS.items()
        if account in accounts
    ]


def table_of(result: Finding, places: Sequence[Place], whole: bool) -> Table:
    """A row for each of these heads; people see few columns, or the `whole` of them."""
    controls = result.controls

    def of_each(values: np.ndarray | None) -> Values:
        return [None] * len(places) if values is None else each_of(values, places)

    def more(heading: str) -> str:
        return heading if whole else ""

    low, high = of_each(controls.low), of_each(controls.high)
    between = [f"{weight(a)} - {weight(b)}" for a, b in zip(low, high, strict=True)]
    single, under = result.question.pattern is None, f"in {words.control_texts(result, controls.count)}"
    measured = "apart" if result.smaller_is_better else "weight"
    rank = f"{'of that key' if single else 'of the strongest such key, mean,'} in its row"
    moved = "what all pieces move together" if result.by.joins else "what is moved"
    goes = "is nearer than" if result.smaller_is_better else "goes beyond"
    apart = partial(signed, decimals=1)
    others = words.said(result)("others")
    depends = f"what becomes of the weight when the {words.PLURAL[controls.of]} are shuffled"
    # fmt: off
    return Table(
        Column("layer", [result.layers[i] for i, _ in places]),
        Column("head", [result.heads[j] for _, j in places]),
        Column("weight", of_each(result.weights), measured, partial(weight, decimals=3 if whole else 2),
               scale=scale_of(result)),
        Column("rank", of_each(result.ranks), more("rank"), f"{{:.{0 if single else 1}f}}".format, rank,
               spared=2),
        Column("norm", of_each(result.norms)),
        Column("norm_share", of_each(result.shares), more("share of output"), weight,
               f"share of its row by weight x ||f(x)||, {moved} (Kobayashi et al. 2020)", spared=3),
        Column("even_attention", of_each(result.even_attention), more("if all the same"), weight,
               "what each would get if all got the same", spared=4),
        Column("control_mean", of_each(controls.mean), "mean", weight,
               f"mean of the {words.control_texts(result)}", under=under),
        Column("control_low", low, "90 % between", says="the middle nine tenths of them", told=between,
               under=under),
        Column("control_high", high),
        Column("control_spread", of_each(controls.spread)),
        Column("below", of_each(controls.below), "below", "{:.0f}".format,
               f"how many of them the {controls.of.value} {goes}", under=under),
        Column("above_control", of_each(result.above_control), more("above mean"), signed,
               "weight less that mean", Scale.around(result.above_control)),
        Column("excess", of_each(result.evidence.excess), more("excess"), apart,
               f"the same in its own spread over them, at least {weight(STEADIEST)} (Westfall "
               "and Young 1993)"),
        Column("elsewhere", of_each(result.elsewhere), more("from elsewhere"), weight,
               f"what {others} of the {controls.of.value} give to it, mean", spared=6),
        Column("followed", of_each(result.followed), more("goes with the word"), weight, _follows(result),
               spared=5),
        Column("depends_on", _dependence(result, places), "depends on", says=depends),
        Column("stands_out", [int(result.stands_out(place)) for place in places]),
        Column("verdict", [result.verdicts[i][j].value for i, j in places]),
)
    # fmt: on


def _dependence(result: Finding, places: Sequence[Place]) -> list[str]:
    of = result.controls.of
    called = {DependsOn.POSITION: "place", DependsOn.KEY: "key", DependsOn.WORD: of.part, None: ""}
    called[DependsOn.CONTEXT] = words.context_words(of)
    return [called[result.evidence.depends_on(place)] for place in places]


def _follows(result: Finding) -> str:
    if result.question.key is None:
        return ""
    key = in_sentence(result.key_tokens, result.question.key)
    return f"what the query gives to {key} wherever it was moved"


def scale_of(result: Finding) -> Scale:
    """From 0 to 1 where that shows the numbers, else to the largest; what is best is dark."""
    largest = float(np.nanmax(result.weights, initial=0.0))
    if result.smaller_is_better:
        return Scale(0.0, largest or 1.0, "falling", ("nearest", ""))
    return Scale(0.0, 1.0 if largest > 0.4 else largest or 1.0)


def _heap(result: Finding) -> Iterator[Heap]:
    """How far the best head of each control lies above its own controls, and the best head of the text.

    Counted in the spread of each head (Westfall and Young 1993); none without a ranking or controls.
    """
    best = result.controls.best_excess
    best = np.maximum(best[np.isfinite(best)], 0.0)
    if not result.ranking or not len(best):
        return
    first = result.ranking[0]
    own = max(float(result.evidence.excess[first]), 0.0)
    beyond = int((best >= own).sum())
    say = words.said(result)
    yield Heap(
        title=say("heap_title", named(result, first), beyond, len(best)),
        dots=say("heap_dots"),
        values=tuple(best.tolist()),
        name=named(result, first),
        own=own,
        measured=say("heap_measured"),
        form=lambda value: cell(value, 1),
    )
