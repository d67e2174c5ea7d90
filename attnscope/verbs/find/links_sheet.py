"""Sheet of links between two words of a text, most evidence first."""

from collections.abc import Iterator

from attnscope.render.kit.command import finding
from attnscope.render.kit.numbers import exact, weight
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import in_sentence, name, proof, read
from attnscope.render.sheet.sheet import Next, Sheet, by_head, saying
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results.base.evidence import LEAST, Link
from attnscope.results.claims.ranking import LEAST_CONTROLS
from attnscope.verbs.find.result import Links

_SHOWN = 12
_COLUMNS = "layer head query key weight evidence controls distance others even"


def sheet(result: Links, focus: Focus = WHOLE) -> Sheet:
    say, first = said(result), result.links[0] if result.links else None
    ranking = _ranking(result, say, focus.verbose)
    places = ("layer", "head", "query", "key")
    return saying(
        say,
        blocks=(ranking,) if first else (),
        table=lambda: Table.of(_COLUMNS, _rows(result)),
        texts=tuple(read(result.kind, result.query_tokens, result.key_tokens)),
        notes=(*result.notes, *say.lines("notes")),
        departs=(f"seed {result.seed}",) if result.seed else (),
        proof=tuple(proof((each for row in result.verdicts for each in row), "head")),
        verdicts=by_head(result.layers, result.heads, result.verdicts),
        main=ranking if first else None,
        record=(("kind", result.kind.value), ("tower", result.tower)),
        next=Next(say("which_heads"), finding(result, first.query, first.key)) if first else None,
        opens={each: getattr(first, each) for each in places} if first else {},
    )


def said(result: Links) -> Said:
    """Sentences of `find` without a pair, and the facts they use."""
    first = result.links[0] if result.links else None
    query, key = _pair(result, first) if first else (None, None)
    by, most = max(first.explained, key=lambda pair: pair[1]) if first else (None, None)
    facts = {
        "head": name(first.layer, first.head) if first else None,
        "query": query,
        "key": key,
        "own": first.weight if first else None,
        "explained": most,
        "explained_by": by,
        "reached": result.as_clear(first) if first else 0,
        "least": LEAST_CONTROLS,
        "least_evidence": LEAST,
        "heads": len(result.layers) * len(result.heads),
    }
    return Said("links", result, facts)


def _pair(result: Links, link: Link) -> tuple[str, str]:
    return in_sentence(result.query_tokens, link.query), in_sentence(result.key_tokens, link.key)


def _ranking(result: Links, say: Said, whole: bool) -> Ranking:
    shown = result.links if whole else result.links[: max(_SHOWN, min(result.standing_out, 2 * _SHOWN))]
    sections = []
    if not result.few:
        count = min(result.standing_out, len(shown))
        sections += [(0, say("stand_out"))] if count else []
        if count < len(shown):
            sections.append((count, say("by_chance")))
    hidden = len(result.links) - len(shown)
    explaining = (
        ("controls", "shuffled", "says_controls", 0),
        ("distance", "distance", "says_distance", 2),
        ("others", "key", "says_others", 3),
        ("even", "even", "even", 4),
    )
    return Ranking(
        title=say("ranking_title"),
        of="link",
        names=tuple(" → ".join(_pair(result, each)) for each in shown),
        table=Table(
            Column("head", [name(each.layer, each.head) for each in shown], "head"),
            Column("weight", [each.weight for each in shown], "weight", weight),
            Column("evidence", [each.evidence for each in shown], "above", weight, say("says_evidence")),
            *(
                Column(by, [getattr(each, by) for each in shown], heading, weight, say(says),
                       under=say("under"), spared=spared)
                for by, heading, says, spared in explaining
            ),
        ),
        measured="weight",
        marks=(
            Mark("dot", "own", "weight", [each.weight for each in shown]),
            Mark("tick", "control", say("mark"), [each.weight - each.evidence for each in shown]),
        ),
        written="weight",
        axis=(0.0, 1.0),
        hidden=hidden,
        unshown=say("hidden", hidden, whole),
        sections=tuple(sections),
    )  # fmt: skip


def _rows(result: Links) -> Iterator[tuple[object, ...]]:
    for each in result.links:
        names = result.query_tokens.labels[each.query], result.key_tokens.labels[each.key]
        numbers = each.weight, each.evidence, each.controls, each.distance, each.others, each.even
        told = ("" if number is None else exact(number) for number in numbers)
        yield each.layer, each.head, *names, *told
