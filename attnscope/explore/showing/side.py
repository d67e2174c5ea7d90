"""The panes beside the largest one: the grid of heads, the keys of the query, what the model predicts."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.explore import questions as ask
from attnscope.explore.asking import Failed
from attnscope.explore.drawing import grid as heads
from attnscope.explore.drawing.shown import column_of, row_of
from attnscope.explore.drawing.surface import Surface
from attnscope.explore.showing import BAD, WAITS, Find, Part, head
from attnscope.explore.state import State
from attnscope.render.focus import Focus
from attnscope.render.kit.cells import DIM
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import chance, give_or_take, signed
from attnscope.render.kit.stage import NO_KEY
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.weights import WITHOUT_SPECIAL, head_of
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.terms import keys_of, recipe, shown_key, worked_sum
from attnscope.render.terminal.ranking import folded, lines_of_ranking
from attnscope.render.terminal.sheet import laid
from attnscope.results import HeadTerms, Overview, Prediction

_FEWEST_KEYS = 3  # that are worth a table


def heads_measured(state: State, find: Find) -> heads.Heads:
    """What is known of the heads of the grid."""
    answers = (find(question) for question in ask.grid_of(state))
    return heads.measured(tuple(answer for answer in answers if isinstance(answer, Overview)), state.measure)


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
    key = (state.place, state.measure, every)
    return Part(key, lambda w, h: heads.ranking(state, every, keys, w, h - 5), state.measure)


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
    return Part((shown, row, key), lambda w, h: Group(*laid(sheet.blocks, w), *notes), "strongest keys")


def of_parts(state: State, find: Find) -> Part:
    """How the score of the query and the chosen key comes about, and beside it those of other keys."""
    terms, title = find(ask.parts_of(state)), f"score by parts · {state.name}"
    if not isinstance(terms, HeadTerms):
        reason = WAITS if terms is None else Text(terms.why, DIM)
        return Part((state.place, terms), lambda w, h: reason, title)
    query, key = state.query, state.key
    return Part((terms, query, key), lambda w, h: parts_within(terms, query, key, w, h), title)


def parts_within(terms: HeadTerms, query: int, key: int | None, width: int, height: int) -> RenderableType:
    """The sum in so many lines, with as many keys as have room: without any where hardly one has."""
    shown = shown_key(terms, query, key)
    if shown is None:
        return Text(NO_KEY, DIM)
    summed = folded(Text(worked_sum(terms, query, shown)), width)
    beside = len(lines_of_ranking(keys_of(terms, query, shown, 1), width)) - 1
    room = height - len(summed) - 1 - beside
    if room < _FEWEST_KEYS:
        return Group(*summed, Text(recipe(terms), DIM))
    return Group(*summed, Text(), *lines_of_ranking(keys_of(terms, query, shown, room), width))


def parts_lines(state: State) -> int:
    """The lines that these take at most: all keys, the sum, headings, remarks, a frame."""
    return len(state.scene.keys) + 9


def of_prediction(state: State, find: Find) -> Part:
    """What the model makes of the text, and what becomes of that without the heads that were taken out."""
    predicted = find(ask.prediction_of(state))
    gone = (
        find(ask.OfAbsence(state.scene.text, state.scene.tower.pattern, state.removed))
        if state.removed
        else None
    )
    title = "predicts" if not state.removed else f"predicts · {_out(state)}"
    if predicted is None:
        return Part(("prediction", None), lambda w, h: WAITS, title)

    def drawn(width: int, height: int) -> RenderableType:
        first = _absence(state, gone) if state.removed else []
        if not isinstance(predicted, Prediction):
            return Group(*first, Text(predicted.why, DIM))
        return Group(*first, *laid(sheet_of(predicted).every, width))

    return Part((predicted, gone, state.removed), drawn, title)


def _absence(state: State, gone: Any) -> list[Text]:
    if gone is None:
        return [Text(f"without {_names(state)}: running …", DIM)]
    if isinstance(gone, Failed):
        return [Text(gone.why, BAD)]
    effect = gone.group.effect if gone.group is not None else gone.heads[0]
    others = gone.group.chance if gone.group is not None else gone.heads[0].chance
    line = Text.assemble(
        (f"“{settled(gone.answer.text)}” ", "bold"),
        f"{chance(effect.before)} → ",
        (chance(effect.after), "bold"),
        f" ({signed(effect.difference)} nats",
        "" if others is None else f"; others {give_or_take(others)}",
        f") {verdict_words(gone.verdict)}" if gone.verdict != "certified" else ")",
    )
    return [line]


def _out(state: State) -> str:
    """`L3 H11 out`, `2 heads out`."""
    count = len(state.removed)
    return f"{_names(state)} out" if count == 1 else f"{count} heads out"


def _names(state: State) -> str:
    names = [f"L{layer} H{head}" for layer, head in state.removed]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
