"""Builds the largest pane (the matrix or another view) and the prediction pane."""

from dataclasses import replace
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from attnscope.explore import matrix, sentence
from attnscope.explore import questions as ask
from attnscope.explore.asking import Failed
from attnscope.explore.matrix import Shown, cursor, prepared, row_of
from attnscope.explore.questions import Beside
from attnscope.explore.scatter import picture, scatter, size
from attnscope.explore.showing import BAD, WAITS, Find, Part, in_pane
from attnscope.explore.state import Head, State, View
from attnscope.explore.surface import Cells, Line, Surface
from attnscope.render.kit.cells import DIM, fit, settled
from attnscope.render.kit.numbers import chance, give_or_take, signed
from attnscope.render.kit.words import STYLES, head_of, verdict_words, weights_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.table import Column, Table
from attnscope.render.sheets import WHOLE, Focus, sheet_of
from attnscope.render.terminal.ranking import folded
from attnscope.render.terminal.sheet import body, laid
from attnscope.results import PictureAttention, Prediction, Result, Special
from attnscope.results.claims.effect import Asks, Choice, Without
from attnscope.verbs.ablate.result import Ablation
from attnscope.verbs.find.result import Finding

_TALL = 30  # lines of a pane in which a picture stands above its words, and not beside them


def of_main(state: State, find: Find, surface: Surface) -> Part:
    """Content of the largest pane."""
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
    """A result's sheet without its header, because the explorer shows model and text already."""
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
        beside = Grid.grid(padding=(0, 2, 0, 0))
        beside.add_column(width=wide, no_wrap=True)
        beside.add_column(width=width - wide - 2)
        beside.add_row(seen, of_sheet(answer, width - wide - 2))
        return beside

    return Part(answer, drawn, f"{title} · query {named}", state.scene.medium)


def found(finding: Finding) -> list[Head]:
    """Layer and head of every found head, strongest evidence first."""
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


_LONGEST, _FINEST = 12, 2  # cells of an answer; decimals of a per cent
_ROOM = 26  # cells with room for whole headings, and for a decimal more
_BOTH = 21  # cells of both probabilities: neither ever stands alone
_NO_MASK = "the text has no [MASK]"


def of_prediction(state: State, find: Find) -> Part:
    """Prediction pane: the model's prediction, or its change without the removed heads."""
    if state.removed:
        return _of_absence(
            state, find(ask.OfWithout.of(state, state.removed)), find(ask.OfAbsence.of(state, state.removed))
        )
    predicted = find(ask.OfPrediction.of(state))
    if not isinstance(predicted, Prediction):
        line = WAITS if predicted is None else Text(_why(state, predicted), DIM)
        return Part(("prediction", predicted), lambda w, h: line, "predicts")
    every = [in_pane(each) for each in sheet_of(predicted).every]
    return Part(predicted, lambda w, h: Group(*laid(every, w)), "predicts")


def asks_nothing(state: State, find: Find) -> bool:
    """True where the prediction failed, because this text has nothing to predict."""
    return not state.removed and isinstance(find(ask.OfPrediction.of(state)), Failed)


def answers(state: State, find: Find) -> bool:
    """True where the prediction pane has or may get content."""
    predicted = find(ask.OfPrediction.of(state))
    return not isinstance(predicted, Failed) or bool(state.scene.mask) or bool(state.removed)


def _why(state: State, failed: Failed) -> str:
    return f"no blank to fill: _ puts {state.scene.mask} here" if _NO_MASK in failed.why else failed.why


def _of_absence(state: State, without: Any, measured: Any) -> Part:
    count = len(state.removed)
    title = f"predicts · {_names(state) if count == 1 else f'{count} heads'} out"
    key = (without, measured, state.removed)
    if without is None:
        return Part(key, lambda w, h: Text(f"running without {_names(state)} …", DIM), title)
    if isinstance(without, Failed):
        return Part(key, lambda w, h: Text(without.why, BAD), title)

    def drawn(width: int, height: int) -> RenderableType:
        told = _measured(measured)
        beside = [] if told is None else folded(Text(told, DIM), width)
        return Group(*laid([in_pane(_before_and_after(state, without, width))], width), *beside)

    return Part(key, drawn, title)


def _before_and_after(state: State, without: Without, width: int) -> Ranking:
    if len(without.places) == 1:
        (place,) = without.places
        shown, chosen, instead = list(place.choices), frozenset({place.likeliest}), [""] * len(place.choices)
    else:
        shown = [place.choices[place.meant] for place in without.places]
        others = [place.likeliest != place.meant for place in without.places]
        chosen = frozenset(number for number, other in enumerate(others) if other)
        instead = [
            _name(place.choices[place.likeliest]) if other else ""
            for place, other in zip(without.places, others, strict=True)
        ]
    before, after = zip(*(_told_apart(each, width >= _ROOM) for each in shown), strict=True)
    return Ranking(
        title=_at(state, without),
        of="token" if width >= _ROOM else "",
        names=tuple(settled(fit(_name(each), max(width - _BOTH, 1))) for each in shown),
        table=Table(
            Column("before", [each.before for each in shown], "before", told=before),
            Column(
                "without", [each.after for each in shown], "without" if width >= _ROOM else "out", told=after
            ),
            Column("instead", instead, "instead"),
        ),
        chosen=chosen,
    )


def _at(state: State, without: Without) -> str:
    if without.position is None:
        return ""
    after = "after " if without.asks is Asks.NEXT else ""
    return f"{after}{settled(state.scene.queries.named(without.position))}"


def _told_apart(choice: Choice, finely: bool) -> tuple[str, str]:
    usual, finer = (
        (chance(choice.before, decimals), chance(choice.after, decimals)) for decimals in (1, _FINEST)
    )
    return finer if finely and usual[0] == usual[1] and finer[0] != finer[1] else usual


def _name(choice: Choice) -> str:
    return settled(fit(choice.text, _LONGEST))


def _measured(absence: Any) -> str | None:
    if not isinstance(absence, Ablation):
        return None
    one = absence.heads[0] if absence.group is None else absence.group
    effect = absence.heads[0] if absence.group is None else absence.group.effect
    others = "" if one.typical is None else f"; other heads {give_or_take(one.typical, None)}"
    doubt = "" if absence.verdict.proved else f" · {verdict_words(absence.verdict)}"
    return f"“{settled(absence.answer.text)}” {signed(effect.change, None)} nats{others}{doubt}"


def _names(state: State) -> str:
    names = [f"L{layer} H{head}" for layer, head in state.removed]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
