"""What is said of the attention of one query over a picture or a sound, whichever it is.

Of one head its strongest patches or frames, of several which looks hardest at one.
"""

import math

import numpy as np
from jaxtyping import Float

from attnscope.render.focus import Focus
from attnscope.render.kit.labels import fit
from attnscope.render.kit.numbers import counted, parameter, percent, significant
from attnscope.render.kit.words.command import finding, opening
from attnscope.render.sheet.blocks import Beside, Block, Drawing, Ranking
from attnscope.render.sheet.said import (
    certified,
    features,
    grid_size,
    limits,
    name,
    of_head,
    proof,
    read,
    setting,
)
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.results import PictureAttention, PictureHeads, SoundAttention, SoundHeads
from attnscope.tokens import Tokens, patch

OneHead = PictureAttention | SoundAttention
Heads = PictureHeads | SoundHeads
_MOST, _MOST_HEADS, _LONGEST = 8, 12, 40  # patches or frames, and heads, that are listed; cells of a name


def of_one(result: OneHead, focus: Focus, blocks: tuple[Block | Beside, ...], main: Drawing) -> Sheet:
    """What is said of one head over any medium."""
    head = result.head
    return Sheet(
        title=f"{head.name} over a {medium(result)}",
        setting=setting(head),
        origins=(head.provenance,),
        answer=_answer(result, focus.key),
        blocks=(*blocks, *_strongest(result, focus.key)),
        table=lambda: _every_place(result),
        texts=(medium_words(result), *read(head.kind, head.query_tokens, head.key_tokens)),
        notes=limits(head),
        legend=features(head),
        proof=certified(head.certificate, focus.verbose),
        main=main,
        summary=(fit(medium_words(result), _LONGEST),),
        record=(*of_head(head), ("query", query_words(result))),
        next=_next(result, focus.key),
    )


def _next(result: OneHead, key: int | None) -> Next | None:
    query, order = result.gaze.query, descending(result.weights.ravel())
    if query is None or not order:
        return None
    place = int(result.gaze.keys.ravel()[order[0]]) if key is None else key
    return Next(f"is it this {medium(result)}, or only the place?", finding(result.head, query, place))


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
    query, tokens = result.gaze.query, _tokens(result)
    if query is None:
        return f"mean over {counted(len(tokens), 'query')}"
    called = tokens.called(query)
    of_text = tokens.items[query].id >= 0 and not tokens.items[query].special
    return f"query {query} “{called}”" if of_text else f"query {called}"


def _tokens(result: OneHead | Heads) -> Tokens:
    inside = result.head if isinstance(result, OneHead) else result.overview
    return inside.query_tokens


def place_name(result: OneHead | Heads, place: int) -> str:
    """What a patch is called, counted row by row, or a frame: by when it begins."""
    if isinstance(result, PictureAttention | PictureHeads):
        row, column = divmod(place, result.gaze.keys.shape[1])
        return patch(row, column)
    inside = result.head if isinstance(result, SoundAttention) else result.overview
    return inside.key_tokens.names[int(result.gaze.keys[place])]


def part(result: OneHead | Heads) -> str:
    return "patch" if medium(result) == "picture" else "frame"


def place_of(result: OneHead, key: int | None) -> tuple[int, ...] | None:
    """The patch, by row and column, or the frame that is this key; None for a key that is neither."""
    found = [] if key is None else np.argwhere(result.gaze.keys == key).tolist()
    return tuple(found[0]) if found else None


def descending(weights: Float[np.ndarray, " place"]) -> list[int]:
    """The places that are read by falling weight, the earlier first where two are alike."""
    order = np.argsort(-weights, kind="stable")
    return [int(place) for place in order[: int(np.isfinite(weights).sum())]]


def _answer(result: OneHead, key: int | None) -> str:
    weights, words = result.weights.ravel(), query_words(result)
    subject = f"{'In the' if result.gaze.query is None else 'From'} {words}, {result.head.name}"
    if not (order := descending(weights)):
        return f"{subject} reads no {part(result)} of the {medium(result)}."
    strongest = f"{part(result)} {place_name(result, order[0])}, {significant(float(weights[order[0]]))}"
    told = ", ".join(f"{percent(share)} {where}" for where, share in shares(result).items())
    return f"{subject} gives the most to {strongest};{_given_to(result, key, order)} of its attention {told}."


def _given_to(result: OneHead, key: int | None, order: list[int]) -> str:
    if key is None:
        return ""
    rows = result.head.weights if result.gaze.query is None else result.head.weights[[result.gaze.query]]
    told = f" {result.head.key_tokens.called(key)} gets {significant(float(rows[:, key].mean()))}"
    if (found := place_of(result, key)) is None:
        return f"{told};"
    rank = order.index(int(np.ravel_multi_index(found, result.gaze.keys.shape))) + 1
    return "" if rank == 1 else f"{told}, rank {rank} of {len(order):,};"


def shares(result: OneHead) -> dict[str, float]:
    """How much of the row lies on the picture or sound, and how much on each other thing."""
    on_medium = float(np.nansum(result.weights))
    elsewhere = {f"on {each}": share for each, share in result.elsewhere.items()}
    sink = {} if result.head.sink is None else {"on the sink": 1 - on_medium - sum(elsewhere.values())}
    return {f"lies on the {medium(result)}": on_medium, **elsewhere, **sink}


def _strongest(result: OneHead, key: int | None) -> tuple[Ranking, ...]:
    order, found = descending(result.weights.ravel()), place_of(result, key)
    asked = None if found is None else int(np.ravel_multi_index(found, result.gaze.keys.shape))
    listed = [*order[:_MOST], *(place for place in order[_MOST:] if place == asked)]
    weights = [float(result.weights.ravel()[place]) for place in listed]
    if not weights:
        return ()
    ranking = Ranking(
        title=f"largest weights, {query_words(result)}",
        of=part(result),
        names=tuple(place_name(result, place) for place in listed),
        table=Table(Column("weight", weights, "weight", significant)),
        chosen=frozenset(i for i, place in enumerate(listed) if place == asked),
        measured="attention weight",
        marks=(Mark("bar", "own", "", weights),),
        written="weight",
        hidden=len(order) - len(weights),
        repeats=True,
    )
    return (ranking,)


def of_heads(result: Heads, block: Drawing, main: Drawing) -> Sheet:
    """What is said of several heads over any medium."""
    found, order = result.overview, _ranked(result)
    best = order[0]
    return Sheet(
        title=f"{grid_size(found.layers, found.heads)} over a {medium(result)}",
        setting=setting(found),
        origins=(found.provenance,),
        answer=_answer_of_heads(result, order),
        blocks=(block, _listed(result, order)),
        table=lambda: _every_head(result),
        texts=(medium_words(result), *read(found.kind, found.query_tokens, found.key_tokens)),
        notes=limits(found),
        legend=features(found),
        proof=proof((each.verdict for row in found.certificates for each in row), "head"),
        main=main,
        summary=(fit(medium_words(result), _LONGEST),),
        record=(("query", query_words(result)),),
        next=Next("look into one", opening(found, found.layers[best[0]], found.heads[best[1]])),
    )


def flat(result: Heads) -> Float[np.ndarray, "head place"]:
    """A row for each head, one layer after the other."""
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


def _answer_of_heads(result: Heads, order: list[tuple[int, int]]) -> str:
    overview, (i, j) = result.overview, order[0]
    place, weighed = largest(result, i, j)
    if not place:
        return f"No head reads a {part(result)} of the {medium(result)}."
    best = name(overview.layers[i], overview.heads[j])
    middle = float(np.median([share(result, *each) for each in order]))
    words, beside = query_words(result), f"{percent(middle)} of its attention on the {medium(result)}"
    told = f"{words[0].upper()}{words[1:]}: of {counted(len(order), 'head')} {best} gives the most"
    hardest = f"to one {part(result)}, {significant(weighed)} to {place}"
    return f"{told} {hardest}; the median head has {beside}."


def _listed(result: Heads, order: list[tuple[int, int]]) -> Ranking:
    overview, listed = result.overview, order[:_MOST_HEADS]
    hardest, where = [largest(result, *place) for place in listed], part(result)
    on_medium = f"share of the query's attention that lies on the {medium(result)}"
    return Ranking(
        title=f"largest weights on one {where}",
        of="head",
        names=tuple(name(overview.layers[i], overview.heads[j]) for i, j in listed),
        table=Table(
            Column("largest", [each for _, each in hardest], "weight", significant),
            Column(where, [each for each, _ in hardest], where),
            Column("share", [share(result, *place) for place in listed], "share", percent, on_medium),
        ),
        hidden=len(order) - len(listed),
    )


def _every_place(result: OneHead) -> Table:
    keys = result.gaze.keys
    if isinstance(result, PictureAttention):
        places = [tuple(each) for each in np.argwhere(keys >= 0).tolist()]
        names = ("row", "column", "key", "weight")
        return Table.of(names, ((*each, int(keys[each]), float(result.weights[each])) for each in places))
    frames = enumerate(zip(keys.tolist(), result.weights.tolist(), strict=True))
    rows = ((frame, frame * result.seconds, key, value) for frame, (key, value) in frames)
    return Table.of(("frame", "start", "key", "weight"), rows)


def _every_head(result: Heads) -> Table:
    overview, keys = result.overview, result.gaze.keys
    places = [tuple(each) for each in np.argwhere(keys >= 0).tolist()]
    where = ("row", "column") if isinstance(result, PictureHeads) else ("frame", "start")
    rows = (
        (
            *(overview.layers[i], overview.heads[j]),
            *(place if isinstance(result, PictureHeads) else (place[0], place[0] * result.seconds)),
            *(int(keys[place]), float(result.weights[(i, j, *place)])),
            overview.certificates[i][j].verdict.value,
        )
        for i, j in np.ndindex(result.weights.shape[:2])
        for place in places
    )
    return Table.of(("layer", "head", *where, "key", "weight", "verdict"), rows)
