"""Heads ranked by the evidence for them, each beside its controls."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import alike, counted, signed, signed_cell, weight, weight_cell
from attnscope.render.kit.words.command import asking, finding, label, looked_at, opening_head
from attnscope.render.kit.words.shell import word
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.guard import by_head
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import (
    Place,
    at,
    departures,
    grid_size,
    in_sentence,
    limits,
    name,
    named,
    proof,
    read,
    setting,
    span_notes,
)
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table, Tint, Values, only
from attnscope.render.sheets import finding_words as words
from attnscope.render.sheets.heaps import of_finding
from attnscope.results import Contents, Finding, Kind, Special
from attnscope.results.claims.finding import Case
from attnscope.results.claims.ranking import LEAST_CONTROLS, LEAST_SPREAD, LEVEL, DependsOn, Group

# heads of a group that are shown; the rest is counted
_SHOWN = {Group.STANDS_OUT: 8, Group.ABOVE_ITS_OWN: 4, Group.POSITION: 3, Group.NEITHER: 0}
_FEW = 5  # that are shown where there is none of a group
_CONTROLS_TOLD = 3  # under -v; JSON has all of them
_BARS: dict[DependsOn | None, tuple[Tint, str]] = {
    DependsOn.CONTEXT: ("own", "{context}: lost when the {parts} are shuffled"),
    DependsOn.WORD: ("kin", "{part}: follows {key} when the {parts} are shuffled"),
    DependsOn.POSITION: ("faint", "position: stays when the {parts} are shuffled"),
    None: ("floor", "no more than even attention"),
}


def sheet(result: Finding, focus: Focus = WHOLE) -> Sheet:
    best = result.ranking[0] if result.ranking else None
    ranking = _ranking(result, focus.verbose)
    measured, change = (
        "divergence" if result.smaller_is_better else "weight",
        Scale.around(result.above_control),
    )
    beside = Companion.numbers("mean of its controls", result.controls.mean, weight_cell)
    sought, changed = result.question, departures(result.words, result.special)
    pieces = " by tokens" if changed or sought.query_span or sought.key_span else ""
    grids = (
        _grid(result, "above the mean of its controls", result.above_control, change),
        _grid(result, measured, result.weights, _scale(result), beside),
    )
    return Sheet(
        title=_subject(result),
        setting=setting(result, grid_size(result.layers, result.heads)),
        origins=(result.provenance,),
        answer=words.answer(result),
        blocks=(ranking, *(grids if focus.verbose else ())),
        table=lambda: _table(result, result.ranking, True),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        control=words.control(result),
        notes=(*_spans(result), *_notes(result), *limits(result)),
        legend=tuple(_legend(result)),
        details=tuple(_details(result)),
        departs=(*changed, *_departures(result)),
        proof=proof(
            (each for row in result.verdicts for each in row),
            "head",
            pieces,
            "the rows asked about in " if result.by_rows else "",
        ),
        verdicts=by_head(result.layers, result.heads, result.verdicts),
        main=ranking,
        summary=(counted(result.weights.size, "head"), f"best {named(result, best)}" if best else ""),
        record=(("kind", result.kind.value), ("tower", result.tower)),
        next=_next(result),
        more=(*of_finding(result), *(() if focus.verbose else grids)),
        opens=_opens(result, best or (0, 0)),
    )


def _subject(result: Finding) -> str:
    """What heads are ranked by: `weight of 7 [MASK] → 5 door`."""
    sought = result.question
    if sought.like is not None:
        return f"Jensen-Shannon divergence from {name(*sought.like)} in nats"
    if sought.pattern is not None:
        pattern = words.pattern_words(result, sought.pattern)
        return f"weight on {pattern}, mean of {counted(result.rows, 'query')}"
    assert sought.query is not None, "a pair, where nothing else is sought"
    assert sought.key is not None, "a pair has both"
    query = at(result.query_tokens, sought.query, sought.query_span)
    return f"weight of {query} → {at(result.key_tokens, sought.key, sought.key_span)}"


def _spans(result: Finding) -> Iterator[str]:
    sides, sought = words.sides(result), result.question
    return span_notes(sides[0], sought.query_span, sides[1], sought.key_span)


def _scale(result: Finding) -> Scale:
    """From 0 to 1 where that shows the numbers, else to the largest; what is best is dark."""
    largest = float(np.nanmax(result.weights, initial=0.0))
    if result.smaller_is_better:
        return Scale(0.0, largest or 1.0, "falling", ("nearest", ""))
    return Scale(0.0, 1.0 if largest > 0.4 else largest or 1.0)


def _grid(
    result: Finding,
    title: str,
    values: np.ndarray,
    scale: Scale,
    control: Companion | None = None,
) -> HeadGrid:
    form = alike(values, 2, signed_cell if scale.kind == "signed" else weight_cell)
    unit = "nats" if result.smaller_is_better else ""
    return HeadGrid(title, result.layers, result.heads, values, scale, form, unit, companion=control)


def _table(result: Finding, places: Sequence[Place], whole: bool) -> Table:
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
    moved = "what all pieces move together" if result.words else "what is moved"
    goes = "is nearer than" if result.smaller_is_better else "goes beyond"
    apart = partial(signed, decimals=1)
    depends = f"what becomes of the weight when the {words.PLURAL[controls.of]} are shuffled"
    # fmt: off
    return Table(
        Column("layer", [result.layers[i] for i, _ in places]),
        Column("head", [result.heads[j] for _, j in places]),
        Column("weight", of_each(result.weights), measured, partial(weight, decimals=3 if whole else 2),
               scale=_scale(result)),
        Column("rank", of_each(result.ranks), more("rank"), f"{{:.{0 if single else 1}f}}".format, rank,
               spared=2),
        Column("norm", of_each(result.norms)),
        Column("norm_share", of_each(result.shares), more("share of output"), weight,
               f"share of its row by weight x ||f(x)||, {moved} (Kobayashi et al. 2020)", spared=3),
        Column("even_attention", of_each(result.even_attention), more("even"), weight,
               "what even attention gives", spared=4),
        Column("control_mean", of_each(controls.mean), "mean", weight,
               "mean of the controls", under=under),
        Column("control_low", low, "90 % between", says="the middle nine tenths of them", told=between,
               under=under),
        Column("control_high", high),
        Column("control_spread", of_each(controls.spread)),
        Column("below", of_each(controls.below), "below", "{:.0f}".format,
               f"how many of the controls the {controls.of.value} {goes}", under=under),
        Column("above_control", of_each(result.above_control), more("above control"), signed,
               "weight less the mean of the controls", Scale.around(result.above_control)),
        Column("excess", of_each(result.evidence.excess), more("excess"), apart,
               f"the same in its own spread over its controls, at least {weight(LEAST_SPREAD)} (Westfall "
               "and Young 1993)"),
        Column("followed", of_each(result.followed), more("goes with the word"), weight, _follows(result),
               spared=5),
        Column("depends_on", _dependence(result, places), "depends on", says=depends),
        Column("stands_out", [int(result.stands_out(place)) for place in places]),
        Column("verdict", [result.verdicts[i][j].value for i, j in places]),
)
    # fmt: on


def _dependence(result: Finding, places: Sequence[Place]) -> list[str]:
    """What each of these heads depends on, as it is called of words, patches or frames."""
    of = result.controls.of
    called = {DependsOn.POSITION: "position", DependsOn.WORD: of.part, None: ""}
    called[DependsOn.CONTEXT] = _context(of)
    return [called[result.evidence.depends_on(place)] for place in places]


def _context(of: Contents) -> str:
    """What a head depends on whose weight is lost when words, patches or frames are shuffled."""
    return "context" if of is Contents.TEXT else of.value


def _follows(result: Finding) -> str:
    if result.question.key is None:
        return ""
    key = in_sentence(result.key_tokens, result.question.key)
    return f"what the query gives to {key} in the controls, wherever it went"


def _depends(result: Finding) -> Iterator[str]:
    """What a head is said to depend on, by what of its weight is left in the controls."""
    of, shuffled = result.controls.of, f"when the {words.PLURAL[result.controls.of]} are shuffled"
    half = "half of the weight or more"
    yield f"position: {half} stays {shuffled}, and the weight is at least twice that of even attention"
    if result.followed is not None:
        yield f"{of.part}: {half} follows {words.sides(result)[1]} to wherever it is moved"
    yield f"{_context(of)}: neither; the weight is lost {shuffled}, which happens in an untrained model too"


def _legend(result: Finding) -> Iterator[str]:
    """What the groups are, and what the controls are and are not."""
    count, of = result.controls.count, words.control_texts(result)
    lies, than = ("below", "nearer than") if result.smaller_is_better else ("above", "larger than")
    if any(result.evidence.depends_on(place) for place in result.ranking):
        yield from _depends(result)
    if count >= LEAST_CONTROLS:
        lies, than = ("below", "nearer than") if result.smaller_is_better else ("above", "larger than")
        few = int(LEVEL * (count + 1) + 1e-9) - 1
        yield (
            f"stand out: so far {lies} the mean of its {of} that in at most {few} of {count} any head lies "
            f"as far {lies} its own, counted in the spread of each head (Westfall and Young 1993)"
        )
        yield (
            f"above their own controls only: {than} in {count - few} of {count} or more; of many heads some "
            "are so by luck"
        )
    how, of = result.controls.how.partition("; ")[0], words.PLURAL[result.controls.of]
    yield f"shuffled: {how}; {of} in such an order make no sense"


def _ranking(result: Finding, whole: bool) -> Ranking:
    """The heads by their groups, the best first, as bars in the colour of what they depend on."""
    shown = {group: result.evidence.of_group(group) for group in result.evidence.groups}
    if not whole:
        few = not shown[Group.STANDS_OUT] and not shown[Group.ABOVE_ITS_OWN]
        most = _SHOWN | ({Group.NEITHER: _FEW} if few else {})
        shown = {group: places[: most[group]] for group, places in shown.items()}
    places = [place for there in shown.values() for place in there]
    sections, begins = [], 0
    for group, there in shown.items():
        if there:
            sections.append((begins, words.group_words(result, group, len(there))))
            begins += len(there)
    table = _table(result, places, whole)
    listed = len(shown.get(Group.NEITHER, ()))
    hidden = len(result.evidence.of_group(Group.NEITHER)) - listed
    rest = f"{counted(hidden, 'head')} show{'s' if hidden == 1 else ''} neither (-v)"
    if listed:  # they have a heading of their own, under which a few of them stand
        rest = f"{counted(hidden, 'more head')} (-v)"
    ends = table["control_low"].values, table["control_high"].values
    return Ranking(
        title="",
        of="head",
        names=tuple(named(result, place) for place in places),
        table=table,
        sections=tuple(sections),
        measured="divergence in nats" if result.smaller_is_better else "weight",
        marks=(
            *_bars(result, places, table["weight"].values),
            Mark("span", "control", "", *ends),
            Mark("ring", "control", "its controls: mean, 90 %", table["control_mean"].values),
        ),
        axis=(0.0, 1.02) if _scale(result).high == 1.0 and not result.smaller_is_better else None,
        unshown=rest if hidden else "",
        hidden=len(result.ranking) - len(places),
    )


def _bars(result: Finding, places: Sequence[Place], values: Sequence[float]) -> list[Mark]:
    """The number of each head, in the tint of what it depends on."""
    of, accounts = result.controls.of, [result.evidence.depends_on(place) for place in places]
    if result.smaller_is_better:
        return [Mark("bar", "own", f"this {of.value}", values)]
    said = {
        "context": _context(of),
        "part": of.part,
        "parts": words.PLURAL[of],
        "key": words.sides(result)[1],
    }
    return [
        Mark("bar", tint, told.format(**said), only(values, (each is account for each in accounts)))
        for account, (tint, told) in _BARS.items()
        if account in accounts
    ]


def _departures(result: Finding) -> Iterator[str]:
    """How many controls there are where these are not as many as were asked for, and their seed."""
    controls = result.controls
    if controls.count != controls.wanted:
        yield f"{controls.count} of {controls.wanted} controls"
    if controls.seed:
        yield f"seed {controls.seed}"


def _details(result: Finding) -> Iterator[str]:
    """The first controls themselves, and what even attention would have."""
    yield from (f"control {i}: {text}" for i, text in enumerate(result.control_texts[:_CONTROLS_TOLD]))
    best = [weight(float(each)) for each in np.quantile(result.controls.best, (0.05, 0.5, 0.95))]
    if result.ranking:
        yield f"best head of a control: {best[1]} in the median, {best[0]} to {best[2]}"
    if result.even_attention is not None and not np.isnan(result.even_attention).all():
        least, most = (weight(float(each(result.even_attention))) for each in (np.nanmin, np.nanmax))
        yield f"even attention: {least if least == most else f'{least} to {most}'}"


def _notes(result: Finding) -> Iterator[str]:
    """What has to be known to read the numbers."""
    key = result.question.key
    if key is not None and result.key_tokens.items[key].special:
        plural = words.PLURAL[result.controls.of]
        yield f"the key is a special token, which stays: the controls have other {plural} around it"


def _next(result: Finding) -> Next | None:
    """The question that this answer raises: the row before, the model's answer, the head, or other keys."""
    sought = result.question
    if not result.ranking:
        return None
    i, j = result.ranking[0]
    looking = looked_at(result.words, result.special)
    crosses = result.kind is Kind.CROSS and result.query_tokens.texts
    if sought.query is None or sought.key is None:
        opened = opening_head(result, result.layers[i], result.heads[j])
        return Next("what does that head look at?", f"{opened}{looking}")
    if crosses and sought.query > 0:
        before = finding(result, sought.query - 1, sought.key)
        return Next(
            "a row decides the next word: which heads look there one row before?", f"{before}{looking}"
        )
    if result.case not in (Case.ONE, Case.SEVERAL):
        query = label(result.query_tokens, sought.query)
        if result.by_rows:
            opened = opening_head(result, result.layers[i], result.heads[j], sought.query)
            return Next("what does the first of these look at from there?", f"{opened}{looking}")
        return Next(
            "what do heads look at from there?", f"{asking(result, 'heads', '--query', query)}{looking}"
        )
    if _is_mask(result) and not looking:
        link = f"{result.query_tokens.labels[sought.query]}->{result.key_tokens.labels[sought.key]}"
        cut = asking(result, "ablate", "--layer", str(result.layers[i]), "--link", word(link))
        return Next("does the model's answer need the link?", cut)
    over = not result.query_tokens.texts and result.key_tokens.stretches  # where every key is shown
    opened = opening_head(result, result.layers[i], result.heads[j], sought.query if over else None)
    return Next("does everything look there in this head?", f"{opened}{looking}")


def _is_mask(result: Finding) -> bool:
    """Whether the token that looks is a blank, which the model answers."""
    query = result.question.query
    token = None if query is None else result.query_tokens.items[query]
    return token is not None and "mask" in token.name.casefold() and not token.name.isalpha()


def _opens(result: Finding, best: Place) -> dict[str, object]:
    """Head and link; of a span its first token."""
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
        "words": result.words,
        "special": result.special,
    }
