"""Parts of a picture or a sound blanked in their turn, and how much one query's answer or vector changes.

A patch is replaced by the mean of all patches of the picture, a frame by silence: what the model is given
for samples that are zero, or of a spectrogram its smallest number. Where there are more parts than can be
run, neighbours go together: squares of patches, stretches of frames.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.analysis.claims.ablation.question import Ids, Question
from attnscope.analysis.claims.controls import batches, inputs_of
from attnscope.analysis.claims.flow.replacing import Effects, vectors
from attnscope.analysis.claims.pieces import Pieces
from attnscope.capture.running import evaluating
from attnscope.reference import exact
from attnscope.results import Contents, Sound
from attnscope.tokens import Patches, Tokens

MOST = 64  # parts that are blanked, each in a run of its own
_STRAIGHT = 1e-3  # of the largest number: how far samples may lie off a line through what the model is given

Groups = tuple[tuple[int, ...], ...]  # the positions of each part


@dataclass(frozen=True, eq=False)
class Blanked:
    """The parts of one input: `groups` of positions, each blanked at once by the numbers of `blank`."""

    pieces: Pieces
    groups: Groups
    blank: Float[Tensor, " number"]

    def without(self, group: Sequence[int]) -> Tensor:
        """The input without one part."""
        there = self.pieces.at_positions(group)
        changed = self.pieces.values.flatten().clone()
        changed[self.pieces.at[there].to(changed.device)] = self.blank.to(changed)
        return changed.reshape(self.pieces.values.shape)


def blanked(pieces: Pieces, tokens: Tokens, reached: Collection[int], medium: object) -> Blanked:
    """The parts among the `reached` positions; neighbours together where there are many."""
    stretch = tokens.stretches[0]
    places = [place for place in pieces.positions if place in reached]
    if isinstance(stretch, Patches):
        groups = _squares(stretch, set(places))
    else:
        size = math.ceil(len(places) / MOST)
        groups = tuple(tuple(places[i : i + size]) for i in range(0, len(places), size))
    held = pieces.values.flatten()[pieces.at.to(pieces.values.device)]
    if pieces.of is Contents.PICTURE:
        return Blanked(pieces, groups, exact(held).mean(0))
    return Blanked(pieces, groups, torch.full_like(exact(held[0]), _silence(pieces, medium)))


def _squares(patches: Patches, there: set[int]) -> Groups:
    """Squares of patches as small as allows for `MOST` of them, row by row."""
    side = next(
        k for k in range(1, 10**6) if math.ceil(patches.rows / k) * math.ceil(patches.columns / k) <= MOST
    )
    found: dict[tuple[int, int], list[int]] = {}
    for number, place in enumerate(patches.positions):
        row, column = divmod(number, patches.columns)
        if place in there:
            found.setdefault((row // side, column // side), []).append(place)
    return tuple(tuple(each) for each in found.values())


def _silence(pieces: Pieces, medium: object) -> float:
    """What stands for a sample that is zero, read off the line from samples to what the model is given."""
    given = exact(pieces.values.flatten()).cpu().numpy()
    samples = medium.samples if isinstance(medium, Sound) else None
    if pieces.values.ndim == 2 and samples is not None and len(samples) == len(given) and np.ptp(samples) > 0:
        slope, offset = np.polyfit(samples, given, 1)
        if np.abs(slope * samples + offset - given).max() <= _STRAIGHT * np.abs(given).max():
            return float(offset)
    return float(given.min()) if pieces.values.ndim > 2 else 0.0


def lost_without(
    model: nn.Module, inputs: Mapping[str, Any], parts: Blanked, question: Question
) -> tuple[Effects, Ids, float]:
    """How much of what the question measures goes with each part; the answer, and its chance or lead."""

    def ask(given: Mapping[str, Any]) -> Tensor:
        scores: Tensor = question.asked.of(model(**given))
        return scores

    with evaluating(model):
        scores = ask(inputs)
        answer = question.chosen(scores[0])
        before = question.level(scores, answer)[0]
        lost = [before - question.level(each, answer) for each in _each(inputs, parts, ask)]
    return torch.cat(lost).cpu().numpy(), answer, float(before if question.against else before.exp())


def turned_without(
    model: nn.Module, inputs: Mapping[str, Any], parts: Blanked, query: int, last: nn.Module
) -> Effects | None:
    """1 less the cosine of the query's vector that the module `last` returns, before and after; 0 to 2."""

    def ask(given: Mapping[str, Any]) -> Tensor:
        found = vectors(model, given, last, nullcontext())
        if found is None or found.shape[1] <= query:
            raise _NoVectorError
        return found[:, query]

    try:
        with evaluating(model):
            before = ask(inputs)
            turned = [1 - torch.cosine_similarity(before, each, dim=-1) for each in _each(inputs, parts, ask)]
    except _NoVectorError:
        return None
    return torch.cat(turned).cpu().numpy()


class _NoVectorError(Exception):
    """The module returns no row of vectors with the query's among them."""


def _each(
    inputs: Mapping[str, Any], parts: Blanked, ask: Callable[[Mapping[str, Any]], Tensor]
) -> Iterator[Tensor]:
    name = parts.pieces.name
    for part in batches(len(parts.groups), len(parts.pieces)):
        values = [parts.without(group) for group in parts.groups[part]]
        together = inputs_of(inputs, name, values)
        if together is not None:
            yield ask(together)
        else:
            yield from (ask({**inputs, name: value}) for value in values)
