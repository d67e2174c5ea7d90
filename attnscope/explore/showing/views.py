"""What the largest pane shows: the matrix, or the view that was asked for in its place."""

from dataclasses import replace
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnscope.explore import questions as ask
from attnscope.explore.asking import Failed
from attnscope.explore.drawing import matrix, sentence
from attnscope.explore.drawing.scatter import picture, scatter, size
from attnscope.explore.drawing.shown import Shown, cursor, prepared, row_of
from attnscope.explore.drawing.surface import Cells, Line, Surface
from attnscope.explore.questions import Beside
from attnscope.explore.showing import BAD, Find, Part, in_pane
from attnscope.explore.state import Head, State, View
from attnscope.render.kit.cells import DIM, settled
from attnscope.render.kit.words.certificate import STYLES, verdict_words
from attnscope.render.kit.words.header import head_of, weights_words
from attnscope.render.sheets import WHOLE, Focus, sheet_of
from attnscope.render.terminal.sheet import body
from attnscope.results import PictureAttention, Result, Special
from attnscope.verbs.find.result import Finding

_TALL = 30  # lines of a pane in which a picture stands above its words, and not beside them


def of_main(state: State, find: Find, surface: Surface) -> Part:
    """The largest pane."""
    answer = find(ask.view_of(state))
    title = f"{state.view} · {state.name}"
    if isinstance(answer, Failed):
        return Part((state.view, answer.why), lambda w, h: Text(answer.why, BAD), title)
    if answer is None:
        return Part((state.view, state.name, "waits"), lambda w, h: Text(_waiting(state), DIM), title)
    match state.view:
        case View.MATRIX if not state.scene.medium:
            return of_matrix(state, answer, surface)
        case View.MATRIX:
            return _medium(state, answer, title, surface)
        case View.TERMS:
            focus = Focus(queries=(state.query,), key=state.key)
            return Part((answer, focus), lambda w, h: of_sheet(answer, w, focus), title)
        case View.MAP:
            row = row_of(answer.shown, state.query)
            return Part((answer, row), lambda w, h: scatter(answer, -1 if row is None else row, w, h), title)
        case View.FOUND:
            return Part(
                answer,
                lambda w, h: of_sheet(answer, w),
                str(state.view),
                "Enter opens the first head, then the next",
            )
        case View.WITHOUT:
            return Part(answer, lambda w, h: of_sheet(answer, w), str(state.view), "x puts a head back")
    return _beside(state, answer, surface)


def of_sheet(result: Result, width: int, focus: Focus = WHOLE) -> RenderableType:
    """What stands under the header of its sheet: model and text are known here."""
    sheet = sheet_of(result, focus)
    return body(replace(sheet, blocks=tuple(map(in_pane, sheet.blocks))), width)


def of_matrix(state: State, shown: Shown, surface: Surface) -> Part:
    of = prepared(shown)
    row, column = cursor(shown, state)

    def laid(width: int, height: int) -> matrix.Laid:
        return matrix.lay(of, row or 0, column or 0, width, height, not surface.shades)

    def drawn(width: int, height: int) -> RenderableType:
        there = laid(width, height)
        cells = matrix.matrix(of, row, column, there, surface)
        notes = [Text(words, DIM) for words in weights_words(shown)]
        room = height - there.above - len(there.rows) * there.lines
        fits = room > sum(max(-(-note.cell_len // max(width, 1)), 1) for note in notes)
        return Cells([*cells.lines, Line(), *(Line((note.plain, DIM)) for note in notes)]) if fits else cells

    def part(width: int, height: int) -> str:
        shown, told = matrix.window_words(of.panel, laid(width, height)), of.shades.told
        whole = " · ".join(part for part in (shown, told) if part)
        return whole if cell_len(whole) <= width - 4 else shown

    looking = ["by words"] if state.words else []
    looking += [] if state.special is Special.SHOW else [f"special tokens: {state.special}"]
    title = " · ".join([f"weights · {state.name}", *looking])
    verdict = head_of(shown).certificate.verdict
    if verdict != "certified":
        title += f" · {verdict_words(verdict)}"
    return Part((shown, row, column), drawn, title, part)


def _medium(state: State, answer: Any, title: str, surface: Surface) -> Part:
    named = settled(state.scene.queries.named(state.query))

    def drawn(width: int, height: int) -> RenderableType:
        shown = of_sheet(answer, width)
        if not isinstance(answer, PictureAttention) or surface.shades or answer.picture.pixels is None:
            return shown
        if height >= _TALL:
            return Group(picture(answer.picture, answer.weights, width, height // 2), shown)
        seen = picture(answer.picture, answer.weights, width // 2 - 2, height)
        wide = size(answer.picture, width // 2 - 2, height)[0]
        beside = Table.grid(padding=(0, 2, 0, 0))
        beside.add_column(width=wide, no_wrap=True)
        beside.add_column(width=width - wide - 2)
        beside.add_row(seen, of_sheet(answer, width - wide - 2))
        return beside

    return Part(answer, drawn, f"{title} · query {named}", state.scene.medium)


def found(finding: Finding) -> list[Head]:
    """Layer and head of all that were found, in the order of the finding: the strongest evidence first."""
    return [(finding.layers[i], finding.heads[j]) for i, j in finding.ranking]


def _beside(state: State, answer: Beside, surface: Surface) -> Part:
    row = row_of(answer.other, state.query)
    marks = surface.shades

    def drawn(width: int, height: int) -> RenderableType:
        tokens = answer.other.key_tokens
        laid = sentence.set_sentence(tokens, row or 0, 3, width, 3, marks)
        shares = prepared(answer.other).shares
        row_shares = None if row is None else shares[row]
        other = head_of(answer.other)
        heading = Text(f"{other.name} in B: {verdict_words(other.verdict)}", STYLES[other.verdict])
        second = sentence.sentence("B", laid, row_shares, row, None, surface)
        if answer.difference is not None:
            return Group(second, heading, Text(), of_sheet(answer.difference, width))
        return Group(
            second, heading, Text(f"no difference: {answer.why}", BAD), Text(), of_sheet(answer.other, width)
        )

    return Part((answer, row), drawn, f"{state.view} · {state.name}")


def _waiting(state: State) -> str:
    doing = {
        View.MAP: "drawing the map … (p or Esc stops it)",
        View.FOUND: "reading the text and its shuffled texts …",
        View.WITHOUT: "running the model without these heads, and without others beside them …",
        View.BESIDE: "reading the second sentence …",
    }
    return doing.get(state.view, "reading …")
