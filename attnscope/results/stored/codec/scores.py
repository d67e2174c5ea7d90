"""Measures of heads as plain values and back: what is said of each travels with its numbers."""

import math
from dataclasses import asdict
from typing import Any

from attnscope.results.heads import HeadScores
from attnscope.results.measure import MeasureDescription
from attnscope.results.stored.codec.record import Record
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.typed import restored

# what files meant that named a measure and said no more of it
_MEANT: dict[str, dict[str, str]] = {
    "entropy": {
        "most": "ln keys",
        "low": "looks at one key",
        "high": "at all alike",
        "strong": "low",
        "strongest": "most focused head of each layer",
    },
    "confidence": {
        "label": "largest weight",
        "low": "spread thin",
        "high": "all on one key",
        "strongest": "most confident head of each layer",
    },
    "special tokens": {"label": "weight on special tokens"},
}


def measured(scores: HeadScores) -> dict[str, Value]:
    """What is said of a measure, and of its values in all; they themselves stand elsewhere."""
    described = asdict(scores.description)
    return described | {
        "range": scores.description.range,
        "limits": list(scores.limits),
        "absent": scores.absent,
    }


def read_scores(record: Record, **known: Any) -> HeadScores:
    """The scores that `measured` describes; layers, heads, values and even ones are `known`."""
    limits = record.get("limits", tuple[float, float])
    described = restored(MeasureDescription, record.told, "measures")
    return HeadScores(described, limits=limits, absent=record.get("absent", str), **known)


def meant(name: str, unit: str, keys: int, **known: Any) -> HeadScores:
    """The scores of a file that only named its measures."""
    described: Any = {"name": name, "unit": unit, "meaning": ""} | _MEANT.get(name, {})
    limits = (0.0, math.log(keys) if name == "entropy" else 1.0)
    return HeadScores(MeasureDescription(**described), limits=limits, **known)
