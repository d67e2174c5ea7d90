"""Each kind of result as a sheet: the one table in which a kind is entered.

Every medium asks here first. What has no line here yet is drawn in a room of its own.
"""

from collections.abc import Callable
from typing import Any

from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets.ablation import ablation
from attnscope.render.sheets.composition import composition
from attnscope.render.sheets.difference import difference
from attnscope.render.sheets.finding import finding
from attnscope.results import Ablation, Composition, Difference, Finding, Result

SHEETS: dict[type, Callable[[Any], Sheet]] = {
    Ablation: ablation,
    Composition: composition,
    Difference: difference,
    Finding: finding,
}


def sheet_of(result: Result) -> Sheet | None:
    """What a result shows; None of a kind that has no sheet."""
    make = SHEETS.get(type(result))
    return None if make is None else make(result)
