"""Sheet of `find --pattern retrieval`: scores of heads, answers by depth, answers without named heads."""

from collections.abc import Iterator
from statistics import mean

from attnscope.render.kit.numbers import cell, counted, exact, percent, weight_cell
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import name, proof_in
from attnscope.render.sheet.sheet import Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Table, as_written
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.verbs.find.result import Confirmation, Retrieval

_COLUMNS = "layer head score low high control chance weight weight_other named"
_SHOWN = 12  # most heads shown in the terminal


def sheet(result: Retrieval, focus: Focus = WHOLE) -> Sheet:
    say = said(result)
    ranking, profile = _ranking(result, say, focus.verbose), _profile(result, say)
    texts = counted(len(result.needles), "text")
    return saying(
        say,
        blocks=(*((ranking,) if result.ranking else ()), profile),
        table=lambda: Table.of(_COLUMNS, _rows(result)),
        control=say("control_of"),
        departs=(f"seed {result.seed}",) if result.seed else (),
        proof=proof_in(len(result.sampled), texts, result.certified, say("known")),
        main=ranking if result.ranking else profile,
        record=(("kind", result.kind.value), ("tower", result.tower), ("read", result.how)),
    )


def said(result: Retrieval) -> Said:
    """Sentences of `find --pattern retrieval` about this result, and the facts they use."""
    places = result.ranking
    best = result.place(result.named[0]) if result.named else places[0] if places else None
    facts = {
        "asked": len(result.needles),
        "heads": len(result.layers) * len(result.heads),
        "named": [name(*head) for head in result.named],
        "best": None if best is None else name(*result.head(best)),
        "score": None if best is None else float(result.scores[best]),
        "control": None if best is None else float(result.controls[best]),
        "masked": None if result.confirmation is None else _masked(result.confirmation),
        "lengths": " and ".join(f"{each:,}" for each in dict.fromkeys(one.length for one in result.needles)),
        "lonely": bool(result.named) and not any(result.alike),
        "failed": [name(*head) for head in result.failed],
    }
    return Said("retrieval", result, facts)


def _masked(told: Confirmation) -> dict[str, object]:
    """Facts about the ablation: right answers left without the named heads, and without control groups."""
    others = [each.right for each in told.others]
    return {
        "asked": told.asked,
        "right": told.right,
        "left": told.found.right,
        "groups": len(others),
        "others": f"{mean(others):.0f}" if others else None,
        "confirmed": told.confirmed,
    }


def _rows(result: Retrieval) -> Iterator[tuple[object, ...]]:
    weights = result.mean(result.weights), result.mean(result.weights_other)
    for place in result.ranking:
        first = (result.scores, result.low, result.high, result.controls, result.chance, *weights)
        numbers = [exact(float(each[place])) for each in first]
        yield (*result.head(place), *numbers, result.head(place) in result.named)


def _ranking(result: Retrieval, say: Said, whole: bool) -> Ranking:
    named = [result.place(head) for head in result.named]
    beside = [result.place(head) for head in dict.fromkeys(result.alike) if head is not None]
    rest = [place for place in result.ranking if place not in {*named, *beside}]
    shown = [*named, *beside, *rest]
    shown = shown if whole else shown[: max(_SHOWN, len(named) + len(beside))]
    weights, other = result.mean(result.weights), result.mean(result.weights_other)
    scores, controls = ([float(each[place]) for place in shown] for each in (result.scores, result.controls))
    ends = [(float(result.low[place]), float(result.high[place])) for place in shown]
    why = [say("fetches") if each in named else say("alike") if each in beside else "" for each in shown]
    return Ranking(
        title=say("ranking_title"),
        of="head",
        names=tuple(name(*result.head(place)) for place in shown),
        table=Table(
            Column("score", scores, "first", percent),
            Column(
                "interval", [f"{percent(a)} to {percent(b)}" for a, b in ends], "95 %", as_written, spared=2
            ),
            Column("control", controls, "at the other", percent),
            Column("weight", [float(weights[each]) for each in shown], "weight", weight_cell),
            Column(
                "weight_other", [float(other[each]) for each in shown], "on the other", weight_cell, spared=1
            ),
            *((Column("is", why, "", says=say("says_is"), spared=3),) if beside else ()),
        ),
        measured="share of answers",
        marks=(
            Mark("span", "limit", say("interval"), [low for low, _ in ends], [high for _, high in ends]),
            Mark("dot", "own", say("first_asked"), scores),
            Mark("dot", "control", say("first_other"), controls, low=True),
        ),
        written="score",
        axis=(0.0, 1.0),
        faint=frozenset(i for i, each in enumerate(shown) if each not in named),
        chosen=frozenset(i for i, each in enumerate(shown) if each in named),
    )


def _profile(result: Retrieval, say: Said) -> Ranking:
    groups = dict[tuple[int, int], list[int]]()
    for i, each in enumerate(result.needles):
        groups.setdefault((each.length, min(int(3 * each.depth), 2)), []).append(i)
    rows = sorted(groups.items())
    places = [result.place(head) for head in result.named]
    answered = [sum(result.needles[i].right for i in of) / len(of) for _, of in rows]
    first = [
        sum(float(result.first[place][of].mean()) for place in places) / len(places)
        if places
        else float("nan")
        for _, of in rows
    ]
    return Ranking(
        title=say("profile_title"),
        of="length and place",
        names=tuple(say("third", *group) for group, _ in rows),
        table=Table(
            Column("facts", [len(of) for _, of in rows], "facts"),
            Column("answered", answered, "answered", percent),
            *((Column("first", first, "heads look first", cell, say("says_first")),) if places else ()),
        ),
    )
