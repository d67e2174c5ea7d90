"""How much of an answer a head is answerable for, by what its output does to the answer first of all.

    importance           |sum over queries of o . dL/do|      L = -ln p of the answer
    attention-gradient    sum over queries and keys of A dy/dA     y = ln p of the answer
    ... positive          the same, of its positive parts alone
    logit                 sum over queries of o . dz/do by the straight way alone, z the answer's logit

o is the head's output, A its weights. Since o is the sum over keys of A v, A dy/dA summed over all pairs is
o . dy/do: the size of `attention-gradient` is `importance`, and only its sign and its positive part say more.
Which answer, and how the gradients came about, stands in `analysis.claims.ablation`.
"""

from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from attnscope.measures.measure import Measure
from attnscope.measures.tile import Need, Tile, known
from attnscope.results import MeasureDescription

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

Rows = Float[Tensor, " query"]
_OF_THE_ANSWER = "the model's answer, by gradients"


def toward_answer(tile: Tile) -> Rows:
    """o . dy/do of each query, in nats."""
    return (known(tile.output) * known(tile.slope)).sum(-1)


def by_weights(tile: Tile) -> Rows:
    """Sum over keys of A dy/dA, in nats."""
    return (tile.weights * known(tile.gradient)).sum(-1)


def by_weights_that_help(tile: Tile) -> Rows:
    """Sum of A dy/dA over the keys whose weight speaks for the answer."""
    return (tile.weights * known(tile.gradient)).clamp_min(0).sum(-1)


def straight(tile: Tile) -> Rows:
    """o . dz/do of each query by the straight way alone, in logits."""
    return (known(tile.output) * known(tile.direct)).sum(-1)


def _first(one: Tensor, _other: Tensor) -> Tensor:
    return one


def _sum(rows: Tensor) -> float:
    return float(rows.nansum()) if not rows.isnan().all() else float("nan")


def _size(rows: Tensor) -> float:
    return abs(_sum(rows))


OF_ANSWERS = (
    Measure(
        MeasureDescription(
            name="importance",
            unit="nats",
            meaning=(
                "Size of output . gradient of the answer's loss, -ln p, summed over queries; of one text, "
                "not over that of its layer."
            ),
            paper="Michel et al. 2019, Are Sixteen Heads Really Better than One?",
            label="|output . gradient of the loss|",
            most="any",
            high="most",
            strongest="most important head of each layer",
            apart=_OF_THE_ANSWER,
        ),
        toward_answer,
        _first,
        needs=frozenset({Need.SLOPE}),
        finish=_size,
    ),
    Measure(
        MeasureDescription(
            name="attention-gradient",
            unit="nats",
            meaning="Sum of weight x gradient of the answer's ln p over all queries and keys.",
            paper="Chefer et al. 2021, Generic Attention-model Explainability (their product, with its sign)",
            label="weight x gradient",
            least="-any",
            most="any",
            low="against the answer",
            high="for it",
            strongest="head of each layer that speaks most for the answer",
            signed=True,
            apart=_OF_THE_ANSWER,
        ),
        by_weights,
        needs=frozenset({Need.GRADIENT}),
        finish=_sum,
    ),
    Measure(
        MeasureDescription(
            name="attention-gradient-positive",
            unit="nats",
            meaning="Sum of weight x gradient of the answer's ln p, over pairs whose weight speaks for it.",
            paper=(
                "Barkan et al. 2021, Grad-SAM; Chefer et al. 2021, Generic Attention-model Explainability"
            ),
            label="weight x gradient, positive part",
            most="any",
            high="most",
            strongest="head of each layer with most weight that speaks for the answer",
            apart=_OF_THE_ANSWER,
        ),
        by_weights_that_help,
        needs=frozenset({Need.GRADIENT}),
        finish=_sum,
    ),
    Measure(
        MeasureDescription(
            name="logit",
            unit="logits",
            meaning=(
                "What its output adds straight to the answer's logit, over the mean of all logits: by sums, "
                "matrices and norms held fixed, later layers held as they are."
            ),
            paper="Elhage et al. 2021, A Mathematical Framework for Transformer Circuits",
            label="straight to the answer's logit",
            least="-any",
            most="any",
            low="against the answer",
            high="for it",
            strongest="head of each layer that writes most for the answer",
            signed=True,
            apart=_OF_THE_ANSWER,
        ),
        straight,
        _first,
        needs=frozenset({Need.DIRECT}),
        finish=_sum,
    ),
)
