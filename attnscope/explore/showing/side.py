"""The panes beside the largest one: the grid of heads, the keys of the query."""

from dataclasses import replace
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.explore import questions as ask
from attnscope.explore.asking import Failed
from attnscope.explore.drawing import grid as heads
from attnscope.explore.drawing.shown import column_of, cursor, key_at, row_of
from attnscope.explore.drawing.surface import Surface
from attnscope.explore.questions import SHARP, explained
from attnscope.explore.showing import BAD, WAITS, Find, Part, head, in_pane
from attnscope.explore.state import State
from attnscope.render.kit.cells import DIM, settled
from attnscope.render.kit.stage import NO_KEY
from attnscope.render.kit.words.header import WITHOUT_SPECIAL, head_of
from attnscope.render.sheet.blocks import KeyBars
from attnscope.render.sheets import Focus, sheet_of
from attnscope.render.sheets.terms import keys_of, said, shown_key
from attnscope.render.terminal.ranking import folded
from attnscope.render.terminal.sheet import laid
from attnscope.results import HeadTerms, Overview

_FEWEST_KEYS = 3  # that are worth a table


def heads_measured(state: State, find: Find) -> heads.Heads:
    """What is known of the heads of the grid."""
    return heads.measured(overviews(state, find), state.measure)


def overviews(state: State, find: Find) -> tuple[Overview, ...]:
    """What is known of the grid, layer by layer."""
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
    """How the score of the query and the chosen key comes about, and beside it those of other keys."""
    terms, title = find(ask.parts_of(state)), f"score by parts · {state.name}"
    if not isinstance(terms, HeadTerms):
        reason = WAITS if terms is None else Text(terms.why, DIM)
        return Part((state.place, terms), lambda w, h: reason, title)
    query, key, shown = state.query, state.key, head(state, find)
    if key is None and shown is not None and state.words:  # the strongest word is another than the token
        column = cursor(shown, state)[1]
        key = None if column is None else key_at(shown, column)
    return Part((terms, query, key), lambda w, h: parts_within(terms, query, key, w, h), title)


def parts_within(terms: HeadTerms, query: int, key: int | None, width: int, height: int) -> RenderableType:
    """The sum in so many lines, with as many keys as have room: without any where hardly one has."""
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
    """The lines that these take at most: all keys, the sum, headings, remarks, a frame."""
    return len(state.scene.keys) + 9
