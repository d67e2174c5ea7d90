"""A result for every case and every optional part of what `predict` says."""

from collections.abc import Callable
from dataclasses import replace

import made_reports as reports
import made_results as made

from attnscope.render.sheets import prediction
from attnscope.results import AnswerSpan, Blank, Generated, Guess, NextSentence, Prediction
from attnscope.results.prediction import Case, Classes

SAID, CASES = prediction.said, Case
NONE = float("nan")


def masked(*positions: int, **changed: object) -> Prediction:
    return replace(reports.masked(made.head(), positions or (2, 5, 7, 9)), **changed)  # type: ignore[arg-type]


def guesses(*chances: float, name: str = "w") -> tuple[Guess, ...]:
    return tuple(Guess(i, f"{name}{i}", chance) for i, chance in enumerate(chances))


def asked(task: str, *chances: float, name: str = "w") -> Prediction:
    """One place, and words of these probabilities."""
    return masked(4, task=task, blanks=(Blank(4, guesses(*chances, name=name)),))


def other(task: str, **changed: object) -> Prediction:
    return masked(task=task, blanks=(), **changed)


def written(tokens: int = 60, **changed: object) -> Prediction:
    made_up = Generated("x", guesses(*((i + 1) / 100 for i in range(tokens))), 1e-8, finished=False)
    return other("generated", generated=replace(made_up, **changed))  # type: ignore[arg-type]


def tagged(*tags: int) -> Prediction:
    """The tokens from the second on, with tags of these numbers, each surer than the one before."""
    blanks = ((i, Guess(tag, f"T{tag}", 0.5 + i / 100)) for i, tag in enumerate(tags, start=1))
    return masked(task="tags", blanks=tuple(Blank(i, (guess, Guess(9, "T9", 0.1))) for i, guess in blanks))


def classes(*chances: float, exclusive: bool = True) -> Prediction:
    return other("class", classes=Classes(guesses(*chances), exclusive))


def pair(chance: float, order: bool = False) -> Prediction:
    return masked(blanks=(), next_sentence=NextSentence(chance, order))


def two_texts(result: Prediction) -> Prediction:
    return replace(result, tokens=replace(result.tokens, texts=("a", "b")))


EXAMPLES: dict[str, Callable[[], Prediction]] = {
    "sure": lambda: asked("masked", 0.998, 0.0005),
    "sure after": lambda: asked("next", 0.6, 2e-5),
    "sure of a class": lambda: classes(0.7, 0.2),
    "leans": lambda: asked("masked", 0.4, 0.2, name="##w"),
    "leans after": lambda: asked("next", 0.3, name="␣<0x0A>"),
    "leans to a span": lambda: other("span", spans=(AnswerSpan(3, 4, "a b", 0.4), AnswerSpan(0, 0, "", 0.1))),
    "unsure": lambda: asked("masked", 0.083, 0.073, 2e-5),
    "unsure after": lambda: asked("next", 0.015, 0.012),
    "unsure of a class": lambda: classes(0.3, 0.29),
    "no class": lambda: classes(0.3, 0.29, exclusive=False),
    "several places": masked,
    "more places": lambda: masked(1, 2, 3, 5, 7, 9),
    "several places after": lambda: masked(task="next"),
    "tags": lambda: tagged(0, 0, 1, 0, 2, 0, 0),
    "tags alike": lambda: tagged(3, 3, 3),
    "tags all apart": lambda: tagged(0, 1, 2, 3, 4, 5),
    "one tag": lambda: tagged(3),
    "score": lambda: other("score", score=1.25),
    "score of a pair": lambda: two_texts(other("score", score=-0.002)),
    "wrote": written,
    "wrote to its end": lambda: written(2, finished=True),
    "wrote nothing": lambda: written(0),
    "given": lambda: written(written=False, cache_error=None),
    "given token": lambda: written(1, written=False, cache_error=None),
    "pair only": lambda: pair(0.125),
    "order of a pair": lambda: pair(0.5, order=True),
    "pair without a number": lambda: pair(NONE),
    "pair and places": lambda: masked(next_sentence=NextSentence(0.125)),
    "nothing": lambda: masked(blanks=()),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "sure": (Case.SURE, "“w0”", "“on”", "99.8 %", "“w1”", "1 in 2,000"),
    "sure after": (Case.SURE, "After “on”", "“w0”", "60.0 %", "“w1”", "1 in 50,000"),
    "leans": (Case.LEANS, "“##w0”", "“on”", "40.0 %", "20.0 %"),
    "unsure": (Case.UNSURE, "“on”", "“w0” has 8.3 %", "“w1” 7.3 %"),
    "unsure after": (Case.UNSURE, "After “on”", "“w0” has 1.5 %", "“w1” 1.2 %"),
    "several places": (Case.SEVERAL, "“princess” 50.0 % at “cat”", "“princess'” 50.0 %"),
    "more places": (Case.SEVERAL, "“princess” 50.0 % at", "and 3 more."),
    "tags": (Case.TAGS, "is tagged “T2” (55.0 %)", "5 of 7", "“T0”", "51.0 %"),
    "wrote": (Case.WROTE, "“x”", "“w0”", "60 tokens", "1.0 %"),
    "given": (Case.GIVEN, "“x”", "given", "60 tokens", "“w0”", "1.0 %"),
    "pair and places": (Case.SEVERAL, "follows from the first with 12.5 %. The likeliest"),
    "order of a pair": (Case.PAIR, "comes after the first with 50.0 %"),
    "score": (Case.SCORE, "1.25"),
}
