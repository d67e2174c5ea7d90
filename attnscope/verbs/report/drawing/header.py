"""Draws the parts above and below the panels of a report: heading, text, prediction, small print."""

from collections.abc import Callable, Sequence
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
from attnscope.verbs.report.result import Report

LARGE: Sizes = ((24.0, 21.0, 18.0), (18.0, 16.0, 14.0), (14.0, 12.5, 11.0))
BAR, TRACK = "#4a4f57", "#e9eaec"
_HEADING, _FOOT, _WORD, _TEXT, _NAME = 11.0, 6.5, 7.5, 10.5, 10.5  # points
_HEADING_ROOM = 0.32  # inches, also below
_SIDE = 0.6  # for the label `query` or `key`
_BEFORE, _ANSWER, _BETWEEN, _TITLE_ROW, _LEAST_ANSWER = 0.1, 0.34, 0.06, 0.3, 8.0  # prediction rows
_BASE, _BAR_BOTTOM, _BAR_HEIGHT = 0.15, 0.02, 0.055  # from the bottom of its row
_GAP = 0.3  # between two words
_BOLD = 1.2  # width of bold text over that of the same text set lightly, at most
_MOST_LINES, _FULL_ROW, _WIDEST_NAME = 3, 5, 20  # lines of text; guesses that fill the row; cells of a guess


@dataclass(frozen=True)
class Part:
    """A full-width part of a page: its height in inches, and a function that draws it from a `top`."""

    height: float = 0.0
    draw: Callable[[Sheet, float], None] = lambda page, top: None


def heading(result: Report) -> Part:
    """Part with the heading: model and head, and the verdict at the right; empty on a bare page."""
    if look_now().bare:
        return Part()
    head, verdict = result.head, result.head.certificate.verdict
    words = " · ".join((model_words(head.provenance), head.name, attention_words(head.kind)))
    told = verdict_words(verdict)

    def draw(page: Sheet, top: float) -> None:
        room = page.width - 2 * MARGIN - 1.1 * text_width(told, _HEADING, bold=True)
        for line in shortened(look_now().heading(words), room / _BOLD, _HEADING, 1):
            page.write(MARGIN, top + 0.1, line, _HEADING, "bold", FAINT)
        page.write(page.width - MARGIN, top + 0.1, told, _HEADING, "bold", OUTLINES[verdict], ha="right")

    return Part(_HEADING_ROOM, draw)


def texts(result: Report, width: float, sizes: Sizes = LARGE) -> Part:
    """Part with the text, the query marked; for cross-attention both texts, labelled `key` and `query`.

    Empty on a bare page; keys that are patches or frames are left out.
    """
    head, sides = result.head, list[tuple[str, SetText]]()
    if look_now().bare:
        return Part()
    if head.kind is Kind.CROSS:
        width, sizes = width - _SIDE, sizes[-2:]

        def both(sizes: Sizes) -> list[SetText]:
            keys = set_text(head.key_tokens, None, width, sizes)
            return [keys, set_text(head.query_tokens, result.query, width, sizes)]

        least = min(text.size for text in both(sizes))
        alike = both(tuple(tuple(min(size, least) for size in several) for several in sizes))
        sides = [*zip(("key", "query"), alike, strict=True)][bool(head.key_tokens.stretches) :]
    else:
        sides = [("", set_text(head.query_tokens, result.query, width, sizes))]

    def draw(page: Sheet, top: float) -> None:
        for word, text in sides:
            if word:
                page.write(MARGIN, top + text.base, word, _WORD, "bold", INKS[word])
            page.set(MARGIN + (_SIDE if word else 0), top, text)
            top += text.height

    return Part(sum(text.height for _, text in sides), draw)


@dataclass(frozen=True)
class Answer:
    """Prediction to draw: a title, the likeliest tokens, best first, and a `text`."""

    title: str
    guesses: Sequence[Guess]
    text: str


def answer(result: Report) -> Answer | None:
    """Title, guesses and text of the prediction; None where there is no prediction."""
    made = result.prediction
    if made is None:
        return None
    further = "" if made.next_sentence is None else predictions.said(made)("pair_says")
    if made.generated is not None and result.head.kind is Kind.ENCODER:
        return Answer("the model writes", (), f"“{printable(made.generated.text)}”")
    there = (each for each in made.blanks if each.position == result.query)
    blank = next(there, made.blanks[0] if made.blanks else None)
    if blank is None:
        return Answer("the model says", (), further) if further else None
    if made.generated is not None:
        title = f"after {token_name(result.head.query_tokens, blank.position)} the model writes"
    else:
        place = token_name(made.tokens, blank.position)
        own = {"masked": f"the model fills {place} with", "tags": f"the model tags {place}"}
        title = own.get(made.task, "the model goes on with")
    return Answer(title, blank.guesses, further)


def said(result: Report, width: float) -> Part:
    """Part with the prediction: a row of guesses, and below it the generated text or verdict.

    The title is at the left, or above where there is no room.
    """
    found = answer(result)
    if found is None or look_now().bare:
        return Part()
    indent = text_width(found.title, TITLE, bold=True) + 0.3
    indent = indent if width - indent >= _LEAST_ANSWER else 0.0
    lines = shortened(found.text, width - indent, _TEXT, _MOST_LINES)
    title = 0.0 if indent else _TITLE_ROW
    row = _ANSWER + (_BETWEEN if lines else 0.0) if found.guesses else 0.0

    def draw(page: Sheet, top: float) -> None:
        left = MARGIN + indent
        base = 0.19 if found.guesses else 0.14
        page.write(MARGIN, top + _BEFORE + base, found.title, TITLE, "bold")
        top += _BEFORE + title
        if found.guesses:
            draw_answer(found.guesses, page.axes(left, top, page.width - MARGIN - left, _ANSWER))
        page.paragraph(left, top + row, lines, _TEXT, INK)

    return Part(_BEFORE + title + row + len(lines) * line_height(_TEXT), draw)


def draw_answer(guesses: Sequence[Guess], axes: Axes) -> None:
    """Draw guesses side by side, likeliest first and bold: token, probability, and a bar full at 1."""
    wide = axes.get_window_extent().width / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    pitch = (wide + _GAP) / max(len(guesses), _FULL_ROW)
    bar = pitch - _GAP
    axes.set(xlim=(0, wide), ylim=(0, _ANSWER))
    axes.set_axis_off()
    starts = [i * pitch for i in range(len(guesses))]
    for left, guess in zip(starts, guesses, strict=True):
        likeliest, told = not left, likely(guess.probability)
        style = {"size": _NAME, "weight": "bold" if likeliest else "normal", "parse_math": False}
        room = bar - text_width(f" {told}", _NAME, bold=True)
        cuts = [settled(fit(guess.name, cells)) for cells in range(_WIDEST_NAME, 1, -1)]
        name = next((cut for cut in cuts if text_width(cut, _NAME, bold=True) <= room), cuts[-1])
        axes.text(left, _BASE, name, color=INK, **style)  # type: ignore[arg-type]
        number = {**style, "ha": "right", "color": INK if likeliest else FAINT}
        axes.text(left + bar, _BASE, told, **number)  # type: ignore[arg-type]
    middle = [_BAR_BOTTOM + _BAR_HEIGHT / 2] * len(starts)
    chances = [bar * guess.probability for guess in guesses]
    axes.barh(middle, [bar] * len(starts), _BAR_HEIGHT, starts, color=TRACK)
    axes.barh(middle, chances, _BAR_HEIGHT, starts, color=BAR, label="probability")


def told(result: Report, width: float) -> Part:
    """Part with the answer sentence of the report, as in the terminal; empty without captions."""
    if not look_now().captioned:
        return Part()
    lines = wrapped(sheet_of(result).answer, width, _TEXT)
    return Part(
        _BEFORE + len(lines) * line_height(_TEXT),
        lambda page, top: page.paragraph(MARGIN, top + _BEFORE, lines, _TEXT, INK),
    )


def foot(result: Report, width: float) -> Part:
    """Part with the small print: certificate, map settings, model and source; empty without captions."""
    if not look_now().captioned:
        return Part()
    head = result.head
    hatched = [] if head.allowed.all() else ["hatched: masked"]
    paragraphs = (
        [proof_words(head.certificate), *hatched, *feature_words(head)],
        [special_words(head.special_mass), *view_words(result.weights)],
        maps.said(result.projection).lines("settings"),
        [source_words(head.provenance)],
    )
    joined = (" · ".join(filter(None, phrases)) for phrases in paragraphs)
    lines = [line for paragraph in joined if paragraph for line in wrapped(paragraph, width, _FOOT)]
    return Part(len(lines) * line_height(_FOOT), lambda page, top: page.paragraph(MARGIN, top, lines, _FOOT))
