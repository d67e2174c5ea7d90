"""Totals as they are told: of every measure the mean of each head, how sure it is, and how texts differ."""

from collections.abc import Mapping, Sequence

import numpy as np

from attnscope.analysis.corpus.links import descriptions
from attnscope.analysis.corpus.totals import ROUNDED, Totals
from attnscope.measures import MEASURES
from attnscope.results import HeadScores, MeasureDescription
from attnscope.results.claims.corpus import LEVELS, CorpusScores


def scores(
    totals: Totals,
    axes: tuple[Sequence[str], tuple[int, ...], tuple[int, ...]],
    absent: Mapping[str, str],
    longest: int,
    linked: tuple[str, str] | None,
) -> Mapping[str, CorpusScores]:
    """Every measure by its name; `axes` are measures, layers and heads, `absent` says why one has no meaning.

    `longest` are the tokens of the longest text, `linked` the parts of speech that are asked about.
    """
    measures, layers, heads = axes
    described = {name: measure.description for name, measure in MEASURES.items()}
    if linked is not None:
        described |= {description.name: description for description in descriptions(*linked)}
    count, mean, error = totals.moments.whole()
    halves = totals.moments.each()[1]
    places, by_length = totals.outer.places(), np.stack(_of_lengths(totals))
    quantiles = totals.quantiles(LEVELS)
    scored = {}
    for i, name in enumerate(measures):
        description = described[name]
        missing = absent.get(name, "")
        if not missing and not count[i].any():
            missing = "no text has it"
        values, agreement = (mean[i], None) if not description.classes else _commonest(totals, i, description)
        limits = _limits(name, description, values, longest)
        scored[name] = CorpusScores(
            scores=HeadScores(description, layers, heads, values, limits, absent=missing),
            error=np.full_like(error[i], np.nan) if description.classes else error[i],
            count=count[i],
            quantiles=quantiles[:, i],
            halves=halves[:, i],
            ends=totals.outer.values[:, :, i],
            texts=places[:, :, i],
            of_lengths=by_length[:, :, i],
            agreement=agreement,
            off=ROUNDED,
        )
    return scored


def _of_lengths(totals: Totals) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count, mean, error = totals.lengths.moments.each()
    return mean, error, count


def _limits(name: str, description: MeasureDescription, values: np.ndarray, keys: int) -> tuple[float, float]:
    if name in MEASURES:
        return MEASURES[name].limits_of(values, keys)
    return (-1.0 if description.signed else 0.0), 1.0


def _commonest(totals: Totals, i: int, description: MeasureDescription) -> tuple[np.ndarray, np.ndarray]:
    """The commonest class of every head, of several the first, and the share of texts that have it."""
    shape, size = totals.least.shape, totals.least.size
    counts = np.stack(
        [totals.sketch.times_of(float(j), size).reshape(shape)[i] for j in range(len(description.classes))]
    )
    whole = counts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(whole > 0, counts.max(axis=0) / whole, np.nan)
    return np.where(whole > 0, counts.argmax(axis=0).astype(float), np.nan), share
