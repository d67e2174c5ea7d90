"""Numbers by layer and head: measures, and what heads were ranked by, each with its control."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnscope.render.sheet.blocks import HeadGrid
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.web.blocks import short
from attnscope.results import Comparison, HeadScores, Overview

Grid = dict[str, Any]


def grid(
    name: str,
    layers: Sequence[object],
    heads: Sequence[int],
    values: np.ndarray,
    *,
    unit: str = "",
    limits: tuple[float, float] | None = None,
    signed: bool = False,
    control: tuple[str, np.ndarray] | None = None,
    classes: Sequence[str] = (),
    low: bool = False,
    says: str = "",
) -> Grid:
    """The dark end is the high one, or the `low`; `signed` numbers diverge around 0.

    `control` is a name and as many numbers, told beside each.
    """
    return {
        "name": name,
        "layers": list(layers),
        "heads": list(heads),
        "values": _classes(values) if classes else short(values),
        "unit": unit,
        "limits": None if limits is None or not np.isfinite(limits).all() else list(limits),
        "signed": signed,
        "low": low,
        "controlName": "" if control is None else control[0],
        "control": None if control is None else short(control[1]),
        "classes": list(classes) or None,
        "says": says,
    }


def _classes(values: np.ndarray) -> list[list[int | None]]:
    return [[None if np.isnan(each) else int(each) for each in row] for row in values]


def of_overview(overview: Overview) -> list[Grid]:
    """Its measures that have a meaning."""
    return [_measure(each) for each in overview.scores.values() if not each.absent]


def _measure(scores: HeadScores) -> Grid:
    even = None if scores.even is None else ("all keys alike", scores.even)
    told = scores.description
    signed = told.signed
    limits = None if signed else scores.limits
    return grid(
        told.name,
        scores.layers,
        scores.heads,
        scores.values,
        unit=told.unit,
        limits=limits,
        signed=signed,
        control=even,
        classes=told.classes,
        low=told.strong == "low",
        says=" · ".join(filter(None, (told.meaning, told.paper))),
    )


def of_sheet(sheet: Sheet) -> list[Grid]:
    """The grids of heads of a sheet."""
    return [_of_block(each) for each in sheet.every if isinstance(each, HeadGrid)]


def _of_block(block: HeadGrid) -> Grid:
    scale = block.scale
    return grid(
        block.title,
        block.layers,
        block.heads,
        block.values,
        unit=block.unit,
        limits=(scale.low, scale.high),
        signed=scale.kind == "signed",
        low=scale.kind == "falling",
        says=block.says,
    )


def of_comparison(found: Comparison) -> list[Grid]:
    """How alike the vectors are, and how far apart the rows; layers are those of side a."""
    layers = [a for a, _ in found.layers]
    alike = [
        grid(f"cosine of the {each.vector} vectors", layers, found.heads, each.heads, signed=True)
        for each in found.similarities
    ]
    if found.divergence is None:
        return alike
    moved = grid(
        "total variation of the rows",
        layers,
        found.heads,
        found.divergence.total_variation,
        limits=(0.0, 1.0),
    )
    apart = grid("divergence of the rows", layers, found.heads, found.divergence.jensen_shannon, unit="nats")
    return [apart, moved, *alike]
