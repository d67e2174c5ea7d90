"""Every layer and head of a model held against the model: how far off, and how surely that was tested."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.numbers import counted, significant
from attnscope.render.kit.words.certificate import GLYPHS, certificate_words, power_words, verdict_words
from attnscope.render.kit.words.command import asking
from attnscope.render.kit.words.header import model_words, own_name
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import proof, text
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Table, as_written
from attnscope.results import Certificate, Kind, LayerCheck, Provenance, Verdict, Verification
from attnscope.results.base.origin import Fault
from attnscope.tokens import Tokens

POWERS = 6  # of ten: a power beyond a million says no more than that
_SCALE = Scale(0.0, POWERS)
_FACTS = (
    "tower route layer kind block head weight_error weight_tolerance output_error output_tolerance power "
    "hardest_fault verdict"
)
Layer = list[LayerCheck]  # the blocks of one layer
NOT_COMPARED = (-1.0, math.nan, math.nan, "")
_OPEN = {
    Verdict.INCONCLUSIVE: "this text or its precision is too coarse to tell",
    Verdict.UNCERTIFIED: "the model gives weights alone, which nothing here can check",
}
_POWER = (
    "power: how many times the tolerance a mistake makes that is put in on purpose, of several mistakes the "
    "one hardest to see; no number: none could be tried",
)


def sheet(result: Verification, focus: Focus = WHOLE) -> Sheet:
    layers, names = _layers(result), _names(result.layers)
    every = [each for layer in result.layers for each in layer.certificates]
    heads, grids = counted(len(every), "head"), tuple(_grids(layers, names))
    return Sheet(
        title=f"verification of {heads}",
        setting=model_words(result.provenance),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(_by_layer(layers, names, focus.verbose), *(grids if focus.verbose else ())) if layers else (),
        table=lambda: Table.of(_FACTS, _facts(result)),
        texts=text(result.tokens),
        control=_control(every),
        notes=result.notes,
        legend=_POWER if layers and focus.verbose else (),
        details=(*_outputs(result), *_worst(result, layers, names)),
        more=() if focus.verbose else grids,
        about_proof=True,
        proof=tuple(_proofs(result, every)),
        summary=(counted(len(result.tokens), "token"),),
        next=_next(result),
    )


def _layers(result: Verification) -> list[Layer]:
    found: dict[tuple[str, str, int], Layer] = {}
    for check in result.layers:
        found.setdefault((check.tower, check.kind, check.layer), []).append(check)
    return list(found.values())


def _names(checks: Sequence[LayerCheck]) -> dict[tuple[str, str], str]:
    places = {(check.tower, check.kind.value) for check in checks}
    kinds = Counter(kind for _, kind in places)
    return {(tower, kind): kind if kinds[kind] == 1 else tower for tower, kind in places}


def _name(layer: LayerCheck, names: dict[tuple[str, str], str]) -> str:
    return names[layer.tower, layer.kind.value]


def _by_layer(layers: list[Layer], names: dict[tuple[str, str], str], whole: bool) -> Ranking:
    routes = [blocks[0].route.split()[0] for blocks in layers]
    every = [[one for block in blocks for one in block.certificates] for blocks in layers]
    worst = [max(map(_used, each), default=NOT_COMPARED) for each in every]
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
            Column("heads", list(map(_heads, layers)), "heads", as_written),
            Column("verdicts", list(map(_verdicts, every)), "verdicts" if whole else ""),
            Column("off", [each[1] for each in worst], "furthest off", significant,
                   "the largest difference of a weight or an output from the model's own, of what uses most "
                   "of its tolerance; outputs in their largest value"),
            Column("allowed", [each[2] for each in worst], "rounding allows", significant,
                   "what the model's own rounding can make of the same"),
            Column("weights", list(map(_weights, layers)), "weights, head" if whole else ""),
            Column("output", list(map(_output, every)), "output" if whole else "", as_written),
            Column("power", list(map(_smallest_power, every)), "weakest test (≥ 1 needed)", as_written,
                   "how many times what rounding allows the mistake makes that is hardest to see, of those "
                   "that were put in on purpose"),
            Column("fault", [each.name if (each := _hardest(row)) else "" for row in every],
                   "hardest to see" if whole else ""),
        ),
    )  # fmt: skip


def _heads(blocks: Layer) -> str:
    every = [one for block in blocks for one in block.certificates]
    heads = f"{sum(one.verdict.proved for one in every)} of {len(every)}"
    if any(one.verdict is Verdict.STORED for one in every):  # proved or not, only the file says so
        heads = _verdicts(every)
    return heads if len(blocks) == 1 else f"{heads} ({counted(len(blocks), 'block')})"


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
    return power_words(weakest.power) if weakest else "none tried"


def _grids(layers: list[Layer], names: dict[tuple[str, str], str]) -> Iterator[HeadGrid]:
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
    if power >= POWERS:
        return "≥10⁶"
    return significant(float(f"{10**power:.1e}"))


def _worst(result: Verification, layers: list[Layer], names: dict[tuple[str, str], str]) -> Iterator[str]:
    every = [(layer, head, one) for layer in result.layers for head, one in enumerate(layer.certificates)]
    if every:
        layer, head, certificate = max(every, key=lambda place: _badness(place[2]))
        block = f" block {layer.block}" if any(len(blocks) > 1 for blocks in layers) else ""
        where = f"L{layer.layer} H{head}{block} ({_name(layer, names)})"
        yield f"worst head: {where} {certificate_words(certificate)}"


@dataclass(frozen=True)
class _Run:
    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    provenance: Provenance
    tower: str = ""


def _next(result: Verification) -> Next | None:
    kinds = {(layer.tower, layer.kind) for layer in result.layers}
    if len(kinds) != 1 or result.verdict.stands_out:
        return None
    ((_, kind),) = kinds
    run = _Run(kind, result.tokens, result.tokens, result.provenance)
    return Next("what do these heads look at?", asking(run, "heads"))


def _badness(certificate: Certificate) -> tuple[int, bool, float]:
    """The worst verdict; among equals the head whose weights use up most of their tolerance."""
    share = certificate.weight_error / certificate.weight_tolerance if certificate.weight_tolerance else 0.0
    return certificate.verdict.rank, math.isnan(share), share


def _facts(result: Verification) -> Iterator[tuple[object, ...]]:
    for layer in result.layers:
        for head, one in enumerate(layer.certificates):
            errors = one.weight_error, one.weight_tolerance, one.output_error, one.output_tolerance
            yield (
                *(layer.tower, layer.route, layer.layer, layer.kind.value, layer.block, head),
                *map(exact, (*errors, one.power)),
                weakest.name if (weakest := _hardest([one])) else "",
                one.verdict.value,
            )


def _answer(result: Verification) -> str:
    """Whether each head is computed here as the model computes it, and what reading the model changed."""
    every = [one for layer in result.layers for one in layer.certificates]
    count, model = Counter(one.verdict for one in every), own_name(result.provenance.model)
    kinds = {layer.kind.value for layer in result.layers}
    head = f"{kinds.pop()} head" if len(kinds) == 1 else "head"
    changed = [check for check in result.outputs if not check.identical]
    if not every:
        told = f"No head of {model} was checked: nothing is proved"
    elif count[Verdict.FAILED]:
        told = _refuted(every, count[Verdict.FAILED], head, model)
    elif changed:
        told = f"✗ Watching {model} changed its results: do not use these numbers"
    elif count[Verdict.STORED]:
        told = f"{model} as the file says: {counted(len(every), 'head')} checked then, nothing again here"
    else:
        told = _held(every, count, head, model)
    if changed:
        worst = max(changed, key=lambda each: each.difference)
        told += f". With every head read, {worst.name} differs by up to {significant(worst.difference)}"
    elif every and result.outputs and len(every) == count[Verdict.CERTIFIED]:
        told += ", and watching the model changed none of its results"
    return f"{told}."


def _refuted(every: Sequence[Certificate], failed: int, head: str, model: str) -> str:
    if failed == len(every):
        told = f"{_of(0, len(every), head, model)} computed here as the model computes it"
    else:
        them = "it" if failed == 1 else "them"
        told = f"{_of(failed, len(every), head, model)} not computed here as the model computes {them}"
    one = max((each for each in every if each.verdict is Verdict.FAILED), key=lambda each: _used(each)[0])
    _, error, allowed, what = _used(one)
    if math.isnan(error):
        return f"✗ {told}" + (f": {one.reason}" if one.reason else "")
    off = f"{what} differ by up to {significant(error)}, rounding explains at most {significant(allowed)}"
    return f"✗ {told}: {off}"


def _held(every: Sequence[Certificate], count: Counter[Verdict], head: str, model: str) -> str:
    good = count[Verdict.CERTIFIED] + count[Verdict.RECOMPUTED]
    if count[Verdict.UNCERTIFIED] == len(every):
        return f"{model} gives its weights, but not the queries and keys behind them: nothing can be checked"
    them = "it" if good < 2 else "them"
    told = [f"{_of(good, len(every), head, model)} computed here as the model computes {them}"]
    told += [f"for {count[each]} {why}" for each, why in _OPEN.items() if count[each]]
    if parts := [one for one in every if one.verdict is Verdict.PARTIAL]:
        reasons = Counter(one.reason for one in parts if one.reason).most_common(1)
        why = f": {reasons[0][0]}" if reasons else ""
        told.append(f"of {len(parts)} a part could not be followed{why}")
    return "; ".join(told) + (". Nothing disagrees" if len(told) > 1 else "")


def _of(number: int, total: int, head: str, model: str) -> str:
    heads = counted(total, head)
    if total == 1:
        return f"The only {head} of {model} is{'' if number else ' not'}"
    if number in (0, total):
        return f"All {heads} of {model} are" if number else f"None of the {heads} of {model} is"
    return f"{number} of {heads} of {model} {'is' if number == 1 else 'are'}"


def _used(certificate: Certificate) -> tuple[float, float, float, str]:
    """What uses most of its tolerance, weights or output: its share, its error, its tolerance, its name."""
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


def _control(every: Sequence[Certificate]) -> str:
    """What was done on purpose to see whether a mistake would be seen."""
    if (weakest := _hardest(every)) is None:
        return ""
    tried = max(len(each.faults) for each in every)
    mistakes = counted(tried, "mistake") + (" was" if tried == 1 else " were")
    return (
        f"{mistakes} put into every head on purpose; the one hardest to see, {weakest.name}, lies at "
        f"{power_words(weakest.power)} what rounding allows"
    )


def _hardest(certificates: Sequence[Certificate]) -> Fault | None:
    """The mistake put in on purpose that is hardest to see."""
    faults = [fault for certificate in certificates for fault in certificate.faults]
    return min(faults, key=lambda fault: fault.power, default=None)


def _outputs(result: Verification) -> Iterator[str]:
    """The model's own results, watched and left alone."""
    if result.outputs:
        told = (
            f"{each.name} " + ("identical" if each.identical else f"off by {significant(each.difference)}")
            for each in result.outputs
        )
        yield f"against an untouched run: {', '.join(told)}"


def _proofs(result: Verification, every: Sequence[Certificate]) -> Iterator[tuple[Verdict, str]]:
    yield from proof((each.verdict for each in every), "head")
    if result.verdict not in {each.verdict for each in every}:
        told = "no head was checked" if not every else "the model's own results changed while it was read"
        yield result.verdict, f"{verdict_words(result.verdict)}: {told}"
