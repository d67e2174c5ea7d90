"""The mean over the heads of a layer, or of all layers: each recomputed and certified, then averaged.

What is proved of a mean is what is proved of the head of which least is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from attnscope.analysis.heads.head import recompute_head
from attnscope.analysis.heads.returned import returned_head
from attnscope.attention import Capture
from attnscope.capture.returned import Returned
from attnscope.errors import InputError
from attnscope.results import Certificate, HeadWeights
from attnscope.results.heads import MEAN

Read = Callable[[int, int], HeadWeights]


def mean_head(
    attention: Capture | Returned, layers: Sequence[int], heads: Sequence[int], block: int = 0
) -> HeadWeights:
    """The mean weights of these heads of one layer, or of all of these layers.

    A query that has a key in some of them alone is averaged over those. `InputError` where layers differ in
    their tokens.
    """

    def read(layer: int, head: int) -> HeadWeights:
        if isinstance(attention, Returned):
            return returned_head(attention, layer, head)
        return recompute_head(attention, layer, head, block=block)

    first = read(layers[0], heads[0])
    weights, allowed, certificates, notes = _averaged(_each(read, layers, heads, first), first)
    return HeadWeights(
        layer=layers[0] if len(layers) == 1 else MEAN,
        head=MEAN,
        kind=first.kind,
        heads=len(heads),
        layers=first.layers,
        query_tokens=first.query_tokens,
        key_tokens=first.key_tokens,
        weights=weights,
        allowed=allowed,
        module=first.module if len(layers) == 1 else "",
        certificate=_least(certificates),
        provenance=first.provenance,
        tower=first.tower,
        block=first.block,
        blocks=first.blocks,
        notes=notes,
    )


def _each(
    read: Read, layers: Sequence[int], heads: Sequence[int], first: HeadWeights
) -> Iterator[HeadWeights]:
    for layer in layers:
        for head in heads:
            found = first if (layer, head) == (layers[0], heads[0]) else read(layer, head)
            if found.weights.shape != first.weights.shape:
                raise InputError(
                    f"layers {layers[0]} and {layer} differ in their numbers of tokens: name one with --layer"
                )
            yield found


def _averaged(
    found: Iterator[HeadWeights], first: HeadWeights
) -> tuple[Float[np.ndarray, "query key"], Bool[np.ndarray, "query key"], list[Certificate], tuple[str, ...]]:
    total, count = np.zeros(first.weights.shape), np.zeros((len(first.weights), 1))
    allowed = np.zeros(first.weights.shape, dtype=bool)
    certificates, notes = list[Certificate](), dict[str, None]()
    for each in found:
        answered = each.answered[:, None]
        total += np.where(answered, np.nan_to_num(each.weights), 0.0)
        count += answered
        allowed |= each.allowed
        certificates.append(each.certificate)
        notes |= dict.fromkeys(each.notes)
    with np.errstate(invalid="ignore"):
        return total / np.where(count, count, np.nan), allowed, certificates, tuple(notes)


def _least(certificates: Sequence[Certificate]) -> Certificate:
    """The one that proves least, with the largest errors of any."""
    least = max(certificates, key=lambda each: (each.verdict.rank, -each.power))
    return replace(
        least,
        weight_error=float(np.max([each.weight_error for each in certificates])),  # NaN where one is
        output_error=float(np.max([each.output_error for each in certificates])),
    )
