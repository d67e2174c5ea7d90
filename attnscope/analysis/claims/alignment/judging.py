"""Links and times held against gold, beside the mean of heads, the diagonal, and what knows nothing.

Alignment error rate (Och and Ney 2003), for sure links S among possible ones P and answered ones A:

    precision |A n P| / |A|,  recall |A n S| / |S|,  error 1 - (|A n S| + |A n P|) / (|A| + |S|)
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float

from attnscope.analysis.claims.relations.ranking import wilson
from attnscope.results.claims.alignment import LinkScore, Reliability, TimeScore

FOLDS = 5  # parts of what is learnt on, each of which is judged by the others
NEAR = 0.1  # seconds: a begin that lies no farther off counts as right
_ENDS = (0.5, 0.7, 0.9, 0.97, 1.0)

Case = TypeVar("Case")
Learnt = TypeVar("Learnt")
Pairs = Float[np.ndarray, "word other"]
Linked = Bool[np.ndarray, "word other"]


@dataclass(frozen=True, eq=False)
class Gold:
    """The sure and the possible links of one pair of sentences."""

    sure: Linked
    possible: Linked


def score_links(
    name: str, strengths: Sequence[np.ndarray], links: Sequence[np.ndarray], gold: Sequence[Gold]
) -> LinkScore:
    """One way to link, over all pairs: `links` are answered, `strengths` say which is the strongest."""
    counts, found, words = np.zeros(4), 0, 0
    for strength, linked, true in zip(strengths, links, gold, strict=True):
        counts += [linked.sum(), (linked & true.possible).sum(), true.sure.sum(), (linked & true.sure).sum()]
        known = true.possible.any(axis=1)
        words += int(known.sum())
        found += int(true.possible[np.arange(len(strength)), strength.argmax(axis=1)][known].sum())
    return _score(name, counts, found, words, len(gold))


def _score(name: str, counts: np.ndarray, found: float, words: int, cases: int) -> LinkScore:
    answered, possible, sure, hit = counts.tolist()
    return LinkScore(
        name,
        possible / answered if answered else 0.0,
        hit / sure if sure else 0.0,
        1 - (hit + possible) / (answered + sure) if answered + sure else 0.0,
        found / words if words else 0.0,
        answered / cases,
    )


def forward(strengths: Pairs) -> Linked:
    """Each word of the target with its strongest source: what a plain script answers."""
    linked = np.zeros(strengths.shape, dtype=bool)
    linked[np.arange(len(strengths)), strengths.argmax(axis=1)] = True
    return linked


def score_diagonal(gold: Sequence[Gold]) -> LinkScore:
    """Each word with the one as far along."""
    ways = [_diagonal(*each.sure.shape) for each in gold]
    return score_links("diagonal", ways, [way > 0 for way in ways], gold)


def _diagonal(words: int, others: int) -> Pairs:
    made = np.zeros((words, others))
    made[np.arange(words), np.rint(np.arange(words) * (others - 1) / max(1, words - 1)).astype(int)] = 1.0
    return made


def score_even(gold: Sequence[Gold]) -> LinkScore:
    """What each word with any source, drawn by lot, would get in the mean."""
    counts, found, words = np.zeros(4), 0.0, 0
    for each in gold:
        others, known = each.sure.shape[1], each.possible.any(axis=1)
        counts += [len(each.sure), each.possible.sum() / others, each.sure.sum(), each.sure.sum() / others]
        found += float(each.possible[known].sum()) / others
        words += int(known.sum())
    return _score("any word", counts, found, words, len(gold))


def left_out(cases: Sequence[Case], learn: Callable[[list[Case]], Learnt]) -> list[Learnt]:
    """For each case what was learnt of others: a part of all cases is left out at a time."""
    parts = min(FOLDS, len(cases))
    by_part = [learn([each for i, each in enumerate(cases) if i % FOLDS != part]) for part in range(parts)]
    return [by_part[i % FOLDS] for i in range(len(cases))]


def reliabilities(said: Iterable[float], right: Iterable[bool]) -> tuple[Reliability, ...]:
    """How much is right of what is said with a confidence in each stretch, where anything is."""
    chances, truth = np.array([*said], dtype=float), np.array([*right], dtype=bool)
    made = list[Reliability]()
    for low, high in zip((0.0, *_ENDS), _ENDS, strict=False):
        inside = (chances >= low) & ((chances < high) | (high == 1.0))
        if count := int(inside.sum()):
            share = float(truth[inside].mean())
            made.append(
                Reliability(low, high, count, float(chances[inside].mean()), share, *wilson(share, count))
            )
    return tuple(made)


@dataclass(frozen=True, eq=False)
class Times:
    """Begins and ends of words in seconds."""

    begins: Float[np.ndarray, " word"]
    ends: Float[np.ndarray, " word"]


def score_times(name: str, said: Sequence[Times], gold: Sequence[Times]) -> TimeScore:
    """How far begins and ends lie off, in milliseconds."""
    begins = 1000 * np.concatenate([np.abs(a.begins - b.begins) for a, b in zip(said, gold, strict=True)])
    ends = 1000 * np.concatenate([np.abs(a.ends - b.ends) for a, b in zip(said, gold, strict=True)])
    return TimeScore(name, *_spread(begins), *_spread(ends))


def _spread(off: Float[np.ndarray, " word"]) -> tuple[float, float, float]:
    return float(np.median(off)), float(np.quantile(off, 0.9)), float((off <= 1000 * NEAR).mean())


def equal_parts(sizes: Sequence[int], seconds: float) -> Times:
    """Every part of the words as long as the others: the sound, cut."""
    ends = np.cumsum(sizes) * seconds / sum(sizes)
    return Times(np.concatenate([[0.0], ends[:-1]]), ends)
