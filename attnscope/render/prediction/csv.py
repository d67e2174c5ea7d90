"""A prediction as CSV: a row per guess, for every blank or every token that was written."""

from collections.abc import Iterator, Sequence

from attnscope.render.kit.csv import Row, exact, rows
from attnscope.results import Guess, Prediction


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
