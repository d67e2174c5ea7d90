"""Sheet of a prediction: words for blanks, a generated text, next-sentence verdict, classes, spans."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from attnscope.printable import printable
from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.command import Run, asking, label
from attnscope.render.kit.numbers import exact, likely
from attnscope.render.kit.words import model_words
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.said import at, in_sentence, numbered, text
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import AnswerSpan, Blank, Guess, Kind, Prediction
from attnscope.results.prediction import Case

_LONGEST_NAME = 24  # cells of a token
_LONGEST_TEXT = 60  # cells of a written text in the answer
_MOST_TOLD = 3  # places in the answer
_MOST_ROWS, _ABREAST = 24, 3  # tokens of a written text in one block; blocks side by side
_MARKS = "##", "␣", "<0x"  # in names of tokens, which are explained


def sheet(result: Prediction, focus: Focus = WHOLE) -> Sheet:
    places = [each.guesses for each in (*result.blanks, result.classes) if each is not None]
    likeliest = [f"“{guesses[0].name}”" for guesses in places if guesses]
    say = said(result)
    return saying(
        say,
        setting=model_words(result.provenance),
        blocks=tuple(_rows(result, say)),
        table=lambda: Table.of("place position rank id token probability", _records(result)),
        texts=tuple(_texts(result)),
        notes=(*result.notes, *say.lines("notes")),
        untouched=say("untouched"),
        next=_next(result, say),
        summary=(say("likeliest", fit(", ".join(likeliest), 40)) if likeliest else "",),
    )


def said(result: Prediction) -> Said:
    """Sentences of `predict` about this result."""
    judged, made, choice = result.next_sentence, result.generated, result.choice
    written = () if made is None else made.tokens
    mine, apart = _common(result)
    listed = apart if result.task == "tags" else [each for each in result.blanks if each.guesses]
    if written:
        choice = (min(written, key=lambda each: each.probability),)
    elif mine:
        choice = (min((blank.guesses[0] for blank in mine), key=lambda each: each.probability),)
    best, second = (*choice, None, None)[:2]
    tokens = written or [guess for blank in result.blanks for guess in blank.guesses]
    pair = math.nan if judged is None else judged.probability
    facts = {
        "two": len(result.tokens.texts) > 1,
        "blanks": len(result.blanks),
        # the likeliest; of a text that was written the least likely token, of a common tag the least sure
        "best": best and f"“{best.name}”",
        "chance": best and best.probability,
        "second": second and f"“{second.name}”",
        "second_chance": second and second.probability,
        "place": "" if made or not result.blanks else _called(result, result.blanks[0]),
        "places": [
            (_called(result, each), f"“{each.guesses[0].name}”", each.guesses[0].probability)
            for each in ([] if made else listed[:_MOST_TOLD])
        ],
        "more": max(0, len(listed) - _MOST_TOLD),
        "alike": len(mine),
        "many": len(written or result.blanks),
        "number": result.score,
        # the text that was written
        "written": made and f"“{settled(fit(printable(made.text), _LONGEST_TEXT))}”",
        "whole": math.prod(each.probability for each in written),
        "own": made is None or made.written,
        "cache_error": made and made.cache_error,
        "cut_off": made is not None and not made.finished,
        # the second of two texts
        "pair": None if math.isnan(pair) else pair,
        "unnumbered": judged is not None and math.isnan(pair),
        "order": judged is not None and judged.order,
        # what is noted
        "marks": {mark for mark in _MARKS if any(mark in each.name for each in tokens)},
        "each_by_itself": result.classes is not None and not result.classes.exclusive,
        "nowhere": in_sentence(result.tokens, 0) if any(not span.text for span in result.spans) else "",
    }
    return Said("predict", result, facts)


def _texts(result: Prediction) -> Iterator[str]:
    yield from text(result.tokens)
    if result.generated is not None and result.generated.text:
        yield f"→ “{result.generated.text}”"


def _called(result: Prediction, blank: Blank) -> str:
    return in_sentence(result.tokens, blank.position)


def _common(result: Prediction) -> tuple[list[Blank], list[Blank]]:
    """For a tagger, the tokens with the most common tag, and all others, the surest first."""
    if result.task != "tags":
        return [], []
    ids = [blank.guesses[0].id for blank in result.blanks]
    common, times = max(Counter(ids).items(), key=lambda each: each[1], default=(-1, 0))
    most = common if times > len(ids) / 2 and len(ids) > 1 else -1
    apart = [blank for blank in result.blanks if blank.guesses[0].id != most]
    apart.sort(key=lambda blank: -blank.guesses[0].probability)
    return [blank for blank in result.blanks if blank.guesses[0].id == most], apart


def _next(result: Prediction, say: Said) -> Next | None:
    if result.generated is not None:
        if not result.generated.written or not result.generated.tokens:
            return None
        return Next(say("heads_of_text"), asking(result, "ablate", "--kind", Kind.CROSS.value))
    if result.case is Case.TAGS:
        first = (*_common(result)[1], *result.blanks)[0]
        options = "--from", label(result.tokens, first.position)
        return heads_needed(result, first.guesses[0], *options)
    if not result.choice:
        return None
    return heads_needed(result, result.choice[0])


def heads_needed(result: Run, answer: Guess | AnswerSpan, *options: str) -> Next:
    """Next question: the heads that an answer depends on (`ablate`)."""
    return Next(Said("common")("heads_needed", settled(answer.name)), asking(result, "ablate", *options))


def _rows(result: Prediction, say: Said) -> Iterator[Beside]:
    if result.next_sentence is not None and not math.isnan(result.next_sentence.probability):
        judged = Guess(-1, say("pair_does"), result.next_sentence.probability)
        yield Beside((_bars(say("pair_title"), "", [judged]),))
    if result.classes is not None:
        blocks = [_bars("", "class", result.classes.guesses)]
    elif result.spans:
        blocks = [_bars("", "answer", result.spans)]
    elif result.task == "tags":
        blocks = [_tags(result, say)]
    elif result.generated is None:
        blocks = [_bars(_heading(result, each), "token", each.guesses) for each in result.blanks]
    else:
        written = result.generated.tokens
        parts = [written[i : i + _MOST_ROWS] for i in range(0, len(written), _MOST_ROWS)]
        titles = [say("given_those_before"), *["…"] * len(parts)]
        blocks = [_bars(title, "token", part) for title, part in zip(titles, parts, strict=False)]
    yield from (Beside(tuple(blocks[i : i + _ABREAST])) for i in range(0, len(blocks), _ABREAST))


def _heading(result: Prediction, blank: Blank) -> str:
    token = at(result.tokens, blank.position)
    return f"after {token}" if result.task == "next" else token


def _tags(result: Prediction, say: Said) -> Ranking:
    every = [blank.guesses for blank in result.blanks]
    tags = [[settled(fit(each.name, _LONGEST_NAME)) for each in guesses[:2]] for guesses in every]
    seconds = [guesses[1].probability if len(guesses) > 1 else float("nan") for guesses in every]
    chances = [guesses[0].probability for guesses in every]
    said = [f"{each[0]} {likely(chance)}" for each, chance in zip(tags, chances, strict=True)]
    then = [Column("next", [each[1] for each in tags if len(each) > 1], say("next_likeliest"))]
    then += [Column("its_probability", seconds, "probability", likely)]
    return Ranking(
        title="",
        of="token",
        names=numbered(result.tokens, [blank.position for blank in result.blanks], _LONGEST_NAME),
        table=Table(
            Column("tag", [each[0] for each in tags], "tag"),
            Column("probability", chances, "probability", likely),
            *(then if all(len(each) > 1 for each in tags) else ()),
            Column("said", chances, "", likely, told=said),
        ),
        measured="probability",
        marks=(Mark("bar", "own", "", chances),),
        written="said",
        axis=(0.0, 1.0),
    )


def _bars(title: str, of: str, guesses: Sequence[Guess | AnswerSpan]) -> Ranking:
    chances = [each.probability for each in guesses]
    return Ranking(
        title=title,
        of=of,
        names=tuple(settled(fit(each.name, _LONGEST_NAME)) for each in guesses),
        table=Table(Column("probability", chances, "probability", likely)),
        measured="probability",
        marks=(Mark("bar", "own", "", chances),),
        written="probability",
        axis=(0.0, 1.0),
    )


def _records(result: Prediction) -> Iterator[tuple[object, ...]]:
    places: list[tuple[str, int | str, tuple[Guess, ...]]]
    places = [(result.task, blank.position, blank.guesses) for blank in result.blanks]
    if result.generated is not None:
        places += [("written", i, (guess,)) for i, guess in enumerate(result.generated.tokens, start=1)]
    if result.classes is not None:
        places += [("class", "", result.classes.guesses)]
    for place, position, guesses in places:
        for rank, guess in enumerate(guesses, start=1):
            yield place, position, rank, guess.id, guess.name, exact(guess.probability)
    if result.score is not None:
        yield "score", "", "", "", exact(result.score), ""
    for rank, span in enumerate(result.spans, start=1):
        yield "span", f"{span.first}-{span.last}", rank, "", span.name, exact(span.probability)
    if result.next_sentence is not None:
        yield "next_sentence", "", "", "", "", exact(result.next_sentence.probability)
