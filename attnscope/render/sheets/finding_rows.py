"""The heads of a finding as rows: their numbers beside those of their controls, in groups by evidence."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from attnscope.render.kit.numbers import signed, weight
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import each_of
from attnscope.render.sheet.said import Place, in_sentence, named
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.table import Column, Mark, Table, Tint, Values, only
from attnscope.render.sheets import finding_words as words
from attnscope.render.words import Said
from attnscope.results import Finding
from attnscope.results.claims.ranking import STEADIEST, DependsOn, Group

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
