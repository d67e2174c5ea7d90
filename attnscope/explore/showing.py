"""What every pane shows of a state and of the answers that are known: a key, a drawing, a title.

The key tells when nothing has changed. What is not known yet says so; what went wrong stands where its
answer would.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.explore import questions as ask
from attnscope.explore.asking import Failed
from attnscope.explore.beside import Beside
from attnscope.explore.drawing import grid as heads
from attnscope.explore.drawing import matrix, sentence
from attnscope.explore.drawing.cells import Cells, Line
from attnscope.explore.drawing.header import header, proof
from attnscope.explore.drawing.picture import picture
from attnscope.explore.drawing.scatter import scatter
from attnscope.explore.drawing.shown import Shown, column_of, cursor, prepared, row_of
from attnscope.explore.drawing.surface import Surface
from attnscope.explore.state import Head, State, View
from attnscope.render.ablation.terminal import ablation
from attnscope.render.ablation.words import chance_text, signed_text
from attnscope.render.difference.terminal import difference
from attnscope.render.finding.terminal import finding
from attnscope.render.head.bars import query_bars
from attnscope.render.kit.cells import DIM
from attnscope.render.kit.labels import settled
from attnscope.render.kit.words.certificate import STYLES, verdict_words
from attnscope.render.kit.words.weights import WITHOUT_SPECIAL, head_of, weights_words
from attnscope.render.media.picture_terminal import picture_patches
from attnscope.render.media.sound_terminal import sound_frames
from attnscope.render.prediction.terminal import prediction
from attnscope.render.screen import screen
from attnscope.render.terms.terminal import query_terms
from attnscope.results import Finding, Overview, PictureAttention, Prediction, Special

Find = Callable[[ask.Question], Any]
_WAITS = Text("reading …", DIM)
_SIDE = 16  # cells of the words before a sentence
BAD = "bold red"


@dataclass(frozen=True)
class Part:
    """What a pane shows."""

    key: Any
    drawing: Callable[[int, int], RenderableType]
    title: str = ""
    subtitle: str | Callable[[int, int], str] = ""


def head(state: State, find: Find) -> Shown | None:
    """The head as it is looked at, None where it is not known."""
    found = find(ask.head_of(state))
    return None if found is None or isinstance(found, Failed) else found


def layers(state: State, find: Find) -> dict[int, Overview]:
    """What is known of the grid."""
    every = ((layer, find(ask.layer_of(state, layer))) for layer in state.scene.tower.layers)
    return {layer: found for layer, found in every if isinstance(found, Overview)}


def of_header(state: State, find: Find) -> Part:
    shown = head(state, find)
    if shown is None:
        found = find(ask.head_of(state))
        why = f" · {found.why}" if isinstance(found, Failed) else " · reading …"
        return Part(
            (state.place, why),
            lambda w, h: Text(f"{state.name}{why}", BAD if isinstance(found, Failed) else ""),
        )
    row, column = cursor(shown, state)
    return Part((shown, state.query, column), lambda w, h: header(state, shown, row, column))


def of_proof(state: State, find: Find, full: bool) -> Part | None:
    """The certificate where it is more than a word, in all its lines; None where there is nothing to say."""
    shown = head(state, find)
    told = None if shown is None else proof(head_of(shown).certificate, full)
    return None if told is None else Part((shown, full), lambda w, h: told)


def of_sentence(state: State, find: Find, surface: Surface, backwards: bool) -> Part:
    """The keys by the row of the query, or the queries by the column of what they look at."""
    shown = head(state, find)
    marks = surface.shades
    if shown is None:
        tokens, at = state.scene.queries, state.query

        def plain(width: int, height: int) -> RenderableType:
            laid = sentence.set_sentence(tokens, at, _SIDE, width, height, False)
            return sentence.sentence("", laid, None, at, None, surface)

        return Part((state.scene, state.query), plain)
    row, column = cursor(shown, state)
    key = (shown, state.query, state.key, backwards)
    return Part(key, lambda w, h: _sentence(state, shown, row, column, surface, backwards, marks, w, h))


def set_text(
    state: State, shown: Shown, backwards: bool, marks: bool, width: int, height: int
) -> sentence.Set:
    """Where which token stands: to draw it, and to know what was clicked."""
    row, column = cursor(shown, state)
    tokens = shown.query_tokens if backwards else shown.key_tokens
    at = _asked(state, shown) if backwards else (row if state.scene.one_side else column)
    return sentence.set_sentence(tokens, at or 0, _SIDE, width, height, marks)


def lines_of(state: State, find: Find, surface: Surface, width: int, height: int) -> int:
    """How many lines of the screen a sentence gets: one, of a long one more where there is room."""
    shown, most = head(state, find), max(height // 16, 1)
    if shown is None:
        return 1
    laid = (set_text(state, shown, each, surface.shades, width, most) for each in (False, True))
    return max(each.lines for each in laid)


def _asked(state: State, shown: Shown) -> int | None:
    """The column of who is looked at: of one side the token itself, else the chosen key."""
    return column_of(shown, state.query) if state.scene.one_side else cursor(shown, state)[1]


def _sentence(
    state: State,
    shown: Shown,
    row: int | None,
    column: int | None,
    surface: Surface,
    backwards: bool,
    marks: bool,
    width: int,
    height: int,
) -> RenderableType:
    laid = set_text(state, shown, backwards, marks, width, height)
    shares = prepared(shown).shares
    if backwards:
        asked = _asked(state, shown)
        own = row if state.scene.one_side else None
        drawn = None if asked is None else [row[asked] for row in shares]
        return sentence.sentence(
            "is looked at by", laid, drawn, own, None if own is not None else row, surface
        )
    drawn = None if row is None else shares[row]
    own = _asked(state, shown) if state.scene.one_side else None
    return sentence.sentence("looks at", laid, drawn, own, column, surface)


def of_grid(state: State, find: Find, surface: Surface) -> Part:
    known = layers(state, find)
    key = (state.place, state.removed, state.measure, tuple(known.values()))
    title = f"heads · {heads.value_words(state, known)}"
    failed = find(ask.layer_of(state, state.layer))
    if isinstance(failed, Failed) and not known:
        return Part((key, failed.why), lambda w, h: Text(failed.why, BAD), title)
    return Part(key, lambda w, h: heads.grid(state, known, w, h, surface), title)


def of_ranking(state: State, find: Find) -> Part:
    known = layers(state, find)
    key = (state.place, state.measure, tuple(known.values()))
    return Part(key, lambda w, h: heads.ranking(state, known, w, h - 5), state.measure)


def of_bars(state: State, find: Find) -> Part:
    """The keys of the query, strongest first."""
    shown = head(state, find)
    if shown is None:
        return Part(("bars", state.place), lambda w, h: _WAITS, "strongest keys")
    row = row_of(shown, state.query)
    if row is None:
        told = Text(f"{settled(head_of(shown).query_tokens.named(state.query))}: {WITHOUT_SPECIAL}", DIM)
        return Part((shown, None), lambda w, h: told, "strongest keys")
    key = None if state.key is None else column_of(shown, state.key)
    return Part((shown, row, key), lambda w, h: query_bars(shown, row, w, key), "strongest keys")


def of_prediction(state: State, find: Find) -> Part:
    """What the model makes of the text, and what becomes of that without the heads that were taken out."""
    found = find(ask.prediction_of(state))
    gone = (
        find(ask.OfAbsence(state.scene.text, state.scene.tower.pattern, state.removed))
        if state.removed
        else None
    )
    title = "predicts" if not state.removed else f"predicts · without {_names(state)}"
    if found is None:
        return Part(("prediction", None), lambda w, h: _WAITS, title)

    def drawn(width: int, height: int) -> RenderableType:
        first = _absence(state, gone) if state.removed else []
        told = prediction(found, width) if isinstance(found, Prediction) else Text(found.why, DIM)
        return Group(*first, told)

    return Part((found, gone, state.removed), drawn, title)


def _absence(state: State, gone: Any) -> list[Text]:
    if gone is None:
        return [Text(f"without {_names(state)}: running …", DIM)]
    if isinstance(gone, Failed):
        return [Text(gone.why, BAD)]
    effect = gone.group.effect if gone.group is not None else gone.heads[0]
    others = gone.group.chance if gone.group is not None else gone.heads[0].chance
    line = Text.assemble(
        (f"“{settled(gone.answer.text)}” ", "bold"),
        f"{chance_text(effect.before)} → ",
        (chance_text(effect.after), "bold"),
        f" ({signed_text(effect.difference)} nats",
        "" if others is None else f"; others ±{others:.3f}",
        f") {verdict_words(gone.verdict)}" if gone.verdict != "certified" else ")",
    )
    return [line]


def _names(state: State) -> str:
    names = [f"L{layer} H{each}" for layer, each in state.removed]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def of_main(state: State, find: Find, surface: Surface) -> Part:
    """The largest pane."""
    found = find(ask.view_of(state))
    title = f"{state.view} · {state.name}"
    if isinstance(found, Failed):
        return Part((state.view, found.why), lambda w, h: Text(found.why, BAD), title)
    if found is None:
        return Part((state.view, state.name, "waits"), lambda w, h: Text(_waiting(state), DIM), title)
    match state.view:
        case View.MATRIX if not state.scene.medium:
            return of_matrix(state, found, surface)
        case View.MATRIX:
            return _medium(state, found, title, surface)
        case View.TERMS:
            key = None if state.key is None else state.key
            query = state.query
            return Part((found, query, key), lambda w, h: query_terms(found, query, key, w), title)
        case View.MAP:
            row = row_of(found.shown, state.query)
            return Part((found, row), lambda w, h: scatter(found, -1 if row is None else row, w, h), title)
        case View.FOUND:
            return Part(
                found,
                lambda w, h: finding(found, w),
                str(state.view),
                "Enter: the farthest above its controls",
            )
        case View.WITHOUT:
            return Part(found, lambda w, h: ablation(found, w), str(state.view), "x puts a head back")
    return _beside(state, found, surface)


def of_matrix(state: State, shown: Shown, surface: Surface) -> Part:
    of = prepared(shown)
    row, column = cursor(shown, state)

    def laid(width: int, height: int) -> matrix.Laid:
        return matrix.lay(of, row or 0, column or 0, width, height, not surface.shades)

    def drawn(width: int, height: int) -> RenderableType:
        there = laid(width, height)
        cells = matrix.matrix(of, row, column, there, surface)
        told = [Text(each, DIM) for each in weights_words(shown)]
        room = height - there.above - len(there.rows)
        fits = room > sum(1 + each.cell_len // max(width, 1) for each in told)
        return Cells([*cells.lines, Line(), *(Line((each.plain, DIM)) for each in told)]) if fits else cells

    def part(width: int, height: int) -> str:
        parts = matrix.window_words(of.panel, laid(width, height)), of.shades.told
        return " · ".join(each for each in parts if each)

    looking = ["by words"] if state.words else []
    looking += [] if state.special is Special.SHOW else [f"special tokens: {state.special}"]
    title = " · ".join([f"weights · {state.name}", *looking])
    verdict = head_of(shown).certificate.verdict
    if verdict != "certified":
        title += f" · {verdict_words(verdict)}"
    return Part((shown, row, column), drawn, title, part)


def _medium(state: State, found: Any, title: str, surface: Surface) -> Part:
    """The picture where there are colours for it, then its patches by weight; or the frames of a sound."""
    named = settled(state.scene.queries.named(state.query))

    def drawn(width: int, height: int) -> RenderableType:
        if not isinstance(found, PictureAttention):
            return sound_frames(found, width)
        patches = picture_patches(found, width)
        if surface.shades or found.picture.pixels is None:
            return patches
        seen = picture(found.picture, found.weights, width, max(height // 2, 4))
        return Group(seen, patches)

    return Part(found, drawn, f"{title} · query {named}", state.scene.medium)


def above_controls(found: Finding) -> list[Head]:
    """Layer and head of all that were found, those first that lie farthest beyond their control texts."""
    beyond = -found.difference if found.smaller_is_better else found.difference
    places = sorted(found.ranking, key=lambda place: (-float(beyond[place]), place))
    return [(found.layers[i], found.heads[j]) for i, j in places]


def _beside(state: State, found: Beside, surface: Surface) -> Part:
    """The second sentence by the same query, then what it gives more, or why the two cannot be compared."""
    row = row_of(found.other, state.query)
    marks = surface.shades

    def drawn(width: int, height: int) -> RenderableType:
        tokens = found.other.key_tokens
        laid = sentence.set_sentence(tokens, row or 0, 3, width, 3, marks)
        shares = prepared(found.other).shares
        row_shares = None if row is None else shares[row]
        other = head_of(found.other)
        told = Text(f"{other.name} in B: {verdict_words(other.verdict)}", STYLES[other.verdict])
        second = sentence.sentence("B", laid, row_shares, row, None, surface)
        if found.difference is not None:
            return Group(second, told, Text(), difference(found.difference, width))
        return Group(
            second, told, Text(f"no difference: {found.why}", BAD), Text(), *screen(found.other, width)[3:]
        )

    return Part((found, row), drawn, f"{state.view} · {state.name}")


def _waiting(state: State) -> str:
    doing = {
        View.MAP: "drawing the map …",
        View.FOUND: "reading the text and its control texts …",
        View.WITHOUT: "running the model without these heads, and without others beside them …",
        View.BESIDE: "reading the second sentence …",
    }
    return doing.get(state.view, "reading …")
