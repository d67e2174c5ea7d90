"""A comparison in a terminal: the word's vectors layer by layer, then what it attends to on each side."""

import numpy as np
from jaxtyping import Float
from rich.console import Group, RenderableType
from rich.style import StyleType
from rich.text import Text

from attnscope.render.comparison.rows import both_rows
from attnscope.render.comparison.words import (
    attended_words,
    cosine_text,
    kinds,
    looks,
    models,
    remarks,
    sentence,
    shown_words,
    side_words,
    subject,
    table_remarks,
    together,
    verdict_counts,
)
from attnscope.render.kit import palette
from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.words.certificate import GLYPHS, STYLES, certificate_line
from attnscope.render.kit.words.header import reading
from attnscope.results import Between, Comparison, Verdict


def comparison_header(result: Comparison) -> RenderableType:
    """What is compared and of which model, how it was read, and both texts with the word marked."""
    told = " · ".join(filter(None, (looks(result), kinds(result), models(result))))
    title = Text.assemble((subject(result), "bold"), f" · {told}")
    lines = [title]
    for told in dict.fromkeys(reading(side.head.provenance).plain for side in result.sides):
        lines.append(Text(told, style=DIM))
    for name, side in zip("AB", result.sides, strict=True):
        told = " · ".join(filter(None, (side_words(result, side), sentence(side), attended_words(side))))
        lines.append(Text.assemble((f"{name} ", "bold"), told))
    return Group(*lines)


def comparison(result: Comparison, width: int, verbose: bool = False) -> RenderableType:
    """The table of layers or heads, what it means, both rows of weights, and the certificates."""
    parts: list[RenderableType] = [
        *_table(result),
        *(Text(told, style=DIM) for told in [*table_remarks(result), *remarks(result)]),
        "",
    ]
    parts += [Text(shown_words(result), style="bold"), *both_rows(result, width), ""]
    return Group(*parts, *_certificates(result, verbose))


def _table(result: Comparison) -> list[Text]:
    if result.between is Between.LAYERS:
        return _by_head(result) if len(result.heads) > 1 else []
    return _by_layer(result) if result.similarities or result.divergence else []


def _by_layer(result: Comparison) -> list[Text]:
    """One line per layer: cosines of all compared heads as one vector, and the head that differs most."""
    several = len(result.heads) > 1
    lines = []
    if result.similarities:
        told = f"cosine between the vectors of the word in A and B, {together(result)}"
        lines.append(Text(told, DIM))
    heading = "".join(right(each.vector, _cell(each.vector)) for each in result.similarities)
    if several and result.similarities:
        heading += "  least alike"
    if result.divergence is not None:
        heading += "  furthest apart" if several else "  rows apart"
    margin = len(f"L{max(layer for layer, _ in result.layers)}") + 1
    lines.append(line(" " * margin, (heading, HEADING)))
    for i, (layer, _) in enumerate(result.layers):
        lines.append(line((left(f"L{layer}", margin), HEADING), *_cosines(result, i), *_extremes(result, i)))
    return lines


def _cosines(result: Comparison, i: int) -> list[tuple[str, StyleType] | str]:
    """The coloured cells of layer number `i`."""
    cells: list[tuple[str, StyleType] | str] = []
    for each in result.similarities:
        value = float(each.together[i])
        cells.append(" " * (_cell(each.vector) - 7))
        cells.append((right(cosine_text(value), 7), palette.diverging(value, 1.0)))
    return cells


def _extremes(result: Comparison, i: int) -> list[str]:
    """Of layer number `i` the head with the least alike outputs and the one with the rows furthest apart."""
    several, cells = len(result.heads) > 1, []
    output, rows = result.similarity("output"), result.divergence
    if several and output is not None:
        cells.append("  " + left(_extreme(result, -output.heads[i], output.heads[i]), 11))
    if rows is not None:
        apart = rows.jensen_shannon[i]
        cells.append("  " + (_extreme(result, apart, apart) if several else right(cosine_text(apart[0]), 10)))
    return cells


def _cell(name: str) -> int:
    return max(len(name), 7) + 2


def _extreme(
    result: Comparison, differing: Float[np.ndarray, " head"], shown: Float[np.ndarray, " head"]
) -> str:
    """`H3 0.912`: the head that differs most."""
    if np.isnan(differing).all():
        return "-"
    j = int(np.nanargmax(differing))
    return f"{left(f'H{result.heads[j]}', 4)}{right(cosine_text(shown[j]), 6)}"


def _by_head(result: Comparison) -> list[Text]:
    """One line per head: how far apart the rows of the two layers are."""
    assert result.divergence is not None, "one text gives one sequence of tokens"
    lines = [line((left("", 5) + "Jensen-Shannon (nats)  total variation", HEADING))]
    for j, head in enumerate(result.heads):
        values = (
            each[0, j] for each in (result.divergence.jensen_shannon, result.divergence.total_variation)
        )
        first, second = (cosine_text(float(value)) for value in values)
        lines.append(line((left(f"H{head}", 5), HEADING), right(first, 21), right(second, 17)))
    return lines


def _certificates(result: Comparison, verbose: bool) -> list[Text]:
    """Every head that a number was taken from by verdict, then the two that are shown, unless that is all."""
    lines = [
        Text(f"{GLYPHS[verdict]} {told}", style=STYLES[verdict]) for verdict, told in verdict_counts(result)
    ]
    for name, side in zip("AB", result.sides, strict=True):
        proof = side.head.certificate
        if verbose or proof.verdict is not Verdict.CERTIFIED:
            named = (f"{name} {side.head.name} ", "bold")
            lines.append(Text.assemble(named, certificate_line(proof, verbose)))
    return lines
