"""One verdict on a link: a sentence for each of the questions behind it, with figures and command."""

import math
from collections.abc import Iterator
from dataclasses import replace

from attnscope.printable import printable, word
from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.command import asking, asking_of_model, label, opening_head
from attnscope.render.kit.command import finding as find_again
from attnscope.render.kit.numbers import counted, signed, signed_cell, weight_cell
from attnscope.render.sheet.blocks import Block, Ranking, Statement, Statements
from attnscope.render.sheet.said import at, in_sentence, name, read, unit
from attnscope.render.sheet.sheet import Next, Sheet, by_head, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table, both_ways
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Kind, Verdict
from attnscope.results.claims.ranking import DependsOn, Group, much
from attnscope.verbs.ablate import sheet as ablation
from attnscope.verbs.ablate import words_sheet as ablation_words
from attnscope.verbs.ablate.result import Ablation
from attnscope.verbs.compose import sheet as composition
from attnscope.verbs.explain.result import Asked, Explanation, Head, Lost, Read, Replaced
from attnscope.verbs.find import sheet as finding
from attnscope.verbs.find import words_sheet as finding_words
from attnscope.verbs.find.result import Finding
from attnscope.verbs.why import sheet as why
from attnscope.verbs.why import sheet as why_words
from attnscope.verbs.why.result import Side

_WORDS_SHOWN = 12  # words that were replaced


def sheet(result: Explanation, focus: Focus = WHOLE) -> Sheet:
    say = said(result)
    statements = tuple(_statements(result, say))
    heads = _heads(result, say)
    blocks: list[Block] = [Statements("", statements), *([heads] if result.heads else [])]
    if focus.verbose and result.replaced is not None:
        blocks.append(_replaced(result, say, result.replaced))
    return saying(
        say,
        blocks=tuple(blocks),
        table=lambda: Table.of(
            "question answer figures command",
            ((each.question, each.sentence, each.figures, each.command) for each in statements),
        ),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        notes=result.finding.notes,
        departs=(f"seed {result.finding.controls.seed}",) if result.finding.controls.seed else (),
        proof=tuple(_proof(result)),
        verdicts=by_head(result.finding.layers, result.finding.heads, result.finding.verdicts),
        main=heads if result.heads else None,
        whole="an explanation is several sentences with their figures",
        record=(("kind", result.kind.value), ("tower", result.tower)),
        next=_next(result, say),
        more=tuple(_more(result, say, focus)),
        opens=_opens(result),
    )


def _statements(result: Explanation, say: Said) -> Iterator[Statement]:
    """In the order in which they were asked."""
    found = find_again(result, result.query, result.key)
    yield Statement(Asked.LOOK, say("look"), say("look_figures"), found)
    if drawn_by(result.finding):
        yield Statement(say("by_what_asked"), say("by_what"), say("by_what_figures"), f"{found} -v")
    heads = ",".join(f"L{layer}H{head}" for layer, head in result.heads)
    if result.taken is not None:
        yield _without(result, say, result.taken, Asked.MATTER, "--head", heads)
    if result.cut is not None:
        link = f"{result.query_tokens.labels[result.query]}->{result.key_tokens.labels[result.key]}"
        yield _without(result, say, result.cut, Asked.LINK, "--head", heads, "--link", word(link))
    if (told := result.told_of) is not None:
        which = "--layer", str(told.layer), "--head", str(told.head)
        ends = "--from", label(told.query_tokens, told.query), "--to", label(told.key_tokens, told.key)
        (says, *_), command = why.said(told).lines(told.case), asking(result, "why", *which, *ends)
        yield Statement(Asked.WHY, says, say("why_figures"), command)
        if (made := result.composition) is not None:
            command = asking_of_model("compose", made.provenance, *which)
            yield Statement(Asked.READ, say("reads"), say("reads_figures"), command)
    if (put := result.replaced) is not None:
        figures = "" if put.of(result.key) is None else say("word_figures")
        yield Statement(Asked.WORD, say("word"), figures, _shows_words(result, put))
    if result.unasked:
        questions = dict.fromkeys(each.question.value.rstrip("?") for each in result.unasked)
        reasons = dict.fromkeys(settled(each.reason) for each in result.unasked)
        yield Statement(say("not_asked"), say("unasked", questions), "; ".join(reasons))


def _without(result: Explanation, say: Said, made: Ablation, question: Asked, *options: str) -> Statement:
    beside, effect = (made.heads[0],) * 2 if made.group is None else (made.group, made.group.effect)
    most = None
    if made.group is not None:
        one = max(made.heads, key=lambda each: abs(each.change))
        most = {"name": name(one.layer, one.head), "change": one.change}
    figures = effect.change, beside.typical if beside.controls else None, made.floor.rounding, most
    command = asking(result, "ablate", *options, *ablation_words.asked_again(made))
    says, *more = ablation_words.said(made).lines(made.case)
    return Statement(question, says, " ".join([*more, say("without_figures", *figures)]), command)


def _shows_words(result: Explanation, made: Replaced) -> str:
    taken = result.taken
    named = ("--answer", word(made.answer)) if taken is not None and not taken.answer.likeliest else ()
    if result.kind is Kind.CROSS or made.position is None:
        query, key = label(result.query_tokens, result.query), label(result.key_tokens, result.key)
        return asking(result, "explain", "--from", query, "--to", key, *named, "-v")
    return asking(result, "flow", "--from", label(result.query_tokens, made.position), *named)


def _heads(result: Explanation, say: Said) -> Ranking:
    found = result.finding
    places = [(found.layers.index(layer), found.heads.index(head)) for layer, head in result.heads]
    weights, means, low, high = (
        [float(each[place]) for place in places]
        for each in (found.weights, found.controls.mean, found.controls.low, found.controls.high)
    )
    without, cut = (_changes(result, each) for each in (result.taken, result.cut))
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


def _changes(result: Explanation, made: Ablation | None) -> list[float | None]:
    changes = {} if made is None else {(each.layer, each.head): each.change for each in made.heads}
    return [changes.get(head) for head in result.heads]


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


def _more(result: Explanation, say: Said, focus: Focus) -> Iterator[Block]:
    if result.replaced is not None and not focus.verbose:
        yield _replaced(result, say, result.replaced)
    made = [(Asked.LOOK, finding.sheet(result.finding))]
    for question, each in (Asked.MATTER, result.taken), (Asked.LINK, result.cut):
        made += [] if each is None else [(question, ablation.sheet(each))]
    made += [] if result.told_of is None else [(Asked.WHY, why.sheet(result.told_of))]
    made += [] if result.composition is None else [(Asked.READ, composition.sheet(result.composition))]
    for question, its in made:
        blocks = (block for block in its.every if isinstance(block, Ranking))
        yield from (replace(each, title=f"{question} {each.title}".strip()) for each in blocks)


def _proof(result: Explanation) -> Iterator[tuple[Verdict, str]]:
    told = list(finding.sheet(result.finding).proof)
    for each in (result.taken, result.cut):
        told += [] if each is None else ablation.sheet(each).proof
    told += [] if result.told_of is None else why.sheet(result.told_of).proof[1:]
    yield from dict.fromkeys(told)


def _next(result: Explanation, say: Said) -> Next | None:
    if result.lead is None:
        query = label(result.query_tokens, result.query)
        return Next(say("next_heads"), asking(result, "heads", "--query", query))
    return Next(say("next_lead", name(*result.lead)), opening_head(result, *result.lead, result.query))


def _opens(result: Explanation) -> dict[str, int]:
    if result.lead is None:
        return {}
    layer, head = result.lead
    return {"layer": layer, "head": head, "query": result.query, "key": result.key}


_NAMED, _LONGEST = 3, 30  # heads of which figures are told; cells of an answer
_FOLLOWED = 2  # heads of a kind of which it is told what they follow


def said(result: Explanation) -> Said:
    """The words of `explain` about this result."""
    found, out = result.finding, result.standing_out
    find = finding_words.said(found)
    by = drawn_by(found)
    heads, reached = _named(result)
    first = [head for on in (DependsOn.WORD, DependsOn.CONTEXT) for head in by.get(on, [])[:_FOLLOWED]]
    away = {"place": Group.POSITION, "key": Group.KEY}
    facts = {
        "query": in_sentence(result.query_tokens, result.query),
        "key": in_sentence(result.key_tokens, result.key),
        "from": at(result.query_tokens, result.query),
        "to": at(result.key_tokens, result.key),
        "unit": unit(result.key_tokens),
        # what find says
        "found": finding_words.answer(found),
        "link": find("link"),
        "shuffled": find("shuffled"),
        "held_against": find("control"),
        "part": find.facts["part"],
        "parts": find.facts["parts"],
        "asked": len(found.places),
        "clear": [name(*head) for head in out],
        "heads": len(result.heads),
        "instead": next((on for on, group in away.items() if found.evidence.of_group(group)), None),
        "figures": [_head(found, head) for head in heads],
        "reached": reached,
        "by": [(on, [name(*head) for head in there]) for on, there in by.items()],
        "followed": [_head(found, head) for head in first or by.get(DependsOn.POSITION, [])[:_FOLLOWED]],
        # what why says
        "why": _why(result),
        "whys": len(result.whys),
        "circuits": len(result.circuits),
        # what compose says
        "confirmed": [_read(each) for each in result.reads if each.confirmed],
        "unconfirmed": [_read(each) for each in result.reads if not each.confirmed],
        "paths": [_along(made) for made in result.paths],
        # what replacing says
        "needed": _needed(result),
        "replacement": result.replaced and result.replaced.replacement,
        "answers": result.replaced is not None and bool(result.replaced.answer),
    }
    return Said("explain", result, facts)


def place_of(found: Finding, head: Head) -> tuple[int, int]:
    """Its row and column."""
    return found.layers.index(head[0]), found.heads.index(head[1])


def drawn_by(found: Finding) -> dict[DependsOn, list[Head]]:
    """The heads that give the key much more than if all got the same, by what draws them to it."""
    groups, even = dict[DependsOn, list[Head]](), found.even_attention
    assert even is not None, "a pair has keys"
    for place in found.ranking:
        on = found.evidence.depends_on(place)
        if on not in (None, DependsOn.KEY) and found.weights[place] >= much(even[place]):
            groups.setdefault(on, []).append((found.layers[place[0]], found.heads[place[1]]))
    return {on: groups[on] for on in (DependsOn.WORD, DependsOn.CONTEXT, DependsOn.POSITION) if on in groups}


def fact_of(result: Explanation, part: Lost) -> dict[str, object]:
    """What was replaced, of several tokens the first and how many more, and what that takes."""
    first = in_sentence(result.key_tokens, part.positions[0])
    return {"name": first, "beside": len(part.positions) - 1, "change": part.change}


def _head(found: Finding, head: Head) -> dict[str, object]:
    place, went = place_of(found, head), found.followed
    return {
        "name": name(*head),
        "own": float(found.weights[place]),
        "mean": float(found.controls.mean[place]),
        "went": None if went is None else float(went[place]),
    }


def _named(result: Explanation) -> tuple[list[Head], int | None]:
    """Whose figures are told, the clearest first, and in how many controls some head does as much as that."""
    found, out = result.finding, result.standing_out
    if not found.ranking:
        return [], None
    if not result.heads or found.evidence.few:
        most = found.by_weight[0]
        return [(found.layers[most[0]], found.heads[most[1]])], None
    clearest = max(result.heads, key=lambda each: float(found.evidence.excess[place_of(found, each)]))
    heads = list(out[:_NAMED]) or [clearest]
    return heads, found.evidence.as_far(place_of(found, heads[0]))


def _why(result: Explanation) -> dict[str, object] | None:
    told = result.told_of
    if told is None:
        return None
    say = why_words.said(told)
    says, *more = say.lines(told.case)
    return {
        "head": name(told.layer, told.head),
        "says": says,
        "more": " ".join(more),
        "reasons": say("reasons_named") if any(told.reasons.values()) else "",
    }


def _read(each: Read) -> dict[str, object]:
    removed = each.part and each.part.removed
    return {
        "name": name(*each.pair.early),
        "through": each.pair.through.plural,
        "side": each.side,
        "score": each.pair.score,
        "chance": each.pair.chance,
        "limit": each.pair.limit,
        "left": removed and removed.weight,
    }


def _along(made: Ablation) -> dict[str, object]:
    one, path = made.heads[0], made.path
    assert path is not None, "it was let along a path"
    first, count = path.receivers[0], len(path.receivers)
    return {
        "name": name(one.layer, one.head),
        "inputs": "queries" if first.inputs == "q" else "keys",
        "reader": name(first.layer, first.head) if count == 1 else "",
        "readers": count,
        "before": one.before,
        "after": one.after,
        "whole": one.whole or 0.0,
    }


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
