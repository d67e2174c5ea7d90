"""A reading whose attention stays in memory: for who asks of one head after another.

Every head is recomputed and certified when it is asked for, from what the model gave once. No second run is
made for it, so the answer is there in milliseconds. What is kept has a bound: where the attention of all
layers is larger, that of the layers asked for last stays, and the others are read again.
"""

from collections import OrderedDict
from dataclasses import replace
from threading import Lock, RLock

from attnscope.attention import Capture
from attnscope.results import HeadTerms, HeadView, HeadWeights, Overview
from attnscope.session.choosing import Chosen
from attnscope.session.questions.heads import look_at, read_overview, read_terms, read_weights
from attnscope.session.questions.media import Laid, lay_over
from attnscope.session.reading import Reading
from attnscope.session.request import Looking

HELD = 512 * 2**20  # bytes of attention in memory
_OF_A_PAIR = 8  # bytes of a weight as it is captured, with the mask


class Kept:
    """`reading` with the attention of the `chosen` layers and heads; safe to ask from several threads.

    Only one run of the model goes on at a time: whoever runs it otherwise does so under `running`.
    """

    def __init__(self, reading: Reading, chosen: Chosen, running: RLock, held: int = HELD) -> None:
        self.reading, self.chosen, self.running = reading, chosen, running
        self._moving = Lock()
        self._parts: OrderedDict[int, Capture | None] = OrderedDict()
        pairs = len(reading.tokens_of(chosen.kind)) * len(reading.encoded.tokens)
        each = max(_OF_A_PAIR * pairs * max(chosen.tower.heads.values(), default=1), 1)
        self._most = max(held // each, 1)
        alone = reading.perceived is not None  # the windows of a picture are named layer by layer
        self._together = not alone and len(chosen.layers) <= self._most

    def head(self, layer: int, head: int, looking: Looking = Looking()) -> HeadWeights | HeadView:  # noqa: B008
        """One head, or the view of it that `looking` is; what the model returns where there is no more."""
        weights = read_weights(*self._one(layer, head))
        return look_at(weights, looking) or weights

    def terms(self, layer: int, head: int) -> HeadTerms:
        """The scores of one head taken apart."""
        return read_terms(*self._one(layer, head))

    def over(self, layer: int, head: int, query: int | None) -> Laid:
        """What one query gives to every patch or frame."""
        return lay_over(*self._one(layer, head), None if query is None else f"@{query}")

    def measured(self, layer: int, measure: str, looking: Looking = Looking()) -> Overview:  # noqa: B008
        """The heads of one layer by one measure, each with its certificate."""
        with self.running:
            reading, chosen = self._layer(layer)
            return read_overview(reading, chosen, (measure,), looking)

    def _one(self, layer: int, head: int) -> tuple[Reading, Chosen]:
        reading, chosen = self._layer(layer)
        return reading, replace(chosen, heads=(head,))

    def _layer(self, layer: int) -> tuple[Reading, Chosen]:
        """The reading with the attention of that layer in it, where it can be recomputed."""
        chosen = replace(self.chosen, layers=(layer,))
        if self.reading.captured is not None:
            return self._cut(self.reading.captured, layer), chosen
        known, found = self._find(layer)
        if not known:
            with self.running:
                known, found = self._find(layer)
                if not known:
                    found = self._read((layer,) if not self._together else self.chosen.layers)
        return (self.reading if found is None else self._cut(found, layer)), chosen

    def _find(self, layer: int) -> tuple[bool, Capture | None]:
        """Whether the layer was read, and what of it is kept; it now counts as asked for last."""
        with self._moving:
            if layer not in self._parts:
                return False, None
            self._parts.move_to_end(layer)
            return True, self._parts[layer]

    def _cut(self, captured: Capture, layer: int) -> Reading:
        calls = tuple(call for call in captured.calls if call.layer == layer)
        return replace(self.reading, captured=replace(captured, calls=calls))

    def _read(self, layers: tuple[int, ...]) -> Capture | None:
        """Run the model once for these layers, and forget those that were asked for longest ago."""
        chosen = replace(self.chosen, layers=layers)
        with self.reading.listener.working("reading the attention"):
            found = self.reading.attention(chosen, projections=True)
        kept = found if isinstance(found, Capture) else None
        with self._moving:
            for layer in layers:
                self._parts[layer] = kept
            while len(self._parts) > max(self._most, len(layers)):
                self._parts.popitem(last=False)
        return kept
