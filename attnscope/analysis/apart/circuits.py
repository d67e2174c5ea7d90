"""The value-output circuit of a head between the model's own embeddings, small enough to take apart.

What a head makes of a token for the logits: W_E W_V W_O W_U. Norms on the way, and offsets, are left out.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.scores import scores_of
from attnscope.attention import AttentionCall, Capture
from attnscope.measures import Tile
from attnscope.reference import EXACT, exact
from attnscope.results import HeadScores


def copying_scores(
    captured: Capture,
    heads: Sequence[int],
    embedding: Float[Tensor, "token hidden"],
    unembedding: Float[Tensor, "token hidden"],
) -> HeadScores | str:
    """The copying score of every captured head, NaN without its matrices; or why none has any."""
    layers = tuple(dict.fromkeys(call.layer for call in captured.calls))
    calls = [captured.call(layer) for layer in layers]
    if all(call.projection is None or call.value_projection is None for call in calls):
        return "no matrix alone makes its values, or reads its heads' outputs"
    hidden = embedding.shape[1]
    if not all(_fits(call, hidden) and unembedding.shape[1] == hidden for call in calls):
        return "its embeddings are not of the size of what its heads read and write"
    between = exact(unembedding.T.float() @ embedding.float())  # once for all heads
    tiles = (([_tile(_circuit(call, head, between))] for head in heads) for call in calls)
    return scores_of(["copying"], tiles, layers, tuple(heads), 1)["copying"]


def _fits(call: AttentionCall, hidden: int) -> bool:
    if call.projection is None or call.value_projection is None:
        return True
    return call.projection.shape[2] == call.value_projection.shape[1] == hidden


def _circuit(
    call: AttentionCall, head: int, between: Float[Tensor, "hidden hidden"]
) -> Float[Tensor, "value_dim value_dim"]:
    """W_O W_U W_E W_V of one head; a head that shares its values with others has those of the group."""
    if call.projection is None or call.value_projection is None:
        return torch.full((call.v.shape[2],) * 2, torch.nan, dtype=EXACT)
    values = exact(call.value_projection[call.key_head(head)])
    return exact(call.projection[head]) @ between @ values


def _tile(circuit: Float[Tensor, "value_dim value_dim"]) -> Tile:
    """No text stands behind it."""
    return Tile(torch.ones(1, 1), torch.arange(1), torch.arange(1), circuit=circuit)
