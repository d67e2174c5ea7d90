"""Which heads fetch a fact out of a long text, beside another fact, and beside the model without them."""

from collections.abc import Iterator

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.numbers import cell, counted, percent, weight_cell
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import name, proof_in, setting
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table, as_written
from attnscope.results.claims.retrieval import Confirmation, Needle, Retrieval

_COLUMNS = "layer head score low high control chance weight weight_other named"
_ALIKE = "as much weight: the nearest in weight on both facts, of the heads that are not named"
_SHOWN = 12  # heads in the terminal
_PARTS = ("beginning", "middle", "end")  # of a text, thirds


def sheet(result: Retrieval, focus: Focus = WHOLE) -> Sheet:
    ranking, profile = _ranking(result, focus.verbose), _profile(result)
    lengths = " and ".join(f"{each:,}" for each in dict.fromkeys(each.length for each in result.needles))
    return Sheet(
        title=f"which heads fetch a fact that is asked for, in texts of {lengths} tokens",
        setting=setting(result),
        origins=(result.provenance,),
        answer=f"{_answer(result)} {_confirmed(result)}".strip(),
        blocks=(*((ranking,) if result.ranking else ()), profile),
        table=lambda: Table.of(_COLUMNS, _facts(result)),
        control="another fact in the same text, of another answer, that is not asked for; and as many heads "
        "that are not named, taken away",
        notes=(*_notes(result), *result.notes),
        legend=(
            "first: in how many answers the strongest key of the head, where the answer is written, lies in "
            "the fact asked for, and in the other one; weight: what it gives to all of either in the mean",
        ),
        departs=(f"seed {result.seed}",) if result.seed else (),
        proof=proof_in(len(result.sampled), _texts(result), result.certified, _proved(result)),
        main=ranking if result.ranking else profile,
        record=(("kind", result.kind.value), ("tower", result.tower), ("read", result.how)),
    )


def _texts(result: Retrieval) -> str:
    return counted(len(result.needles), "text")


def _proved(result: Retrieval) -> str:
    if result.failed:
        shown = ", ".join(name(*head) for head in result.failed[:4])
        more = len(result.failed) - 4
        return f"{shown}{f' and {more} more' if more > 0 else ''} not as recomputed"
    tried = f"; whether their answers act was tried on {result.acts}" if result.acts else ""
    return f"of each length those whose fact stands first and last{tried}"


def _facts(result: Retrieval) -> Iterator[tuple[object, ...]]:
    weights = result.mean(result.weights), result.mean(result.weights_other)
    for place in result.ranking:
        first = (result.scores, result.low, result.high, result.controls, result.chance, *weights)
        numbers = [exact(float(each[place])) for each in first]
        yield (*result.head(place), *numbers, result.head(place) in result.named)


def _answer(result: Retrieval) -> str:
    asked = f"{counted(len(result.needles), 'question')} ({result.how})"
    if not result.answered:
        return (
            f"No head is named: the model answers none of {asked}, so that no head can have fetched an "
            "answer."
        )
    of = f"the model answers {result.answered} of {asked}"
    heads = f"{len(result.layers) * len(result.heads)} heads"
    if not result.named:
        place = result.ranking[0]
        best = f"{name(*result.head(place))} does most, in {_share(result, place)}"
        if result.answered < result.enough:
            return (
                f"{counted(result.answered, 'answer')} cannot tell which of {heads} fetch, {result.enough} "
                f"could: {best}; {of}."
            )
        return (
            f"No head of {heads} looks first at the fact asked for more often than at another fact, beyond "
            f"luck: {best}; {of}."
        )
    named = [name(*head) for head in result.named]
    shown = ", ".join(named[:4]) + (f" and {len(named) - 4} more" if len(named) > 4 else "")
    verb, them = ("fetches", "it") if len(named) == 1 else ("fetch", "the first of them")
    return (
        f"{shown} {verb} the fact asked for ({len(named)} of {heads}): {them} looks first at it in "
        f"{_share(result, result.place(result.named[0]))}; {of}."
    )


def _notes(result: Retrieval) -> Iterator[str]:
    if result.named and not any(result.alike):
        yield "no head that is not named gives the two facts half as much weight as those that are"


def _share(result: Retrieval, place: tuple[int, int]) -> str:
    interval = f"{percent(result.low[place])} to {percent(result.high[place])}"
    return (
        f"{percent(result.scores[place])} of the answers ({interval}), at another fact in "
        f"{percent(result.controls[place])}"
    )


def _confirmed(result: Retrieval) -> str:
    told = result.confirmation
    if told is None:
        return ""
    if not told.right:
        return f"Nothing confirms that: of {told.asked} other questions the model answers none."
    those_heads = "that head" if len(told.found.heads) == 1 else "these heads"
    those = counted(told.right, "other question")
    left = f"Without {those_heads} it answers {told.found.right} of {those} that it answers as it is"
    if not told.others:
        return f"{left}; there is nothing to hold that against: not as many heads are left."
    return (
        f"{left}, without as many other heads {_others(told)}: "
        f"{'removal confirms' if told.confirmed else 'removal does not confirm'} "
        f"{'it' if len(told.found.heads) == 1 else 'them'}."
    )


def _others(told: Confirmation) -> str:
    mean = sum(each.right for each in told.others) / len(told.others)
    return f"{mean:.0f}" + (f" (mean of {len(told.others)} groups)" if len(told.others) > 1 else "")


def _ranking(result: Retrieval, whole: bool) -> Ranking:
    named = [result.place(head) for head in result.named]
    beside = [result.place(head) for head in dict.fromkeys(result.alike) if head is not None]
    rest = [place for place in result.ranking if place not in {*named, *beside}]
    shown = [*named, *beside, *rest]
    shown = shown if whole else shown[: max(_SHOWN, len(named) + len(beside))]
    weights, other = result.mean(result.weights), result.mean(result.weights_other)
    scores, controls = ([float(each[place]) for place in shown] for each in (result.scores, result.controls))
    ends = [(float(result.low[place]), float(result.high[place])) for place in shown]
    why = ["fetches" if each in named else "as much weight" if each in beside else "" for each in shown]
    return Ranking(
        title="how often each looks first at the fact asked for",
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
            *((Column("is", why, "", says=_ALIKE, spared=3),) if beside else ()),
        ),
        measured="share of answers",
        marks=(
            Mark("span", "limit", "95 % interval", [low for low, _ in ends], [high for _, high in ends]),
            Mark("dot", "own", "first at the fact asked for", scores),
            Mark("dot", "control", "first at the other fact", controls, low=True),
        ),
        written="score",
        axis=(0.0, 1.0),
        faint=frozenset(i for i, each in enumerate(shown) if each not in named),
        chosen=frozenset(i for i, each in enumerate(shown) if each in named),
    )


def _profile(result: Retrieval) -> Ranking:
    groups = dict[tuple[int, int], list[int]]()
    for i, each in enumerate(result.needles):
        groups.setdefault((each.length, _third(each)), []).append(i)
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
        title="by length and place of the fact",
        of="length and place",
        names=tuple(f"{length:,} tokens, {_PARTS[third]}" for (length, third), _ in rows),
        table=Table(
            Column("facts", [len(of) for _, of in rows], "facts"),
            Column("answered", answered, "answered", percent),
            *(
                (Column("first", first, "heads look first", cell, "mean of the named heads"),)
                if places
                else ()
            ),
        ),
    )


def _third(needle: Needle) -> int:
    return min(int(3 * needle.depth), 2)
