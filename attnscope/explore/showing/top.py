"""The lines over the panes: the head and its verdict, the certificate, the sentence in both directions."""

from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from attnscope.explore import questions as ask
from attnscope.explore.asking import Failed
from attnscope.explore.drawing import sentence
from attnscope.explore.drawing.shown import Shown, column_of, cursor, prepared
from attnscope.explore.drawing.surface import Surface
from attnscope.explore.showing import BAD, Find, Part, head
from attnscope.explore.state import State
from attnscope.render.kit.cells import settled
from attnscope.render.kit.numbers import weight
from attnscope.render.kit.words.certificate import DISTRUST, STYLES, certificate_line, verdict_words
from attnscope.render.kit.words.header import head_of, model_words
from attnscope.results import Certificate, HeadView, HeadWeights, Verdict

FAILED = Style(bold=True, color="white", bgcolor="red", reverse=False)


def header(
    state: State, shown: HeadWeights | HeadView, query: int | None, key: int | None, width: int
) -> Text:
    """`L2 H1 encoder · 1 I → 9 . .648 · ✓ certified · demo`, the model where it has room."""
    head = head_of(shown)
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(head.name, Style(bold=True, reverse=True))
    if len(state.scene.towers) > 1:
        line.append(f" {state.scene.tower.name}")
    name = head.query_tokens.named(state.query) if query is None else shown.query_tokens.named(query)
    line.append(f" · {settled(name)}")
    if query is not None and key is not None:
        number = weight(float(shown.weights[query, key]), 3) if shown.allowed[query, key] else "masked"
        line.append(f" → {settled(shown.key_tokens.named(key))} ").append(number, Style(bold=True))
    line.append(" · ")
    verdict = head.certificate.verdict
    line.append(verdict_words(verdict), FAILED if verdict is Verdict.FAILED else STYLES[verdict])
    model = f" · {model_words(head.provenance)}"
    return line.append(model) if line.cell_len + len(model) <= width else line


def proof(certificate: Certificate, full: bool = False) -> Text | None:
    """What the verdict rests on: of a certified head only where it is asked for; a failure fills its line."""
    if certificate.verdict.proved and not full:
        return None
    line = certificate_line(certificate, full)
    if certificate.verdict is Verdict.FAILED:
        return Text(f" {line.plain} · {DISTRUST} ", FAILED)
    return line


_SIDE = 16  # cells of the words before a sentence


def of_header(state: State, find: Find) -> Part:
    shown = head(state, find)
    if shown is None:
        answer = find(ask.head_of(state))
        why = f" · {answer.why}" if isinstance(answer, Failed) else " · reading …"
        return Part(
            (state.place, why),
            lambda w, h: Text(f"{state.name}{why}", BAD if isinstance(answer, Failed) else ""),
        )
    row, column = cursor(shown, state)
    return Part((shown, state.query, column), lambda w, h: header(state, shown, row, column, w))


def of_proof(state: State, find: Find, full: bool) -> Part | None:
    """The certificate where it is more than a word, in all its lines; None where there is nothing to say."""
    shown = head(state, find)
    line = None if shown is None else proof(head_of(shown).certificate, full)
    return None if line is None else Part((shown, full), lambda w, h: line)


def of_sentence(state: State, find: Find, surface: Surface, backwards: bool) -> Part:
    """The keys by the row of the query, or the queries by the column of what they look at."""
    shown = head(state, find)
    if shown is None:
        tokens, at = state.scene.queries, state.query

        def plain(width: int, height: int) -> RenderableType:
            laid = sentence.set_sentence(tokens, at, _SIDE, width, height, False)
            return sentence.sentence("", laid, None, at, None, surface)

        return Part((state.scene, state.query), plain)
    row, column = cursor(shown, state)
    asked, one_side = _asked(state, shown), state.scene.one_side
    if backwards:
        title, own, other = "is looked at by", row if one_side else None, None if one_side else row
    else:
        title, own, other = "looks at", asked if one_side else None, column

    def drawn(width: int, height: int) -> RenderableType:
        laid = set_text(state, shown, backwards, surface.shades, width, height)
        shares = prepared(shown).shares
        if backwards:
            by = None if asked is None else [each[asked] for each in shares]
        else:
            by = None if row is None else shares[row]
        return sentence.sentence(title, laid, by, own, other, surface)

    return Part((shown, state.query, state.key, backwards), drawn)


def set_text(
    state: State, shown: Shown, backwards: bool, marks: bool, width: int, height: int
) -> sentence.Set:
    """Where which token stands: to draw it, and to know what was clicked."""
    row, column = cursor(shown, state)
    tokens = shown.query_tokens if backwards else shown.key_tokens
    at = _asked(state, shown) if backwards else (row if state.scene.one_side else column)
    return sentence.set_sentence(tokens, at or 0, _SIDE, width, height, marks)


def lines_of(state: State, find: Find, surface: Surface, width: int, height: int) -> tuple[int, int]:
    """How many lines of the screen each sentence gets: one, of a long one more where there is room."""
    shown, most = head(state, find), max(height // 16, 1)
    if shown is None:
        return 1, 1
    looks, looked = (set_text(state, shown, way, surface.shades, width, most) for way in (False, True))
    return max(looks.lines, 1), max(looked.lines, 1)


def _asked(state: State, shown: Shown) -> int | None:
    return column_of(shown, state.query) if state.scene.one_side else cursor(shown, state)[1]
