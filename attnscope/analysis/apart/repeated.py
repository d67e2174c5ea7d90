"""Random tokens that stand twice: which they are, and what heads do where the second half is read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from attnscope.analysis.scores import scores_of
from attnscope.attention import Capture
from attnscope.measures import Tile
from attnscope.results import HeadScores
from attnscope.results.base.origin import worst
from attnscope.sdpa import attend
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
    said = f"{told(twice, after)} ({verdict})"
    found = scores_of(names, tiles, layers, tuple(heads), len(twice.read))
    return {name: _said(each, said) for name, each in found.items()}


def told(twice: Twice, after: str) -> str:
    """What was read."""
    start = f" after {after}" if after else ""
    return f"2 x {twice.period} random tokens{start}, seed {twice.seed}"


def _said(scores: HeadScores, said: str) -> HeadScores:
    return replace(scores, description=replace(scores.description, apart=said))
