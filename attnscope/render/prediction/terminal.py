"""What a model predicts, as lines of a terminal: words with their probabilities as numbers and bars."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, bar, line
from attnscope.render.kit.labels import left, settled
from attnscope.render.kit.numbers import short, weight_text
from attnscope.render.kit.palette import BAR
from attnscope.render.kit.words.header import model_words, quoted
from attnscope.results import Blank, Generated, Guess, Prediction
from attnscope.tokens import printable

_MOST_LABEL, _LONGEST_BAR = 24, 40
_TITLES = {"masked": "masked words", "next": "next token", "generated": "text of its own"}


def prediction_header(result: Prediction) -> RenderableType:
    """What is predicted by which model, what pins its weights down, and the text."""
    origin = result.provenance
    source = f"revision {origin.source}" if origin.revision else origin.source
    parts = (source, origin.architecture, origin.device, origin.dtype, "untouched run", *result.notes)
    reading = " · ".join(parts)
    return Group(
        Text.assemble((header_title(result), "bold"), f" · {model_words(origin)}"),
        Text(printable(reading), style="dim"),
        *([quoted(result.tokens)] if result.tokens.texts else []),
    )


def header_title(result: Prediction) -> str:
    if result.task == "masked" and not result.blanks:
        return "next sentence"
    if result.generated is not None and not result.generated.written:
        return "a text that it was given"
    return _TITLES[result.task]


def prediction(result: Prediction, width: int) -> RenderableType:
    """The likeliest words of every blank, the written text, and the verdict on a pair, in `width` cells."""
    parts: list[RenderableType] = []
    if result.next_sentence is not None:
        parts.append(_verdict(result))
    if result.generated is not None:
        parts += _generated(result.generated, width)
    else:
        for blank in result.blanks:
            parts += [_title(result, blank), *_guesses(blank.guesses, width)]
    return Group(*parts)


def verdict_words(result: Prediction) -> str:
    """The verdict on a pair in words; empty where there is none."""
    if result.next_sentence is None:
        return ""
    does = "comes after the first" if result.next_sentence.order else "follows from the first"
    return f"the second text {does} with probability {weight_text(result.next_sentence.probability, 3)}"


def _verdict(result: Prediction) -> Text:
    return Text(verdict_words(result))


def _title(result: Prediction, blank: Blank) -> Text:
    name = settled(result.tokens.names[blank.position])
    place = "after " if result.task == "next" else ""
    return line((place, DIM), (f"{blank.position} {name}", HEADING))


def _guesses(guesses: Sequence[Guess], width: int) -> list[Text]:
    """One line per guess; a full bar is probability 1."""
    label = min(max((cell_len(settled(guess.text)) for guess in guesses), default=0), _MOST_LABEL)
    room = min(max(width - label - 10, 4), _LONGEST_BAR)
    return [
        line(
            f"  {left(settled(guess.text), label)}  {weight_text(guess.probability, 3):>4} ",
            (bar(guess.probability, room), BAR),
        )
        for guess in guesses
    ]


def _generated(generated: Generated, width: int) -> list[RenderableType]:
    if not generated.tokens:
        return [Text("nothing: the model ends at once", style="dim")]
    parts: list[RenderableType] = [Text(printable(generated.text), style="bold")]
    parts.append(Text("probability of each token, given the ones before it:", style="dim"))
    parts += _guesses(generated.tokens, width)
    if generated.cache_error is not None:
        error = short(generated.cache_error)
        parts.append(
            Text(f"as it was written, with a cache, no probability differs by more than {error}", style="dim")
        )
    if not generated.finished:
        parts.append(Text("cut off: the model had not come to an end", style="dim"))
    return parts
