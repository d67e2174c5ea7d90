"""Sheet of `explain`: a sentence for each question about the link, with figures and command."""

import math
from collections.abc import Iterator
from dataclasses import replace

from attnscope.printable import printable, word
from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.command import asking, asking_of_model, label, opening_head
from attnscope.render.kit.command import finding as find_again
from attnscope.render.kit.numbers import counted, signed, signed_cell, weight_cell
from attnscope.render.sheet.blocks import Ranking, Statement, Statements
from attnscope.render.sheet.said import at, in_sentence, name, read, unit
from attnscope.render.sheet.sheet import Next, Sheet, by_head, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table, both_ways
from attnscope.render.sheets import WHOLE, Focus, sheet_of
from attnscope.render.words import Said
from attnscope.results import Kind
from attnscope.verbs.ablate import sheet as ablation_words
from attnscope.verbs.explain.result import Asked, Explanation, Lost, Replaced
from attnscope.verbs.find import sheet as finding_words
from attnscope.verbs.why import sheet as why
from attnscope.verbs.why.result import Side

_WORDS_SHOWN = 12  # most replaced words shown
_LONGEST = 30  # most terminal cells of an answer
_OPENED = ("layer", "head", "query", "key")


def sheet(result: Explanation, focus: Focus = WHOLE) -> Sheet:
    say, asked = said(result), _asked(result)
    statements = tuple(_statements(result, say))
    heads = [_heads(result, say)] if result.heads else []
    replaced = [] if result.replaced is None else [_replaced(result, say, result.replaced)]
    more = [
        replace(block, title=f"{question} {block.title}".strip())
        for question, its in asked
        for block in its.every
        if isinstance(block, Ranking)
    ]
    ends = result.query, result.key
    # proofs of all parts but `compose`; from `why` only what it adds to the certificate
    proofs = (its.proof[question is Asked.WHY :] for question, its in asked if question is not Asked.READ)
    return saying(
        say,
        blocks=(Statements("", statements), *heads, *(replaced if focus.verbose else [])),
        table=lambda: Table.of(
            "question answer figures command",
            ((each.question, each.sentence, each.figures, each.command) for each in statements),
        ),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        notes=result.finding.notes,
        departs=(f"seed {result.finding.controls.seed}",) if result.finding.controls.seed else (),
        proof=tuple(dict.fromkeys(each for proof in proofs for each in proof)),
        verdicts=by_head(result.finding.layers, result.finding.heads, result.finding.verdicts),
        main=heads[0] if heads else None,
        whole="an explanation is several sentences with their figures",
        record=(("kind", result.kind.value), ("tower", result.tower)),
        next=_next(result, say),
        more=(*([] if focus.verbose else replaced), *more),
        opens={} if result.lead is None else dict(zip(_OPENED, (*result.lead, *ends), strict=True)),
    )


def _statements(result: Explanation, say: Said) -> Iterator[Statement]:
    """One statement per question, in order: first line of its answer, figures, and command."""
    found, again = result.finding, find_again(result, result.query, result.key)
    yield Statement(Asked.LOOK, *_lines(finding_words.said(found), found.case), again)
    heads = "--head", ",".join(f"L{layer}H{head}" for layer, head in result.heads)
    ends = label(result.query_tokens, result.query), label(result.key_tokens, result.key)
    link = f"{result.query_tokens.labels[result.query]}->{result.key_tokens.labels[result.key]}"
    for question, made, options in (
        (Asked.MATTER, result.taken, heads),
        (Asked.LINK, result.cut, (*heads, "--link", word(link))),
    ):
        if made is not None:
            command = asking(result, "ablate", *options, *ablation_words.asked_again(made))
            yield Statement(question, *_lines(ablation_words.said(made), made.case), command)
    if (told := result.told_of) is not None:
        which = "--layer", str(told.layer), "--head", str(told.head)
        command = asking(result, "why", *which, "--from", ends[0], "--to", ends[1])
        yield Statement(Asked.WHY, *_lines(why.said(told), told.case), command)
        if (composed := result.composition) is not None:
            paths = (_lines(ablation_words.said(each), each.case)[0] for each in result.paths)
            figures = " ".join((sheet_of(composed).answer, *paths))
            yield Statement(
                Asked.READ, say("reads"), figures, asking_of_model("compose", composed.provenance, *which)
            )
    if (put := result.replaced) is not None:
        figures = "" if put.of(result.key) is None else say("word_figures")
        named = ("--answer", word(put.answer)) if result.taken and not result.taken.answer.likeliest else ()
        if result.kind is Kind.CROSS or put.position is None:
            command = asking(result, "explain", "--from", ends[0], "--to", ends[1], *named, "-v")
        else:
            command = asking(result, "flow", "--from", label(result.query_tokens, put.position), *named)
        yield Statement(Asked.WORD, say("word"), figures, command)
    if result.unasked:
        questions = dict.fromkeys(each.question.value.rstrip("?") for each in result.unasked)
        reasons = dict.fromkeys(settled(each.reason) for each in result.unasked)
        yield Statement(say("not_asked"), say("unasked", questions), "; ".join(reasons))


def _lines(say: Said, case: str) -> tuple[str, str]:
    """First line of an answer, and all others joined."""
    first, *more = say.lines(case)
    return first, " ".join(more)


def _heads(result: Explanation, say: Said) -> Ranking:
    found, places = result.finding, _places(result)
    weights, means, low, high = (
        [float(each[place]) for place in places]
        for each in (found.weights, found.controls.mean, found.controls.low, found.controls.high)
    )
    changed = (
        {} if made is None else {(each.layer, each.head): each.change for each in made.heads}
        for made in (result.taken, result.cut)
    )
    without, cut = ([changes.get(head) for head in result.heads] for changes in changed)
    why_of = {(each.layer, each.head): each for each in result.whys}
    reasons = {
        side: [
            ", ".join(part.name for part in why_of[head].reasons_of(side)) if head in why_of else ""
            for head in result.heads
        ]
        for side in Side
    }
    under, because = say("changes_by"), say("looks_because")
    depends = [found.evidence.depends_on(place) for place in places]
    return Ranking(
        title=say("heads_title"),
        of="head",
        names=tuple(name(*head) for head in result.heads),
        table=Table(
            Column("weight", weights, "weight", weight_cell, say("says_weight")),
            Column("control", means, "shuffled", weight_cell, say("says_control")),
            Column("depends_on", ["" if on is None else on.value for on in depends], "goes with", spared=1,
                   says=say("says_depends")),
            Column("without", without, "without it", signed, say("says_without"), under=under),
            Column("cut", cut, "link cut", signed, say("says_cut"), under=under),
            Column("query_reasons", reasons[Side.QUERY], "at the query", spared=2, under=because,
                   says=say("says_reasons")),
            Column("key_reasons", reasons[Side.KEY], "at the key", spared=2, under=because),
        ),
        measured="weight",
        marks=(
            Mark("span", "control", say("its_controls"), low, high),
            Mark("dot", "own", "weight here", weights),
        ),
        written="weight",
        axis=(0.0, 1.0),
        chosen=frozenset(i for i, head in enumerate(result.heads) if head == result.lead),
    )  # fmt: skip


def _places(result: Explanation) -> list[tuple[int, int]]:
    """Index pair of each head that was asked about further."""
    found = result.finding
    return [(found.layers.index(layer), found.heads.index(head)) for layer, head in result.heads]


def _replaced(result: Explanation, say: Said, made: Replaced) -> Ranking:
    shown = made.parts[:_WORDS_SHOWN]
    lost, costs = [part.change for part in shown], bool(made.answer)
    hidden = len(made.parts) - len(shown)
    return Ranking(
        title=say("replaced_title"),
        of="replaced",
        names=tuple(say("piece", fact_of(result, part)) for part in shown),
        table=Table(Column("lost", lost, say("loses"), signed_cell, scale=Scale.around(lost, costs=costs))),
        measured=say("loses"),
        marks=both_ways(lost, costs=costs),
        written="lost",
        chosen=frozenset(i for i, part in enumerate(shown) if result.key in part.positions),
        hidden=hidden,
        unshown=counted(hidden, "more word"),
    )


def _asked(result: Explanation) -> list[tuple[Asked, Sheet]]:
    """Sheet of each part, by its question."""
    parts = (result.finding, result.taken, result.cut, result.told_of, result.composition)
    return [(asked, sheet_of(part)) for asked, part in zip(Asked, parts, strict=False) if part is not None]


def _next(result: Explanation, say: Said) -> Next | None:
    if result.lead is None:
        query = label(result.query_tokens, result.query)
        return Next(say("next_heads"), asking(result, "heads", "--query", query))
    return Next(say("next_lead", name(*result.lead)), opening_head(result, *result.lead, result.query))


def said(result: Explanation) -> Said:
    """Sentences of `explain` about this result, and the facts they use."""
    found, told, made = result.finding, result.told_of, result.replaced
    find, reached = finding_words.said(found), None
    if result.heads and not found.evidence.few:
        clearest = max(_places(result), key=lambda place: float(found.evidence.excess[place]))
        reached = found.evidence.as_far(clearest)
    spoken = None
    if told is not None:
        says, more = _lines(why.said(told), told.case)
        reasons = any(told.reasons.values())
        spoken = {"head": name(told.layer, told.head), "says": says, "more": more, "reasons": reasons}
    reads = {True: list[str](), False: list[str]()}
    for each in result.reads:
        reads[each.confirmed].append(f"{name(*each.pair.early)} with its {each.pair.through.plural}")
    facts = {
        "query": in_sentence(result.query_tokens, result.query),
        "key": in_sentence(result.key_tokens, result.key),
        "from": at(result.query_tokens, result.query),
        "to": at(result.key_tokens, result.key),
        "unit": unit(result.key_tokens),
        "clear": bool(result.standing_out),
        # from find, why and compose
        "found": [*find.lines(found.case)],
        "reached": reached,
        "shuffled": find("shuffled"),
        "held_against": find("control"),
        "part": find.facts["part"],
        "parts": find.facts["parts"],
        "why": spoken,
        "confirmed": reads[True],
        "unconfirmed": reads[False],
        # from token replacement
        "needed": _needed(result),
        "replacement": made and made.replacement,
        "answers": made is not None and bool(made.answer),
    }
    return Said("explain", result, facts)


def fact_of(result: Explanation, part: Lost) -> dict[str, object]:
    """Facts about one replacement: first token, number of further tokens, change of the answer."""
    first = in_sentence(result.key_tokens, part.positions[0])
    return {"name": first, "beside": len(part.positions) - 1, "change": part.change}


def _needed(result: Explanation) -> dict[str, object] | None:
    made = result.replaced
    if made is None or (lost := made.of(result.key)) is None:
        return None
    others = made.others(result.key)
    return {
        "answer": f"“{settled(fit(printable(made.answer), _LONGEST))}”" if made.answer else "",
        "need": result.need,
        "change": lost.change,
        "before": made.probability,
        "after": min(1.0, made.probability * math.exp(-lost.change)) if made.answer else None,
        "others": len(others),
        "more": made.as_much(result.key),
        "first": fact_of(result, others[0]) if others else None,
    }
