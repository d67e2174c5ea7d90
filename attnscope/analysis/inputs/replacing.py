"""Replaces every token, patch or frame in turn and measures the change of one query's answer."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import rankdata
from torch import Tensor, nn

from attnscope.analysis.answers.question import Ids, Question
from attnscope.analysis.controls import batches, inputs_of
from attnscope.analysis.inputs.pieces import Pieces
from attnscope.capture.intervening.changes import rows_only
from attnscope.capture.running import evaluating, hooked
from attnscope.errors import InputError
from attnscope.reference import exact
from attnscope.results import Contents, Sound
from attnscope.results.claims.attributed import DISTANCE, Trust
from attnscope.tokens import Patches, Tokens

Effects = Float[np.ndarray, " place"]

SHUFFLES, LEAST = 1000, 4  # shuffled effects, and the fewest tokens of which a rank correlation says anything
OUTER = 0.05
_ROUNDING = 1e-12  # of a correlation
Pool = Callable[[nn.Module, Mapping[str, Any], Any], Float[Tensor, "entry hidden"]]


@dataclass(frozen=True, eq=False)
class Input:
    """The ids to replace: the input's name, the positions, and the new `id` (None: a zero embedding).

    `places` are the positions that are replaced, those of one group at once.
    """

    name: str
    places: tuple[tuple[int, ...], ...]
    id: int | None

    def members(self, part: slice) -> tuple[list[int], list[int]]:
        """Row and position, within a batch, of every replaced token."""
        every = [(row, place) for row, group in enumerate(self.places[part]) for place in group]
        return [row for row, _ in every], [place for _, place in every]


def copies(inputs: Mapping[str, Any], asked: Input) -> Iterator[tuple[dict[str, Any], slice]] | None:
    """The inputs in batches, each row with one group of places replaced; None if they form no batch."""
    ids = np.repeat(inputs[asked.name][:1].cpu().numpy(), len(asked.places), axis=0)
    if asked.id is not None:
        ids[asked.members(slice(None))] = asked.id
    own = inputs[asked.name]
    rows = [torch.as_tensor(row[None], dtype=own.dtype, device=own.device) for row in ids]
    if inputs_of(inputs, asked.name, rows[:1]) is None:
        return None
    parts = batches(len(ids), ids.shape[1])
    return ((inputs_of(inputs, asked.name, rows[part]) or {}, part) for part in parts)


@contextmanager
def emptied(model: nn.Module, asked: Input, ids: Tensor, part: slice) -> Iterator[None]:
    """While open, the embeddings at each row's replaced positions are zero, unless an id replaces them."""
    if asked.id is not None:
        yield
        return
    rows, places = asked.members(part)

    def empty(_module: nn.Module, given: Sequence[Any], made: Tensor) -> Tensor | None:
        if not given or given[0].shape != ids.shape or not torch.equal(given[0], ids):
            return None
        changed = made.clone()
        changed[rows, places] = 0.0
        return changed

    with hooked(each.register_forward_hook(empty) for each in word_embeddings(model)):
        yield


def word_embeddings(model: nn.Module) -> list[nn.Module]:
    """Modules that may embed tokens: the model's input embedding and others that share its weight."""
    try:
        own = model.get_input_embeddings()  # type: ignore[operator]
    except (NotImplementedError, AttributeError) as error:
        raise InputError("the model does not say what it looks its tokens up in") from error
    weight = getattr(own, "weight", None)
    if weight is None:
        return [own]
    return [each for each in model.modules() if each is own or getattr(each, "weight", None) is weight]


def lost_chance(
    model: nn.Module, inputs: Mapping[str, Any], asked: Input, question: Question
) -> tuple[Effects, Ids, float] | None:
    """By replaced place, how much of the measured answer is lost; the answer's ids; its probability before.

    For an answer compared with another one, the logit difference takes the place of the probability.

    """
    made = copies(inputs, asked)
    if made is None:
        return None
    with evaluating(model), rows_only(model, question.asked):
        scores = question.asked.of(model(**inputs))[0]
        answer = question.chosen(scores)
        before = question.level(scores[None], answer)[0]
        lost = [
            before - question.level(_run(model, each, asked, part, question), answer) for each, part in made
        ]
    return torch.cat(lost).cpu().numpy(), answer, float(before if question.against else before.exp())


def _run(model: nn.Module, inputs: dict[str, Any], asked: Input, part: slice, question: Question) -> Tensor:
    with emptied(model, asked, inputs[asked.name], part):
        return question.asked.of(model(**inputs))


def turned_vector(
    model: nn.Module, inputs: Mapping[str, Any], asked: Input, query: Sequence[int], last: nn.Module
) -> Effects | None:
    """By replaced place, 1 less the cosine of the query's vector before and after; 0 to 2.

    For a query of several tokens it is the mean over them.

    """

    def read(given: Mapping[str, Any], within: Any) -> Tensor | None:
        made = vectors(model, given, last, within)
        return None if made is None else made[:, list(query)]

    return _turned(model, inputs, asked, read)


def turned_pooled(model: nn.Module, inputs: Mapping[str, Any], asked: Input, pool: Pool) -> Effects | None:
    """By replaced place, 1 less the cosine of the pooled text vector before and after; 0 to 2."""
    return _turned(model, inputs, asked, lambda given, within: pool(model, given, within)[:, None])


def _turned(
    model: nn.Module,
    inputs: Mapping[str, Any],
    asked: Input,
    read: Callable[[Mapping[str, Any], Any], Float[Tensor, "entry query hidden"] | None],
) -> Effects | None:
    made, turned = copies(inputs, asked), []
    with evaluating(model):
        if made is None or (before := read(inputs, nullcontext())) is None:
            return None
        for each, part in made:
            after = read(each, emptied(model, asked, each[asked.name], part))
            if after is None:
                return None
            turned.append(1 - torch.cosine_similarity(before, after, dim=-1).mean(dim=1))
    return torch.cat(turned).cpu().numpy()


def vectors(model: nn.Module, inputs: Mapping[str, Any], last: nn.Module, within: Any) -> Tensor | None:
    """The first output of `last` in float64, as `entry position hidden`; None if it has another shape."""
    found: list[Tensor] = []

    def keep(_module: nn.Module, _given: object, made: Any) -> None:
        first = made if isinstance(made, Tensor) else made[0]
        if isinstance(first, Tensor) and first.ndim in (2, 3):
            found.append(exact(first.detach()).reshape(-1, *first.shape[-2:]))

    with last.register_forward_hook(keep), within:
        model(**inputs)
    return found[-1] if found else None


class Trusted(NamedTuple):
    """Rank correlations of every method with the effects, and the best one on shuffled effects.

    95 % of the shuffles have at most `best_of_shuffled`, and `as_far` of them reach the best method.

    """

    methods: tuple[Trust, ...]
    best_of_shuffled: float
    as_far: int


def trusted(
    methods: Mapping[str, Float[np.ndarray, " key"]],
    effects: Float[np.ndarray, " key"],
    near: Float[np.ndarray, " key"],
    seed: int = 0,
    groups: Sequence[Sequence[int]] = (),
) -> Trusted:
    """Correlates every method, and distance to the query, with the sizes of replacement effects.

    Tokens replaced together (`groups`) count as one: their shares are summed and their distances averaged.
    Signed values are compared by size.

    """
    parts = [list(each) for each in groups] or [
        [place] for place in np.flatnonzero(~np.isnan(effects)).tolist()
    ]
    sizes = np.array([abs(effects[part[0]]) for part in parts])
    every = {name: np.array([abs(values[part].sum()) for part in parts]) for name, values in methods.items()}
    every[DISTANCE] = np.array([near[part].mean() for part in parts])
    random = np.random.default_rng(seed)
    orders = np.array([random.permutation(len(parts)) for _ in range(SHUFFLES)])
    found = {name: _trust(name, values, sizes, orders) for name, values in every.items()}
    known = [found[name] for name in methods if not np.isnan(found[name][0].correlation)]
    if not known:
        return Trusted(tuple(trust for trust, _ in found.values()), np.nan, 0)
    best = max(trust.correlation for trust, _ in known)
    of_shuffled = np.max([shuffled for _, shuffled in known], axis=0)
    return Trusted(
        tuple(trust for trust, _ in found.values()),
        float(np.quantile(of_shuffled, 1 - OUTER)),
        int((of_shuffled >= best - _ROUNDING).sum()),
    )


def _trust(
    name: str, values: Float[np.ndarray, " place"], sizes: Float[np.ndarray, " place"], orders: np.ndarray
) -> tuple[Trust, Float[np.ndarray, " shuffle"]]:
    if len(values) < LEAST or np.ptp(values) == 0 or np.ptp(sizes) == 0:
        return Trust(name, np.nan, np.nan, np.nan, np.nan), np.full(len(orders), np.nan)
    first, second = _centred(values), _centred(sizes)
    own, shuffled = float(first @ second), second[orders] @ first
    own = 0.0 if abs(own) < _ROUNDING else own
    low, high = (float(each) for each in np.quantile(shuffled, (OUTER, 1 - OUTER)))
    return Trust(name, own, low, high, float((shuffled < own - _ROUNDING).sum())), shuffled


def _centred(values: Float[np.ndarray, " place"]) -> Float[np.ndarray, " place"]:
    """Centred ranks, scaled to length 1: the dot product of two is Spearman's correlation."""
    ranks = rankdata(values)
    ranks -= ranks.mean()
    return np.asarray(ranks / np.linalg.norm(ranks))


MOST = 64  # parts that are blanked, each in a run of its own
_STRAIGHT = 1e-3  # of the largest number: how far samples may lie off a line through what the model is given

Groups = tuple[tuple[int, ...], ...]  # the positions of each part


@dataclass(frozen=True, eq=False)
class Blanked:
    """The parts of one input: `groups` of positions, each replaced at once by `blank`."""

    pieces: Pieces
    groups: Groups
    blank: Float[Tensor, " number"]

    def without(self, group: Sequence[int]) -> Tensor:
        """The input with one part replaced by `blank`."""
        there = self.pieces.at_positions(group)
        changed = self.pieces.values.flatten().clone()
        changed[self.pieces.at[there].to(changed.device)] = self.blank.to(changed)
        return changed.reshape(self.pieces.values.shape)


def blanked(pieces: Pieces, tokens: Tokens, reached: Collection[int], medium: object) -> Blanked:
    """The parts among the `reached` positions, at most `MOST` of them, joining neighbours."""
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
    """Squares of patches, as small as gives at most `MOST`, row by row."""
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
    """The input value of a zero sample, from a line fit of input to samples; else the minimum or 0."""
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
    """By part, how much of the measured answer is lost; the answer's ids; its probability or lead before."""

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
    """By part, 1 less the cosine of the query's vector from module `last` before and after; 0 to 2."""

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
    """Raised where a module returns no row of vectors that includes the query."""


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
