"""Every layer and head of a model held against the model: errors by layer, how surely each was checked."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.numbers import counted, significant
from attnscope.render.kit.words.certificate import GLYPHS, certificate_words, power_words, verdict_words
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import proof, text
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Table
from attnscope.results import Certificate, LayerCheck, Verdict, Verification
from attnscope.results.base.origin import Fault

POWERS = 6  # of ten: a power beyond a million says no more than that
_SCALE = Scale(0.0, POWERS)
_FACTS = (
    "tower route layer kind block head weight_error weight_tolerance output_error output_tolerance power "
    "hardest_fault verdict"
)
Layer = list[LayerCheck]  # the blocks of one layer


def sheet(result: Verification, focus: Focus = WHOLE) -> Sheet:
    layers, names = _layers(result), _names(result.layers)
    every = [each for layer in result.layers for each in layer.certificates]
    heads = counted(len(every), "head")
    return Sheet(
        title=f"verification of {heads}",
        setting=model_words(result.provenance),
        origins=(result.provenance,),
        answer=_answer(result, layers),
        blocks=(_by_layer(layers, names), *_grids(layers, names)) if layers else (),
        table=lambda: Table.of(_FACTS, _facts(result)),
        texts=text(result.tokens),
        notes=tuple(_notes(result)),
        legend=_POWER if layers else (),
        details=tuple(_worst(result, layers, names)),
        about_proof=True,
        proof=tuple(_proof(result, every)),
        summary=(counted(len(result.tokens), "token"),),
    )


def _layers(result: Verification) -> list[Layer]:
    """The blocks of each layer, in the order of the layers."""
    found: dict[tuple[str, str, int], Layer] = {}
    for check in result.layers:
        found.setdefault((check.tower, check.kind, check.layer), []).append(check)
    return list(found.values())


def _names(checks: Sequence[LayerCheck]) -> dict[tuple[str, str], str]:
    """What each tower is called: its kind, or its name where several are of that kind."""
    places = {(check.tower, check.kind.value) for check in checks}
    kinds = Counter(kind for _, kind in places)
    return {(tower, kind): kind if kinds[kind] == 1 else tower for tower, kind in places}


def _name(layer: LayerCheck, names: dict[tuple[str, str], str]) -> str:
    return names[layer.tower, layer.kind.value]


def _answer(result: Verification, layers: list[Layer]) -> str:
    """How many heads have which verdict, how surely, and what reading the model changed."""
    every = Counter(one.verdict for layer in result.layers for one in layer.certificates)
    apart = ", blocks counted apart," if any(len(blocks) > 1 for blocks in layers) else ""
    told = f"{counted(every.total(), 'head')}{apart} in {counted(len(layers), 'layer')}: "
    parts = ", ".join(f"{every[verdict]} {verdict.value}" for verdict in Verdict if every[verdict])
    told += f"all {next(iter(every)).value}" if len(every) == 1 else parts
    told = told if layers else "no head was checked"
    faults = [fault.power for layer in result.layers for one in layer.certificates for fault in one.faults]
    if faults:
        told += f"; the faintest mistake put in on purpose lies at {power_words(min(faults))} the tolerance"
    changed = [check.name for check in result.outputs if not check.identical]
    if result.outputs:
        told += f"; reading the model changed {', '.join(changed) or 'nothing'}"
    return f"{told}."


def _by_layer(layers: list[Layer], names: dict[tuple[str, str], str]) -> Ranking:
    """A row for each layer, its blocks together."""
    routes = [blocks[0].route.split()[0] for blocks in layers]
    every = [[one for block in blocks for one in block.certificates] for blocks in layers]
    largest = "largest error of the layer's heads"
    return Ranking(
        title="",
        of="layer",
        names=tuple(f"L{blocks[0].layer} {_name(blocks[0], names)}" for blocks in layers),
        table=Table(
            Column("route", routes, "route" if len(set(routes)) > 1 else ""),
            Column("heads", [_heads(blocks) for blocks in layers], "heads"),
            Column("verdicts", list(map(_verdicts, every)), "verdicts"),
            Column("weights", list(map(_weights, layers)), "weights", says=largest),
            Column("output", list(map(_output, every)), "output", says=largest),
            Column("power", list(map(_smallest_power, every)), "smallest power"),
        ),
    )


def _heads(blocks: Layer) -> str:
    heads = str(len(blocks[0].certificates))
    return heads if len(blocks) == 1 else f"{heads} x {counted(len(blocks), 'block')}"


def _verdicts(certificates: Sequence[Certificate]) -> str:
    """`✓ 10 ? 2`, best verdict first."""
    counts = Counter(certificate.verdict for certificate in certificates)
    return " ".join(f"{GLYPHS[each]} {counts[each]}" for each in Verdict if counts[each])


def _weights(blocks: Layer) -> str:
    """The largest error of weights and its head: `7.0e-8 H6`, `0.25 H1 B1` where there are blocks."""
    places = [(block.block, head, one) for block in blocks for head, one in enumerate(block.certificates)]
    error, place = _largest([one for *_, one in places], lambda one: one.weight_error)
    if place < 0:
        return "-"
    block, head, _ = places[place]
    return f"{significant(error)} H{head}" + (f" B{block}" if len(blocks) > 1 else "")


def _output(certificates: Sequence[Certificate]) -> str:
    error, place = _largest(certificates, lambda one: one.output_error)
    return "-" if place < 0 else significant(error)


def _largest(
    certificates: Sequence[Certificate], measured: Callable[[Certificate], float]
) -> tuple[float, int]:
    """Largest error and its place; NaN is the largest where it is the failure, else it was not measured."""
    errors = [
        (error, place)
        for place, certificate in enumerate(certificates)
        if not math.isnan(error := measured(certificate)) or certificate.verdict is Verdict.FAILED
    ]
    return max(errors, key=lambda pair: (math.isnan(pair[0]), pair[0]), default=(math.nan, -1))


def _smallest_power(certificates: Sequence[Certificate]) -> str:
    weakest = _hardest(certificates)
    return f"{power_words(weakest.power)} {weakest.name}" if weakest else "no fault tried"


def _hardest(certificates: Sequence[Certificate]) -> Fault | None:
    """The mistake put in on purpose that is hardest to see."""
    faults = [fault for certificate in certificates for fault in certificate.faults]
    return min(faults, key=lambda fault: fault.power, default=None)


def _grids(layers: list[Layer], names: dict[tuple[str, str], str]) -> Iterator[HeadGrid]:
    """A grid for each attention of the model; of the blocks of a layer that one counts which proves least."""
    towers: dict[str, list[Layer]] = {}
    for blocks in layers:
        towers.setdefault(_name(blocks[0], names), []).append(blocks)
    for tower, own in towers.items():
        rows = [_worst_of(blocks) for blocks in own]
        heads = range(max(map(len, rows)))
        values = np.array([[_power(row[j]) if j < len(row) else math.nan for j in heads] for row in rows])
        verdicts = tuple(tuple(row[j].verdict if j < len(row) else None for j in heads) for row in rows)
        yield HeadGrid(
            title=f"{tower}: power of the faintest fault"
            if len(towers) > 1
            else "power of the faintest fault",
            layers=tuple(blocks[0].layer for blocks in own),
            heads=tuple(heads),
            values=values,
            scale=_SCALE,
            form=_power_text,
            verdicts=verdicts,
        )


def _worst_of(blocks: Layer) -> list[Certificate]:
    heads = zip(*(block.certificates for block in blocks), strict=True)
    return [max(each, key=lambda one: (one.verdict.rank, -one.power)) for each in heads]


def _power(certificate: Certificate) -> float:
    """The power of the fault that is hardest to see, as a power of ten; NaN where none was tried."""
    return min(math.log10(certificate.power), POWERS) if certificate.power > 0 else math.nan


def _power_text(power: float) -> str:
    """`1,200`, in two digits."""
    if power >= POWERS:
        return "≥10⁶"
    return significant(float(f"{10**power:.1e}"))


_POWER = (
    "power: how many times the tolerance a mistake makes that is put in on purpose, of several mistakes the "
    "one hardest to see; no number: none could be tried",
)


def _worst(result: Verification, layers: list[Layer], names: dict[tuple[str, str], str]) -> Iterator[str]:
    every = [(layer, head, one) for layer in result.layers for head, one in enumerate(layer.certificates)]
    if every:
        layer, head, certificate = max(every, key=lambda place: _badness(place[2]))
        block = f" block {layer.block}" if any(len(blocks) > 1 for blocks in layers) else ""
        where = f"L{layer.layer} H{head}{block} ({_name(layer, names)})"
        yield f"worst head: {where} {certificate_words(certificate)}"


def _notes(result: Verification) -> Iterator[str]:
    if result.outputs:
        told = (
            f"{each.name} " + ("identical" if each.identical else f"off by {significant(each.difference)}")
            for each in result.outputs
        )
        yield f"against an untouched run: {', '.join(told)}"
    yield from result.notes


def _badness(certificate: Certificate) -> tuple[int, bool, float]:
    """The worst verdict; among equals the head whose weights use up most of their tolerance."""
    share = certificate.weight_error / certificate.weight_tolerance if certificate.weight_tolerance else 0.0
    return certificate.verdict.rank, math.isnan(share), share


def _proof(result: Verification, every: Sequence[Certificate]) -> Iterator[tuple[Verdict, str]]:
    yield from proof((each.verdict for each in every), "head")
    if result.verdict not in {each.verdict for each in every}:
        told = "no head was checked" if not every else "the model's own results changed while it was read"
        yield result.verdict, f"{verdict_words(result.verdict)}: {told}"


def _facts(result: Verification) -> Iterator[tuple[object, ...]]:
    """A row per head with its errors, its tolerances and its verdict."""
    for layer in result.layers:
        for head, one in enumerate(layer.certificates):
            errors = one.weight_error, one.weight_tolerance, one.output_error, one.output_tolerance
            yield (
                *(layer.tower, layer.route, layer.layer, layer.kind.value, layer.block, head),
                *map(exact, (*errors, one.power)),
                weakest.name if (weakest := _hardest([one])) else "",
                one.verdict.value,
            )
