"""Predictions of a model: words for blanks, the next word, a text, a verdict, a class, tags, a span."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from attnscope.printable import printable
from attnscope.results.base.origin import Provenance
from attnscope.results.base.presented import Arrays, Presented, columns_of, fits, in_chances, in_tokens
from attnscope.tokens import Tokens

NO_ANSWER = "no answer"  # what an answer within a text is called that is not there
TASKS = ("masked", "next", "generated", "class", "tags", "span", "score")
_SURE, _LEADS = 0.5, 2.0  # a model is sure from so much on; it leans from so many times the next on


class Case(StrEnum):
    """The kind of a model's answer, or for a single place how sure the model is."""

    SURE = "sure"
    LEANS = "leans"
    UNSURE = "unsure"
    NO_CLASS = "no class"
    SEVERAL = "several places"
    TAGS = "tags"
    SCORE = "score"
    WROTE = "wrote"
    WROTE_NOTHING = "wrote nothing"
    GIVEN = "given"
    PAIR = "pair only"
    NOTHING = "nothing"


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
        """The text with control characters escaped, for screens, pictures and tables."""
        return printable(self.text)


@dataclass(frozen=True)
class Blank:
    """The likeliest tokens (for a tagger tags) at one place, best first.

    `position` is that of the mask, or of the last token when the place is after it.
    """

    position: int
    guesses: tuple[Guess, ...]

    def check_parts(self) -> None:
        in_chances(_once(self.guesses), "guesses", together=True)


def _once(guesses: tuple[Guess, ...]) -> Iterable[float]:
    return {guess.id: guess.probability for guess in guesses}.values()


@dataclass(frozen=True)
class Generated:
    """A text written by an encoder-decoder, or a named answer, with the probability of each token.

    `cache_error` is the largest difference of any probability between the run that generated the text with a
    cache, and the one that read it at once and gave the probabilities here; None where the model does not
    generate greedily or was given the text. `finished` is False where the text was cut off, `written` where
    it was given to the model.
    """

    text: str
    tokens: tuple[Guess, ...]
    cache_error: float | None
    finished: bool
    written: bool = True


@dataclass(frozen=True)
class NextSentence:
    """The probability that the second text follows the first; `order` for models that judge only order."""

    probability: float
    order: bool = False

    def check_parts(self) -> None:
        in_chances([self.probability], "probability")


@dataclass(frozen=True)
class Classes:
    """The likeliest classes of the whole input, by the model's own labels.

    `guesses` are these, best first. Where they are `exclusive` one is meant, and the probabilities of all add
    up to 1; otherwise each is judged by itself.
    """

    guesses: tuple[Guess, ...]
    exclusive: bool = True

    def check_parts(self) -> None:
        in_chances(_once(self.guesses), "guesses", together=self.exclusive)


@dataclass(frozen=True)
class AnswerSpan:
    """An answer span in a text, from its `first` token to its `last`.

    `probability` is that of both ends multiplied. Where both are the token that stands for no answer, as
    [CLS], there is no `text`.
    """

    first: int
    last: int
    text: str
    probability: float

    def check_parts(self) -> None:
        in_chances([self.probability], "probability")
        fits(0 <= self.first <= self.last, "a span ends before it begins")

    @property
    def name(self) -> str:
        """The text for screens, or `no answer`."""
        return printable(self.text) if self.text else NO_ANSWER


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Presented):
    """A prediction for one input.

    `task` is `masked`, `next`, `generated`, `class`, `tags`, `span` or `score`. `classes` are those of a
    classifier of the whole input, else None; `spans` are the likeliest answers to a question in a text, best
    first; `score` is the raw output of a single-output model, such as a reranker. `notes` say what was read
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
    spans: tuple[AnswerSpan, ...] = ()
    score: float | None = None

    for_readers = ("verdict", "case")

    @property
    def choice(self) -> tuple[Guess | AnswerSpan, ...]:
        """The candidates where one answer is wanted (one blank, a class, a span), best first; else empty."""
        one = self.blanks[0].guesses if self.task in ("masked", "next") and len(self.blanks) == 1 else ()
        return self.spans or (one if self.classes is None else self.classes.guesses)

    @property
    def case(self) -> Case:
        """The kind of answer, or for a single one how sure it is."""
        if self.generated is not None:
            written = Case.WROTE if self.generated.written else Case.GIVEN
            return written if self.generated.tokens else Case.WROTE_NOTHING
        if self.score is not None:
            return Case.SCORE
        if self.choice:
            return self._sureness([each.probability for each in self.choice])
        if any(each.guesses for each in self.blanks):
            return Case.TAGS if self.task == "tags" else Case.SEVERAL
        return Case.NOTHING if self.next_sentence is None else Case.PAIR

    def _sureness(self, chances: list[float]) -> Case:
        if chances[0] >= _SURE:
            return Case.SURE
        if self.classes is not None and not self.classes.exclusive:
            return Case.NO_CLASS
        return Case.UNSURE if len(chances) > 1 and chances[0] < _LEADS * chances[1] else Case.LEANS

    def check_parts(self) -> None:
        fits(self.task in TASKS, f"'task' is none of {', '.join(TASKS)}")
        fits((self.classes is not None) == (self.task == "class"), "'classes' are not those of a class")
        fits(bool(self.spans) == (self.task == "span"), "'spans' are not those of an answer in a text")
        fits((self.score is not None) == (self.task == "score"), "'score' is that of another task")
        in_tokens((each.last for each in self.spans), len(self.tokens), "spans")
        in_chances([each.probability for each in self.spans], "spans", together=True)
        if self.generated is None:  # else they are tokens of the text that was written
            in_tokens((blank.position for blank in self.blanks), len(self.tokens), "blanks")

    def npz_columns(self) -> Arrays:
        """Arrays with axes blank and guess, padded with -1 and NaN; classes are one row."""
        rows = [blank.guesses for blank in self.blanks]
        rows += [] if self.classes is None else [self.classes.guesses]
        shape = len(rows), max(map(len, rows), default=0)
        ids, probabilities = np.full(shape, -1), np.full(shape, np.nan)
        for i, guesses in enumerate(rows):
            for j, guess in enumerate(guesses):
                ids[i, j], probabilities[i, j] = guess.id, guess.probability
        if self.score is not None:
            return {"score": np.array(self.score)}
        if self.spans:
            return columns_of(self.spans, ("first", "last", "probability"))
        return columns_of(self.blanks, ("position",)) | {"id": ids, "probability": probabilities}
