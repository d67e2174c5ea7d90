"""A whole model on one input: the certificates of all its heads, and its final results."""

from dataclasses import dataclass, field

from attnscope.results.base.origin import Certificate, Kind, Provenance, Verdict
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
