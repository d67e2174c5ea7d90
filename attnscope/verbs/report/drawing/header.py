"""What stands above and below the panels of a report: heading, text, prediction, and the small print."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from attnscope.printable import printable
from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.numbers import likely
from attnscope.render.kit.page import MARGIN, TITLE, Sheet
from attnscope.render.kit.palette import FAINT, INK, INKS, OUTLINES
from attnscope.render.kit.typesetting import (
    SetText,
    Sizes,
    line_height,
    set_text,
    shortened,
    text_width,
    wrapped,
)
from attnscope.render.kit.words import (
    attention_words,
    feature_words,
    model_words,
    proof_words,
    source_words,
    special_words,
    verdict_words,
    view_words,
)
from attnscope.render.look import look_now
from attnscope.render.sheets import prediction as predictions
from attnscope.render.sheets import projection as maps
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.projection import token_name
from attnscope.results import Guess, Kind
from attnscope.tokens import Tokens
from attnscope.verbs.report.result import Report

ANSWER_HEIGHT = 0.34  # inches
BAR, TRACK = "#4a4f57", "#e9eaec"
_SIZE, _WIDEST_NAME = 10.5, 20
_GAP = 0.3  # inches between two words
_FULL_ROW = 5  # words that fill the row
_BASE, _BAR_BOTTOM, _BAR_HEIGHT = 0.15, 0.02, 0.055  # inches from the bottom


def draw_answer(guesses: Sequence[Guess], axes: Axes, zoom: float = 1.0) -> None:
    """Side by side, the likeliest first and bold: a word, its probability, and a bar that is full at 1.

    The Axes are `zoom` times `ANSWER_HEIGHT` high, and everything on them is that much larger.
    """
    box, dpi = axes.get_window_extent(), axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    pitch = (box.width / dpi + _GAP) / max(len(guesses), _FULL_ROW)
    bar = pitch - _GAP
    axes.set(xlim=(0, box.width / dpi), ylim=(0, ANSWER_HEIGHT))
    axes.set_axis_off()
    for i, guess in enumerate(guesses):
        left, boldness = i * pitch, "normal" if i else "bold"
        style = {"size": zoom * _SIZE, "weight": boldness, "parse_math": False}
        told = likely(guess.probability)
        name = _cut(guess.name, bar - text_width(f" {told}", zoom * _SIZE, bold=True), zoom * _SIZE)
        axes.text(left, _BASE, name, color=INK, **style)  # type: ignore[arg-type]
        number = {**style, "ha": "right", "color": FAINT if i else INK}
        axes.text(left + bar, _BASE, told, **number)  # type: ignore[arg-type]
    starts, middle = [i * pitch for i in range(len(guesses))], _BAR_BOTTOM + _BAR_HEIGHT / 2
    chances = [bar * guess.probability for guess in guesses]
    axes.barh([middle] * len(starts), [bar] * len(starts), _BAR_HEIGHT, starts, color=TRACK)
    axes.barh([middle] * len(starts), chances, _BAR_HEIGHT, starts, color=BAR, label="probability")


def _cut(name: str, room: float, size: float) -> str:
    cuts = [settled(fit(name, cells)) for cells in range(_WIDEST_NAME, 1, -1)]
    return next((cut for cut in cuts if text_width(cut, size, bold=True) <= room), cuts[-1])


LARGE: Sizes = ((24.0, 21.0, 18.0), (18.0, 16.0, 14.0), (14.0, 12.5, 11.0))
SMALL: Sizes = ((13.0, 12.0), (12.0, 11.0))
_HEADING_ROOM = 0.32
_HEADING, _FOOT, _WORD, _TEXT = 11.0, 6.5, 7.5, 10.5
_BOLD = 1.2  # width of bold text over that of the same text set lightly, at most
_SIDE = 0.6  # inches for the word of a side
_BEFORE_ANSWER, _BETWEEN, _TITLE_ROW, _LEAST_ANSWER = 0.1, 0.06, 0.3, 8.0  # inches
_MOST_ANSWER_LINES = 3


def heading_room() -> float:
    """Inches from the margin to what stands below the heading."""
    return 0.0 if look_now().bare else _HEADING_ROOM


def draw_heading(page: Sheet, result: Report) -> None:
    """Which head of which model, and at the right the verdict."""
    if look_now().bare:
        return
    head = result.head
    words = " · ".join((model_words(head.provenance), head.name, attention_words(head.kind)))
    verdict = head.certificate.verdict
    base, ink = MARGIN + 0.1, OUTLINES[verdict]
    told = verdict_words(verdict)
    room = page.width - 2 * MARGIN - 1.1 * text_width(told, _HEADING, bold=True)
    for heading in shortened(look_now().heading(words), room / _BOLD, _HEADING, 1):
        page.write(MARGIN, base, heading, _HEADING, "bold", FAINT)
    page.write(page.width - MARGIN, base, told, _HEADING, "bold", ink, ha="right")


@dataclass(frozen=True)
class Texts:
    """The text with the query marked; of cross-attention both texts, each with the word of its side."""

    sides: tuple[tuple[str, SetText], ...]

    @property
    def height(self) -> float:
        return sum(text.height for _, text in self.sides)

    def draw(self, page: Sheet, top: float) -> None:
        for word, text in self.sides:
            if word:
                page.write(MARGIN, top + text.base, word, _WORD, "bold", INKS[word])
            page.set(MARGIN + (_SIDE if word else 0), top, text)
            top += text.height


def texts(result: Report, width: float, sizes: Sizes = LARGE) -> Texts:
    """The texts set in `width` inches; none on a bare page, and none of keys that are patches or frames."""
    head = result.head
    if look_now().bare:
        return Texts(())
    if head.kind is not Kind.CROSS:
        return Texts((("", set_text(head.query_tokens, result.query, width, sizes)),))
    width, sizes = width - _SIDE, sizes[-2:]
    keys, queries = _both(head.key_tokens, head.query_tokens, result.query, width, sizes)
    least = min(keys.size, queries.size)
    alike = tuple(tuple(min(size, least) for size in several) for several in sizes)
    keys, queries = _both(head.key_tokens, head.query_tokens, result.query, width, alike)
    return Texts((*(() if head.key_tokens.stretches else (("key", keys),)), ("query", queries)))


def _both(keys: Tokens, queries: Tokens, query: int, width: float, sizes: Sizes) -> tuple[SetText, SetText]:
    return set_text(keys, None, width, sizes), set_text(queries, query, width, sizes)


@dataclass(frozen=True)
class Answer:
    """What the model says to the text: likeliest tokens, best first, or a `text`."""

    title: str
    guesses: Sequence[Guess]
    text: str


def answer(result: Report) -> Answer | None:
    """What the page says of the prediction; None where there is none."""
    made = result.prediction
    if made is None:
        return None
    further = "" if made.next_sentence is None else predictions.said(made)("pair_says")
    if made.generated is not None and result.head.kind is Kind.ENCODER:
        return Answer("the model writes", (), f"“{printable(made.generated.text)}”")
    blank = next((each for each in made.blanks if each.position == result.query), None)
    if blank is None and made.blanks:
        blank = made.blanks[0]
    if blank is None:
        return Answer("the model says", (), further) if further else None
    if made.generated is not None:
        title = f"after {token_name(result.head.query_tokens, blank.position)} the model writes"
    else:
        place = token_name(made.tokens, blank.position)
        own = {"masked": f"the model fills {place} with", "tags": f"the model tags {place}"}
        title = own.get(made.task, "the model goes on with")
    return Answer(title, blank.guesses, further)


@dataclass(frozen=True)
class Said:
    """The prediction in one row, and under it what the model says in whole words.

    The title stands `indent` inches before it, or above it where that would leave the words no room (0).
    """

    answer: Answer
    indent: float
    lines: tuple[str, ...]
    zoom: float

    @property
    def height(self) -> float:
        rows = ANSWER_HEIGHT if self.answer.guesses else 0.0
        rows += 0.0 if self.indent else _TITLE_ROW
        between = _BETWEEN if self.answer.guesses and self.lines else 0.0
        return self.zoom * (_BEFORE_ANSWER + rows + between + len(self.lines) * line_height(_TEXT))

    def draw(self, page: Sheet, top: float) -> None:
        top += self.zoom * _BEFORE_ANSWER
        left = MARGIN + self.indent
        base = 0.19 if self.answer.guesses else 0.14
        page.write(MARGIN, top + self.zoom * base, self.answer.title, self.zoom * TITLE, "bold")
        top += 0.0 if self.indent else self.zoom * _TITLE_ROW
        if self.answer.guesses:
            axes = page.axes(left, top, page.width - MARGIN - left, self.zoom * ANSWER_HEIGHT)
            draw_answer(self.answer.guesses, axes, self.zoom)
            top += self.zoom * (ANSWER_HEIGHT + _BETWEEN)
        page.paragraph(left, top, list(self.lines), self.zoom * _TEXT, INK)


def said(result: Report, width: float, zoom: float = 1.0) -> Said | None:
    """The prediction for a page that has `width` inches for it; None where there is none."""
    found = answer(result)
    if found is None or look_now().bare:
        return None
    indent = text_width(found.title, zoom * TITLE, bold=True) + 0.3
    indent = indent if width - indent >= zoom * _LEAST_ANSWER else 0.0
    lines = shortened(found.text, width - indent, zoom * _TEXT, _MOST_ANSWER_LINES)
    return Said(found, indent, tuple(lines), zoom)


def told(result: Report, width: float) -> list[str]:
    """The answer, as every other medium opens with it."""
    return wrapped(sheet_of(result).answer, width, _TEXT) if look_now().captioned else []


def told_height(lines: list[str]) -> float:
    return _BEFORE_ANSWER + len(lines) * line_height(_TEXT) if lines else 0.0


def draw_told(page: Sheet, lines: list[str], top: float) -> None:
    page.paragraph(MARGIN, top + _BEFORE_ANSWER, lines, _TEXT, INK)


def foot(result: Report, width: float) -> list[str]:
    """The small print: what was proved, how the map was made, what the numbers come from."""
    if not look_now().captioned:
        return []
    head = result.head
    words = (special_words(head.special_mass), *view_words(result.weights))
    hatched = [] if head.allowed.all() else ["hatched: masked"]
    paragraphs = (
        " · ".join([proof_words(head.certificate), *hatched, *feature_words(head)]),
        " · ".join(phrase for phrase in words if phrase),
        " · ".join(maps.said(result.projection).lines("settings")),
        source_words(head.provenance),
    )
    return [line for paragraph in paragraphs if paragraph for line in wrapped(paragraph, width, _FOOT)]


def foot_height(lines: list[str]) -> float:
    return len(lines) * line_height(_FOOT)


def draw_foot(page: Sheet, lines: list[str]) -> None:
    """At the lower edge of the page."""
    page.paragraph(MARGIN, page.height - 0.7 * MARGIN - foot_height(lines), lines, _FOOT)
