"""One query's scores in parts, drawn on Axes: parts down, keys across, then the weights."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from attnscope.render.kit.figure.page import INK, ink_on
from attnscope.render.kit.figure.sheet import CHIP
from attnscope.render.kit.labels import clusters, fit
from attnscope.render.kit.numbers import signed_texts, weight_text
from attnscope.render.kit.scale import Scale, scale_of
from attnscope.render.kit.stage import Panel
from attnscope.render.kit.typesetting import text_width
from attnscope.render.plot.heat import SIGNED, WEIGHTS, background, norm_of, weight_norm
from attnscope.render.plot.layout import token_labels
from attnscope.render.terminal.strongest import descending

MOST_KEYS = 25
CELL, HIGH = 0.44, 0.32  # inches
SIZE = 8.0  # points
_WIDEST = 16  # characters of a label


@dataclass(frozen=True, eq=False)
class Parts:
    """The row of `query` of every panel, at some keys of all; `key` is marked."""

    panels: dict[str, Panel]
    query: int
    key: int
    keys: list[int]

    @property
    def weight(self) -> Panel:
        return self.panels["weight"]

    @property
    def scores(self) -> dict[str, Panel]:
        """The parts of the score, and the score where it is a sum."""
        return {name: shown for name, shown in self.panels.items() if name != "weight"}

    @property
    def visible(self) -> Bool[np.ndarray, " key"]:
        return self.weight.visible[self.query, self.keys]

    @property
    def labels(self) -> list[str]:
        tokens = self.weight.column_tokens
        assert tokens is not None, "parts are of pairs"
        if len(self.keys) == len(tokens):
            return token_labels(tokens)
        return [f"{tokens.positions[key]} {fit(tokens.names[key], _WIDEST)}" for key in self.keys]

    @property
    def scale(self) -> Scale:
        """The shades of the weights of this row."""
        one = slice(self.query, self.query + 1)
        return scale_of(self.weight.values[one], self.weight.visible[one], self.weight.scaling)

    @property
    def left(self) -> float:
        return max(text_width(name, SIZE) for name in self.panels) + 0.15

    @property
    def above(self) -> float:
        return max(text_width(label, SIZE, bold=True) for label in self.labels) + 0.3


def parts_of(panels: dict[str, Panel], query: int, key: int | None) -> Parts:
    """All keys of a few, of many the strongest and `key`, in the order of the text."""
    weight = panels["weight"]
    ranked = [each for each in descending(weight.values[query]) if weight.visible[query, each]]
    chosen = (ranked or [0])[0] if key is None else key
    count = weight.values.shape[1]
    few = count <= MOST_KEYS
    return Parts(panels, query, chosen, list(range(count)) if few else sorted({*ranked[:MOST_KEYS], chosen}))


def draw_parts(parts: Parts, axes: Axes) -> None:
    """The scores, all on one scale around 0, with the names of the keys above them."""
    values = np.array([shown.values[parts.query, parts.keys] for shown in parts.scores.values()])
    shown = np.broadcast_to(parts.visible, values.shape)
    first = next(iter(parts.scores.values()))
    texts = signed_texts(np.where(shown, values, np.nan), 2)
    mesh = axes.pcolormesh(_masked(values, shown), cmap=SIGNED, norm=norm_of(first), **_EDGES)  # type: ignore[arg-type]
    _cells(parts, axes, list(parts.scores), shown)
    for row, column in np.argwhere(shown):
        _number(axes, (row, column), texts[row, column], ink_on(mesh, values[row, column]))
    axes.set_xticks(np.arange(len(parts.keys)) + 0.5, parts.labels, size=SIZE, parse_math=False)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0, pad=3, colors=INK)
    for text, key in zip(axes.get_xticklabels(), parts.keys, strict=True):
        text.set_rotation(90 if len(clusters(text.get_text())) > 1 else 0)
        if key == parts.key:
            text.set(color=CHIP, weight="bold")
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("key", size=SIZE, color=INK, labelpad=4)


def draw_weights(parts: Parts, axes: Axes) -> None:
    """The weights of the same keys, as dark as their row has them."""
    values, shown = parts.weight.values[parts.query, parts.keys][None], parts.visible[None]
    norm = weight_norm(parts.scale)
    drawn = values / parts.scale.top if norm.vmax == 1 and parts.scale.kind == "row" else values
    mesh = axes.pcolormesh(_masked(drawn, shown), cmap=WEIGHTS, norm=norm, **_EDGES)  # type: ignore[arg-type]
    _cells(parts, axes, ["weight"], shown)
    axes.set_xticks([])
    for row, column in np.argwhere(shown):
        weight = float(values[row, column])
        told = weight_text(weight, 2 if weight >= 0.1 else 3)
        _number(axes, (row, column), told, ink_on(mesh, drawn[row, column]))


_EDGES = {"edgecolors": "white", "linewidth": 0.4}


def _masked(
    values: Float[np.ndarray, "part key"], shown: Bool[np.ndarray, "part key"]
) -> np.ma.MaskedArray[tuple[int, int], np.dtype[np.float64]]:
    return np.ma.masked_where(~shown, np.where(np.isfinite(values), values, 0.0))


def _cells(parts: Parts, axes: Axes, names: list[str], shown: Bool[np.ndarray, "part key"]) -> None:
    """Hatching behind what is masked, the names of the rows, an outline around the key."""
    background(shown.shape, axes)
    axes.set(xlim=(0, shown.shape[1]), ylim=(shown.shape[0], 0))
    axes.set_yticks(np.arange(len(names)) + 0.5, names, size=SIZE, parse_math=False)
    axes.tick_params(axis="y", length=0, pad=3, colors=INK)
    axes.spines[:].set_visible(False)
    place = (parts.keys.index(parts.key), 0)
    style = {"fill": False, "edgecolor": CHIP, "linewidth": 1.3, "clip_on": False, "zorder": 5}
    axes.add_patch(Rectangle(place, 1, shown.shape[0], label="key", **style))  # type: ignore[arg-type]


def _number(axes: Axes, cell: tuple[int, int], text: str, colour: str) -> None:
    row, column = cell
    size = min(7.5, 0.9 * CELL / max(text_width(text, 1.0), 1e-3))
    axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", size=size, color=colour)
