"""Relations of a treebank as a figure: each one's best head against its best offset, or one in every head."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnscope.render.kit.figure.page import FAINT, INK, Frame, Words, ink_on, sheet
from attnscope.render.kit.frame import only_spines
from attnscope.render.kit.typesetting import drawing, text_width
from attnscope.render.kit.words.certificate import GLYPHS, verdict_words
from attnscope.render.kit.words.figure import source_words
from attnscope.render.relations.words import (
    beaten_words,
    causal_words,
    certified_words,
    direction_words,
    finder,
    heads_words,
    held_words,
    left_out,
    rare_words,
    read_words,
    setting,
    share,
    shown_relations,
    subject,
    told_apart_words,
)
from attnscope.results import Dependencies, Verdict
from attnscope.results.claims.relations import Direction, Relation
from attnscope.tokens import printable

_HEAD, _OFFSET = "#0072b2", "#d55e00"
_LABEL, _WORD = 7.0, 8.0
_ROW, _WIDTH = 0.2, 4.6  # inches of a relation, and of the axis of accuracies
_MOST_NUMBERS = 24  # heads of a layer that have their number in the cell


def dependencies_figure(result: Dependencies) -> Figure:
    """A row for each relation, the largest gain on top; of one relation two grids of heads."""
    with drawing():
        relation = result.looked_at
        if relation is not None:
            return _grids(result, relation)
        frame = _frame(result)
        figure, (axes,) = sheet([frame], _words(result))
        draw_dependencies(result, axes)
    return figure


def ordered(result: Dependencies) -> list[Relation]:
    """All but punctuation, then the others, those first that gain most over the offset."""
    first, *rest = reversed(shown_relations(result))
    return [first, *sorted(rest, key=lambda each: each.baseline.accuracy - each.best.accuracy)]


def _names(result: Dependencies) -> list[str]:
    return [f"{printable(each.name)}  {each.count:,}" for each in ordered(result)]


def _frame(result: Dependencies) -> Frame:
    names, heads = _names(result), [_right_words(each) for each in ordered(result)]
    left = max(text_width(name, _LABEL) for name in names) + 0.15
    beside = max(text_width(name, _LABEL) for name in heads) + 0.2
    return Frame(_WIDTH + beside, _ROW * len(names), left=left, top=0.34, bottom=0.45)


def _right_words(relation: Relation) -> str:
    return f"{finder(relation)} | {relation.baseline.offset:+d}"


def draw_dependencies(result: Dependencies, axes: Axes) -> None:
    """Best head and best offset with their 95 % intervals, and the head on sentences held out."""
    relations = ordered(result)
    places = np.arange(len(relations))
    for place in places[1::2]:
        axes.axhspan(place - 0.5, place + 0.5, color="#f4f4f4", linewidth=0)
    axes.axhline(0.5, color=FAINT, linewidth=0.6)
    fixed, best = [each.baseline for each in relations], [each.best for each in relations]
    for shares, colour, shift in ((fixed, _OFFSET, 0.17), (best, _HEAD, -0.17)):
        low, high = ([getattr(each, end) for each in shares] for end in ("low", "high"))
        axes.hlines(places + shift, low, high, color=colour, linewidth=1.0)
    _marks(axes, [each.accuracy for each in best], places - 0.17, _HEAD, "o", "best head")
    _marks(axes, [each.accuracy for each in fixed], places + 0.17, _OFFSET, "D", "best fixed offset")
    held = [(place, each.held_out) for place, each in zip(places, relations, strict=True) if each.held_out]
    rows = np.array([place for place, _ in held]) - 0.17
    values = [each.accuracy for _, each in held]
    _marks(axes, values, rows, _HEAD, "o", "head chosen on other sentences", hollow=True)
    _axis(result, relations, axes)


def _marks(
    axes: Axes,
    values: list[float],
    places: np.ndarray,
    colour: str,
    marker: str,
    name: str,
    *,
    hollow: bool = False,
) -> None:
    size = 6.6 if hollow else 4.0 if marker == "o" else 3.4
    face = "none" if hollow else colour
    axes.plot(
        values, places, linestyle="", marker=marker, markersize=size, markerfacecolor=face,
        markeredgecolor=colour, markeredgewidth=0.9, label=name, zorder=4 if hollow else 3,
    )  # fmt: skip


def _axis(result: Dependencies, relations: list[Relation], axes: Axes) -> None:
    beside = max(text_width(_right_words(each), _LABEL) for each in relations) + 0.2
    axes.set_xlim(-0.012, 1 + beside / _WIDTH)
    axes.set_ylim(len(relations) - 0.5, -0.5)
    axes.set_yticks(range(len(relations)), _names(result), size=_LABEL, parse_math=False)
    axes.set_xticks(np.arange(0, 1.01, 0.2), [share(each) for each in np.arange(0, 1.01, 0.2)], size=_LABEL)
    axes.tick_params(length=0, colors=INK)
    axes.set_xlabel(
        "share of the edges whose head is found", size=_WORD, color=INK, x=0.5 * _WIDTH / (_WIDTH + beside)
    )
    for x in np.arange(0, 1.01, 0.2):
        axes.axvline(x, color="#dddddd", linewidth=0.5, zorder=0)
    for place, each in enumerate(relations):
        axes.text(1.02, place, _right_words(each), size=_LABEL, color=INK, va="center", parse_math=False)
    axes.text(1.02, -0.75, "head | offset", size=_LABEL, color=FAINT, va="bottom")
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=3, fontsize=7.0, frameon=False,
        borderaxespad=0.2, handletextpad=0.2, columnspacing=1.2,
    )  # fmt: skip
    only_spines(axes)


def _grids(result: Dependencies, relation: Relation) -> Figure:
    """Layers by heads for both directions on one scale; those better than the best offset outlined."""
    cell = 0.36 if len(result.heads) <= _MOST_NUMBERS else max(0.12, 9.0 / len(result.heads))
    wide, high = cell * len(result.heads), 0.72 * cell * len(result.layers)
    frames = [Frame(wide, high, left=0.55, top=0.45) for _ in Direction]
    figure, panels = sheet(frames, _words(result))
    values = result.by_head(relation.name)
    for k, (direction, axes) in enumerate(zip(Direction, panels, strict=True)):
        _draw_grid(result, values[:, :, k], relation, axes)
        axes.set_title(direction_words(direction), size=_WORD, color=INK, loc="left", pad=16)
    return figure


def _draw_grid(result: Dependencies, values: np.ndarray, relation: Relation, axes: Axes) -> None:
    mesh = axes.pcolormesh(values, cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=0.5)
    axes.set_ylim(len(result.layers), 0)
    step = max(1, len(result.heads) // _MOST_NUMBERS)
    columns = range(0, len(result.heads), step)
    axes.set_xticks([j + 0.5 for j in columns], [f"H{result.heads[j]}" for j in columns], size=6.5)
    rows = range(len(result.layers))
    axes.set_yticks([i + 0.5 for i in rows], [f"L{result.layers[i]}" for i in rows], size=6.5)
    axes.tick_params(length=0, pad=2, colors=INK, top=True, bottom=False, labeltop=True, labelbottom=False)
    only_spines(axes)
    for (i, j), value in np.ndenumerate(values):
        if len(result.heads) <= _MOST_NUMBERS:
            colour = ink_on(mesh, float(value))
            axes.text(j + 0.5, i + 0.5, share(float(value)), ha="center", va="center", size=6.0, color=colour)
        if value > relation.baseline.accuracy:
            axes.add_patch(
                Rectangle((j + 0.04, i + 0.05), 0.92, 0.9, fill=False, edgecolor=_OFFSET, linewidth=1.2)
            )


def _words(result: Dependencies) -> Words:
    heading = f"{subject(result)} · {setting(result)}"
    if result.verdict is not Verdict.CERTIFIED:
        heading += f" · {verdict_words(result.verdict)}"
    certified = " · ".join(f"{GLYPHS[verdict]} {told}" for verdict, told in certified_words(result))
    relation = result.looked_at
    if relation is not None:
        sentence = heads_words(result, relation)
        told = (
            f"{held_words(relation)}; outlined: better than the best fixed offset; on one scale from 0 to 1"
        )
        told = told.removeprefix("; ")
    else:
        sentence = told_apart_words(result)
        told = (
            "number: edges; right: best head, → from the dependent, ← from the head | best offset; "
            f"lines: 95 %, by scatter over sentences; {beaten_words(result)}"
        )
    parts = (read_words(result), left_out(result), "" if relation else rare_words(result))
    causal = "" if result.ahead else causal_words(result)
    foot = (
        told,
        causal,
        " · ".join(part for part in parts if part),
        certified,
        source_words(result.provenance),
    )
    return Words(heading, sentence, tuple(each for each in foot if each))
