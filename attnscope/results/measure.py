"""What is said of a measure wherever its numbers are shown or written."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class MeasureDescription:
    """The words of one measure. They travel with its numbers, so that these can be shown without it.

    `least` and `most` name the ends of its range, `most` perhaps by the number of `keys`; `low` and `high`
    say what a head at these ends does. `strong` is the end that is shaded dark and looked for: a head is
    `strongest` when it lies nearest to it. `label` is the name on the page of one head, `per_head` what
    stands behind its value there.
    """

    name: str
    unit: str
    meaning: str
    paper: str = ""
    least: str = "0"
    most: str = "1"
    low: str = "none of a query's weight"
    high: str = "all of it"
    strong: Literal["low", "high"] = "high"
    strongest: str = "strongest"
    label: str = ""
    per_head: str = "of the weight of a query"

    @property
    def range(self) -> str:
        """`0 to ln keys`."""
        return f"{self.least} to {self.most}"
