"""What a model answers, run untouched: words for each blank, a written text, the verdict on a pair."""

import math
from collections.abc import Iterator, Sequence

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import chance, significant
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.said import text
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.results import Blank, Generated, Guess, NextSentence, Prediction

_LONGEST_NAME = 24  # cells of a token
_MOST_TOLD = 4  # places in the answer
_MOST_ROWS, _ABREAST = 24, 3  # tokens of a written text in one block; blocks side by side
_TITLES = {"masked": "masked words", "next": "next token", "generated": "text of its own"}


def sheet(result: Prediction, focus: Focus = WHOLE) -> Sheet:
    likeliest = [f"“{each.guesses[0].name}”" for each in result.blanks if each.guesses]
    return Sheet(
        title=_title(result),
        setting=model_words(result.provenance),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=tuple(_rows(result)),
        table=lambda: Table.of("place position rank id token probability", _facts(result)),
        texts=tuple(_texts(result)),
        notes=tuple(_notes(result)),
        untouched="✓ the model's own answer, nothing changed",
        summary=(f"likeliest {fit(', '.join(likeliest), 40)}" if likeliest else "",),
    )


def _title(result: Prediction) -> str:
    if result.task == "masked" and not result.blanks:
        return "next sentence"
    if result.generated is not None and not result.generated.written:
        return "a text that it was given"
    return _TITLES[result.task]


def _texts(result: Prediction) -> Iterator[str]:
    """What was read, and what was written after it."""
    yield from text(result.tokens)
    if result.generated is not None and result.generated.text:
        yield f"→ “{result.generated.text}”"


def _answer(result: Prediction) -> str:
    """The likeliest of each place; of a text the token that was least likely; the verdict on a pair."""
    told = [] if result.next_sentence is None else [pair_words(result.next_sentence)]
    if result.generated is not None:
        told.append(_written_words(result.generated))
    elif result.blanks:
        told.append(_blank_words(result))
    sentence = "; ".join(told)
    return f"{sentence[:1].upper()}{sentence[1:]}." if told else ""


def pair_words(judged: NextSentence) -> str:
    """`the second text follows from the first with probability .125`."""
    if math.isnan(judged.probability):
        return f"the model gives no probability that the second text {_does(judged)}"
    return f"the second text {_does(judged)} with probability {chance(judged.probability)}"


def _does(judged: NextSentence) -> str:
    return "comes after the first" if judged.order else "follows from the first"


def _blank_words(result: Prediction) -> str:
    """Of one place the best two, of several the best of each."""
    if len(result.blanks) == 1:
        best, *others = result.blanks[0].guesses
        told = f"likeliest {_place(result, result.blanks[0])} is {_guess(best)}"
        return f"{told}, then {_guess(others[0])}" if others else told
    every = [f"{_guess(each.guesses[0])} {_place(result, each)}" for each in result.blanks if each.guesses]
    more = f" and at {len(every) - _MOST_TOLD} more" if len(every) > _MOST_TOLD else ""
    return f"likeliest are {', '.join(every[:_MOST_TOLD])}{more}"


def _guess(guess: Guess) -> str:
    return f"“{guess.name}” ({chance(guess.probability)})"


def _place(result: Prediction, blank: Blank) -> str:
    """`at 7 [MASK]`, `after 12 opened`."""
    return f"{'after' if result.task == 'next' else 'at'} {_token(result, blank)}"


def _token(result: Prediction, blank: Blank) -> str:
    return f"{blank.position} {settled(result.tokens.names[blank.position])}"


def _written_words(generated: Generated) -> str:
    if not generated.tokens:
        return "nothing: the model ends at once"
    least = min(generated.tokens, key=lambda each: each.probability)
    whose = "it wrote" if generated.written else "it was given"
    return f"of the {len(generated.tokens)} tokens that {whose} the least likely is {_guess(least)}"


def _rows(result: Prediction) -> Iterator[Beside]:
    """The verdict on a pair alone, then the blanks or the parts of a written text side by side."""
    if result.next_sentence is not None and not math.isnan(result.next_sentence.probability):
        judged = Guess(-1, _does(result.next_sentence), result.next_sentence.probability)
        yield Beside((_bars("the second text", "", [judged]),))
    if result.generated is None:
        blocks = [_bars(_heading(result, each), "token", each.guesses) for each in result.blanks]
    else:
        written = result.generated.tokens
        parts = [written[i : i + _MOST_ROWS] for i in range(0, len(written), _MOST_ROWS)]
        titles = ["each token, given those before", *["…"] * len(parts)]
        blocks = [_bars(title, "token", part) for title, part in zip(titles, parts, strict=False)]
    yield from (Beside(tuple(blocks[i : i + _ABREAST])) for i in range(0, len(blocks), _ABREAST))


def _heading(result: Prediction, blank: Blank) -> str:
    return f"after {_token(result, blank)}" if result.task == "next" else _token(result, blank)


def _bars(title: str, of: str, guesses: Sequence[Guess]) -> Ranking:
    """Likeliest first, or in the order in which they were written; a full bar is 1."""
    chances = [each.probability for each in guesses]
    return Ranking(
        title=title,
        of=of,
        names=tuple(settled(fit(each.name, _LONGEST_NAME)) for each in guesses),
        table=Table(Column("probability", chances, "probability", chance)),
        measured="probability",
        marks=(Mark("bar", "own", "", chances),),
        written="probability",
        axis=(0.0, 1.0),
    )


def _notes(result: Prediction) -> Iterator[str]:
    yield from result.notes
    if result.generated is not None and result.generated.cache_error is not None:
        error = significant(result.generated.cache_error)
        yield f"as it was written, with a cache, no probability differs by more than {error}"
    if result.generated is not None and not result.generated.finished:
        yield "cut off: the model had not come to an end"


def _facts(result: Prediction) -> Iterator[tuple[object, ...]]:
    """A row per guess, for every blank or every token that was written."""
    places = [(result.task, blank.position, blank.guesses) for blank in result.blanks]
    if result.generated is not None:
        places += [("written", i, (guess,)) for i, guess in enumerate(result.generated.tokens, start=1)]
    for place, position, guesses in places:
        for rank, guess in enumerate(guesses, start=1):
            yield place, position, rank, guess.id, guess.name, exact(guess.probability)
    if result.next_sentence is not None:
        yield "next_sentence", "", "", "", "", exact(result.next_sentence.probability)
