"""Sheet of `verify`: errors, tolerances and power of the tests, by layer and head."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from attnscope.render.kit.command import asking
from attnscope.render.kit.numbers import counted, exact, significant
from attnscope.render.kit.words import (
    GLYPHS,
    certificate_words,
    model_words,
    own_name,
    power_words,
    verdict_words,
)
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import proof, text
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Scale, Table, as_written
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Certificate, Verdict
from attnscope.results.base.origin import Fault
from attnscope.verbs.verify.result import LayerCheck, Verification

POWERS = 6  # largest power of ten shown: beyond a million more says nothing
_SCALE = Scale(0.0, POWERS)
_COLUMNS = (
    "tower route layer kind block head weight_error weight_tolerance output_error output_tolerance power "
    "hardest_fault verdict"
)
Layer = list[LayerCheck]  # the blocks of one layer
NOT_COMPARED = (-1.0, math.nan, math.nan, "")


def sheet(result: Verification, focus: Focus = WHOLE) -> Sheet:
    blocks = dict[tuple[str, str, int], Layer]()
    for check in result.layers:
        blocks.setdefault((check.tower, check.kind, check.layer), []).append(check)
    layers, names = list(blocks.values()), _names(result.layers)
    every = [each for layer in result.layers for each in layer.certificates]
    say, grids = said(result), tuple(_grids(result, layers, names))
    kinds = {(layer.tower, layer.kind) for layer in result.layers}
    following = Next(say("what_they_look_at"), asking(result, "heads"))
    also: tuple[tuple[Verdict, str], ...] = ()
    if result.verdict not in {each.verdict for each in every}:
        also = ((result.verdict, f"{verdict_words(result.verdict)}: {say('proof')}"),)
    return saying(
        say,
        setting=model_words(result.provenance),
        blocks=(_by_layer(say, layers, names, focus.verbose), *(grids if focus.verbose else ()))
        if layers
        else (),
        table=lambda: Table.of(_COLUMNS, _rows(result)),
        texts=text(result.tokens),
        notes=result.notes,
        legend=tuple(say.lines("legend")) if layers and focus.verbose else (),
        details=tuple(say.lines("details")),
        more=() if focus.verbose else grids,
        about_proof=True,
        proof=(*proof((each.verdict for each in every), "head"), *also),
        summary=(counted(len(result.tokens), "token"),),
        next=following if len(kinds) == 1 and not result.verdict.stands_out else None,
    )


def said(result: Verification) -> Said:
    """Sentences of `verify` about this result, and the facts they use."""
    every = [one for layer in result.layers for one in layer.certificates]
    count, kinds = Counter(one.verdict for one in every), {layer.kind.value for layer in result.layers}
    failed = [one for one in every if one.verdict is Verdict.FAILED]
    furthest = max(failed, key=lambda one: _used(one)[0], default=None)
    _, off, allowed, what = _used(furthest) if furthest else NOT_COMPARED
    changed = [check for check in result.outputs if not check.identical]
    most = max(changed, key=lambda each: each.difference, default=None)
    reasons = Counter(one.reason for one in every if one.verdict is Verdict.PARTIAL and one.reason)
    hardest = _hardest(every)
    facts = {
        "model": own_name(result.provenance.model),
        "head": f"{kinds.pop()} head" if len(kinds) == 1 else "head",
        "total": len(every),
        "good": count[Verdict.CERTIFIED] + count[Verdict.RECOMPUTED],
        "inconclusive": count[Verdict.INCONCLUSIVE],
        "unchecked": count[Verdict.UNCERTIFIED],
        "partial": count[Verdict.PARTIAL],
        "partial_reason": reasons.most_common(1)[0][0] if reasons else "",
        "refuted": len(failed),
        "off": None if math.isnan(off) else off,
        "off_allowed": allowed,
        "off_what": what,
        "off_reason": furthest.reason if furthest else "",
        "differs": most.name if most else None,
        "change": most.difference if most else None,
        "unchanged": bool(result.outputs) and count[Verdict.CERTIFIED] == len(every),
        "outputs": [(each.name, None if each.identical else each.difference) for each in result.outputs],
        "tried": max((len(each.faults) for each in every), default=0),
        "hardest": hardest.name if hardest else None,
        "power": power_words(hardest.power) if hardest else None,
        "worst": _worst(result),
    }
    return Said("verification", result, facts)


def _names(checks: Sequence[LayerCheck]) -> dict[tuple[str, str], str]:
    places = {(check.tower, check.kind.value) for check in checks}
    kinds = Counter(kind for _, kind in places)
    return {(tower, kind): kind if kinds[kind] == 1 else tower for tower, kind in places}


def _name(layer: LayerCheck, names: dict[tuple[str, str], str]) -> str:
    return names[layer.tower, layer.kind.value]


def _by_layer(say: Said, layers: list[Layer], names: dict[tuple[str, str], str], whole: bool) -> Ranking:
    routes = [blocks[0].route.split()[0] for blocks in layers]
    every = [[one for block in blocks for one in block.certificates] for blocks in layers]
    worst = [max(map(_used, each), default=NOT_COMPARED) for each in every]
    hardest, output = (
        list(map(_hardest, every)),
        [_largest(each, lambda one: one.output_error) for each in every],
    )
    towers = {_name(blocks[0], names) for blocks in layers}
    return Ranking(
        title="",
        of="layer",
        names=tuple(
            f"L{blocks[0].layer}" + (f" {_name(blocks[0], names)}" if len(towers) > 1 or whole else "")
            for blocks in layers
        ),
        table=Table(
            Column("route", routes, "route" if whole or len(set(routes)) > 1 else ""),
            Column("heads", [_heads(say, each) for each in layers], "heads", as_written),
            Column("verdicts", list(map(_verdicts, every)), "verdicts" if whole else ""),
            Column("off", [each[1] for each in worst], "furthest off", significant, say("says_off")),
            Column("allowed", [each[2] for each in worst], "rounding allows", significant,
                   say("says_allowed")),
            Column("weights", list(map(_weights, layers)), "weights, head" if whole else ""),
            Column("output", ["-" if place < 0 else significant(error) for error, place in output],
                   "output" if whole else "", as_written),
            Column("power", [power_words(each.power) if each else say("none_tried") for each in hardest],
                   "weakest test (≥ 1 needed)", as_written, say("says_power")),
            Column("fault", [each.name if each else "" for each in hardest],
                   "hardest to see" if whole else ""),
        ),
    )  # fmt: skip


def _heads(say: Said, blocks: Layer) -> str:
    every = [one for block in blocks for one in block.certificates]
    heads = f"{sum(one.verdict.proved for one in every)} of {len(every)}"
    if any(one.verdict is Verdict.STORED for one in every):  # the proof is only claimed by the file
        heads = _verdicts(every)
    return heads if len(blocks) == 1 else say("blocks", heads, len(blocks))


def _verdicts(certificates: Sequence[Certificate]) -> str:
    counts = Counter(certificate.verdict for certificate in certificates)
    return " ".join(f"{GLYPHS[each]} {counts[each]}" for each in Verdict if counts[each])


def _weights(blocks: Layer) -> str:
    places = [(block.block, head, one) for block in blocks for head, one in enumerate(block.certificates)]
    error, place = _largest([one for *_, one in places], lambda one: one.weight_error)
    if place < 0:
        return "-"
    block, head, _ = places[place]
    return f"{significant(error)} H{head}" + (f" B{block}" if len(blocks) > 1 else "")


def _largest(
    certificates: Sequence[Certificate], measured: Callable[[Certificate], float]
) -> tuple[float, int]:
    """Largest error and its index; NaN counts as largest for a failed head, else as not measured."""
    errors = [
        (error, place)
        for place, certificate in enumerate(certificates)
        if not math.isnan(error := measured(certificate)) or certificate.verdict is Verdict.FAILED
    ]
    return max(errors, key=lambda pair: (math.isnan(pair[0]), pair[0]), default=(math.nan, -1))


def _grids(
    result: Verification, layers: list[Layer], names: dict[tuple[str, str], str]
) -> Iterator[HeadGrid]:
    towers: dict[str, list[Layer]] = {}
    for blocks in layers:
        towers.setdefault(_name(blocks[0], names), []).append(blocks)
    for tower, own in towers.items():
        rows = [
            [
                max(each, key=lambda one: (one.verdict.rank, -one.power))
                for each in zip(*(block.certificates for block in blocks), strict=True)
            ]
            for blocks in own
        ]
        heads = range(max(map(len, rows)))
        powers = [
            [row[j].power if j < len(row) else 0.0 for j in heads] for row in rows
        ]  # of ten; NaN: untried
        values = np.array(
            [[min(math.log10(each), POWERS) if each > 0 else math.nan for each in row] for row in powers]
        )
        verdicts = tuple(tuple(row[j].verdict if j < len(row) else None for j in heads) for row in rows)
        yield HeadGrid(
            title=said(result)("grid", tower if len(towers) > 1 else ""),
            layers=tuple(blocks[0].layer for blocks in own),
            heads=tuple(heads),
            values=values,
            scale=_SCALE,
            form=lambda power: "≥10⁶" if power >= POWERS else significant(float(f"{10**power:.1e}")),
            verdicts=verdicts,
        )


def _worst(result: Verification) -> str:
    """Name and certificate of the head with the worst verdict; empty without heads."""
    every = [(layer, head, one) for layer in result.layers for head, one in enumerate(layer.certificates)]
    if not every:
        return ""

    def badness(place: tuple[LayerCheck, int, Certificate]) -> tuple[int, bool, float]:
        """Sort key: rank of the verdict, then the share of the tolerance that the weights use."""
        one = place[2]
        share = one.weight_error / one.weight_tolerance if one.weight_tolerance else 0.0
        return one.verdict.rank, math.isnan(share), share

    layer, head, certificate = max(every, key=badness)
    block = f" block {layer.block}" if any(each.block for each in result.layers) else ""
    where = f"L{layer.layer} H{head}{block} ({_name(layer, _names(result.layers))})"
    return f"{where} {certificate_words(certificate)}"


def _rows(result: Verification) -> Iterator[tuple[object, ...]]:
    for layer in result.layers:
        for head, one in enumerate(layer.certificates):
            errors = one.weight_error, one.weight_tolerance, one.output_error, one.output_tolerance
            yield (
                *(layer.tower, layer.route, layer.layer, layer.kind.value, layer.block, head),
                *map(exact, (*errors, one.power)),
                weakest.name if (weakest := _hardest([one])) else "",
                one.verdict.value,
            )


def _used(certificate: Certificate) -> tuple[float, float, float, str]:
    """Share of tolerance, error, tolerance and name, of weights or output, the larger share."""
    pairs = (
        (certificate.weight_error, certificate.weight_tolerance, "weights"),
        (certificate.output_error, certificate.output_tolerance, "outputs"),
    )
    shares = [
        (error / allowed if allowed else math.inf, error, allowed, what)
        for error, allowed, what in pairs
        if not math.isnan(error)
    ]
    return max(shares, default=NOT_COMPARED)


def _hardest(certificates: Sequence[Certificate]) -> Fault | None:
    """The injected fault with the least power, hardest to detect; None without faults."""
    faults = [fault for certificate in certificates for fault in certificate.faults]
    return min(faults, key=lambda fault: fault.power, default=None)
