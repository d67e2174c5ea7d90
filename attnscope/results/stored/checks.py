"""What the types of a result do not say: whether its parts fit together. `Damaged` where they do not."""

from collections.abc import Iterable
from functools import singledispatch
from typing import Any

import numpy as np

from attnscope.results.claims.ablation import Ablation
from attnscope.results.claims.composition import Composition
from attnscope.results.claims.corpus import Corpus, CorpusDifference
from attnscope.results.claims.difference import Difference
from attnscope.results.claims.finding import Finding
from attnscope.results.claims.flow import Flow
from attnscope.results.claims.relations import Dependencies
from attnscope.results.claims.thumbnails import Thumbnails
from attnscope.results.comparison import Comparison, Side
from attnscope.results.dimensions import Dimensions
from attnscope.results.heads import HeadAttention, HeadScores, Overview
from attnscope.results.long import LongHead
from attnscope.results.media import (
    Gaze,
    Picture,
    PictureAttention,
    PictureHeads,
    Sound,
    SoundAttention,
    SoundHeads,
)
from attnscope.results.prediction import Prediction
from attnscope.results.projection import Projection
from attnscope.results.report import Report
from attnscope.results.senses import Senses
from attnscope.results.stored.strict import Damaged
from attnscope.results.view import HeadView
from attnscope.results.worked import Step
from attnscope.tokens import Frames, Patches, Token, Tokens


def _fits(right: bool | np.bool_, wrong: str) -> None:
    if not right:
        raise Damaged(wrong)


def _within(position: int | None, size: int) -> bool:
    return position is None or 0 <= position < size


@singledispatch
def check(found: Any) -> None:
    """Raises `Damaged` where the parts of an object do not fit together."""


@check.register
def _(found: Tokens) -> None:
    _fits(len(found.positions) == len(found), "'positions' are not as many as the tokens")
    inside = all(_lies_within(each, found.texts) for each in found.items)
    _fits(inside, "'tokens' have a place outside of their text")


def _lies_within(token: Token, texts: tuple[str, ...]) -> bool:
    """Whether the span of a token lies in its text, as far as that is there."""
    if token.part < 0 or token.span is None:
        return token.part >= 0
    start, end = token.span
    return 0 <= start <= end and (token.part >= len(texts) or end <= len(texts[token.part]))


@check.register
def _(found: Patches | Frames) -> None:
    many = not isinstance(found, Patches) or len(found.positions) == found.count
    _fits(found.count >= 0 and many, "'stretches' do not fit together")


@check.register
def _(found: HeadAttention) -> None:
    _fits(found.q.shape[1] > 0, "'q' has no dimensions")


@check.register
def _(found: HeadView) -> None:
    for groups, rows, tokens in (
        (found.query_groups, found.query_tokens, found.head.query_tokens),
        (found.key_groups, found.key_tokens, found.head.key_tokens),
    ):
        inside = all(group and all(_within(each, len(tokens)) for each in group) for group in groups)
        _fits(inside, "'row_groups' and 'column_groups' hold tokens that the head does not have")
        _fits(
            len(groups) == len(rows), "'row_groups' and 'column_groups' are not as many as rows and columns"
        )


@check.register
def _(found: Dimensions) -> None:
    for name, position, size in (
        ("query", found.query, len(found.head.q)),
        ("key", found.key, len(found.head.k)),
    ):
        _fits(_within(position, size), f"'{name}' is no position of {size}")
    dimensions = found.head.q.shape[1]
    for places in () if found.rotation is None else (found.rotation.first, found.rotation.second):
        inside = not places.size or (places.min() >= 0 and places.max() < dimensions)
        _fits(inside, f"'rotation' names a dimension that is none of {dimensions}")


@check.register
def _(found: LongHead) -> None:
    axes = zip((found.query_tokens, found.key_tokens), found.first, found.size, found.steps, strict=True)
    for side, first, size, step in axes:
        inside = first >= 0 and size >= 1 and step >= 1 and first + size <= len(side)
        _fits(inside, "'first', 'size' and 'steps' are no window of the text")
    cells = tuple(-(-size // step) for size, step in zip(found.size, found.steps, strict=True))
    _fits(found.mean.shape == cells, "'mean' is not of as many rows and columns as the window has blocks")
    together = (found.query is None) == (found.row is None) and _within(found.query, len(found.query_tokens))
    _fits(together, "'query' and 'row' do not belong together")
    top, keys = found.top_keys, len(found.key_tokens)
    _fits(not top.size or -1 <= top.min() <= top.max() < keys, "'top_keys' lead to a token that is not there")


@check.register
def _(found: Overview) -> None:
    _fits(bool(found.scores), "'measures' are empty")
    shape = found.main.values.shape
    _one_for_each(found.certificates, shape, "certificates")
    _fits(found.strongest.shape[:2] == shape, "'strongest' is not one link for each of the layers and heads")
    _fits(all(each.values.shape == shape for each in found.scores.values()), "'measures' are of other heads")
    most = found.strongest.max(axis=(0, 1), initial=-1)
    right = found.strongest.min(initial=0) >= -1
    right = right and most[0] < len(found.query_tokens) and most[1] < len(found.key_tokens)
    _fits(right, "a strongest link leads to a token that is not there")


@check.register
def _(found: HeadScores) -> None:
    classes = found.description.classes
    known = found.values[found.values == found.values]  # without NaN
    right = not classes or all(value == int(value) and 0 <= value < len(classes) for value in known.flat)
    _fits(right, "'values' has a class that there is not")


def _one_for_each(rows: tuple[tuple[Any, ...], ...], shape: tuple[int, ...], name: str) -> None:
    right = [len(row) for row in rows] == [shape[1]] * shape[0] and bool(rows) and bool(shape[1])
    _fits(right, f"'{name}' are not one for each of the layers and heads")


@check.register
def _(found: Projection) -> None:
    points = len(found.query_tokens), len(found.key_tokens)
    _fits(found.distance.shape == points, "'distance' is not between as many points as there are tokens")
    _fits(
        (found.view is None) == (found.view_scaled is None), "'view' and 'view_scaled' do not belong together"
    )


@check.register
def _(found: Prediction) -> None:
    if found.generated is None:  # else they are tokens of the text that was written
        _in_tokens((blank.position for blank in found.blanks), len(found.tokens), "blanks")


def _in_tokens(positions: Iterable[int | None], size: int, name: str) -> None:
    _fits(all(_within(each, size) for each in positions), f"'{name}' has a position that is no token's")


@check.register
def _(found: Report) -> None:
    tokens = found.head.query_tokens
    _fits(_within(found.query, len(tokens)), f"'query' is {found.query}, which is no token's position")
    _fits(len(found.contributions) == len(found.head.key_tokens), "'contributions' are not one for each key")
    inside = found.view is None or found.view.query_row(found.query) is not None
    _fits(inside, "'view' leaves the query out")
    if found.prediction is not None:
        _in_tokens((blank.position for blank in found.prediction.blanks), len(tokens), "blanks")


@check.register
def _(found: Side) -> None:
    inside = _within(found.position, len(found.head.query_tokens))
    _fits(inside, f"'position' is {found.position}, which is no token's")
    _fits(
        found.view is None or found.view.query_row(found.position) is not None, "'view' leaves the word out"
    )


@check.register
def _(found: Comparison) -> None:
    for side in found.sides:
        _one_for_each(side.certificates, (len(found.layers), len(found.heads)), "certificates")
    ways = {(side.view.words, side.view.special) if side.view else None for side in found.sides}
    _fits(len(ways) == 1, "its two sides are looked at in two ways")
    a, b = found.a.head, found.b.head
    compared = (a.layer, b.layer) in found.layers and a.head in found.heads
    _fits(compared, "the heads that are shown are none of those that are compared")


@check.register
def _(found: Picture) -> None:
    same = found.pixels is None or found.pixels.shape[:2] == found.told_size
    _fits(same, "'pixels' has not the picture's height and width")


@check.register
def _(found: Sound) -> None:
    same = found.samples is None or len(found.samples) == found.told_count
    _fits(found.rate >= 1 and found.told_count >= 0 and same, "'sound' does not say how long it is")


@check.register
def _(found: PictureAttention | SoundAttention) -> None:
    _looks(found.gaze, found.head.query_tokens, found.head.key_tokens, found.weights.shape)


@check.register
def _(found: PictureHeads | SoundHeads) -> None:
    shape = found.weights.shape[2:]
    _looks(found.gaze, found.overview.query_tokens, found.overview.key_tokens, shape)


def _looks(gaze: Gaze, queries: Tokens, keys: Tokens, shape: tuple[int, ...]) -> None:
    _fits(gaze.keys.shape == shape, "'keys' are not one for each patch or frame")
    inside = not gaze.keys.size or -1 <= gaze.keys.min() <= gaze.keys.max() < len(keys)
    _fits(inside, "'keys' has a position that is no key's")
    _fits(_within(gaze.query, len(queries)), f"'query' is {gaze.query}, which is no token's position")
    cell = gaze.cell
    inside = cell is None or (len(cell) == len(shape) and all(map(_within, cell, shape)))
    _fits(inside, "'query_cell' lies outside of the picture or the sound")


@check.register
def _(found: Ablation) -> None:
    _in_tokens([found.answer.position], len(found.tokens), "answer")
    for position, tokens in zip(found.edge or (), (found.query_tokens, found.key_tokens), strict=False):
        _in_tokens([position], len(tokens), "edge")
    places = [(each.layer, each.head) for each in found.heads]
    once = len(set(places)) == len(places) and all(min(place) >= 0 for place in places)
    _fits(once, "'heads' has a layer and head twice, or none")


@check.register
def _(found: Composition) -> None:
    _fits(len(found.through) == len(found.largest), "'largest' is not one for each of 'through'")
    _fits(len(found.layers) == len(found.counts), "'counts' are not one for each of 'layers'")
    heads = dict(zip(found.layers, found.counts, strict=True))
    for layer, head in found.pairs.reshape(-1, 2).tolist():
        inside = 0 <= head < heads.get(layer, 0)
        _fits(inside, f"'pairs' name a head L{layer} H{head} that is not there")


@check.register
def _(found: Corpus | CorpusDifference) -> None:
    _fits(bool(found.measures), "'measures' are none")
    _fits(not found.shown or found.shown in found.measures, "'shown' is none of the measures")


@check.register
def _(found: Difference) -> None:
    _fits(_within(found.shown, len(found.pairs)), "'shown' is none of the pairs")
    sizes = [(len(run.query_tokens), len(run.key_tokens)) for run in (found.a, found.b)]
    _fits(sizes[0] == sizes[1] == found.before.shape, "'a' and 'b' have not as many tokens")


@check.register
def _(found: Finding) -> None:
    sought = found.sought
    _in_tokens([sought.query], len(found.query_tokens), "sought")
    _in_tokens([sought.key], len(found.key_tokens), "sought")
    one = sum(each is not None for each in (sought.key, sought.pattern, sought.like)) == 1
    _fits(one, "'sought' is not one thing")
    _one_for_each(found.verdicts, found.weights.shape, "verdicts")


@check.register
def _(found: Flow) -> None:
    _fits(_within(found.query, len(found.tokens)), "'query' is no token's position")
    for group in () if found.ablated is None else found.ablated.groups:
        _fits(bool(group), "'groups' has one of no positions")
        _in_tokens(group, len(found.tokens), "groups")


@check.register
def _(found: Dependencies) -> None:
    names = [relation.name for relation in found.relations]
    _fits(bool(names), "'relations' are none")
    _fits(not found.shown or found.shown in names, "'shown' is none of the relations")
    _fits(len(found.offsets) == len(found.tried_offsets), "'offsets' are not one for each of 'tried_offsets'")


@check.register
def _(found: Thumbnails) -> None:
    _fits(found.step >= 1, "'step' is no number of tokens")
    _one_for_each(found.verdicts, found.weights.shape, "verdicts")
    cells = tuple(-(-len(each) // found.step) for each in (found.query_tokens, found.key_tokens))
    _fits(found.weights.shape[2:] == cells, "'weights' is not of as many cells as the tokens make")


@check.register
def _(found: Senses) -> None:
    _fits(len(found.usages) >= 2, "'usages' are of fewer than two texts")
    _fits(found.cosines.shape[1:] == (len(found.usages),) * 2, "'cosines' are not between all 'usages'")


@check.register
def _(found: Step) -> None:
    shape = found.matrix.values.shape
    names = len(found.matrix.rows.names), len(found.matrix.columns.names)
    _fits(
        shape == names, "'row_axis' and 'column_axis' have not as many names as the step has rows and columns"
    )
    _fits(found.allowed is None or found.allowed.shape == shape, "'allowed' has not the shape of its step")
    cell = found.cell
    inside = cell is None or (_within(cell.row, shape[0]) and _within(cell.column, shape[1]))
    _fits(inside, "'cell' lies outside of its step")
