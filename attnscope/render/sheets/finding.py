"""Heads ranked by the evidence for them, each beside its controls."""

from collections.abc import Iterator

import numpy as np

from attnscope.printable import word
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import alike, counted, signed_cell, weight_cell
from attnscope.render.kit.words.command import TILED, asking, finding, label, looked_at, opening_head
from attnscope.render.sheet.guard import by_head
from attnscope.render.sheet.heads import Companion, HeadGrid
from attnscope.render.sheet.said import (
    Place,
    departures,
    grid_size,
    limits,
    name,
    named,
    patch_words,
    proof,
    read,
    setting,
    span_notes,
)
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheets import finding_rows as rows
from attnscope.render.sheets import finding_words as words
from attnscope.render.sheets.heaps import of_finding
from attnscope.render.words import Said
from attnscope.results import Finding, Kind, Special
from attnscope.results.claims.finding import Case

_NAMED = 6  # heads that are named one by one
_CONTROLS_TOLD = 3  # under -v; JSON has all of them


def sheet(result: Finding, focus: Focus = WHOLE) -> Sheet:
    best = result.ranking[0] if result.ranking else None
    say = words.said(result)
    ranking = rows.ranking(result, focus.verbose)
    measured, change = (
        "divergence" if result.smaller_is_better else "weight",
        Scale.around(result.above_control),
    )
    beside = Companion.numbers("mean of its controls", result.controls.mean, weight_cell)
    sought, changed = result.question, departures(result.by, result.special)
    pieces = " by tokens" if changed or sought.query_span or sought.key_span else ""
    grids = (
        _grid(result, "above the mean of its controls", result.above_control, change),
        _grid(result, measured, result.weights, rows.scale_of(result), beside),
    )
    return Sheet(
        title=say("title"),
        setting=setting(result, _size(result)),
        origins=(result.provenance,),
        answer=words.answer(result),
        blocks=(ranking, *(grids if focus.verbose else ())),
        table=lambda: rows.table_of(result, result.ranking, True),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        control=say("control"),
        notes=(*_spans(result), *say.lines("notes"), *limits(result)),
        legend=(*patch_words(result.query_tokens, result.key_tokens), *say.lines("legend")),
        details=tuple(_details(result, say)),
        departs=(*changed, *_departures(result)),
        proof=proof(
            result.every_verdict,
            "head",
            pieces,
            "the rows asked about in " if result.by_rows else "",
        ),
        verdicts=by_head(result.layers, result.heads, result.verdicts),
        main=ranking,
        summary=(counted(len(result.places), "head"), f"best {named(result, best)}" if best else ""),
        record=(("kind", result.kind.value), ("tower", result.tower)),
        next=_next(result, say),
        more=(*of_finding(result), *(() if focus.verbose else grids)),
        opens=_opens(result, best or (0, 0)),
    )


def _size(result: Finding) -> str:
    if not result.apart:
        return grid_size(result.layers, result.heads)
    return ", ".join(name(*each) for each in result.apart[:_NAMED]) + (", ..." * (len(result.apart) > _NAMED))


def _spans(result: Finding) -> Iterator[str]:
    sides, sought = words.sides(result), result.question
    return span_notes(sides[0], sought.query_span, sides[1], sought.key_span)


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


def _departures(result: Finding) -> Iterator[str]:
    controls = result.controls
    if controls.count != controls.wanted:
        yield f"{controls.count} of {controls.wanted} controls"
    if controls.seed:
        yield f"seed {controls.seed}"


def _details(result: Finding, say: Said) -> Iterator[str]:
    yield from (f"control {i}: {text}" for i, text in enumerate(result.control_texts[:_CONTROLS_TOLD]))
    yield from say.lines("details")


def _next(result: Finding, say: Said) -> Next | None:
    sought = result.question
    if not result.ranking:
        return None
    i, j = result.ranking[0]
    looking = looked_at(result.by, result.special)
    crosses = result.kind is Kind.CROSS and result.query_tokens.texts
    if sought.query is None or sought.key is None:
        i, j = words.first_named(result) or (i, j)
        opened = opening_head(result, result.layers[i], result.heads[j])
        return Next(say("look_of_that_head"), f"{opened}{looking}")
    if crosses and sought.query > 0:
        before = finding(result, sought.query - 1, sought.key)
        return Next(say("row_before"), f"{before}{looking}")
    if result.case not in (Case.ONE, Case.SEVERAL):
        query = label(result.query_tokens, sought.query)
        if result.by_rows:
            opened = opening_head(result, result.layers[i], result.heads[j], sought.query)
            opened = opened.replace(f" {TILED}", "") if looking else opened  # which shows tokens alone
            return Next(say("first_of_these"), f"{opened}{looking}")
        return Next(say("heads_from_there"), f"{asking(result, 'heads', '--query', query)}{looking}")
    if _is_mask(result) and not looking:
        link = f"{result.query_tokens.labels[sought.query]}->{result.key_tokens.labels[sought.key]}"
        cut = asking(result, "ablate", "--layer", str(result.layers[i]), "--link", word(link))
        return Next(say("needed"), cut)
    over = not result.query_tokens.texts and result.key_tokens.stretches  # where every key is shown
    opened = opening_head(result, result.layers[i], result.heads[j], sought.query if over else None)
    return Next(say("whole_head"), f"{opened}{looking}")


def _is_mask(result: Finding) -> bool:
    query = result.question.query
    token = None if query is None else result.query_tokens.items[query]
    return token is not None and "mask" in token.name.casefold() and not token.name.isalpha()


def _opens(result: Finding, best: Place) -> dict[str, object]:
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
        "words": result.by.joins,
        "special": result.special,
    }
