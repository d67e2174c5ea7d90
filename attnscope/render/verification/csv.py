"""A verification as CSV: a row per head with its errors, its tolerances and its verdict."""

from collections.abc import Iterator

from attnscope.render.kit.csv import Row, exact, rows
from attnscope.results import Certificate, Verification


@rows.register
def _(result: Verification) -> Iterator[Row]:
    errors = ("weight_error", "weight_tolerance", "output_error", "output_tolerance")
    places = ("tower", "route", "layer", "kind", "block", "head")
    yield *places, *errors, "power", "hardest_fault", "verdict"
    for layer in result.layers:
        for head, certificate in enumerate(layer.certificates):
            values = (exact(getattr(certificate, name)) for name in errors)
            hardest = _hardest(certificate)
            verdict = certificate.verdict.value
            place = (layer.tower, layer.route, layer.layer, layer.kind.value, layer.block, head)
            yield *place, *values, exact(certificate.power), hardest, verdict


def _hardest(certificate: Certificate) -> str:
    fault = min(certificate.faults, key=lambda fault: fault.power, default=None)
    return fault.name if fault else ""
