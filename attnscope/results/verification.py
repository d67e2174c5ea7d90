"""A whole model on one input: the certificates of all its heads, and its final results."""

from dataclasses import dataclass, field

import numpy as np

from attnscope.results.base.origin import Certificate, Kind, Provenance, Verdict
from attnscope.results.base.parts import Arrays, Value, columns_of
from attnscope.results.base.presented import Presented
from attnscope.tokens import Tokens


@dataclass(frozen=True)
class OutputCheck:
    """One tensor of the model's result, captured run against untouched run: largest absolute difference."""

    name: str
    difference: float
    identical: bool


@dataclass(frozen=True, eq=False)
class LayerCheck:
    """The certificates of one layer's heads, one per head, in order."""

    layer: int
    kind: Kind
    module: str
    certificates: tuple[Certificate, ...] = field(metadata={"file": "heads"})
    tower: str = ""
    route: str = "takeover"
    block: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Verification(Presented):
    """Every layer and head of one model on one input, and the model's final results."""

    tokens: Tokens
    layers: tuple[LayerCheck, ...]
    outputs: tuple[OutputCheck, ...]
    provenance: Provenance
    notes: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head; `failed` also when a final result changed."""
        if not all(check.identical for check in self.outputs):
            return Verdict.FAILED
        every = [certificate.verdict for layer in self.layers for certificate in layer.certificates]
        return max(every, key=lambda verdict: verdict.rank, default=Verdict.UNCERTIFIED)

    def derived(self) -> dict[str, Value]:
        return {"verdict": self.verdict}

    def npz_columns(self) -> Arrays:
        """A row for each head of every layer, in order."""
        heads = [(layer, i) for layer in self.layers for i in range(len(layer.certificates))]
        certificates = [layer.certificates[i] for layer, i in heads]
        numbers = ("weight_error", "weight_tolerance", "output_error", "output_tolerance", "power")
        return {
            **columns_of((layer for layer, _ in heads), ("layer", "block")),
            "tower": np.array([layer.tower for layer, _ in heads]),
            "head": np.array([i for _, i in heads], np.int64),
            "verdict": np.array([each.verdict.value for each in certificates]),
            **columns_of(certificates, (), numbers),
        }
