"""One verdict on a link: a sentence for each of the questions behind it, with figures and command."""

from collections.abc import Iterator
from dataclasses import replace

from attnscope.printable import word
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import counted, signed, signed_cell, weight_cell
from attnscope.render.kit.words.command import asking, asking_of_model, label, opening_head
from attnscope.render.kit.words.command import finding as find_again
from attnscope.render.sheet.blocks import Block, Ranking
from attnscope.render.sheet.drawings import Statement, Statements
from attnscope.render.sheet.guard import by_head
from attnscope.render.sheet.said import name, read, setting
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table, both_ways
from attnscope.render.sheets import ablation, ablation_words, composition, finding, why
from attnscope.render.sheets import explanation_words as words
from attnscope.render.words import Said
from attnscope.results import Ablation, Explanation, Kind, Verdict
from attnscope.results.claims.explanation import Asked, Replaced
from attnscope.results.claims.why import Side

_WORDS_SHOWN = 12  # words that were replaced


def sheet(result: Explanation, focus: Focus = WHOLE) -> Sheet:
    say = words.said(result)
    statements = tuple(_statements(result, say))
    heads = _heads(result, say)
    blocks: list[Block] = [Statements("", statements), *([heads] if result.heads else [])]
    if focus.verbose and result.replaced is not None:
        blocks.append(_replaced(result, say, result.replaced))
    return Sheet(
        title=say("title"),
        setting=setting(result),
        origins=(result.provenance,),
        answer=say(result.case),
        blocks=tuple(blocks),
        table=lambda: Table.of(
            "question answer figures command",
            ((each.question, each.sentence, each.figures, each.command) for each in statements),
        ),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        control=say("control"),
        notes=result.finding.notes,
        legend=tuple(say.lines("legend")),
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
    if words.drawn_by(result.finding):
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
            command = asking_of_model("compose", made.provenance, made.kind, made.tower, *which)
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
        return f"{asking(result, 'explain', '--from', query, '--to', key, *named)} -v"
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
        names=tuple(say("piece", words.fact_of(result, part)) for part in shown),
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
