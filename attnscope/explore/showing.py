"""Builds each pane's content from a state and the answers that are known.

Content with an unchanged key is not drawn again. Unknown answers are shown as waiting, failed ones as their
error.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

from attnscope.explore import grid as heads
from attnscope.explore import questions as ask
from attnscope.explore import sentence
from attnscope.explore.asking import Failed
from attnscope.explore.matrix import Shown, column_of, cursor, key_at, prepared, row_of
from attnscope.explore.questions import SHARP, explained
from attnscope.explore.state import State
from attnscope.explore.surface import Surface
from attnscope.render.kit.cells import DIM, settled
from attnscope.render.kit.numbers import weight
from attnscope.render.kit.stage import NO_KEY
from attnscope.render.kit.words import (
    DISTRUST,
    STYLES,
    WITHOUT_SPECIAL,
    certificate_line,
    head_of,
    model_words,
    verdict_words,
)
from attnscope.render.sheet.blocks import Beside, Block, KeyBars, Rows, flat
from attnscope.render.sheets import Focus, sheet_of
from attnscope.render.sheets.terms import keys_of, said, shown_key
from attnscope.render.terminal.ranking import folded
from attnscope.render.terminal.sheet import laid
from attnscope.results import Certificate, HeadTerms, HeadView, HeadWeights, Overview, Verdict

Find = Callable[[ask.Question], Any]
WAITS = Text("reading …", DIM)
BAD = "bold red"
_ELSEWHERE = "o writes a .csv of all"


@dataclass(frozen=True)
class Part:
    """Content of a pane: a drawing, its title, and a key that changes whenever the content does."""

    key: Any
    drawing: Callable[[int, int], RenderableType]
    title: str = ""
    subtitle: str | Callable[[int, int], str] = ""


def head(state: State, find: Find) -> Shown | None:
    """The chosen head's attention, or None where it is unknown or failed."""
    answer = find(ask.head_of(state))
    return None if answer is None or isinstance(answer, Failed) else answer


def in_pane(block: Block | Beside) -> Block | Beside:
    """The block with the explorer's own hint for rows and columns that have no room."""
    if isinstance(block, Beside):
        return Beside(tuple(one for each in block.blocks for one in flat(in_pane(each))))
    return replace(block, unshown="", elsewhere=_ELSEWHERE) if isinstance(block, Rows) else block


FAILED = Style(bold=True, color="white", bgcolor="red", reverse=False)


def header(
    state: State, shown: HeadWeights | HeadView, query: int | None, key: int | None, width: int
) -> Text:
    """Header line of a head: `L2 H1 encoder · 1 I → 9 . .648 · ✓ certified · demo`."""
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
    """The certificate's line; None for a proved head unless `full`."""
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
    """The certificate's pane; None where the certificate needs none."""
    shown = head(state, find)
    line = None if shown is None else proof(head_of(shown).certificate, full)
    return None if line is None else Part((shown, full), lambda w, h: line)


def of_sentence(state: State, find: Find, surface: Surface, backwards: bool) -> Part:
    """The keys shaded by the query's row, or (`backwards`) the queries shaded by the key's column."""
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
    """Layout of the sentence's tokens, to draw them and to find the clicked one."""
    row, column = cursor(shown, state)
    tokens = shown.query_tokens if backwards else shown.key_tokens
    at = _asked(state, shown) if backwards else (row if state.scene.one_side else column)
    return sentence.set_sentence(tokens, at or 0, _SIDE, width, height, marks)


def lines_of(state: State, find: Find, surface: Surface, width: int, height: int) -> tuple[int, int]:
    """Lines that the two sentences get on the screen, at least one each."""
    shown, most = head(state, find), max(height // 16, 1)
    if shown is None:
        return 1, 1
    looks, looked = (set_text(state, shown, way, surface.shades, width, most) for way in (False, True))
    return max(looks.lines, 1), max(looked.lines, 1)


def _asked(state: State, shown: Shown) -> int | None:
    return column_of(shown, state.query) if state.scene.one_side else cursor(shown, state)[1]


_FEWEST_KEYS = 3  # that are worth a table


def heads_measured(state: State, find: Find) -> heads.Heads:
    """Values of the grid's heads that are known so far."""
    return heads.measured(overviews(state, find), state.measure)


def overviews(state: State, find: Find) -> tuple[Overview, ...]:
    """Layer overviews of the grid that are known so far."""
    answers = (find(question) for question in ask.grid_of(state))
    return tuple(answer for answer in answers if isinstance(answer, Overview))


def of_grid(state: State, find: Find, surface: Surface) -> Part:
    every = heads_measured(state, find)
    key = (state.place, state.removed, state.measure, every)
    title = f"heads · {heads.value_words(state, every)}"
    failed = find(ask.layer_of(state, state.layer)[0])
    if isinstance(failed, Failed) and not every:
        return Part((key, failed.why), lambda w, h: Text(failed.why, BAD), title)
    return Part(
        key,
        lambda w, h: heads.grid(state, every, w, h, surface),
        title,
        lambda w, h: heads.part_of(state, w, h),
    )


def of_ranking(state: State, find: Find) -> Part:
    every, keys = heads_measured(state, find), len(state.scene.keys)
    why = explained(overviews(state, find)) if state.measure in SHARP else {}
    key = (state.place, state.measure, every)
    return Part(key, lambda w, h: heads.ranking(state, every, why, keys, w, h), state.measure)


def of_bars(state: State, find: Find) -> Part:
    """The keys of the query, strongest first."""
    shown = head(state, find)
    if shown is None:
        return Part(("bars", state.place), lambda w, h: WAITS, "strongest keys")
    row = row_of(shown, state.query)
    if row is None:
        reason = Text(f"{settled(head_of(shown).query_tokens.named(state.query))}: {WITHOUT_SPECIAL}", DIM)
        return Part((shown, None), lambda w, h: reason, "strongest keys")
    key = None if state.key is None else column_of(shown, state.key)
    sheet = sheet_of(shown, Focus(queries=(row,), key=key))
    notes = [Text(each, DIM) for each in sheet.notes]
    blocks = [_untitled(in_pane(each)) for each in sheet.blocks]
    full = next((each.says for each in sheet.blocks if isinstance(each, KeyBars) and each.names), "")
    title = f"strongest keys of {settled(shown.query_tokens.named(row))}"
    return Part((shown, row, key), lambda w, h: Group(*laid(blocks, w), *notes), title, full)


def _untitled(block: Any) -> Any:
    if not isinstance(block, KeyBars):
        return block
    return replace(block, title="", says="" if block.names else block.says)


def of_parts(state: State, find: Find) -> Part:
    """The terms of the score of the query and the chosen key, beside those of other keys."""
    terms, title = find(ask.OfParts.of(state, *state.place)), f"score by parts · {state.name}"
    if not isinstance(terms, HeadTerms):
        reason = WAITS if terms is None else Text(terms.why, DIM)
        return Part((state.place, terms), lambda w, h: reason, title)
    query, key, shown = state.query, state.key, head(state, find)
    if key is None and shown is not None and state.words:  # the strongest word is another than the token
        column = cursor(shown, state)[1]
        key = None if column is None else key_at(shown, column)
    return Part((terms, query, key), lambda w, h: parts_within(terms, query, key, w, h), title)


def parts_within(terms: HeadTerms, query: int, key: int | None, width: int, height: int) -> RenderableType:
    """The score's sum, then its terms for as many keys as fit, or for none where hardly one fits."""
    shown = shown_key(terms, query, key)
    if shown is None:
        return Text(NO_KEY, DIM)
    say = said(terms, query, shown)
    summed = folded(Text(say("sum")), width)
    beside = len(laid([in_pane(keys_of(terms, query, shown, 1))], width)) - 1
    room = height - len(summed) - 1 - beside
    if room < _FEWEST_KEYS:
        return Group(*summed, Text(say("recipe"), DIM))
    return Group(*summed, Text(), *laid([in_pane(keys_of(terms, query, shown, room))], width))


def parts_lines(state: State) -> int:
    """Most lines that the score's parts take: all keys, the sum, headings, notes and frame."""
    return len(state.scene.keys) + 9
