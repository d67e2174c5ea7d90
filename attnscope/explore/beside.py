"""What there is of a second sentence beside the first."""

from dataclasses import dataclass

from attnscope.results import Difference, HeadView, HeadWeights


@dataclass(frozen=True, eq=False)
class Beside:
    """The same head in the `other` text; the `difference` of both, or `why` there is none."""

    other: HeadWeights | HeadView
    difference: Difference | None
    why: str
