"""Measures that need another run than the text, or weights alone: repeated tokens, circuits, gradients.

    A B C D A B C D        at the second B: induction looks at C, duplicate at the first B, previous at A

Olsson et al. 2022, In-context Learning and Induction Heads: only the order of random tokens tells a head
where to look. The model reads a sequence of its own for it, made by `analysis.scores.dense`.

Elhage et al. 2021, A Mathematical Framework for Transformer Circuits: the value-output circuit takes a
token's embedding to logits, W_E W_V W_O W_U. Its nonzero eigenvalues are those of the small matrix W_O W_U
W_E W_V of value dimensions, since cyclic rearrangements of a product share them; no matrix of vocabulary
size is made.

Contributions of a head to an answer, by gradients:

    importance           |sum over queries of o . dL/do|      L = -ln p of the answer
    attention-gradient    sum over queries and keys of A dy/dA     y = ln p of the answer
    ... positive          the same, of its positive parts alone
    logit                 sum over queries of o . dz/do by the straight way alone, z the answer's logit

o is the head's output, A its weights. Since o is the sum over keys of A v, A dy/dA summed over all pairs is
o . dy/do: the size of `attention-gradient` is `importance`, and only its sign and its positive part say more.
Which answer, and how the gradients came about, stands in `analysis.answers`.
"""

from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from attnscope.measures.measure import Measure, Need, OnKeys, Tile, known, mass_on, weight_on
from attnscope.results import MeasureDescription

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

OLSSON = "Olsson et al. 2022, In-context Learning and Induction Heads"
Rows = Float[Tensor, " query"]
_OF_THE_ANSWER = "the model's answer, by gradients"


def induction(tile: Tile) -> OnKeys:
    """Weight on the token behind the query's first occurrence, for queries in the second half."""
    return _behind(tile, known(tile.period) - 1)


def duplicate(tile: Tile) -> OnKeys:
    """Weight on the query's first occurrence, for queries in the second half."""
    return _behind(tile, known(tile.period))


def previous(tile: Tile) -> OnKeys:
    """Weight on the token before the query, for queries in the second half."""
    return _behind(tile, 1)


def _behind(tile: Tile, steps: int) -> OnKeys:
    """Weight on the key `steps` before the query; NaN for queries not in the second half."""
    return weight_on(tile, tile.offsets == -steps).masked_fill(
        tile.queries < known(tile.period), float("nan")
    )


def positivity(tile: Tile) -> Float[Tensor, ""]:
    """A head's tendency to copy: the sum of its circuit's eigenvalues over the sum of their sizes, -1 to 1.

    1 copies the token it attends to, -1 speaks against it. It is computed from weights alone.

    """
    import torch

    from attnscope.reference import exact

    circuit = exact(known(tile.circuit))
    if not circuit.isfinite().all():
        return torch.tensor(float("nan"))
    values = torch.linalg.eigvals(circuit)
    ratio: Tensor = values.real.sum() / values.abs().sum()
    return ratio


_OF_TOKENS = (
    (
        "what came after it, of random tokens",
        "induction",
        induction,
        "the token behind a query's first place",
    ),
    ("its first place, of random tokens", "duplicate", duplicate, "a query's first place"),
    ("the previous of random tokens", "previous-random", previous, "the previous token"),
)
APART = (
    *(
        mass_on(
            called,
            name,
            rows,
            OLSSON,
            meaning=f"Mean weight on {on}, of the second half.",
            apart="random tokens, read twice over in a run of their own",
            positional=True,
            needs=frozenset({Need.PERIOD}),
        )
        for called, name, rows, on in _OF_TOKENS
    ),
    Measure(
        MeasureDescription(
            name="copying",
            unit="positivity",
            meaning="Sum of the eigenvalues of W_E W_V W_O W_U over the sum of their sizes; norms left out.",
            paper="Elhage et al. 2021, A Mathematical Framework for Transformer Circuits",
            label="eigenvalues of the value-output circuit",
            least="-1",
            low="speaks against its token",
            high="copies",
            strongest="head of each layer that copies most",
            signed=True,
            apart="the model's weights alone",
        ),
        positivity,
        needs=frozenset({Need.CIRCUIT}),
        finish=float,
    ),
)


def toward_answer(tile: Tile) -> Rows:
    """o . dy/do of each query, in nats (o the head's output, y the answer's log probability)."""
    return (known(tile.output) * known(tile.slope)).sum(-1)


def by_weights(tile: Tile) -> Rows:
    """Sum over keys of A dy/dA of each query, in nats (A the weights, y the answer's log probability)."""
    return (tile.weights * known(tile.gradient)).sum(-1)


def by_weights_that_help(tile: Tile) -> Rows:
    """Sum of the positive A dy/dA over keys, of each query."""
    return (tile.weights * known(tile.gradient)).clamp_min(0).sum(-1)


def straight(tile: Tile) -> Rows:
    """o . dz/do of each query along the direct path only, in logits (z the answer's logit)."""
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
