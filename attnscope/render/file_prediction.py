"""A prediction as JSON, CSV and npz: blanks with their guesses, the written text, the verdict on a pair."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np

from attnscope.render.file_csv import Row, exact, rows
from attnscope.render.file_json import Value, document, provenance, texts, tokens
from attnscope.render.file_npz import Arrays, arrays_of
from attnscope.results import Guess, Prediction


@document.register
def _(result: Prediction, arrays: bool = True) -> dict[str, Value]:
    written, verdict = result.generated, result.next_sentence
    return {
        "schema": "attnscope.prediction/1",
        "task": result.task,
        "provenance": provenance(result.provenance),
        "texts": texts(result.tokens),
        "tokens": tokens(result.tokens),
        "blanks": [
            {"position": blank.position, "guesses": [asdict(guess) for guess in blank.guesses]}
            for blank in result.blanks
        ],
        "next_sentence": None if verdict is None else asdict(verdict),
        "generated": None if written is None else asdict(written),
    }


@rows.register
def _(result: Prediction) -> Iterator[Row]:
    yield "place", "position", "rank", "id", "token", "probability"
    for blank in result.blanks:
        yield from _guesses(result.task, blank.position, blank.guesses)
    if result.generated is not None:
        for position, guess in enumerate(result.generated.tokens, start=1):
            yield from _guesses("written", position, [guess])
    if result.next_sentence is not None:
        yield "next_sentence", "", "", "", "", exact(result.next_sentence.probability)


def _guesses(place: str, position: int, guesses: Sequence[Guess]) -> Iterator[Row]:
    for rank, guess in enumerate(guesses, start=1):
        yield place, position, rank, guess.id, guess.text, exact(guess.probability)


@arrays_of.register
def _(result: Prediction) -> Arrays:
    """Axes: blank guess. `next_sentence` is NaN where there is none."""
    verdict = result.next_sentence
    return {
        "position": np.array([blank.position for blank in result.blanks], np.int64),
        "id": np.array([[guess.id for guess in blank.guesses] for blank in result.blanks], np.int64),
        "probability": np.array(
            [[guess.probability for guess in blank.guesses] for blank in result.blanks], np.float64
        ),
        "next_sentence": np.array(np.nan if verdict is None else verdict.probability),
    }
