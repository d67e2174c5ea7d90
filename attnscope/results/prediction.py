"""What a model makes of a text: words for its blanks, the next word, a translation, a verdict on a pair."""

from dataclasses import dataclass

import numpy as np

from attnscope.printable import printable
from attnscope.results.base.origin import Provenance
from attnscope.results.base.parts import Arrays, columns_of, fits, in_tokens
from attnscope.results.base.presented import Presented
from attnscope.tokens import Tokens


@dataclass(frozen=True)
class Guess:
    """One token of the vocabulary and its probability, 0 to 1."""

    id: int
    text: str
    probability: float

    @property
    def name(self) -> str:
        """How its text is called on screen, in pictures and in tables: nothing in it steers a terminal."""
        return printable(self.text)


@dataclass(frozen=True)
class Blank:
    """The likeliest tokens at one place, best first.

    `position` is that of the mask, or of the last token when the place is after it.
    """

    position: int
    guesses: tuple[Guess, ...]


@dataclass(frozen=True)
class Generated:
    """What an encoder-decoder wrote, token by token, with the probability it gave to each.

    `cache_error` is the largest difference of any probability between the run that wrote the text step by
    step with a cache, and the one that read it at once and gave the probabilities here; None when the model
    does not write greedily or was given the text. `finished` is False where it was cut off, `written`
    where the text was given and is not the model's own.
    """

    text: str
    tokens: tuple[Guess, ...]
    cache_error: float | None
    finished: bool
    written: bool = True


@dataclass(frozen=True)
class NextSentence:
    """Probability that the second text belongs after the first; `order` when the model only tells order."""

    probability: float
    order: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Presented):
    """A model's own answer to one input. `task` is `masked`, `next` or `generated`.

    `notes` say what was read beside the text, such as a picture.
    """

    task: str
    tokens: Tokens
    blanks: tuple[Blank, ...]
    generated: Generated | None
    next_sentence: NextSentence | None
    provenance: Provenance
    notes: tuple[str, ...] = ()

    def check_parts(self) -> None:
        fits(self.task in ("masked", "next", "generated"), "'task' is none of masked, next, generated")
        if self.generated is None:  # else they are tokens of the text that was written
            in_tokens((blank.position for blank in self.blanks), len(self.tokens), "blanks")

    def npz_columns(self) -> Arrays:
        """Axes: blank guess; -1 and NaN where a blank has fewer guesses than another."""
        most = max((len(blank.guesses) for blank in self.blanks), default=0)
        shape = len(self.blanks), most
        ids, probabilities = np.full(shape, -1), np.full(shape, np.nan)
        for i, blank in enumerate(self.blanks):
            for j, guess in enumerate(blank.guesses):
                ids[i, j], probabilities[i, j] = guess.id, guess.probability
        return columns_of(self.blanks, ("position",)) | {"id": ids, "probability": probabilities}
