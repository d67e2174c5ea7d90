"""Sheets of one query's attention over a picture or a sound: one head's patches or frames, or many heads."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.cells import fit
from attnscope.render.kit.command import finding, opening
from attnscope.render.kit.numbers import cell, counted, largest_magnitude, parameter, percent, significant
from attnscope.render.kit.palette import Scale as Weights
from attnscope.render.kit.palette import scale_of
from attnscope.render.sheet.blocks import Beside, Block, Drawing, Matrix, Named, Names, Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid
from attnscope.render.sheet.said import certified, grid_size, in_sentence, name, of_head, proof, read, unit
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import (
    HeadAttention,
    Kind,
    Overview,
    Picture,
    PictureAttention,
    PictureHeads,
    SoundAttention,
    SoundHeads,
)
from attnscope.spans import patch_at
from attnscope.tokens import patch
from attnscope.vocabulary import Scaling

OneHead = PictureAttention | SoundAttention
Heads = PictureHeads | SoundHeads
_MOST, _MOST_HEADS, _LONGEST = 8, 12, 40  # patches or frames, and heads, that are listed; cells of a name


def of_one(
    result: OneHead, say: Said, focus: Focus, blocks: tuple[Block | Beside, ...], main: Drawing
) -> Sheet:
    """Sheet of one head over a picture or a sound."""
    head, query, order = result.head, result.gaze.query, descending(result.weights.ravel())
    following = None
    if query is not None and order:
        key = int(result.gaze.keys.ravel()[order[0]]) if focus.key is None else focus.key
        following = Next(say("this_or_place"), finding(head, query, key))
    return _laid_over(
        result,
        say,
        blocks=(*blocks, *_strongest(result, say, focus.key)),
        proof=certified(head.certificate, focus.verbose),
        main=main,
        record=(*of_head(head), ("query", query_words(result))),
        next=following,
    )


def of_heads(result: Heads, say: Said, block: Drawing, main: Drawing) -> Sheet:
    """Sheet of several heads over a picture or a sound."""
    found, order = result.overview, _ranked(result)
    layer, head = found.layers[order[0][0]], found.heads[order[0][1]]
    return _laid_over(
        result,
        say,
        blocks=(block, _listed(result, say, order)),
        proof=proof((each.verdict for row in found.certificates for each in row), "head"),
        main=main,
        record=(("query", query_words(result)),),
        next=Next(say("next_head"), opening(found, layer, head)),
    )


def _laid_over(result: OneHead | Heads, say: Said, **own: Any) -> Sheet:
    heads = _inside(result)
    return saying(
        say,
        heads,
        table=lambda: _table(result),
        texts=(medium_words(result), *read(heads.kind, heads.query_tokens, heads.key_tokens)),
        summary=(fit(medium_words(result), _LONGEST),),
        **own,
    )


def _inside(result: OneHead | Heads) -> HeadAttention | Overview:
    return result.head if isinstance(result, OneHead) else result.overview


def medium(result: OneHead | Heads) -> str:
    return "picture" if isinstance(result, PictureAttention | PictureHeads) else "sound"


def medium_words(result: OneHead | Heads) -> str:
    """Name of the file, and how it was read and cut."""
    if isinstance(result, PictureAttention | PictureHeads):
        rows, columns = result.gaze.keys.shape
        high, wide = result.picture.covered
        patches = f"{rows} x {columns} patches of {high // rows} x {wide // columns}"
        return f"{result.picture.described}, {patches}"
    return (
        f"{result.sound.described}, {len(result.gaze.keys)} frames of {parameter(1000 * result.seconds)} ms"
    )


def query_words(result: OneHead | Heads) -> str:
    """`query [CLS]`, `query patch row 3, column 5`, `query 4 “door”`, or the mean over all queries."""
    query, tokens = result.gaze.query, _inside(result).query_tokens
    if query is None:
        return f"mean over {counted(len(tokens), 'query')}"
    called = tokens.called(query)
    of_text = tokens.items[query].id >= 0 and not tokens.items[query].special
    return f"query {query} “{called}”" if of_text else f"query {called}"


def place_name(result: OneHead | Heads, place: int) -> str:
    """Name of a patch (counted row by row) or of a frame (by its start time)."""
    if isinstance(result, PictureAttention | PictureHeads):
        row, column = divmod(place, result.gaze.keys.shape[1])
        return patch(row, column)
    return _inside(result).key_tokens.names[int(result.gaze.keys[place])]


def part(result: OneHead | Heads) -> str:
    return "patch" if medium(result) == "picture" else "frame"


def place_of(result: OneHead, key: int | None) -> tuple[int, ...] | None:
    """The patch (row, column) or frame of this key; None for a key that is neither."""
    found = [] if key is None else np.argwhere(result.gaze.keys == key).tolist()
    return tuple(found[0]) if found else None


def descending(weights: Float[np.ndarray, " place"]) -> list[int]:
    """Read places by falling weight, ties in order."""
    order = np.argsort(-weights, kind="stable")
    return [int(place) for place in order[: int(np.isfinite(weights).sum())]]


def said(result: OneHead | Heads, key: int | None = None) -> Said:
    """Sentences about the result, and about one `key` of it."""
    query, tokens = result.gaze.query, _inside(result).query_tokens
    facts: dict[str, object] = {
        "medium": medium(result),
        "part": part(result),
        "parts": int((result.gaze.keys >= 0).sum()),
        "unit": unit(tokens),
        "queries": len(tokens),
        "called": query_words(result),
        "asked": None if query is None else in_sentence(tokens, query),
        "decoder": _inside(result).kind is Kind.CROSS,
        **dict.fromkeys(("size", "many", "middle", "even", "besides", "key", "key_share", "rank")),
    }
    return Said(
        "media", result, facts | (_of_one(result, key) if isinstance(result, OneHead) else _of_heads(result))
    )


def _of_one(result: OneHead, key: int | None) -> dict[str, object]:
    head, weights, query = result.head, result.weights.ravel(), result.gaze.query
    rows = head.answered if query is None else [query]
    order, found = descending(weights), place_of(result, key)
    (_, on_medium), *besides = shares(result).items()
    rank = found and order.index(int(np.ravel_multi_index(found, result.gaze.keys.shape))) + 1
    asked = None if rank == 1 else key
    return {
        "head": head.name,
        "best": place_name(result, order[0]) if order else None,
        "own": weights[order[0]] if order else None,
        "even": (1 / head.allowed[rows].sum(axis=1)).mean(),
        "on_medium": on_medium,
        "besides": besides,
        "key": None if asked is None else head.key_tokens.called(asked),
        "key_share": None if asked is None else head.weights[rows, asked].mean(),
        "rank": rank,
    }


def _of_heads(result: Heads) -> dict[str, object]:
    overview, order = result.overview, _ranked(result)
    hardest = [largest(result, *each) for each in order]
    return {
        "head": name(overview.layers[order[0][0]], overview.heads[order[0][1]]),
        "best": hardest[0][0],
        "own": hardest[0][1],
        "size": grid_size(overview.layers, overview.heads),
        "many": len(order),
        "middle": np.median([weight for _, weight in hardest]),
        "on_medium": np.median([share(result, *each) for each in order]),
    }


def shares(result: OneHead) -> dict[str, float]:
    """Share of the row on the picture or sound, and on everything else by name."""
    every = {f"the {medium(result)}": float(np.nansum(result.weights)), **result.elsewhere}
    return every if result.head.sink is None else every | {"the sink": 1 - sum(every.values())}


def _strongest(result: OneHead, say: Said, key: int | None) -> tuple[Ranking, ...]:
    order, found = descending(result.weights.ravel()), place_of(result, key)
    asked = None if found is None else int(np.ravel_multi_index(found, result.gaze.keys.shape))
    listed = [*order[:_MOST], *(place for place in order[_MOST:] if place == asked)]
    weights = [float(result.weights.ravel()[place]) for place in listed]
    if not weights:
        return ()
    ranking = Ranking(
        title=say("largest"),
        of=part(result),
        names=tuple(place_name(result, place) for place in listed),
        table=Table(Column("weight", weights, "weight", significant)),
        chosen=frozenset(i for i, place in enumerate(listed) if place == asked),
        measured=say("measured"),
        marks=(Mark("bar", "own", "", weights),),
        written="weight",
        hidden=len(order) - len(weights),
        repeats=True,
    )
    return (ranking,)


def flat(result: Heads) -> Float[np.ndarray, "head place"]:
    """Weights with a row for each head, one layer after the other."""
    heads = len(result.overview.layers) * len(result.overview.heads)
    return np.asarray(result.weights.reshape(heads, -1))


def largest(result: Heads, i: int, j: int) -> tuple[str, float]:
    """The patch or frame with the largest weight of a head, and that weight."""
    weights = result.weights[i, j].ravel()
    order = descending(weights)
    return (place_name(result, order[0]), float(weights[order[0]])) if order else ("", math.nan)


def share(result: Heads, i: int, j: int) -> float:
    return float(np.nansum(result.weights[i, j]))


def _ranked(result: Heads) -> list[tuple[int, int]]:
    overview = result.overview
    largest = np.nan_to_num(flat(result)).max(axis=1)
    order = np.argsort(-largest, kind="stable").tolist()
    return [divmod(place, len(overview.heads)) for place in order]


def _listed(result: Heads, say: Said, order: list[tuple[int, int]]) -> Ranking:
    overview, listed = result.overview, order[:_MOST_HEADS]
    hardest, where = [largest(result, *place) for place in listed], part(result)
    return Ranking(
        title=say("largest_on_one"),
        of="head",
        names=tuple(name(overview.layers[i], overview.heads[j]) for i, j in listed),
        table=Table(
            Column("largest", [each for _, each in hardest], "weight", significant),
            Column(where, [each for each, _ in hardest], where),
            Column("share", [share(result, *place) for place in listed], "share", percent, say("share_says")),
        ),
        hidden=len(order) - len(listed),
    )


def _table(result: OneHead | Heads) -> Table:
    """Table with a row for each patch or frame that is read, and for each head."""
    heads, keys = None if isinstance(result, OneHead) else result.overview, result.gaze.keys
    seconds = None if isinstance(result, PictureAttention | PictureHeads) else result.seconds
    names = *(("frame", "start") if seconds else ("row", "column")), "key", "weight"

    def rows(weights: Float[np.ndarray, "..."]) -> Iterator[tuple[Any, ...]]:
        for place in map(tuple, np.argwhere(keys >= 0).tolist()):
            where = (place[0], place[0] * seconds) if seconds else place
            yield *where, int(keys[place]), float(weights[place])

    if heads is None:
        return Table.of(names, rows(result.weights))
    every = (
        (heads.layers[i], heads.heads[j], *row, heads.certificates[i][j].verdict.value)
        for i, j in np.ndindex(result.weights.shape[:2])
        for row in rows(result.weights[i, j])
    )
    return Table.of(("layer", "head", *names, "verdict"), every)


@dataclass(frozen=True, eq=False)
class Original(Drawing):
    """The picture as the model saw it."""

    picture: Picture
    title: str = "as the model sees it"


@dataclass(frozen=True, eq=False)
class Overlay(Drawing):
    """The weights of one query on the patches of a picture; `plain` has them in per cent.

    `pointed` is the chosen patch, by row and column.
    """

    result: PictureAttention
    plain: Matrix
    pointed: tuple[int, ...] | None = None
    scale: Weights = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class Overlays(Drawing):
    """A small picture for every head; `plain` has the largest weight of each on one patch."""

    result: PictureHeads
    plain: HeadGrid
    scale: Weights = field(kw_only=True)


def sheet(
    result: PictureAttention | PictureHeads | SoundAttention | SoundHeads, focus: Focus = WHOLE
) -> Sheet:
    """Sheet of one head's weights beside the picture, or of a small picture per head; or of a sound."""
    if isinstance(result, SoundAttention | SoundHeads):
        return _over_sound(result, focus)
    original, say = Original(result.picture), said(result, focus.key)
    if isinstance(result, PictureAttention):
        pointed, scale = place_of(result, focus.key), _scale(result.weights.reshape(1, -1), focus.scale)
        overlay = Overlay(result, _patches(result, say, pointed, scale), pointed, scale=scale)
        return of_one(result, say, focus, (Beside((original, overlay)),), overlay)
    overlays = Overlays(result, _grid(result, say), scale=_scale(flat(result), focus.scale))
    return replace(of_heads(result, say, overlays, overlays), more=(original,))


def _scale(weights: Float[np.ndarray, "head patch"], asked: Scaling) -> Weights:
    return scale_of(weights, np.isfinite(weights), asked)


def _patches(result: PictureAttention, say: Said, pointed: tuple[int, ...] | None, scale: Weights) -> Matrix:
    cells, place = 100 * result.weights, result.gaze.cell
    largest = largest_magnitude(cells) or 1.0
    decimals = max(0, 1 - math.floor(math.log10(largest)))
    named = (each and patch(each[0], each[1]) for each in (place, pointed))
    return Matrix(
        title=say("patches"),
        words=("row", "column"),
        rows=_numbered(len(cells)),
        columns=_numbered(cells.shape[1]),
        values=cells,
        scale=Weights(scale.kind, np.full(len(cells), 100 * scale.top), 100 * scale.least),
        form=partial(cell, decimals=decimals),
        says=" · ".join(say.lines("patches_says", *named, np.isnan(cells).any())),
        unanswered="",
        marked=tuple((each[0], each[1]) for each in (place, pointed) if each is not None),
        blank="",
    )


def fitting(called: str, cells: int) -> str:
    """`row 3, column 5`, or `r3c5` where that does not fit `cells`."""
    return fit(called if len(called) <= cells else patch_at(called), cells)


def _numbered(count: int) -> Names:
    return Names(("",) * count, tuple(range(count)))


def _grid(result: PictureHeads, say: Said) -> HeadGrid:
    overview = result.overview
    values = flat(result).max(axis=1, initial=0.0, where=~np.isnan(flat(result)))
    return HeadGrid(
        title=say("grid"),
        layers=overview.layers,
        heads=overview.heads,
        values=values.reshape(len(overview.layers), -1),
        scale=Scale(0.0, float(values.max()) or 1.0),
        form=significant,
        companion=Companion(
            say("companion"),
            lambda i, j: percent(share(result, i, j)),
            lambda i, j, cells: fitting(largest(result, i, j)[0], cells),
        ),
        verdicts=tuple(tuple(each.verdict for each in row) for row in overview.certificates),
    )


@dataclass(frozen=True, eq=False)
class Timeline(Drawing):
    """Weights over the frames of a sound, a row for a query or for each head, below its spectrogram.

    `pointed` is the chosen frame.
    """

    result: SoundAttention | SoundHeads
    plain: Matrix
    spectrogram: bool = True
    pointed: int | None = None


def _over_sound(result: SoundAttention | SoundHeads, focus: Focus) -> Sheet:
    rows, say = _rows(result, focus.scale), said(result, focus.key)
    alone = Timeline(result, rows, spectrogram=False)
    if isinstance(result, SoundAttention):
        frame = place_of(result, focus.key)
        pointed = None if frame is None else frame[0]
        main = replace(alone, pointed=pointed)
        return of_one(result, say, focus, (Timeline(result, rows, pointed=pointed),), main)
    return of_heads(result, say, Timeline(result, rows), alone)


def _rows(result: SoundAttention | SoundHeads, asked: Scaling) -> Matrix:
    words = query_words(result)
    if not isinstance(result, SoundAttention):
        overview = result.overview
        heads = (name(layer, head) for layer in overview.layers for head in overview.heads)
        return _over_time(result, words, "head", Names(tuple(heads)), flat(result), asked)
    if result.head.kind is Kind.CROSS and result.gaze.query is None:
        rows = result.head.weights[:, result.gaze.keys]
        return _over_time(result, "all queries", "query", result.head.query_tokens, rows, asked)
    return _over_time(result, words, "query", Names((words,)), result.weights[None], asked)


def _over_time(
    result: SoundAttention | SoundHeads,
    title: str,
    word: str,
    rows: Named,
    values: Float[np.ndarray, "row frame"],
    asked: Scaling,
) -> Matrix:
    return Matrix(
        title=title,
        words=(word, "frame"),
        rows=rows,
        columns=Names(tuple(place_name(result, frame) for frame in range(values.shape[1]))),
        values=values,
        scale=scale_of(values, np.isfinite(values), asked),
        form=significant,
    )
