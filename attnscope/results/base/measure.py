"""What is said of a measure wherever its numbers are shown or written."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class MeasureDescription:
    """The words of one measure. They travel with its numbers, so that these can be shown without it.

    `label` names it where its name alone does not tell. `least` and `most` are the ends of its range, `most`
    perhaps by the number of `keys`; `low` and `high` say what a head at these ends does. `strong` is the end
    that is shaded dark and looked for, `strongest` names the head of a layer that lies nearest to it. A
    `signed` measure stands around 0; one with `classes` is the number of one of these, counted from 0. What
    is not taken of the text that is read says so `apart`.
    """

    name: str
    unit: str
    meaning: str
    paper: str = ""
    label: str = ""
    least: str = "0"
    most: str = "1"
    low: str = "none"
    high: str = "all of it"
    strong: Literal["low", "high"] = "high"
    strongest: str = "strongest head of each layer"
    signed: bool = False
    classes: tuple[str, ...] = ()
    apart: str = ""

    @property
    def range(self) -> str:
        """`0 to ln keys`."""
        return f"{self.least} to {self.most}"

    @property
    def title(self) -> str:
        """`entropy in nats`, `confidence, largest weight`."""
        return f"{self.name}, {self.label}" if self.label else f"{self.name} in {self.unit}"

    @property
    def scale(self) -> str:
        """The same in few words, for beside a colour bar."""
        return self.name if self.label else self.title
