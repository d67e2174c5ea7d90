"""The changes of an ablation as grids: layers and heads, or layers and tokens as papers draw them."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from attnscope.render.kit.numbers import alike, largest_magnitude, signed_cell
from attnscope.render.sheet.blocks import Beside, Matrix, Names
from attnscope.render.sheet.heads import HeadGrid, by_head
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheets import ablation_words as words
from attnscope.render.words import Said
from attnscope.results import Ablation
from attnscope.results.claims.ablation import Case

# what numbers of a grid are told in where the largest of them is below so much, and how many go into one
_PARTS = {"millionths": (1e-4, 1e6), "thousandths": (0.1, 1e3)}


def grids(result: Ablation, say: Said) -> Iterator[HeadGrid]:
    """The grid of layers and heads: what was predicted of all, or what came out where there are several."""
    if result.predicted:
        foretold = {(each.layer, each.head): each.change for each in result.predicted}
        layers = tuple(sorted({layer for layer, _ in foretold}))
        heads = tuple(range(1 + max(head for _, head in foretold)))
        values = by_head(layers, heads, foretold)
        form = alike(values, 2, signed_cell)
        yield HeadGrid(say("grid_title"), layers, heads, values, Scale.around(values), form)
    elif len(result.layers) > 1 and len(result.heads) > 1:
        values, largest = result.grid, largest_magnitude(result.grid)
        heads = tuple(range(values.shape[1]))
        fine = (each for each, (most, _) in _PARTS.items() if 0 < largest < most)
        part = next(fine, "")
        form = _in(_PARTS[part][1]) if part else signed_cell
        unit = say("in_parts", part) if part else ""
        yield HeadGrid(say("grid_title"), result.layers, heads, values, Scale.around(values), form, unit)


def _in(many: float) -> Callable[[float], str]:
    return lambda value: signed_cell(many * value, 1)


def matrices(result: Ablation, say: Said) -> Iterator[Matrix | Beside]:
    """The grid of layers and tokens; between two texts shares of the gap, of both directions."""
    changes = [each.change for each in result.places]
    if result.case is not Case.CLOSES:
        yield _matrix(result, say, say("grid_title"), changes)
        return
    yield _direction(result, say, "needed_title", changes, False)
    if any(each.enough is not None for each in result.places):
        yield _direction(result, say, "enough_title", [each.enough for each in result.places], True)


def _direction(
    result: Ablation, say: Said, title: str, changes: Sequence[float | None], back: bool
) -> Matrix:
    shares = [words.share(result, each, back) for each in changes]
    if all(words.is_share(each) for each in shares if each is not None):
        return _matrix(result, say, say(title, True), shares)
    return _matrix(result, say, say(title, False), changes)


def _matrix(result: Ablation, say: Said, title: str, values: Sequence[float | None]) -> Matrix:
    tokens = words.tokens_of(result)
    rows = list(dict.fromkeys(words.row_words(result, each) for each in result.places))
    heads = any(each.head is not None for each in result.places)
    layers = tuple(dict.fromkeys(each.layer for each in result.places))
    cells = np.full((len(rows), len(tokens)), np.nan)
    for place, each in zip(result.places, values, strict=True):
        row = rows.index(words.row_words(result, place))
        cells[row, list(place.positions)] = np.nan if each is None else each
    return Matrix(
        title=title,
        words=("head" if heads else "layer", "key" if result.link is not None else "token"),
        rows=Names(tuple(rows), tuple(range(len(rows)))) if heads else Names(("",) * len(rows), layers),
        columns=tokens,
        values=cells,
        scale=Scale.around(cells[np.isfinite(cells)] if np.isfinite(cells).any() else [1.0]),
        form=alike(cells, 2, signed_cell),
        unanswered=say("unchanged"),
        blank=say("unchanged"),
    )
