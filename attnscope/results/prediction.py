"""What a model makes of its input: words for blanks, the next word, a text, a verdict, a class, tags."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from attnscope.printable import printable
from attnscope.results.base.origin import Provenance
from attnscope.results.base.parts import Arrays, columns_of, fits, in_chances, in_tokens
from attnscope.results.base.presented import Presented
from attnscope.tokens import Tokens

TASKS = ("masked", "next", "generated", "class", "tags")


@dataclass(frozen=True)
class Guess:
    """One token of the vocabulary and its probability, 0 to 1."""

    id: int
    text: str
    probability: float

    def check_parts(self) -> None:
        in_chances([self.probability], "probability")

    @property
    def name(self) -> str:
        """How its text is called on screen, in pictures and in tables: nothing in it steers a terminal."""
        return printable(self.text)


@dataclass(frozen=True)
class Blank:
    """The likeliest tokens at one place, best first; of a tagger the likeliest tags of one token.

    `position` is that of the mask, or of the last token when the place is after it.
    """

    position: int
    guesses: tuple[Guess, ...]

    def check_parts(self) -> None:
        in_chances(_once(self.guesses), "guesses", together=True)


def _once(guesses: tuple[Guess, ...]) -> Iterable[float]:
    """The probability of every token or class that is among them."""
    return {guess.id: guess.probability for guess in guesses}.values()


@dataclass(frozen=True)
class Generated:
    """What an encoder-decoder wrote, or a named answer, token by token, with the probability of each.

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

    def check_parts(self) -> None:
        in_chances([self.probability], "probability")


@dataclass(frozen=True)
class Classes:
    """The likeliest classes of the whole input, as the model calls them.

    `guesses` are these, best first. Where they are `exclusive` one is meant, and the probabilities of all add
    up to 1; otherwise each is judged by itself.
    """

    guesses: tuple[Guess, ...]
    exclusive: bool = True

    def check_parts(self) -> None:
        in_chances(_once(self.guesses), "guesses", together=self.exclusive)


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Presented):
    """A model's own answer to one input. `task` is `masked`, `next`, `generated`, `class` or `tags`.

    `classes` are those of a model that puts its whole input in one, else None. `notes` say what was read
    beside the text, such as a picture.
    """

    task: str
    tokens: Tokens
    blanks: tuple[Blank, ...]
    generated: Generated | None
    next_sentence: NextSentence | None
    provenance: Provenance
    notes: tuple[str, ...] = ()
    classes: Classes | None = None

    def check_parts(self) -> None:
        fits(self.task in TASKS, f"'task' is none of {', '.join(TASKS)}")
        fits((self.classes is not None) == (self.task == "class"), "'classes' are not those of a class")
        if self.generated is None:  # else they are tokens of the text that was written
            in_tokens((blank.position for blank in self.blanks), len(self.tokens), "blanks")

    def npz_columns(self) -> Arrays:
        """Axes: blank guess; -1 and NaN where a blank has fewer guesses than another. Classes are one row."""
        rows = [blank.guesses for blank in self.blanks]
        rows += [] if self.classes is None else [self.classes.guesses]
        shape = len(rows), max(map(len, rows), default=0)
        ids, probabilities = np.full(shape, -1), np.full(shape, np.nan)
        for i, guesses in enumerate(rows):
            for j, guess in enumerate(guesses):
                ids[i, j], probabilities[i, j] = guess.id, guess.probability
        return columns_of(self.blanks, ("position",)) | {"id": ids, "probability": probabilities}
