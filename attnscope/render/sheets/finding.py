"""Heads ranked by the evidence for them, each beside its controls."""

from collections.abc import Iterator

import numpy as np

from attnscope.errors import listed
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import alike, counted, signed_cell, weight, weight_cell
from attnscope.render.kit.words.command import TILED, asking, finding, label, looked_at, opening_head
from attnscope.render.kit.words.shell import word
from attnscope.render.sheet.guard import by_head
from attnscope.render.sheet.heads import Companion, HeadGrid
from attnscope.render.sheet.said import (
    Place,
    at,
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
from attnscope.results import Finding, Kind, Special
from attnscope.results.claims.finding import Case
from attnscope.results.claims.ranking import LEAST_CONTROLS, LEVEL, SINK

_NAMED = 6  # heads that are named one by one
_CONTROLS_TOLD = 3  # under -v; JSON has all of them


def sheet(result: Finding, focus: Focus = WHOLE) -> Sheet:
    best = result.ranking[0] if result.ranking else None
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
        title=_subject(result),
        setting=setting(result, _size(result)),
        origins=(result.provenance,),
        answer=words.answer(result),
        blocks=(ranking, *(grids if focus.verbose else ())),
        table=lambda: rows.table_of(result, result.ranking, True),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        control=words.control(result),
        notes=(*_spans(result), *_notes(result), *_sink(result), *limits(result)),
        legend=tuple(_legend(result)),
        details=tuple(_details(result)),
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
        next=_next(result),
        more=(*of_finding(result), *(() if focus.verbose else grids)),
        opens=_opens(result, best or (0, 0)),
    )


def _size(result: Finding) -> str:
    if not result.apart:
        return grid_size(result.layers, result.heads)
    return ", ".join(name(*each) for each in result.apart[:_NAMED]) + (", ..." * (len(result.apart) > _NAMED))


def _subject(result: Finding) -> str:
    sought = result.question
    if sought.like is not None:
        return f"Jensen-Shannon divergence from {name(*sought.like)} in nats"
    if sought.pattern is not None:
        pattern = words.pattern_words(result, sought.pattern)
        return f"weight on {pattern}, mean of {counted(result.rows, 'query')}"
    assert sought.query is not None, "a pair, where nothing else is sought"
    assert sought.key is not None, "a pair has both"
    query = at(result.query_tokens, sought.query, sought.query_span)
    return f"weight of {query} → {at(result.key_tokens, sought.key, sought.key_span)}"


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


def _depends(result: Finding) -> Iterator[str]:
    of, shuffled = result.controls.of, f"when the {words.PLURAL[result.controls.of]} are shuffled"
    half = "half of the weight or more"
    much = "much more than even attention (twice, or halfway from it to 1 where that is less)"
    yield f"position: {half} stays {shuffled}, and the weight is {much}"
    if result.elsewhere is not None:
        spread = " (spread over the text, not all)" if result.sampled else ""
        yield f"key: {words.others(result)}{spread} give it {half}, so that this one is nothing apart"
    if result.followed is not None:
        yield f"{of.part}: {half} follows {words.sides(result)[1]} to wherever it is moved"
    context = rows.context_words(of)
    yield f"{context}: neither; the weight is lost {shuffled}, which happens in an untrained model too"


def _legend(result: Finding) -> Iterator[str]:
    yield from patch_words(result.query_tokens, result.key_tokens)
    count, of = result.controls.count, words.control_texts(result)
    if any(result.evidence.depends_on(place) for place in result.ranking):
        yield from _depends(result)
    if count >= LEAST_CONTROLS:
        lies, than = ("below", "nearer than") if result.smaller_is_better else ("above", "larger than")
        few = int(LEVEL * (count + 1) + 1e-9) - 1
        yield (
            f"stand out: so far {lies} the mean of its {of} that in at most {few} of {count} any head lies "
            f"as far {lies} its own, counted in the spread of each head (Westfall and Young 1993)"
        )
        yield (
            f"above their own controls only: {than} in {count - few} of {count} or more; of many heads some "
            "are so by luck"
        )
    how, of = result.controls.how.partition("; ")[0], words.PLURAL[result.controls.of]
    yield f"shuffled: {how}; {of} in such an order make no sense"


def _departures(result: Finding) -> Iterator[str]:
    controls = result.controls
    if controls.count != controls.wanted:
        yield f"{controls.count} of {controls.wanted} controls"
    if controls.seed:
        yield f"seed {controls.seed}"


def _details(result: Finding) -> Iterator[str]:
    yield from (f"control {i}: {text}" for i, text in enumerate(result.control_texts[:_CONTROLS_TOLD]))
    best = [weight(float(each)) for each in np.quantile(result.controls.best, (0.05, 0.5, 0.95))]
    if result.ranking:
        yield f"best head of a control: {best[1]} in the median, {best[0]} to {best[2]}"
    if result.even_attention is not None and not np.isnan(result.even_attention).all():
        least, most = (weight(float(each(result.even_attention))) for each in (np.nanmin, np.nanmax))
        yield f"even attention: {least if least == most else f'{least} to {most}'}"


def _notes(result: Finding) -> Iterator[str]:
    key = result.question.key
    if key is not None and result.key_tokens.items[key].special:
        plural = words.PLURAL[result.controls.of]
        yield f"the key is a special token, which stays: the controls have other {plural} around it"


def _sink(result: Finding) -> Iterator[str]:
    lengths = result.key_lengths
    if lengths is None or not (long := np.flatnonzero(lengths >= SINK)).size:
        return
    _, key = words.sides(result)
    where = listed([result.layers[i] for i in long])
    yield (
        f"{key} is a sink: its hidden state is up to {lengths.max():.1f} times as long as the typical one "
        f"(before layer{'s' if long.size > 1 else ''} {where})"
    )


def _next(result: Finding) -> Next | None:
    sought = result.question
    if not result.ranking:
        return None
    i, j = result.ranking[0]
    looking = looked_at(result.by, result.special)
    crosses = result.kind is Kind.CROSS and result.query_tokens.texts
    if sought.query is None or sought.key is None:
        i, j = words.first_named(result)
        opened = opening_head(result, result.layers[i], result.heads[j])
        return Next("what does that head look at?", f"{opened}{looking}")
    if crosses and sought.query > 0:
        before = finding(result, sought.query - 1, sought.key)
        return Next(
            "a row decides the next word: which heads look there one row before?", f"{before}{looking}"
        )
    if result.case not in (Case.ONE, Case.SEVERAL):
        query = label(result.query_tokens, sought.query)
        if result.by_rows:
            opened = opening_head(result, result.layers[i], result.heads[j], sought.query)
            opened = opened.replace(f" {TILED}", "") if looking else opened  # which shows tokens alone
            return Next("what does the first of these look at from there?", f"{opened}{looking}")
        return Next(
            "what do heads look at from there?", f"{asking(result, 'heads', '--query', query)}{looking}"
        )
    if _is_mask(result) and not looking:
        link = f"{result.query_tokens.labels[sought.query]}->{result.key_tokens.labels[sought.key]}"
        cut = asking(result, "ablate", "--layer", str(result.layers[i]), "--link", word(link))
        return Next("does the model's answer need the link?", cut)
    over = not result.query_tokens.texts and result.key_tokens.stretches  # where every key is shown
    opened = opening_head(result, result.layers[i], result.heads[j], sought.query if over else None)
    return Next("does everything look there in this head?", f"{opened}{looking}")


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
