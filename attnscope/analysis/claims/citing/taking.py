"""What each sentence of an answer loses without a passage, and what attention gives to each passage."""

import inspect
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from sklearn.linear_model import Lasso
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from attnscope.analysis.answers.question import LogChances, log_chances
from attnscope.analysis.rows import Layer, moved, rows_of
from attnscope.capture.arithmetic import epsilon_of
from attnscope.capture.running import evaluating, without_cache
from attnscope.errors import CertificateError, InputError
from attnscope.results.base.groups import members
from attnscope.results.claims.citation import candidates_of

Removed = Collection[int]  # positions
_AT_ONCE = 2048  # tokens of a batch
_STRAY = 0.25  # roots of the machine epsilon, of the size of the answer's log probability: rounding


@dataclass(frozen=True, eq=False)
class Answered:
    """An answer that a model reads behind a text: `ids[i]` is written at the row `rows[i]`.

    Tokens are removed of the first `length` positions; the rows move with them unless they are `apart`, those
    of a decoder beside an encoder.
    """

    model: nn.Module
    inputs: Mapping[str, Any]
    length: int
    rows: tuple[int, ...]
    ids: tuple[int, ...]
    apart: bool

    @property
    def name(self) -> str:
        """What the model calls the tokens of which some are removed."""
        return "input_ids"

    def chances(self) -> LogChances:
        """The log probability of every choice at each row of the answer, as the model itself has it."""
        with evaluating(self.model):
            return self.chances_in(self.model(**without_cache(self.model, self.inputs)))

    def chances_in(self, said: Any) -> LogChances:
        """The log probability of every choice at each row of the answer, in what the model returned."""
        return log_chances(said.logits[0][list(self.rows)])

    def untouched(self) -> Float[np.ndarray, " token"]:
        """That of each token of the answer."""
        return self._of_answer(self.chances())

    def without(self, removed: Sequence[Removed]) -> Float[np.ndarray, "run token"]:
        """The log probability of each token of the answer without each of these sets of positions."""
        found = np.empty((len(removed), len(self.ids)))
        kept = [sorted({*range(self.length)} - {*each}) for each in removed]
        if not all(each and (self.apart or each[0] <= self.rows[0]) for each in kept):
            raise InputError("without these passages nothing stands before the answer")
        with evaluating(self.model):
            for part in _alike(kept, padded=self._takes_mask):
                some = [kept[i] for i in part]
                rows = self._rows(some)
                with _alone(self.model, rows, self._width(some)):
                    made = self.model(**without_cache(self.model, self._batch(some))).logits
                if made.shape[1] != len(self.ids):
                    made = made[torch.arange(len(part))[:, None], rows]
                for i, scores in zip(part, made, strict=True):
                    found[i] = self._of_answer(log_chances(scores))
        return found

    def strays(self, one: Float[np.ndarray, " token"], other: Float[np.ndarray, " token"]) -> bool:
        """Whether two runs of the same text differ by more than rounding."""
        size = max(1.0, float(np.abs(one).max()))
        epsilon = epsilon_of(next(self.model.parameters()))
        return bool(np.abs(one - other).max() > _STRAY * epsilon**0.5 * size)

    def _of_answer(self, chances: LogChances) -> Float[np.ndarray, " token"]:
        return np.asarray(chances[torch.arange(len(self.ids)), list(self.ids)].numpy())

    @property
    def _takes_mask(self) -> bool:
        return "attention_mask" in inspect.signature(self.model.forward).parameters

    def _width(self, kept: Sequence[Sequence[int]]) -> int:
        return self.inputs["decoder_input_ids"].shape[1] if self.apart else max(map(len, kept))

    def _rows(self, kept: Sequence[Sequence[int]]) -> Int[Tensor, "entry row"]:
        if self.apart:
            return torch.tensor([self.rows] * len(kept))
        return torch.tensor([[bisect_right(each, row) - 1 for row in self.rows] for each in kept])

    def _batch(self, kept: Sequence[Sequence[int]]) -> dict[str, Any]:
        ids, width = self.inputs[self.name], max(map(len, kept))
        given = dict(self.inputs)
        if self._takes_mask:
            given.setdefault("attention_mask", torch.ones_like(ids))
        for name, value in given.items():
            if not isinstance(value, Tensor) or not value.ndim:
                continue
            if name.startswith("decoder_") or value.shape[1:2] != ids.shape[1:]:
                given[name] = value.repeat_interleave(len(kept), 0)
                continue
            cut = value.new_zeros((len(kept), width, *value.shape[2:]))
            for row, each in zip(cut, kept, strict=True):
                row[: len(each)] = value[0, each]
            given[name] = cut
        return given


def _alike(kept: Sequence[Sequence[int]], padded: bool) -> Iterator[list[int]]:
    """The texts in batches of about the same length, of the very same where they cannot be `padded`."""
    part: list[int] = []
    for i in sorted(range(len(kept)), key=lambda i: -len(kept[i])):
        width = len(kept[part[0]]) if part else 0
        if part and ((len(part) + 1) * width > _AT_ONCE or not (padded or len(kept[i]) == width)):
            yield part
            part = []
        part.append(i)
    if part:
        yield part


@contextmanager
def _alone(model: nn.Module, rows: Int[Tensor, "entry row"], width: int) -> Iterator[None]:
    """While open, the model's output embeddings are multiplied with these rows alone, those of each entry."""
    find: Any = getattr(model, "get_output_embeddings", lambda: None)
    head = find()
    if not isinstance(head, nn.Module) or rows.shape[1] >= width:
        yield
        return

    def cut(_head: nn.Module, args: Sequence[Any]) -> Any:
        hidden = args[0] if args else None
        if isinstance(hidden, Tensor) and hidden.ndim == 3 and hidden.shape[:2] == (len(rows), width):
            return (hidden[torch.arange(len(rows))[:, None], rows], *args[1:])
        return None

    with head.register_forward_pre_hook(cut):
        yield


KEPT = 0.5  # of the passages in a random subset
ALPHA = 0.01  # of Lasso, on log odds by token: ContextCite's own
HELD_OUT = 0.25  # of the subsets: what the fit is tested on
CONTROLS, _TRIES = 20, 4  # halves of the other passages beside which a loss stands, at most; draws for each
_LEAST_CHANCE = 1e-12  # and most, 1 less that: log odds are no larger


def halves(passages: int, count: int, seed: int) -> Bool[np.ndarray, "subset passage"]:
    """Which passages are there in each of `count` random subsets."""
    random = np.random.default_rng(seed)
    return np.asarray(random.random((count, passages)) < KEPT)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What each passage adds to the log odds of a sentence, and R² on the subsets that were held out."""

    weights: Float[np.ndarray, " passage"]
    r2: float


def fitted(
    there: Bool[np.ndarray, "subset passage"], chances: Float[np.ndarray, " subset"], tokens: int
) -> Fitted:
    """The fit to log probabilities of a sentence of so many tokens; R² is NaN where they are all the same."""
    odds = log_odds(chances)
    held = max(2, round(HELD_OUT * len(odds)))
    known, left = slice(None, -held), slice(-held, None)
    r2 = float("nan")
    if np.ptp(odds[left]) > 0:
        weights, rest = _lasso(there[known], odds[known], tokens)
        r2 = float(r2_score(odds[left], there[left] @ weights + rest))
    return Fitted(_lasso(there, odds, tokens)[0], r2)


def log_odds(chances: Float[np.ndarray, " subset"]) -> Float[np.ndarray, " subset"]:
    """ln p / (1 - p) of log probabilities."""
    probable = np.clip(np.exp(chances), _LEAST_CHANCE, 1 - _LEAST_CHANCE)
    low = np.minimum(chances, np.log(probable))  # of what is least probable the log probability is known
    return np.asarray(low - np.log1p(-probable))


def _lasso(
    there: Bool[np.ndarray, "subset passage"], odds: Float[np.ndarray, " subset"], tokens: int
) -> tuple[Float[np.ndarray, " passage"], float]:
    scaler = StandardScaler()
    scaled = scaler.fit_transform(there.astype(float))
    model = Lasso(alpha=ALPHA).fit(scaled, odds / tokens)
    weights = model.coef_ / scaler.scale_
    return weights * tokens, float(model.intercept_ - scaler.mean_ @ weights) * tokens


def others_together(passages: int, candidates: Collection[int], seed: int) -> list[tuple[int, ...]]:
    """Random halves of the passages that are no candidates, each another one, drawn with `seed`."""
    others = [each for each in range(passages) if each not in candidates]
    random = np.random.default_rng(seed)
    drawn = dict[tuple[int, ...], None]()
    for _ in range(_TRIES * CONTROLS):
        size = int(random.integers(len(others) // 2, (len(others) + 1) // 2 + 1))
        drawn[tuple(sorted(random.permutation(others)[: max(size, 1)].tolist()))] = None
        if len(drawn) == CONTROLS:
            break
    return [*drawn]


VERIFIED = 8  # passages that a fit puts first, which are then taken away themselves, and as many by lot
Groups = Sequence[Sequence[int]]


@dataclass(eq=False)
class Taken:
    """What became of each sentence's log probability without passages, and without other tokens.

    The names are those of `Citation` and its `Statement`; `before` is what it was.
    """

    before: Float[np.ndarray, " sentence"]
    floor: float
    without_all: Float[np.ndarray, " sentence"]
    lost: Float[np.ndarray, "sentence passage"]
    subsets: int = 0
    weights: Float[np.ndarray, "sentence passage"] | None = None
    r2: list[float] = field(default_factory=list)
    candidates: list[tuple[int, ...]] = field(default_factory=list)
    controls: list[tuple[float, ...]] = field(default_factory=list)


def taken_away(
    answered: Answered, sentences: Groups, passages: Groups, subsets: int | None, seed: int
) -> Taken:
    """Each passage alone; with `subsets` those that a fit to as many random halves puts first, and some more.

    `CertificateError` for a model that answers otherwise where texts stand side by side.
    """
    runs, places = _Runs(answered, sentences), [frozenset(each) for each in passages]
    alone = places if subsets is None else []
    found = answered.without([(), frozenset().union(*places), *alone])
    before, floor = runs.untouched(found[0])
    all_gone, *without = before - runs.told(found[1:])
    lost = np.full((len(before), len(places)), np.nan)
    taken = Taken(before, floor, all_gone, lost, r2=[float("nan")] * len(before))
    if subsets is None:
        lost[:] = np.transpose(without)
    else:
        each = _by_halves(taken, runs, places, subsets, seed)
        lost[:, each] = (before - runs.without([places[i] for i in each])).T
    taken.candidates = [candidates_of(row) for row in lost]
    _hold_against(taken, runs, places, seed)
    return taken


@dataclass(frozen=True, eq=False)
class _Runs:
    answered: Answered
    sentences: Groups

    def untouched(self, beside: Float[np.ndarray, " token"]) -> tuple[Float[np.ndarray, " sentence"], float]:
        """What each sentence has, and by how much it moved `beside` shorter texts, by rounding alone."""
        one = self.answered.untouched()
        if self.answered.strays(one, beside):
            raise CertificateError(
                "the model answers otherwise where texts stand side by side: what removing does is unknown"
            )
        alone, moved = self.told(np.stack([one, beside]))
        return alone, float(np.abs(alone - moved).max())

    def without(self, removed: Sequence[Removed]) -> Float[np.ndarray, "run sentence"]:
        return self.told(self.answered.without(removed))

    def told(self, chances: Float[np.ndarray, "run token"]) -> Float[np.ndarray, "run sentence"]:
        return np.stack([chances[:, list(each)].sum(axis=1) for each in self.sentences], axis=1)


def _by_halves(
    taken: Taken, runs: _Runs, places: Sequence[frozenset[int]], count: int, seed: int
) -> list[int]:
    """The passages that a fit to random halves puts first for any sentence, and as many drawn by lot."""
    taken.subsets, there = count, halves(len(places), count, seed)
    gone = [frozenset().union(*(places[i] for i in np.flatnonzero(~each).tolist())) for each in there]
    chances = runs.without(gone)
    fits = [fitted(there, chances[:, i], len(own)) for i, own in enumerate(runs.sentences)]
    taken.weights, taken.r2 = np.array([each.weights for each in fits]), [each.r2 for each in fits]
    first = {int(i) for each in fits for i in np.argsort(-each.weights, kind="stable")[:VERIFIED]}
    lot = np.random.default_rng(seed).permutation(len(places))[:VERIFIED]
    return sorted(first | {*lot.tolist()})


def _hold_against(taken: Taken, runs: _Runs, places: Sequence[frozenset[int]], seed: int) -> None:
    drawn = [
        (candidates, frozenset().union(*(places[each] for each in half)))
        for candidates in dict.fromkeys(taken.candidates)
        if candidates
        for half in others_together(len(places), candidates, seed)
    ]
    chances = runs.without([half for _, half in drawn])
    for i, candidates in enumerate(taken.candidates):
        own = [row for row, (of, _) in enumerate(drawn) if of == candidates]
        taken.controls.append(tuple((taken.before[i] - chances[own, i]).tolist()))


COPIES = 0.1  # of the tokens of the answer: a head that copies fewer is none of those that copy
LOOKS = 0.1  # of its weight a head gives to the token that it is said to copy, at least

Shares = Float[np.ndarray, "sentence passage"]


@dataclass(frozen=True, eq=False)
class Looked:
    """The mean over all heads, over those that copy, and by norm; None where there is no such thing."""

    attention: Shares
    copying: Shares | None
    heads: tuple[tuple[int, int], ...]
    by_norm: Shares | None


def looked(
    layers: Iterable[Layer],
    heads: Sequence[int],
    rows: Sequence[int],
    written: Sequence[int],
    keys: Sequence[int],
    passages: Sequence[Sequence[int]],
    sentences: Sequence[Sequence[int]],
) -> Looked:
    """`written[i]` is the id of the token that `rows[i]` writes; `sentences` count these, `keys` are ids."""
    there, own = members(tuple(map(tuple, passages)), len(keys)), _averaging(sentences, len(rows))
    inside, ids = there.any(axis=0), np.array(keys)
    columns, numbers = there.T.astype(float), list[int]()
    weights, scores, moving = list[np.ndarray](), list[np.ndarray](), list[np.ndarray | None]()
    for layer in layers:
        given, lengths = np.nan_to_num(rows_of(layer, heads, rows)), moved(layer)
        weights.append(given @ columns)
        strongest = np.where(inside, given, -1.0).argmax(axis=2)
        looks = np.take_along_axis(given, strongest[..., None], axis=2)[..., 0] >= LOOKS
        scores.append(((ids[strongest] == np.array(written)) & looks).mean(axis=1))
        numbers.append(layer.layer)
        moving.append(None if lengths is None else (given * lengths[list(heads)][:, None]).sum(axis=0))
    every, copied = np.array(weights), np.array(scores)  # layer, head, row, passage; layer, head
    known = [each for each in moving if each is not None]
    copies = copied >= max(COPIES, copied.max() / 2)
    return Looked(
        own @ every.mean(axis=(0, 1)),
        own @ every[copies].mean(axis=0) if copies.any() else None,
        tuple((numbers[i], heads[j]) for i, j in np.argwhere(copies).tolist()),
        None if len(known) < len(moving) else own @ _shares(np.sum(known, axis=0)) @ columns,
    )


def _shares(moved: Float[np.ndarray, "row key"]) -> Float[np.ndarray, "row key"]:
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))


def _averaging(sentences: Sequence[Sequence[int]], rows: int) -> Float[np.ndarray, "sentence row"]:
    taken = members(tuple(map(tuple, sentences)), rows).astype(float)
    return np.asarray(taken / taken.sum(axis=1, keepdims=True))
