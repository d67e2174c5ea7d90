"""Measures of heads by their names: a method of what was read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnscope.results import Overview
from attnscope.session.wanted import Numbers

if TYPE_CHECKING:
    from attnscope.library.readings import Reading


def measure(
    self: "Reading", name: str | Sequence[str], layers: Numbers = None, heads: Numbers = None, **options: Any
) -> Overview:
    """One or more measures by `name` of several heads; `options` are those of `overview`.

    Its `main.values` are the numbers of the first by layer and head.
    """
    return self.overview(layers, heads, measure=name, **options)
