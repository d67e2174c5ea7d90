"""Every layer and head of a model held against the model itself: a table by layer and one conclusion."""

import math
from collections import Counter
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnscope.render.kit.cells import DIM
from attnscope.render.kit.numbers import counted, short
from attnscope.render.kit.words.certificate import (
    GLYPHS,
    STYLES,
    certificate_line,
    power_words,
    verdict_words,
)
from attnscope.results import Certificate, LayerCheck, OutputCheck, Verdict, Verification
from attnscope.tokens import printable

_NARROW = 100
_EXPLAINED = (
    "error: largest of the layer's heads; power: how far the fault hardest to see lies above the tolerance"
)


def verification(result: Verification, width: int) -> RenderableType:
    """One row per layer, the worst head, the final results against an untouched run, the conclusion.

    The blocks of a layer stand in one row; the route has a column where it is not the same for all.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), collapse_padding=True)
    errors = ("weights", "output") if width < _NARROW else ("weight error", "output error")
    routes = len({layer.route for layer in result.layers}) > 1
    for heading in ("layer", *(["route"] if routes else []), "heads", "verdicts", *errors, "smallest power"):
        table.add_column(heading, justify="right" if heading == "heads" else "left")
    names = _names(result.layers)
    for blocks in _layers(result):
        layer, *further = _row(blocks, names)
        table.add_row(layer, *([blocks[0].route.split()[0]] if routes else []), *further)
    notes = [Text(printable(note)) for note in result.notes]
    explained = Text(_EXPLAINED, style=DIM)
    return Group(table, explained, *_worst(result), *_outputs(result.outputs), *notes, _conclusion(result))


def _layers(result: Verification) -> list[list[LayerCheck]]:
    """The blocks of each layer, in the order of the layers."""
    found: dict[tuple[str, str, int], list[LayerCheck]] = {}
    for check in result.layers:
        found.setdefault((check.tower, check.kind, check.layer), []).append(check)
    return list(found.values())


def _names(checks: Sequence[LayerCheck]) -> dict[tuple[str, str], str]:
    """What each tower is called: its kind, or its name where several are of that kind."""
    places = {(check.tower, check.kind.value) for check in checks}
    kinds = Counter(kind for _, kind in places)
    return {(tower, kind): kind if kinds[kind] == 1 else printable(tower) for tower, kind in places}


def _row(blocks: Sequence[LayerCheck], names: dict[tuple[str, str], str]) -> list[Text]:
    layer = blocks[0]
    certificates = tuple(one for block in blocks for one in block.certificates)
    weights, place = _largest(certificates, lambda certificate: certificate.weight_error)
    output, measured = _largest(certificates, lambda certificate: certificate.output_error)
    heads = str(len(layer.certificates))
    return [
        Text(f"L{layer.layer} {names[layer.tower, layer.kind.value]}"),
        Text(heads if len(blocks) == 1 else f"{heads} x {counted(len(blocks), 'block')}"),
        _verdicts(certificates),
        Text("-" if place < 0 else f"{short(weights)} {_head(blocks, place)}"),
        Text("-" if measured < 0 else short(output)),
        Text(_smallest_power(certificates)),
    ]


def _head(blocks: Sequence[LayerCheck], place: int) -> str:
    """`H3`, or `H3 B1` where there are blocks, of the certificate at `place` among all of them."""
    for block in blocks:
        if place < len(block.certificates):
            return f"H{place}" + (f" B{block.block}" if len(blocks) > 1 else "")
        place -= len(block.certificates)
    raise IndexError(place)


def _largest(
    certificates: tuple[Certificate, ...], measured: Callable[[Certificate], float]
) -> tuple[float, int]:
    """Largest error and its head; NaN is the largest where it is the failure, else it was not measured."""
    errors = [
        (error, head)
        for head, certificate in enumerate(certificates)
        if not math.isnan(error := measured(certificate)) or certificate.verdict is Verdict.FAILED
    ]
    return max(errors, key=lambda pair: (math.isnan(pair[0]), pair[0]), default=(math.nan, -1))


def _verdicts(certificates: tuple[Certificate, ...]) -> Text:
    """`✓ 10 ? 2`, best verdict first, each in its colour."""
    counts = Counter(certificate.verdict for certificate in certificates)
    found = [
        (f"{GLYPHS[verdict]} {counts[verdict]}", STYLES[verdict]) for verdict in Verdict if counts[verdict]
    ]
    return Text(" ").join(Text(words, style=style) for words, style in found)


def _smallest_power(certificates: tuple[Certificate, ...]) -> str:
    faults = [fault for certificate in certificates for fault in certificate.faults]
    weakest = min(faults, key=lambda fault: fault.power, default=None)
    return f"{power_words(weakest.power)} {weakest.name}" if weakest else "no fault tried"


def _worst(result: Verification) -> list[Text]:
    """The head with the worst verdict; among equals the one whose weights use up most of their tolerance."""
    heads = [(layer, head, c) for layer in result.layers for head, c in enumerate(layer.certificates)]
    if not heads:
        return []
    layer, head, certificate = max(heads, key=lambda place: _badness(place[2]))
    block = f" block {layer.block}" if sum(len(each) > 1 for each in _layers(result)) else ""
    name = f"L{layer.layer} H{head}{block} ({_names(result.layers)[layer.tower, layer.kind.value]})"
    return [Text.assemble("worst head: ", (name, "bold"), " ", certificate_line(certificate, full=True))]


def _badness(certificate: Certificate) -> tuple[int, bool, float]:
    share = certificate.weight_error / certificate.weight_tolerance if certificate.weight_tolerance else 0.0
    return certificate.verdict.rank, math.isnan(share), share


def _outputs(checks: tuple[OutputCheck, ...]) -> list[Text]:
    """The model's final results, captured run against untouched run."""
    if not checks:
        return []
    line = Text("against an untouched run: ")
    phrases = [
        Text(f"{printable(check.name)} identical")
        if check.identical
        else Text(f"{printable(check.name)} off by up to {short(check.difference)}", style="bold red")
        for check in checks
    ]
    return [line + Text(", ").join(phrases)]


def worst_words(result: Verification) -> str:
    """The head with the worst verdict as plain text; empty where none was checked."""
    return "".join(line.plain for line in _worst(result))


def conclusion_words(result: Verification) -> str:
    """How many heads have which verdict, and what reading the model changed."""
    told = _heads_by_verdict(result)
    changed = [printable(check.name) for check in result.outputs if not check.identical]
    if changed:
        told += f"; reading the model changed {', '.join(changed)}"
    elif result.outputs:
        told += "; reading the model changed nothing"
    return told


def _conclusion(result: Verification) -> Text:
    verdict = (verdict_words(result.verdict), STYLES[result.verdict])
    return Text.assemble(verdict, f" · {conclusion_words(result)}")


def _heads_by_verdict(result: Verification) -> str:
    """`48 heads in 4 layers: all certified`, or how many of each verdict."""
    every = Counter(certificate.verdict for layer in result.layers for certificate in layer.certificates)
    layers = _layers(result)
    apart = ", blocks counted apart," if any(len(blocks) > 1 for blocks in layers) else ""
    heads = f"{counted(every.total(), 'head')}{apart} in {counted(len(layers), 'layer')}"
    if len(every) == 1:
        return f"{heads}: all {next(iter(every)).value}"
    parts = ", ".join(f"{every[verdict]} {verdict.value}" for verdict in Verdict if every[verdict])
    return f"{heads}: {parts}" if parts else "no head was checked"
