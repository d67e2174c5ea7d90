"""Measures that are not taken of the text that is read: of random tokens that stand twice, of the weights.

`repeated_scores` says what heads do where the second half of such tokens is read, `copying_scores` what the
value-output circuit of a head makes of a token for the logits: W_E W_V W_O W_U, small enough to take apart.
Norms on the way, and offsets, are left out of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.scores.dense import scores_of
from attnscope.arithmetic import attend
from attnscope.attention import AttentionCall, Capture
from attnscope.measures import Tile
from attnscope.reference import EXACT, exact
from attnscope.results import HeadScores
from attnscope.results.base.origin import worst
from attnscope.verify import certify_heads

SEED, MOST, LEAST = 0, 50, 3  # tokens that stand twice


@dataclass(frozen=True)
class Twice:
    """`period` random tokens twice over, after those of `before`, drawn by `seed`."""

    before: tuple[int, ...]
    ids: tuple[int, ...]
    seed: int

    @property
    def period(self) -> int:
        return len(self.ids)

    @property
    def read(self) -> tuple[int, ...]:
        return (*self.before, *self.ids, *self.ids)


def drawn(vocabulary: Sequence[int], before: tuple[int, ...], limit: int | None, seed: int = SEED) -> Twice:
    """Different tokens of `vocabulary`, as many as fit twice into `limit` after those of `before`."""
    room = MOST if limit is None else min(MOST, (limit - len(before)) // 2)
    order = torch.randperm(len(vocabulary), generator=torch.Generator().manual_seed(seed)).tolist()
    return Twice(before, tuple(vocabulary[i] for i in order[: max(room, 0)]), seed)


def repeated_scores(
    captured: Capture, heads: Sequence[int], names: Sequence[str], twice: Twice, after: str
) -> dict[str, HeadScores]:
    """The measures `names` of every captured layer over `twice`; each says what was read and how sure it is.

    `after` is how the tokens before the random ones are called.
    """
    layers = tuple(dict.fromkeys(call.layer for call in captured.calls))
    calls = [captured.call(layer) for layer in layers]
    places = torch.arange(len(twice.read)) - len(twice.before)
    tiles = (
        (
            [Tile(attend(call.operands(head)).weights[0], places, places, period=twice.period)]
            for head in heads
        )
        for call in calls
    )
    verdict = worst(proof.verdict for call in calls for proof in certify_heads(call, heads))
    said = f"{described(twice, after)} ({verdict})"
    found = scores_of(names, tiles, layers, tuple(heads), len(twice.read))
    return {name: _said(each, said) for name, each in found.items()}


def described(twice: Twice, after: str) -> str:
    """What was read."""
    start = f" after {after}" if after else ""
    return f"2 x {twice.period} random tokens{start}, seed {twice.seed}"


def _said(scores: HeadScores, said: str) -> HeadScores:
    return replace(scores, description=replace(scores.description, apart=said))


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
    return Tile(torch.ones(1, 1), torch.arange(1), torch.arange(1), circuit=circuit)
