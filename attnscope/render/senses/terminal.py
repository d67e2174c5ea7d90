"""One word in many texts, in a terminal: layer by layer, then the cosines of all pairs, then the texts."""

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.comparison.words import cosine_text
from attnscope.render.kit import palette
from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import fit, left, right
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words.certificate import GLYPHS, STYLES
from attnscope.render.kit.words.header import reading
from attnscope.render.senses.words import (
    best_head,
    certified_words,
    extremes_words,
    other_forms,
    percentile_words,
    remarks,
    setting,
    shown_words,
    subject,
    usage_words,
)
from attnscope.results import Senses

_CELL = 6  # of a cosine in the matrix


def senses(result: Senses, width: int) -> RenderableType:
    """Header, table by layer, matrix of the layer that is shown, texts by number, and what is certified."""
    order = np.arange(len(result.usages)) if not result.labels else by_label(result)
    told = [each for each in (*remarks(result), other_forms(result)) if each]
    return Group(
        Text.assemble((subject(result), "bold"), f" · {setting(result)}"),
        Text(reading(result.provenance).plain, style=DIM),
        "",
        *(_grouped(result) if result.separation is not None else _alike(result)),
        *(Text(each, style=DIM) for each in told),
        "",
        Text(shown_words(result), style="bold"),
        *_matrix(result, order.tolist(), width),
        "",
        *(Text(fit(usage_words(result.usages[i], i + 1), width)) for i in order.tolist()),
        "",
        *(
            Text(f"{GLYPHS[verdict]} {each}", style=STYLES[verdict])
            for verdict, each in certified_words(result)
        ),
    )


def by_label(result: Senses) -> np.ndarray:
    """The texts in the order of their labels, those of one label as they came."""
    ranks = [result.labels.index(usage.label) for usage in result.usages]
    return np.argsort(ranks, kind="stable")


def _grouped(result: Senses) -> list[Text]:
    """One line per layer: cosines within and between, the gap beside chance, and the head that parts best."""
    found, several = result.separation, len(result.heads) > 1
    assert found is not None, "only where there are groups"
    best = "  best head" + "".join(right(each, 8) for each in ("gap", "chance", "below")) if several else ""
    heading = "".join(right(each, 8) for each in ("within", "between", "gap", "chance", "below"))
    lines = [line(" " * 4, (heading + best, HEADING))]
    for i, layer in enumerate(result.layers):
        cells = [
            (right(cosine_text(value[i]), 8), palette.diverging(float(value[i]), 1.0))
            for value in (found.within, found.between, found.gap)
        ]
        told = right(cosine_text(found.chance[i]), 8) + right(percentile_words(found.percentile[i]), 8)
        if several:
            j = best_head(result, i)
            told += "  " + left(f"H{result.heads[j]}", 9) + right(cosine_text(found.heads_gap[i, j]), 8)
            told += right(cosine_text(found.best_chance[i]), 8)
            told += right(percentile_words(found.best_percentile[i]), 8)
        lines.append(line((left(f"L{layer}", 4), HEADING), *cells, told))
    return lines


def _alike(result: Senses) -> list[Text]:
    """One line per layer: the mean cosine of all pairs, the pair most alike and the pair least."""
    lines = [line(" " * 5, ("    mean  texts, by number", HEADING))]
    upper = np.triu_indices(len(result.usages), 1)
    for i, layer in enumerate(result.layers):
        mean = float(np.nanmean(result.cosines[i][upper]))
        cell = (right(cosine_text(mean), 8), palette.diverging(mean, 1.0))
        lines.append(line((left(f"L{layer}", 5), HEADING), cell, f"  {extremes_words(result, i)}"))
    return lines


def _matrix(result: Senses, order: list[int], width: int) -> list[Text]:
    """The cosines of all pairs of the shown layer, by number; of many texts as many as fit."""
    fitting = max((width - _CELL) // _CELL, 1)
    shown, cosines = order[:fitting], result.cosines[result.shown]
    lines = [line(" " * _CELL, ("".join(right(str(i + 1), _CELL) for i in shown), DIM))]
    for i in shown:
        cells = [
            (right(f"{cosines[i, j]:.2f}", _CELL), palette.diverging(float(cosines[i, j]), 1.0))
            for j in shown
        ]
        lines.append(line((right(str(i + 1), _CELL), DIM), *cells))
    if more := len(order) - len(shown):
        lines.append(Text(f"{counted(more, 'more text')} (-o FILE.csv has all)", style=DIM))
    return lines
