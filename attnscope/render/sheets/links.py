"""What is linked in a text: links between two words, most evidence first."""

from collections.abc import Iterator

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.numbers import counted, weight
from attnscope.render.kit.words.command import finding
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.guard import by_head
from attnscope.render.sheet.said import in_sentence, name, proof, read, setting
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.results.base.evidence import LEAST, Link
from attnscope.results.claims.links import Links

_SHOWN = 12
_COLUMNS = "layer head query key weight evidence controls distance others even"


def sheet(result: Links, focus: Focus = WHOLE) -> Sheet:
    ranking = _ranking(result, focus.verbose)
    return Sheet(
        title="what is linked in this text",
        setting=setting(result),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(ranking,) if result.links else (),
        table=lambda: Table.of(_COLUMNS, _facts(result)),
        texts=tuple(read(result.kind, result.query_tokens, result.key_tokens)),
        control=f"{counted(result.controls, 'text')} with the words in other orders, each read as the text "
        f"is: {result.how}",
        notes=tuple(_notes(result)),
        legend=(
            "between two whole words of the text, no neighbours: special tokens, pieces and punctuation are "
            "left out; a link stands out where at most 5 in 100 controls have one with as much evidence",
        ),
        departs=(f"seed {result.seed}",) if result.seed else (),
        proof=tuple(proof((each for row in result.verdicts for each in row), "head")),
        verdicts=by_head(result.layers, result.heads, result.verdicts),
        main=ranking if result.links else None,
        record=(("kind", result.kind.value), ("tower", result.tower)),
        next=_next(result),
        opens=_opens(result),
    )


def _pair(result: Links, link: Link) -> tuple[str, str]:
    return in_sentence(result.query_tokens, link.query), in_sentence(result.key_tokens, link.key)


def _answer(result: Links) -> str:
    heads = counted(len(result.layers) * len(result.heads), "head")
    if not result.links:
        return (
            f"No link between two words stands out in any of {heads}: none is {weight(LEAST)} above what its "
            "place, its distance, its key or even attention would explain."
        )
    first = result.links[0]
    query, key = _pair(result, first)
    clearest = f"{name(first.layer, first.head)} looks from {query} at {key} with {weight(first.weight)}"
    if count := result.standing_out:
        said = "The one link that stands out" if count == 1 else f"{count} links stand out. The clearest"
        return f"{said}: {clearest}, {_above(first)}."
    if result.few:
        told = f"{counted(result.controls, 'control text')} {'is' if result.controls == 1 else 'are'} too few"
        return f"{told} to tell: 19 are needed. The clearest link: {clearest}, {_above(first)}."
    reach = round(result.p * (result.controls + 1)) - 1
    return (
        f"No link of this text stands out. The clearest: {clearest}, {_above(first)}, but {reach} of "
        f"{counted(result.controls, 'text')} with the words in other orders have a link as clear."
    )


def _above(link: Link) -> str:
    reasons = {
        "at the same two places in other orders of the words": link.controls,
        "at that distance elsewhere in the text": link.distance,
        "from the other words to this one": link.others,
        "if all were looked at alike": link.even,
    }
    known = {told: each for told, each in reasons.items() if each is not None}
    where, most = max(known.items(), key=lambda pair: pair[1])
    return f"{weight(link.evidence)} more than anything simpler explains ({weight(most)} {where})"


def _ranking(result: Links, whole: bool) -> Ranking:
    shown = result.links if whole else result.links[: max(_SHOWN, min(result.standing_out, 2 * _SHOWN))]
    sections = []
    if not result.few:
        count = min(result.standing_out, len(shown))
        sections += [(0, f"stand out ({result.standing_out})")] if count else []
        if count < len(shown):
            sections.append((count, "not told from chance"))
    above = [each.evidence for each in shown]
    hidden = len(result.links) - len(shown)
    under = "what may explain it"
    others = [
        Column("controls", [each.controls for each in shown], "other orders", weight,
               "the most of any control text at the same two places", under=under),
        Column("distance", [each.distance for each in shown], "distance", weight,
               "the mean of other queries of this head at the same distance", under=under, spared=2),
        Column("others", [each.others for each in shown], "key", weight,
               "the mean of what other words give to this one", under=under, spared=3),
        Column("even", [each.even for each in shown], "even", weight,
               "what it would be if all were looked at alike", under=under, spared=4),
    ]  # fmt: skip
    return Ranking(
        title="links by what nothing simpler explains of them",
        of="link",
        names=tuple(" → ".join(_pair(result, each)) for each in shown),
        table=Table(
            Column("head", [name(each.layer, each.head) for each in shown], "head"),
            Column("weight", [each.weight for each in shown], "weight", weight),
            Column("evidence", above, "above", weight, "its weight above the most that may explain it"),
            *others,
        ),
        measured="weight",
        marks=(
            Mark("dot", "own", "weight", [each.weight for each in shown]),
            Mark(
                "tick",
                "control",
                "the most that may explain it",
                [each.weight - each.evidence for each in shown],
            ),
        ),
        written="weight",
        axis=(0.0, 1.0),
        hidden=hidden,
        unshown=f"{counted(hidden, 'more link')}{'' if whole else ' (-v)'}",
        sections=tuple(sections),
    )


def _notes(result: Links) -> Iterator[str]:
    yield from result.notes
    if result.more:
        yield f"{counted(result.more, 'link')} with less evidence are not kept"


def _next(result: Links) -> Next | None:
    if not result.links:
        return None
    first = result.links[0]
    return Next("which heads look there, and by what?", finding(result, first.query, first.key))


def _opens(result: Links) -> dict[str, int]:
    if not result.links:
        return {}
    first = result.links[0]
    return {"layer": first.layer, "head": first.head, "query": first.query, "key": first.key}


def _facts(result: Links) -> Iterator[tuple[object, ...]]:
    for each in result.links:
        names = result.query_tokens.labels[each.query], result.key_tokens.labels[each.key]
        numbers = each.weight, each.evidence, each.controls, each.distance, each.others, each.even
        told = ("" if number is None else exact(number) for number in numbers)
        yield each.layer, each.head, *names, *told
