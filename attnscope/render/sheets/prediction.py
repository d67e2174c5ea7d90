"""What a model answers, run untouched: words for blanks, a written text, a verdict on a pair, classes."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from attnscope.printable import printable
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, likely, number, significant
from attnscope.render.kit.words.command import asking, label
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.said import at, begun, in_sentence, numbered, text
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.results import AnswerSpan, Blank, Generated, Guess, Kind, NextSentence, Prediction, Provenance
from attnscope.tokens import Tokens

_LONGEST_NAME = 24  # cells of a token
_LONGEST_TEXT = 60  # cells of a written text in the answer
_MOST_TOLD = 4  # places in the answer
_SURE, _LEADS = 0.5, 2.0  # a model is sure from so much on; it leans from so many times the next on
_MOST_ROWS, _ABREAST = 24, 3  # tokens of a written text in one block; blocks side by side
_MARKS = {"##": "## is joined to what stands before it", "␣": "␣ is a blank", "<0x": "<0x..> is a byte"}
_TITLES = {
    "masked": "masked words",
    "next": "next token",
    "generated": "text of its own",
    "class": "classes",
    "tags": "a tag for each token",
    "span": "an answer within the text",
    "score": "a score",
}


def sheet(result: Prediction, focus: Focus = WHOLE) -> Sheet:
    places = [each.guesses for each in (*result.blanks, result.classes) if each is not None]
    likeliest = [f"“{guesses[0].name}”" for guesses in places if guesses]
    return Sheet(
        title=_title(result),
        setting=model_words(result.provenance),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=tuple(_rows(result)),
        table=lambda: Table.of("place position rank id token probability", _facts(result)),
        texts=tuple(_texts(result)),
        notes=tuple(_notes(result)),
        untouched="the model as it is, nothing changed"
        if result.generated is not None and not result.generated.written
        else "the model's own answer, nothing changed",
        next=_next(result),
        summary=(f"likeliest {fit(', '.join(likeliest), 40)}" if likeliest else "",),
    )


def _title(result: Prediction) -> str:
    if result.task == "masked" and not result.blanks:
        return "next sentence"
    if result.generated is not None and not result.generated.written:
        return "a text that it was given"
    return _TITLES[result.task]


def _texts(result: Prediction) -> Iterator[str]:
    yield from text(result.tokens)
    if result.generated is not None and result.generated.text:
        yield f"→ “{result.generated.text}”"


def _answer(result: Prediction) -> str:
    told = [] if result.next_sentence is None else [pair_words(result.next_sentence)]
    if result.generated is not None:
        told.append(_written_words(result.generated))
    elif result.classes is not None and result.classes.guesses:
        told.append(_choice_words(result.classes.guesses, "classes", result.classes.exclusive))
    elif result.score is not None:
        of = "this pair" if len(result.tokens.texts) > 1 else "this text"
        told.append(f"the model gives {of} the score {number(result.score)}")
    elif result.spans:
        told.append(_choice_words(result.spans, "spans"))
    elif result.task == "tags" and result.blanks:
        told.append(_tags_words(result))
    elif len(result.blanks) == 1 and result.blanks[0].guesses:
        told.append(_blank_words(result, result.blanks[0]))
    elif result.blanks:
        told.append(_blanks_words(result))
    return " ".join(f"{each[:1].upper()}{each[1:]}." for each in told)


def pair_words(judged: NextSentence) -> str:
    """`the second text follows from the first with 12.5 %`."""
    if math.isnan(judged.probability):
        return f"the model gives no probability that the second text {_does(judged)}"
    return f"the second text {_does(judged)} with {likely(judged.probability)}"


def _does(judged: NextSentence) -> str:
    return "comes after the first" if judged.order else "follows from the first"


def _choice_words(guesses: Sequence[Guess | AnswerSpan], of: str, exclusive: bool = True) -> str:
    best, *others = guesses
    beside = f" (next: {_named(others[0])})" if others else ""
    if best.probability >= _SURE:
        return f"the model answers “{best.name}”: {likely(best.probability)}{beside}"
    if not exclusive:
        return f"no class is likelier than not: {_guess(best)} comes nearest"
    if not others or not best.probability < _LEADS * others[0].probability:
        return f"the model leans to “{best.name}”: {likely(best.probability)}{beside}"
    return (
        f"the model is unsure: {_guess(best)}, just ahead of {_guess(others[0])}. The "
        f"{len(guesses)} likeliest {of} share {_together(guesses)}"
    )


def _together(guesses: Sequence[Guess | AnswerSpan]) -> str:
    return likely(min(1.0, sum(each.probability for each in guesses)))


def _blank_words(result: Prediction, blank: Blank) -> str:
    best, *others = blank.guesses
    where = in_sentence(result.tokens, blank.position)
    after = result.task == "next"
    beside = f" (next: {_named(others[0])})" if others else ""
    if best.probability >= _SURE:
        does = f"after {where} the model goes on with “{best.name}”" if after else ""
        does = does or f"the model answers “{best.name}” at {where}"
        return f"{does}: {likely(best.probability)}{beside}"
    if not others or not best.probability < _LEADS * others[0].probability:
        leans = f"after {where} the model" if after else "the model"
        at = "" if after else f" at {where}"
        return f"{leans} leans to “{best.name}”{at}: {likely(best.probability)}{beside}"
    unsure = f"after {where} the model is unsure" if after else f"the model is unsure of {where}"
    of = "tokens" if after else "words"
    return (
        f"{unsure}: {_guess(best)}, just ahead of {_guess(others[0])}. The {len(blank.guesses)} likeliest "
        f"{of} share {_together(blank.guesses)}"
    )


def _blanks_words(result: Prediction) -> str:
    every = [f"{_guess(each.guesses[0])} {_place(result, each)}" for each in result.blanks if each.guesses]
    more = f" and {len(every) - _MOST_TOLD} more" if len(every) > _MOST_TOLD else ""
    return f"the likeliest of each: {', '.join(every[:_MOST_TOLD])}{more}"


def _common(result: Prediction) -> tuple[list[Blank], list[Blank]]:
    ids = [blank.guesses[0].id for blank in result.blanks]
    common, times = max(Counter(ids).items(), key=lambda each: each[1], default=(-1, 0))
    most = common if times > len(ids) / 2 and len(ids) > 1 else -1
    apart = [blank for blank in result.blanks if blank.guesses[0].id != most]
    apart.sort(key=lambda blank: -blank.guesses[0].probability)
    return [blank for blank in result.blanks if blank.guesses[0].id == most], apart


def _tags_words(result: Prediction) -> str:
    mine, apart = _common(result)
    told = [_tag_words(result, each) for each in apart]
    more = f" and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    first = f"{', '.join(told[:_MOST_TOLD])}{more}"
    if not mine:
        return first if len(told) == 1 else f"the {len(told)} tokens have no common tag: {first}"
    least = min(mine, key=lambda blank: blank.guesses[0].probability).guesses
    many = f"all {len(mine)} tokens" if not apart else f"{len(mine)} of {len(result.blanks)} tokens"
    rest = f"{many} are tagged “{least[0].name}”, the least sure of these with {likely(least[0].probability)}"
    return f"{first}. {begun(rest)}" if apart else rest


def _tag_words(result: Prediction, blank: Blank) -> str:
    best = blank.guesses[0]
    return (
        f"{in_sentence(result.tokens, blank.position)} is tagged “{best.name}” ({likely(best.probability)})"
    )


def _guess(guess: Guess | AnswerSpan) -> str:
    return f"“{guess.name}” {likely(guess.probability)}"


def _named(guess: Guess | AnswerSpan) -> str:
    return f"“{guess.name}”, {likely(guess.probability)}"


def _place(result: Prediction, blank: Blank) -> str:
    return f"{'after' if result.task == 'next' else 'at'} {in_sentence(result.tokens, blank.position)}"


def _written_words(generated: Generated) -> str:
    if not generated.tokens:
        return "the model writes nothing: it ends at once"
    least = min(generated.tokens, key=lambda each: each.probability)
    text = settled(fit(printable(generated.text), _LONGEST_TEXT))
    count = counted(len(generated.tokens), "token")
    if not generated.written:
        whole = math.prod(each.probability for each in generated.tokens)
        told = f"the answer “{text}”, which was given, has a probability of {likely(whole)}"
        if len(generated.tokens) == 1:
            return told
        return f"{told}: its {count} multiplied, of which the least likely is {_guess(least)}"
    least_likely = f"the least likely is “{least.name}”: {likely(least.probability)}"
    return f"the model wrote “{text}”: of its {count} {least_likely}"


def _next(result: Prediction) -> Next | None:
    if result.generated is not None:
        if not result.generated.written or not result.generated.tokens:
            return None
        read = AsRead(result.tokens, Kind.CROSS, result.provenance)
        return Next("which heads does this text need?", asking(read, "ablate"))
    if result.spans:
        return heads_needed(result.tokens, result.task, result.provenance, result.spans[0])
    if result.task == "tags":
        return _next_of_tags(result)
    places = [each.guesses for each in (*result.blanks, result.classes) if each is not None]
    if len(places) != 1 or not places[0]:
        return None
    return heads_needed(result.tokens, result.task, result.provenance, places[0][0])


def _next_of_tags(result: Prediction) -> Next | None:
    _, apart = _common(result)
    if not (first := (*apart, *result.blanks)[:1]):
        return None
    options = "--from", label(result.tokens, first[0].position)
    return heads_needed(result.tokens, result.task, result.provenance, first[0].guesses[0], *options)


def heads_needed(
    tokens: Tokens, task: str, provenance: Provenance, answer: Guess | AnswerSpan, *options: str
) -> Next:
    """Which heads an answer to one text hangs on."""
    read = AsRead(tokens, Kind.DECODER if task == "next" else Kind.ENCODER, provenance)
    return Next(f"which heads does “{settled(answer.name)}” need?", asking(read, "ablate", *options))


class AsRead:
    """What was read, as a command tells it that asks for heads."""

    def __init__(self, tokens: Tokens, kind: Kind, provenance: Provenance) -> None:
        self.kind, self.provenance, self.tower = kind, provenance, ""
        self.key_tokens = tokens
        self.query_tokens = replace(tokens, written="greedily") if kind is Kind.CROSS else tokens


def _rows(result: Prediction) -> Iterator[Beside]:
    if result.next_sentence is not None and not math.isnan(result.next_sentence.probability):
        judged = Guess(-1, _does(result.next_sentence), result.next_sentence.probability)
        yield Beside((_bars("the second text", "", [judged]),))
    if result.classes is not None:
        blocks = [_bars("", "class", result.classes.guesses)]
    elif result.spans:
        blocks = [_bars("", "answer", result.spans)]
    elif result.task == "tags":
        blocks = [_tags(result)]
    elif result.generated is None:
        blocks = [_bars(_heading(result, each), "token", each.guesses) for each in result.blanks]
    else:
        written = result.generated.tokens
        parts = [written[i : i + _MOST_ROWS] for i in range(0, len(written), _MOST_ROWS)]
        titles = ["each token, given those before", *["…"] * len(parts)]
        blocks = [_bars(title, "token", part) for title, part in zip(titles, parts, strict=False)]
    yield from (Beside(tuple(blocks[i : i + _ABREAST])) for i in range(0, len(blocks), _ABREAST))


def _heading(result: Prediction, blank: Blank) -> str:
    token = at(result.tokens, blank.position)
    return f"after {token}" if result.task == "next" else token


def _tags(result: Prediction) -> Ranking:
    every = [blank.guesses for blank in result.blanks]
    tags = [[settled(fit(each.name, _LONGEST_NAME)) for each in guesses[:2]] for guesses in every]
    seconds = [guesses[1].probability if len(guesses) > 1 else float("nan") for guesses in every]
    chances = [guesses[0].probability for guesses in every]
    said = [f"{each[0]} {likely(chance)}" for each, chance in zip(tags, chances, strict=True)]
    then = [Column("next", [each[1] for each in tags if len(each) > 1], "next likeliest")]
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


def _notes(result: Prediction) -> Iterator[str]:
    yield from result.notes
    guesses = [guess for blank in result.blanks for guess in blank.guesses]
    named = [each.name for each in (guesses if result.generated is None else result.generated.tokens)]
    if told := [meaning for mark, meaning in _MARKS.items() if any(mark in name for name in named)]:
        yield ", ".join(told)
    if result.classes is not None and not result.classes.exclusive:
        yield "each class is judged by itself: the probabilities need not add up to 100 %"
    if result.score is not None:
        yield "the number as the model gives it: it says something only beside that of other texts (--texts)"
    if any(not span.text for span in result.spans):
        yield f"no answer: both ends at {in_sentence(result.tokens, 0)}, which some models are trained to say"
    if result.generated is not None and result.generated.cache_error is not None:
        error = significant(result.generated.cache_error)
        yield f"as it was written, with a cache, no probability differs by more than {error}"
    if result.generated is not None and not result.generated.finished:
        yield "cut off: the model had not come to an end"


def _facts(result: Prediction) -> Iterator[tuple[object, ...]]:
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
