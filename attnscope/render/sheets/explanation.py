"""One verdict on a link: a sentence for each of the questions behind it, with figures and command."""

from collections.abc import Iterator
from dataclasses import replace

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import signed, signed_cell, weight_cell
from attnscope.render.kit.words.command import asking, label, opening_head
from attnscope.render.sheet.blocks import Block, Ranking
from attnscope.render.sheet.drawings import Statements
from attnscope.render.sheet.guard import by_head
from attnscope.render.sheet.said import at, in_sentence, name, read, setting
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table, both_ways
from attnscope.render.sheets import (
    ablation,
    composition,
    finding,
    why,
)
from attnscope.render.sheets import explanation_words as words
from attnscope.render.sheets.explanation_statements import statements
from attnscope.results import Ablation, Explanation, Verdict
from attnscope.results.claims.explanation import Asked, Replaced
from attnscope.results.claims.why import Side

_WORDS_SHOWN = 12  # words that were replaced


def sheet(result: Explanation, focus: Focus = WHOLE) -> Sheet:
    said = tuple(statements(result))
    heads = _heads(result)
    blocks: list[Block] = [Statements("", said), *([heads] if result.heads else [])]
    if focus.verbose and result.replaced is not None:
        blocks.append(_replaced(result, result.replaced))
    link = f"{at(result.query_tokens, result.query)} → {at(result.key_tokens, result.key)}"
    return Sheet(
        title=f"what is behind {link}",
        setting=setting(result),
        origins=(result.provenance,),
        answer=words.answer(result),
        blocks=tuple(blocks),
        table=lambda: Table.of(
            "question answer figures command",
            ((each.question, each.sentence, each.figures, each.command) for each in said),
        ),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        control=words.control(result),
        notes=result.finding.notes,
        legend=words.LEGEND,
        departs=(f"seed {result.finding.controls.seed}",) if result.finding.controls.seed else (),
        proof=tuple(_proof(result)),
        verdicts=by_head(result.finding.layers, result.finding.heads, result.finding.verdicts),
        main=heads if result.heads else None,
        whole="an explanation is several sentences with their figures",
        record=(("kind", result.kind.value), ("tower", result.tower)),
        next=_next(result),
        more=tuple(_more(result, focus)),
        opens=_opens(result),
    )


def _heads(result: Explanation) -> Ranking:
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
    under, because = "answer changes by (nats)", "looks there because of"
    return Ranking(
        title="the heads that were asked further",
        of="head",
        names=tuple(name(*head) for head in result.heads),
        table=Table(
            Column("weight", weights, "weight", weight_cell, "what the head gives to the key from the query"),
            Column("control", means, "shuffled", weight_cell, "the mean of the same in the control texts"),
            Column("depends_on", [words.depends(found, place) for place in places], "goes with", spared=1,
                   says="what the weight stays with in the control texts: the word, or neither it nor the "
                   "place (context)"),
            Column("without", without, "without it", signed, "change of the answer's log probability "
                   "where the head is taken away", under=under),
            Column("cut", cut, "link cut", signed, "the same where only this link of the head is cut",
                   under=under),
            Column("query_reasons", reasons[Side.QUERY], "at the query", spared=2, under=because,
                   says="earlier parts that bring half of the score, and half of the weight goes with them"),
            Column("key_reasons", reasons[Side.KEY], "at the key", spared=2, under=because),
        ),
        measured="weight",
        marks=(
            Mark("span", "control", "control texts, 90 % between", low, high),
            Mark("dot", "own", "weight here", weights),
        ),
        written="weight",
        axis=(0.0, 1.0),
        chosen=frozenset(i for i, head in enumerate(result.heads) if head == result.lead),
    )  # fmt: skip


def _changes(result: Explanation, made: Ablation | None) -> list[float | None]:
    changes = {} if made is None else {(each.layer, each.head): each.change for each in made.heads}
    return [changes.get(head) for head in result.heads]


def _replaced(result: Explanation, made: Replaced) -> Ranking:
    shown = made.parts[:_WORDS_SHOWN]
    lost, costs = [part.change for part in shown], bool(made.answer)
    hidden = len(made.parts) - len(shown)
    return Ranking(
        title=f"replaced by {made.replacement}, one at a time",
        of="replaced",
        names=tuple(words.part_name(result, part) for part in shown),
        table=Table(
            Column("lost", lost, words.loses(made), signed_cell, scale=Scale.around(lost, costs=costs))
        ),
        measured=words.loses(made),
        marks=both_ways(lost, costs=costs),
        written="lost",
        chosen=frozenset(i for i, part in enumerate(shown) if result.key in part.positions),
        hidden=hidden,
        unshown=f"{hidden} more",
    )


def _more(result: Explanation, focus: Focus) -> Iterator[Block]:
    if result.replaced is not None and not focus.verbose:
        yield _replaced(result, result.replaced)
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


def _next(result: Explanation) -> Next | None:
    if result.lead is None:
        query = label(result.query_tokens, result.query)
        return Next("what do heads look at from there?", asking(result, "heads", "--query", query))
    from_there = f"from {in_sentence(result.query_tokens, result.query)}"
    opened = opening_head(result, *result.lead, result.query)
    return Next(f"what else does {name(*result.lead)} look at {from_there}?", opened)


def _opens(result: Explanation) -> dict[str, int]:
    if result.lead is None:
        return {}
    layer, head = result.lead
    return {"layer": layer, "head": head, "query": result.query, "key": result.key}
