"""The method `measure` of `Reading`: measures of heads by name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnscope.results import Overview
from attnscope.session.wanted import Numbers

if TYPE_CHECKING:
    from attnscope.library.readings import Reading


def measure(
    self: "Reading", name: str | Sequence[str], layers: Numbers = None, heads: Numbers = None, **options: Any
) -> Overview:
    """Overview of heads by one or more measures `name`; `options` are those of `overview`.

    Its `main.values` are the numbers of the first measure, by layer and head.
    """
    return self.overview(layers, heads, measure=name, **options)
