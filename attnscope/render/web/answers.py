"""A map and a prediction as a page knows them, with all that has to be said beside them."""

from typing import Any

from attnscope.printable import printable
from attnscope.render.kit.numbers import percent
from attnscope.render.sheets.map import (
    DISCLAIMER,
    centring_words,
    correlation_words,
    points_words,
    settings_words,
    trust_words,
)
from attnscope.render.sheets.prediction import pair_words
from attnscope.render.web.blocks import short
from attnscope.results import Generated, Guess, Prediction, Projection


def of_map(found: Projection) -> dict[str, Any]:
    """Points with their names and weights; a point of a view stands for the tokens in its group."""
    view = found.view
    rows = [[i] for i in range(len(found.query_tokens))] if view is None else view.query_groups
    says = [
        trust_words(found),
        correlation_words(found),
        centring_words(found),
        ", ".join(settings_words(found)),
    ]
    return {
        "queries": short(found.queries),
        "keys": short(found.keys),
        "queryNames": list(found.query_tokens.names),
        "keyNames": list(found.key_tokens.names),
        "rows": rows,
        "weights": [
            [weight if allowed else None for weight, allowed in zip(*row, strict=True)]
            for row in zip(short(found.weights), found.allowed.tolist(), strict=True)
        ],
        "says": [each for each in (*says, *points_words(found), DISCLAIMER) if each],
    }


def of_prediction(found: Prediction) -> dict[str, Any]:
    """Guesses by blank; what was written with the probability of each token of it."""
    blanks = [
        {
            "place": f"{'after' if found.task == 'next' else 'at'} {found.tokens.named(blank.position)}",
            "guesses": [_guess(each) for each in blank.guesses],
        }
        for blank in found.blanks
    ]
    says = ["" if found.next_sentence is None else pair_words(found.next_sentence), *found.notes]
    if found.generated is not None:
        blanks.append(_written(found.generated))
        says.append("" if found.generated.finished else "cut off: the model was not at an end")
    return {"blanks": blanks, "says": [each for each in says if each]}


def _guess(guess: Guess) -> tuple[str, float, str]:
    """What it is, its probability, and that as it is written: a percentage, as nothing else is."""
    return guess.name, guess.probability, percent(guess.probability)


def _written(generated: Generated) -> dict[str, Any]:
    by = "written, token by token" if generated.written else "the text that was given, token by token"
    guesses = [_guess(each) for each in generated.tokens]
    return {"place": f"“{printable(generated.text)}”: {by}", "guesses": guesses}
