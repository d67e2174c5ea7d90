"""A prediction: blanks with their guesses, the written text, the verdict on a pair."""

from dataclasses import asdict

import numpy as np

from attnscope.results.base.origin import Provenance
from attnscope.results.prediction import Generated, Prediction
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value, or_none
from attnscope.results.stored.codec.tokens import read_tokens, tokens_document, written


@document.register
def _(result: Prediction, arrays: bool = True) -> dict[str, Value]:
    verdict = result.next_sentence
    return {
        "schema": "attnscope.prediction/1",
        "task": result.task,
        **({"notes": list(result.notes)} if result.notes else {}),
        "provenance": provenance(result.provenance),
        **tokens_document(result.tokens),
        **written(result.tokens),
        "blanks": [
            {"position": blank.position, "guesses": [asdict(guess) for guess in blank.guesses]}
            for blank in result.blanks
        ],
        "next_sentence": None if verdict is None else asdict(verdict),
        "generated": None if result.generated is None else _generated(result.generated),
    }


def _generated(told: Generated) -> dict[str, Value]:
    return asdict(told) | {"cache_error": or_none(told.cache_error)}


@arrays_of.register
def _(result: Prediction) -> Arrays:
    """Axes: blank guess. `next_sentence` is NaN where there is none."""
    verdict, guesses = result.next_sentence, [blank.guesses for blank in result.blanks]
    most = max(map(len, guesses), default=0)
    return {
        "position": np.array([blank.position for blank in result.blanks], np.int64),
        "id": np.array([_padded([guess.id for guess in each], most, -1) for each in guesses], np.int64),
        "probability": np.array(
            [_padded([guess.probability for guess in each], most, np.nan) for each in guesses], np.float64
        ),
        "next_sentence": np.array(np.nan if verdict is None else verdict.probability),
    }


def _padded(values: list[Value], length: int, fill: Value) -> list[Value]:
    return values + [fill] * (length - len(values))


@reads("attnscope.prediction/1")
def read_prediction(record: Record) -> Prediction:
    """All of it stands in the document."""
    tokens = read_tokens(record, wrote=record.get("written", str, ""))
    notes = record.get("notes", tuple[str, ...], ())
    origin = record.get("provenance", Provenance)
    prediction = made(Prediction, record, tokens=tokens, provenance=origin, notes=notes)
    if prediction.generated is None:  # else they are tokens of the text that was written
        check_blanks(prediction, len(tokens))
    return prediction


def check_blanks(prediction: Prediction, tokens: int) -> None:
    """Raises `Damaged` for a blank that is at none of so many tokens."""
    if any(not 0 <= blank.position < tokens for blank in prediction.blanks):
        raise Damaged("'blanks' have a position that is no token's")
