"""Reports built by hand on the results of `made_results`, for tests of their page and their text."""

import math
from collections.abc import Sequence
from dataclasses import replace

import made_results as made
import numpy as np

from attnscope.measures import MEASURES
from attnscope.results import (
    Blank,
    Generated,
    Guess,
    HeadAttention,
    HeadScores,
    Kind,
    MeasureDescription,
    NextSentence,
    Prediction,
    Projection,
    Report,
)

WORDS = ("princess", "queen", "waitress", "woman", "fisherman")
CHANCES = (0.5, 0.25, 0.125, 0.0625, 0.03125)


def shares(head: HeadAttention, query: int) -> np.ndarray:
    """What each key adds to a query's output, key by key and dimension by dimension."""
    output = [
        math.fsum(head.weights[query, key] * head.v[key, dim] for key in range(len(head.k)))
        for dim in range(head.v.shape[1])
    ]
    length = math.fsum(x * x for x in output)
    dots = [math.fsum(v * x for v, x in zip(value, output, strict=True)) for value in head.v]
    return np.array([head.weights[query, key] * dot / length for key, dot in enumerate(dots)])


def report(
    head: HeadAttention | None = None,
    query: int = 4,
    prediction: Prediction | None = None,
    projection: Projection | None = None,
    **changed: object,
) -> Report:
    """A report on a made head; its statistics are made up, its shares are not."""
    shown = head or made.head()
    given = shares(shown, query) if shown.answered[query] else np.full(len(shown.k), np.nan)
    fields = {
        "projection": projection or made.projection(shown),
        "query": query,
        "contributions": given,
        "statistics": (
            statistic("entropy", 1.25, 2.5),
            statistic("confidence", 0.625, 0.078125),
            statistic("distance", 2.5, 4.25),
            statistic("self", 0.03125, 0.078125),
            statistic("previous", 0.5, 0.0703125),
            statistic("next", 0.0, 0.0703125),
            statistic("first", 0.25, 0.078125),
            statistic("special tokens", 0.125, 0.15625),
        ),
        "prediction": prediction,
    }
    return Report(**(fields | changed))  # type: ignore[arg-type]


def statistic(measure: str, value: float, even: float = math.nan, absent: str = "") -> HeadScores:
    """One number of head 11 in layer 3, `absent` where it has no meaning."""
    special = MeasureDescription(name=measure, unit="weight", meaning="", label=f"weight on {measure}")
    description = MEASURES[measure].description if measure in MEASURES else special
    values, evens = (np.array([[each]]) for each in (value, even))
    return HeadScores(description, (3,), (11,), values, even_attention=evens, absent=absent)


def masked(head: HeadAttention, positions: Sequence[int], verdict: float | None = None) -> Prediction:
    """Five words for each of `positions`, the later ones with a mark behind each word."""
    blanks = tuple(
        Blank(
            at,
            tuple(
                Guess(i, word + "'" * n, c) for i, (word, c) in enumerate(zip(WORDS, CHANCES, strict=True))
            ),
        )
        for n, at in enumerate(positions)
    )
    following = None if verdict is None else NextSentence(verdict)
    return Prediction("masked", head.query_tokens, blanks, None, following, made.provenance())


def following(head: HeadAttention) -> Prediction:
    last = len(head.query_tokens) - 1
    return replace(masked(head, [last]), task="next")


def written(head: HeadAttention, text: str) -> Prediction:
    """A text of the model's own, and five words after every token of the decoder."""
    blanks = masked(head, range(len(head.query_tokens))).blanks
    guesses = tuple(Guess(i, word, 0.5) for i, word in enumerate(text.split()))
    told = Generated(text, guesses, 0.0, finished=True)
    return Prediction("generated", head.key_tokens, blanks, told, None, made.provenance())


def words(count: int) -> list[str]:
    """`count` tokens, some of them long, some repeated."""
    some = ["the", "quick", "brown", "fox", "saw", "internationalisation", "a", "door", ",", "when"]
    inner = (some * (count // len(some) + 1))[: count - 2]
    return ["[CLS]", *inner, "[SEP]"] if count > 2 else some[:count]


def causal(count: int, **changed: object) -> HeadAttention:
    return made.head(words(count), causal=True, kind=Kind.DECODER, **changed)


def cross(queries: int, keys: int, **changed: object) -> HeadAttention:
    return made.head(words(queries), words(keys), **changed)


def with_sink(head: HeadAttention, sink: float = 0.5) -> HeadAttention:
    """The same head with a sink in the denominator of its softmax."""
    powers = np.where(head.allowed, np.exp(np.nan_to_num(head.scaled)), 0.0)
    weights = powers / (powers.sum(1, keepdims=True) + math.exp(sink))
    return replace(head, weights=weights, output=weights @ head.v, sink=sink)
