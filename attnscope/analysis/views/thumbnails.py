"""Every head in few cells: of each group of queries and keys the largest weight.

The largest and not the mean, so that a diagonal or a column one token wide stays as dark as it is. Heads are
made small one layer after another: the weights of all of them never stand in memory at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attnscope.analysis.padding import without_padding
from attnscope.analysis.returned import returned_overview
from attnscope.attention import Capture
from attnscope.capture.returned import Returned
from attnscope.errors import InputError
from attnscope.results import Thumbnails, Verdict
from attnscope.sdpa import attend
from attnscope.tokens import Tokens
from attnscope.verify import certify

MANY_HEADS = 16  # side by side, from which on a thumbnail has fewer cells
_CELLS = {False: 64, True: 32}

Cells = Float[np.ndarray, "row column"]


def step_for(queries: int, keys: int, heads: int) -> int:
    """How many tokens make a cell."""
    return -(-max(queries, keys) // _CELLS[heads > MANY_HEADS])


def pooled(
    weights: Float[np.ndarray, "query key"], allowed: Bool[np.ndarray, "query key"], step: int
) -> Cells:
    """The largest weight of each `step` by `step` pairs that are allowed; NaN where none is."""
    seen = np.where(allowed, weights, np.nan)
    for axis in (0, 1):
        seen = np.fmax.reduceat(seen, np.arange(0, seen.shape[axis], step), axis=axis)
    return np.asarray(seen)


@dataclass(frozen=True, eq=False)
class _Layer:
    """One layer made small; `labelled` is how much its tokens are known by other names than their own."""

    layer: int
    query_tokens: Tokens
    key_tokens: Tokens
    cells: list[Cells]
    verdicts: tuple[Verdict, ...]
    labelled: int = 0

    @property
    def size(self) -> tuple[int, int]:
        return len(self.query_tokens), len(self.key_tokens)


def thumbnails(parts: Iterable[Capture | Returned], heads: Sequence[int], block: int = 0) -> Thumbnails:
    """The chosen heads of all layers in `parts`, which come one after the other and are let go of.

    `InputError` for layers that look at axes of different lengths.
    """
    made: list[_Layer] = []
    notes: list[str] = []
    for part in parts:
        whole = part
        made += _of_returned(part, heads) if isinstance(part, Returned) else _of_capture(part, heads, block)
        notes += _notes(part)
        if odd := next((each for each in made if each.size != made[0].size), None):
            raise InputError(
                f"layers {made[0].layer} and {odd.layer} differ in their numbers of queries and keys: "
                "show them one by one"
            )
    first = max(made, key=lambda each: each.labelled)  # what is numbered in one layer is so for all
    return Thumbnails(
        kind=whole.kind if isinstance(whole, Returned) else whole.calls[0].kind,
        query_tokens=first.query_tokens,
        key_tokens=first.key_tokens,
        layers=tuple(each.layer for each in made),
        heads=tuple(heads),
        step=step_for(*first.size, len(heads)),
        weights=np.array([each.cells for each in made]),
        verdicts=tuple(each.verdicts for each in made),
        provenance=whole.provenance,
        tower=whole.tower,
        notes=tuple(dict.fromkeys(notes)),
    )


def _of_capture(part: Capture, heads: Sequence[int], block: int) -> Iterator[_Layer]:
    for layer in dict.fromkeys(call.layer for call in part.calls):
        whole = part.call(layer, block=block)
        call = without_padding(whole)
        step = step_for(len(call.query_tokens), len(call.key_tokens), len(heads))
        cells = [
            pooled(attend(call.operands(head)).weights[0].numpy(), call.allowed_matrix(head).numpy(), step)
            for head in heads
        ]
        verdicts = tuple(certify(whole, head).verdict for head in heads)
        yield _Layer(layer, call.query_tokens, call.key_tokens, cells, verdicts, call.standing.rank)


def _of_returned(part: Returned, heads: Sequence[int]) -> Iterator[_Layer]:
    """What a model returns does not say which keys may be seen: a weight of 0 is one like any other."""
    found = returned_overview(part, heads)
    queries, keys = found.query_tokens, found.key_tokens
    step, verdicts = step_for(len(queries), len(keys), len(heads)), (Verdict.UNCERTIFIED,) * len(heads)
    for layer, dense in zip(found.layers, found.dense_weights, strict=True):
        cells = [pooled(each, np.ones(each.shape, bool), step) for each in dense]
        yield _Layer(layer, queries, keys, cells, verdicts)


def _notes(part: Capture | Returned) -> list[str]:
    if isinstance(part, Returned):
        return [part.reason, *(note for layer in part.layers for note in layer.notes)]
    return [note for call in part.calls for note in part.notes(call.layer)]
