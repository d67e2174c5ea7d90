"""Result of `verify`: certificates of all heads of a model, and checks of its outputs."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from attnscope.results.base.origin import Certificate, Kind, Provenance, Verdict, worst
from attnscope.results.base.presented import Arrays, Presented, columns_of
from attnscope.tokens import Tokens


@dataclass(frozen=True)
class OutputCheck:
    """Check of one output tensor: largest absolute difference of the watched run from the unwatched one.

    `difference` is 0 where both are `identical`, infinite where one has no number.
    """

    name: str
    difference: float
    identical: bool


@dataclass(frozen=True, eq=False)
class LayerCheck:
    """Certificates of the heads of one layer (or of one block of it), in order."""

    layer: int
    kind: Kind
    module: str
    certificates: tuple[Certificate, ...] = field(metadata={"file": "heads"})
    tower: str = ""
    route: str = "takeover"
    block: int = 0


class Proved(StrEnum):
    """Which conclusion a verification allows."""

    NOTHING = "nothing checked"
    FAILED = "failed"
    CHANGED = "changed"
    STORED = "as stored"
    WEIGHTS = "weights alone"
    ALL = "all"
    NOT_ALL = "not all"


@dataclass(frozen=True, eq=False, repr=False)
class Verification(Presented):
    """Certificates of every layer and head of a model on one input, and checks of its outputs."""

    tokens: Tokens
    layers: tuple[LayerCheck, ...]
    outputs: tuple[OutputCheck, ...]
    provenance: Provenance
    notes: tuple[str, ...] = field(default=())

    for_readers = ("verdict", "case")

    @property
    def case(self) -> Proved:
        """Which conclusion the certificates and output checks allow."""
        count = Counter(one.verdict for layer in self.layers for one in layer.certificates)
        if not count or count[Verdict.FAILED]:
            return Proved.FAILED if count else Proved.NOTHING
        if not all(check.identical for check in self.outputs):
            return Proved.CHANGED
        if count[Verdict.STORED]:
            return Proved.STORED
        if count[Verdict.UNCERTIFIED] == count.total():
            return Proved.WEIGHTS
        proved = count[Verdict.CERTIFIED] + count[Verdict.RECOMPUTED]
        return Proved.ALL if proved == count.total() else Proved.NOT_ALL

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head; `failed` also where an output changed."""
        if not all(check.identical for check in self.outputs):
            return Verdict.FAILED
        return worst(certificate.verdict for layer in self.layers for certificate in layer.certificates)

    def npz_columns(self) -> Arrays:
        """Arrays for .npz files, with an entry for each head of every layer, in order."""
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
