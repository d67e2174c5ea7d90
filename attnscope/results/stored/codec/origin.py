"""Where numbers come from and what is proved of them, as plain values; both are read by their types."""

from collections.abc import Sequence
from dataclasses import asdict

from attnscope.results.base.origin import Certificate, Provenance, Verdict
from attnscope.results.stored.codec.strict import Value


def provenance(told: Provenance) -> dict[str, Value]:
    return asdict(told) | {"versions": dict(sorted(told.versions.items()))}


def certificate(told: Certificate) -> dict[str, Value]:
    """The certificate with its power and the names of the faults that it would have missed."""
    errors = ("weight_error", "weight_tolerance", "output_error", "output_tolerance", "power")
    return {
        "verdict": told.verdict.value,
        "reason": told.reason,
        "precision": told.precision,
        "positions": told.positions.value,
        "positions_tried": told.positions_tried,
        "reach": None if told.reach is None else asdict(told.reach),
        **{name: getattr(told, name) for name in errors},
        "unseen": list(told.unseen),
        "faults": [asdict(fault) for fault in told.faults],
    }


def worst(every: Sequence[Certificate]) -> str | None:
    """The worst verdict of several, None of none."""
    verdicts: list[Verdict] = [one.verdict for one in every]
    return max(verdicts, key=lambda verdict: verdict.rank).value if verdicts else None
