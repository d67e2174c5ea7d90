"""Blocks and a sheet of nothing that the program knows: what every medium must be able to draw."""

from dataclasses import replace

import made_results
import numpy as np

from attnscope.render.kit.numbers import signed, weight
from attnscope.render.sheet.blocks import Curve, Matrix, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Line, Mark, Scale, Table
from attnscope.results import Verdict

NAMES = ("L0 H3", "L10 H11", "both at once")


def table(rows: int = 3) -> Table:
    """Up to three rows; the last has no control."""
    scores = [0.91, 0.4, -0.05]
    return Table(
        *(replace(each, values=each.values[:rows], told=each.told[:rows]) for each in _columns(scores))
    )


def _columns(scores: list[float]) -> tuple[Column, ...]:
    return (
        Column("layer", [0, 10, None]),
        Column("score", scores, "score", signed, "how much it does", Scale.around(scores)),
        Column("exact", [1 / 3, 2 / 3, float("nan")]),
        Column("control", [0.2, 0.3, None], "control", weight, "what others do", spared=1),
        Column(
            "beaten", [3, 1, None], "beats", says="how many others", told=["3 of 4", "1 of 4", ""], spared=2
        ),
        Column("kind", ["place", "word", ""], "by"),
        Column("absent", [None, None, None], "absent", says="nobody may read this"),
    )


def ranking(**other: object) -> Ranking:
    """A bar, a span of the control, a ring on it, a line across."""
    rows = table()
    made = {
        "title": "best heads first",
        "of": "head",
        "names": NAMES,
        "table": rows,
        "measured": "score",
        "marks": (
            Mark("bar", "own", "score", rows["score"].values),
            Mark("span", "control", "", [0.1, 0.2, None], [0.3, 0.5, None]),
            Mark("ring", "control", "its control", rows["control"].values),
            Mark("line", "limit", "largest by chance", [0.7]),
        ),
        "written": "score",
        "hidden": 5,
    }
    return Ranking(**(made | other))  # type: ignore[arg-type]


def grid(layers: int = 3, heads: int = 5, **other: object) -> HeadGrid:
    """Numbers around 0; the last head of the first layer has none."""
    values = np.linspace(-0.4, 0.9, layers * heads).reshape(layers, heads)
    if heads > 1:
        values[0, -1] = np.nan
    made = {"scale": Scale.around(values), "form": signed}
    shown = tuple(range(layers)), tuple(range(heads)), values
    return HeadGrid("by layer and head", *shown, **(made | other))  # type: ignore[arg-type]


def matrix(rows: int = 3, columns: int = 4) -> Matrix:
    """Every number another one; nothing in the last cell of the first row."""
    values = np.linspace(-0.6, 0.9, rows * columns).reshape(rows, columns)
    values[0, -1] = np.nan
    down, across = (
        made_results.tokens([f"{word}{i}" for i in range(count)])
        for word, count in (("r", rows), ("c", columns))
    )
    return Matrix(
        "B less A", ("query", "key"), down, across, values, Scale.around(values), signed, "blue: more"
    )


def curve(**other: object) -> Curve:
    """Layers that do not follow one another evenly; the last has no number. A band, points, a ring."""
    cosines = [0.1, 0.5, 0.4, float("nan")]
    made = {
        "title": "how alike, layer by layer",
        "of": "layer",
        "names": ("L0", "L1", "L2", "L5"),
        "table": Table(Column("cosine", cosines, "cosine", form=weight, told=[*map(weight, cosines)])),
        "places": (0.0, 1.0, 2.0, 5.0),
        "measured": "cosine",
        "lines": (
            Line("line", "own", "all heads", cosines),
            Line("band", "own", "their range", [0.0, 0.2, 0.1, 0.1], [0.3, 0.6, 0.5, 0.9]),
            Line("points", "own", "one head", [[0.0, 0.3], [0.6], [], [-0.2]]),
            Line("ring", "control", "", [None, 0.6, None, None]),
        ),
        "chosen": frozenset({1}),
    }
    return Curve(**(made | other))  # type: ignore[arg-type]


def sheet(**other: object) -> Sheet:
    """A ranking, then its grid."""
    made = {
        "title": "an invention",
        "setting": "12 heads",
        "origins": (made_results.provenance(),),
        "answer": "L0 H3 does .91 where others do .20.",
        "blocks": (ranking(), grid()),
        "table": table,
        "texts": ("“one two”",),
        "notes": ("a note", "[b]no markup[/b]"),
        "proof": ((Verdict.CERTIFIED, "✓ certified: 3 of 3 heads"),),
        "main": ranking(),
        "control": "the words shuffled",
        "next": Next("what is it?", "attnscope heads -m demo"),
    }
    return Sheet(**(made | other))  # type: ignore[arg-type]
