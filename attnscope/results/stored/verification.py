"""A whole model on one input: the certificates of all its heads, and its final results."""

from dataclasses import asdict

import numpy as np

from attnscope.results.base.origin import Certificate, Verdict
from attnscope.results.stored.codec.origin import certificate, provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.tokens import read_tokens, tokens_document, written
from attnscope.results.verification import LayerCheck, OutputCheck, Verification


@document.register
def _(result: Verification, arrays: bool = True) -> dict[str, Value]:
    return {
        "schema": "attnscope.verification/1",
        "verdict": result.verdict.value,
        "notes": list(result.notes),
        "outputs": [asdict(check) for check in result.outputs],
        "provenance": provenance(result.provenance),
        **tokens_document(result.tokens),
        **written(result.tokens),
        "layers": [
            {
                "layer": layer.layer,
                "kind": layer.kind.value,
                "module": layer.module,
                "tower": layer.tower,
                "route": layer.route,
                "block": layer.block,
                "heads": [{"head": i} | certificate(one) for i, one in enumerate(layer.certificates)],
            }
            for layer in result.layers
        ],
    }


@arrays_of.register
def _(result: Verification) -> Arrays:
    """One entry per head of every layer, in order."""
    heads: list[tuple[LayerCheck, int, Certificate]] = [
        (layer, head, one) for layer in result.layers for head, one in enumerate(layer.certificates)
    ]
    measured = ("weight_error", "weight_tolerance", "output_error", "output_tolerance", "power")
    verdicts: list[Verdict] = [one.verdict for _, _, one in heads]
    return {
        "tower": np.array([layer.tower for layer, _, _ in heads]),
        "layer": np.array([layer.layer for layer, _, _ in heads], np.int64),
        "block": np.array([layer.block for layer, _, _ in heads], np.int64),
        "head": np.array([head for _, head, _ in heads], np.int64),
        **{name: np.array([getattr(one, name) for _, _, one in heads], np.float64) for name in measured},
        "verdict": np.array([verdict.value for verdict in verdicts]),
    }


@reads("attnscope.verification/1")
def read(record: Record) -> Verification:
    """All of it stands in the document."""
    tokens = read_tokens(record, wrote=record.get("written", str, ""))
    return made(
        Verification,
        record,
        tokens=tokens,
        layers=tuple(map(_layer, record.parts("layers"))),
        outputs=record.get("outputs", tuple[OutputCheck, ...]),
    )


def _layer(record: Record) -> LayerCheck:
    return made(LayerCheck, record, certificates=record.get("heads", tuple[Certificate, ...]))
