"""What proves a treebank's counts: a few sentences captured in full, and what was counted in them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from attnscope.attention import AttentionCall, Capture
from attnscope.reference import exact
from attnscope.results import Provenance, Verdict
from attnscope.sdpa import weights_alone
from attnscope.verify import certify_heads


@dataclass
class Sample:
    """What full captures of a few sentences say of the chosen layers and heads."""

    layers: Sequence[int]
    heads: Sequence[int]
    block: int
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    sentences: int = 0
    unlike: float = 0.0
    provenance: Provenance | None = None
    tower: str = ""

    def add(self, captured: Capture, counted: dict[int, Tensor], alone: dict[int, Tensor]) -> None:
        """Certify every chosen head of one sentence, and that the weights that were `counted` are its own."""
        for layer in self.layers:
            call = captured.call(layer, block=self.block)
            self._certify(call, counted[layer])
            self.unlike = max(self.unlike, float((counted[layer] - alone[layer]).abs().max()))
        self.sentences += 1
        self.provenance, self.tower = captured.provenance, captured.tower

    def _certify(self, call: AttentionCall, counted: Float[Tensor, "head query key"]) -> None:
        recomputed = weights_alone(call.operands_of(self.heads))
        for certificate, ours, theirs in zip(
            certify_heads(call, self.heads), recomputed, counted, strict=True
        ):
            off = float((exact(theirs) - ours).abs().max())
            agrees = off <= certificate.weight_tolerance
            self.verdicts[certificate.verdict if agrees else Verdict.FAILED] += 1
