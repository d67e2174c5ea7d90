"""What a page of a word on two sides holds beside the comparison: all heads of the layer that is shown.

They are taken while both runs are in memory, where a page is wished and has room for them; what they come to
is asked before anything is run. Nothing is drawn here.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from attnscope.analysis import measure_heads
from attnscope.attention import Capture
from attnscope.results import Comparison, Overview
from attnscope.session.choosing import Chosen
from attnscope.session.questions.pages import Extent, extent, seen_extent
from attnscope.session.reading import Reading

Fit = Callable[[Sequence[Extent]], bool]


class BothHeads:
    """`fit` says whether all heads have room, and refuses where not even one of each side has.

    `heads` are an overview of each side after that; none where they have no room.
    """

    def __init__(self, fit: Fit) -> None:
        self._fit, self._whole = fit, True
        self.heads: tuple[Overview, ...] = ()

    def foresee(self, *sides: tuple[Reading, Chosen]) -> None:
        """What one layer of each side comes to, before the model runs."""
        ones = [(reading, replace(chosen, layers=chosen.layers[:1])) for reading, chosen in sides]
        known = [extent(*each) for each in ones]
        foreseen = [each for each in known if each is not None]
        if len(foreseen) < len(sides):
            return
        if any(reading.perceived is not None for reading, _ in sides):
            foreseen = [seen_extent(*one, each) for one, each in zip(ones, foreseen, strict=True)]
        self._whole = self._fit(foreseen)

    def hold(self, found: Comparison, captures: tuple[Capture, Capture]) -> None:
        """The heads of both sides in the layers that are shown."""
        if self._whole and len(found.heads) > 1:
            pairs = zip(captures, found.sides, strict=True)
            self.heads = tuple(_heads(each, side.head.layer, found.heads) for each, side in pairs)


def _heads(captured: Capture, layer: int, heads: Sequence[int]) -> Overview:
    calls = [call for call in captured.calls if call.layer == layer]
    return measure_heads(replace(captured, calls=type(captured.calls)(calls)), heads)
