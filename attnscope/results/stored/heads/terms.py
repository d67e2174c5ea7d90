"""The scores of a head taken apart: the head, what each part of its score does, and every step."""

from dataclasses import asdict

from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.typed import hints_of
from attnscope.results.stored.heads.head import read_attention
from attnscope.results.terms import HeadTerms, Influence


@document.register
def _(result: HeadTerms, arrays: bool = True) -> dict[str, Value]:
    """The head, what each part of its score does, then the steps: `scaled` is what enters the softmax."""
    described = document(result.head, arrays=False) | {
        "schema": "attnscope.terms/1",
        "parts": [asdict(part) for part in result.influences],
    }
    return described | (_steps(result) if arrays else {})


def _steps(result: HeadTerms) -> dict[str, Value]:
    head = result.head
    return {
        "allowed": head.allowed,
        "scores": head.scores,
        "times_scale": result.scaled,
        "capped": None if head.softcap is None else result.capped,
        "terms": dict(head.terms),
        "scaled": head.scaled,
        "normaliser": result.normaliser,
        "sinks": result.sinks,
        "weights": head.weights,
        "sink_weights": result.sink_weights,
        **{name: getattr(head, name) for name in ("q", "k", "v", "output")},
    }


@arrays_of.register
def _(result: HeadTerms) -> Arrays:
    sinks = {"sinks": result.sinks, "sink_weights": result.sink_weights}
    return {
        **arrays_of(result.head),
        "times_scale": result.scaled,
        "capped": result.capped,
        "normaliser": result.normaliser,
        **{name: values for name, values in sinks.items() if values is not None},
    }


@reads("attnscope.terms/1")
def read(record: Record) -> HeadTerms:
    """Without a soft cap JSON does not repeat what is the same before and after it."""
    head = read_attention(record)
    hint = hints_of(HeadTerms)["scaled"]
    scaled = record.array("times_scale", hint)
    capped = record.array("capped", hint) if head.softcap is not None or record.has("capped") else scaled
    influences = record.get("parts", tuple[Influence, ...])
    return made(HeadTerms, record, head=head, scaled=scaled, capped=capped, influences=influences)
