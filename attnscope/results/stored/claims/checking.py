"""A stored run held against the same run made anew."""

from dataclasses import asdict

from attnscope.results.base.origin import Provenance
from attnscope.results.claims.checking import Check, HeadCheck
from attnscope.results.stored.codec.origin import provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value


@document.register
def _(result: Check, arrays: bool = True) -> dict[str, Value]:
    return {
        "schema": "attnscope.check/1",
        "file": result.file,
        "verdict": result.verdict.value,
        "checked": len(result.heads),
        "not_as_stored": len(result.off),
        "changes": list(result.changes),
        "heads": [asdict(each) | {"as_stored": each.as_stored} for each in result.heads],
        "stored": provenance(result.stored),
        "provenance": provenance(result.provenance),
    }


@arrays_of.register
def _(result: Check) -> Arrays:
    return {}


@reads("attnscope.check/1")
def read_check(record: Record) -> Check:
    return made(
        Check,
        record,
        heads=record.get("heads", tuple[HeadCheck, ...]),
        stored=record.get("stored", Provenance),
        provenance=record.get("provenance", Provenance),
    )
