"""Ways to cite over cases whose source is known: where each puts the source, and how sure that is."""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from attnscope.analysis.controls import wilson
from attnscope.verbs.cite.referee_result import Judged, Score
from attnscope.verbs.cite.result import LONGEST, NEAREST, WORDS, Citation, Method

DRAWS = 1000  # of the cases, for the interval of a mean
_OUTER = 0.05
_WORD = re.compile(r"\w+")


def knowing_no_model(result: Citation, question: str) -> dict[str, Float[np.ndarray, " passage"]]:
    """What ways to cite that know no model give to every passage."""
    asked = {*_WORD.findall(f"{question} {result.answer}".casefold())}
    texts = [{*_WORD.findall(each.text.casefold())} for each in result.passages]
    return {
        LONGEST: np.array([float(len(each.positions)) for each in result.passages]),
        NEAREST: np.array([float(each.positions[-1]) for each in result.passages]),
        WORDS: np.array([len(asked & each) / max(len(asked), 1) for each in texts]),
    }


def judged(
    line: int, result: Citation, question: str, source: tuple[int, ...], methods: Sequence[str]
) -> Judged:
    """One case, whose answer was asked about as a whole."""
    given: Mapping[str, Float[np.ndarray, " passage"]] = {
        **{name: each[0] for name, each in result.methods.items()},
        **knowing_no_model(result, question),
    }
    every = [given.get(method) for method in methods]
    return Judged(
        line,
        question,
        result.answer,
        result.statements[0].probability,
        source,
        len(result.passages),
        result.sources[0],
        tuple(math.nan if each is None else rank(each, source) for each in every),
        tuple(math.nan if each is None else float(np.nanmax(each)) for each in every),
    )


def rank(values: Float[np.ndarray, " passage"], source: Sequence[int]) -> float:
    """The place of the first source, those of one value at the middle of their places; NaN without any."""
    if not source:
        return math.nan
    known = np.nan_to_num(values, nan=-np.inf)
    best = max(float(known[each]) for each in source)
    others = np.delete(known, list(source))
    return 1.0 + float((others > best).sum()) + float((others == best).sum()) / 2


def scored(cases: Sequence[Judged], method: Method, number: int, seed: int = 0) -> Score:
    """How well one of the methods does, by the ranks and tops at its `number`."""
    ranks = np.array([each.ranks[number] for each in cases])
    known = ranks[~np.isnan(ranks)]
    tells = _tells(
        [each.tops[number] for each in cases if each.source],
        [each.tops[number] for each in cases if not each.source],
    )
    if not len(known):
        nothing = math.nan, math.nan, math.nan
        return Score(method, 0, *nothing, *nothing, tells)
    top1 = float((known == 1).mean())
    gained = 1 / known
    drawn = np.random.default_rng(seed).integers(0, len(known), (DRAWS, len(known)))
    low, high = np.quantile(gained[drawn].mean(axis=1), (_OUTER / 2, 1 - _OUTER / 2)).tolist()
    own = top1, *wilson(top1, len(known)), float(gained.mean()), low, high
    return Score(method, len(known), *own, tells)


def _tells(sourced: Sequence[float], none: Sequence[float]) -> float:
    """The chance that one of the first is larger than one of the second, ties counted half."""
    one, other = (np.array([each for each in side if not math.isnan(each)]) for side in (sourced, none))
    if not len(one) or not len(other):
        return math.nan
    above = (one[:, None] > other).mean() + (one[:, None] == other).mean() / 2
    return float(above)
