"""The products of one query and one key on a terminal, the largest first, and the pairs that are turned."""

import numpy as np
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.dimensions.words import BESIDE, number, pair_name, share_words, sum_words, wave_text
from attnscope.render.kit import palette
from attnscope.render.kit.cells import DIM, HEADING, bar, line
from attnscope.render.kit.labels import right
from attnscope.render.kit.numbers import counted, largest_magnitude, signed_texts
from attnscope.results import Dimensions

_MOST_PAIRS = 8
_LONGEST_BAR = 30
_HEADINGS = ("q", "k", "q x k", "others", "so far")


def dimensions(result: Dimensions, width: int, rows: int | None) -> RenderableType:
    """A line for each of the `rows` largest products (all, for None), with what they add up to."""
    name, told = pair_name(result), sum_words(result)
    one_line = cell_len(name) + len(told) + 2 <= width
    heading = [line((name, HEADING), f": {told}")] if one_line else [Text(name, style=HEADING), Text(told)]
    return Group(
        *heading,
        Text(""),
        *_table(result, width, rows),
        Text(share_words(result)),
        Text(BESIDE, style=DIM),
        *_pairs(result),
    )


def _table(result: Dimensions, width: int, rows: int | None) -> list[Text]:
    listed = result.order[:rows]
    extent = largest_magnitude(result.products)
    values = (result.query_vector, result.key_vector, result.products, result.beside)
    columns = [signed_texts(each, 2)[listed].tolist() for each in values]
    columns.append(signed_texts(result.cumulated, 2)[: len(listed)].tolist())
    widths = [max(len(title), *map(len, texts)) + 2 for title, texts in zip(_HEADINGS, columns, strict=True)]
    first = max(len("dim"), len(str(len(result.products) - 1)))
    lines = [line(("dim".rjust(first) + "".join(map(right, _HEADINGS, widths)), DIM))]
    room = min(width - first - sum(widths) - 2, _LONGEST_BAR)
    for row, dim in enumerate(listed.tolist()):
        product = float(result.products[dim])
        cells = [right(texts[row], wide) for texts, wide in zip(columns, widths, strict=True)]
        drawn = bar(abs(product) / extent if extent else 0.0, room) if room >= 4 else ""
        tint = palette.diverging(product, extent)
        sign = "−" if product < 0 else "+"
        name = (str(dim).rjust(first), HEADING)
        lines.append(line(name, *cells[:2], (cells[2], tint), *cells[3:], f"  {sign}{drawn}"))
    if left := len(result.products) - len(listed):
        rest = float(result.products.sum() - result.cumulated[len(listed) - 1]) if len(listed) else 0.0
        told = f"{counted(left, 'more dimension')} add {number(rest)} (--rows all lists them)"
        lines.append(Text(told, style=DIM))
    return lines


def _pairs(result: Dimensions) -> list[Text]:
    """The dimensions that a rotary position turns together, the strongest first."""
    if result.rotation is None:
        return [Text(f"rotary pairs: {result.unpaired}", style=DIM)] if result.unpaired else []
    found, sums = result.rotation, result.by_pair
    order = np.argsort(-np.abs(sums), kind="stable")[:_MOST_PAIRS]
    texts = signed_texts(sums, 2)
    names = [f"{found.first[at]}+{found.second[at]}" for at in order]
    waves = [wave_text(float(found.wavelength[at])) for at in order]
    first, last = max(len("pair"), *map(len, names)), max(len("turn"), *map(len, waves)) + 2
    middle = max(len("adds"), *(len(texts[at]) for at in order)) + 2
    extent = largest_magnitude(sums)
    lines = [Text(""), line(("pair".ljust(first) + right("adds", middle) + right("turn", last), DIM))]
    for name, wave, at in zip(names, waves, order, strict=True):
        tint = palette.diverging(float(sums[at]), extent)
        lines.append(line(name.ljust(first), (right(texts[at], middle), tint), right(wave, last)))
    told = [] if len(sums) <= _MOST_PAIRS else [f"{counted(len(sums) - _MOST_PAIRS, 'more pair')}"]
    told += ["turn: tokens until the rotary position has turned a pair once round"]
    return [*lines, Text("; ".join(told), style=DIM)]
