"""A reading with a cache of its attention, for interactive questions about head after head.

Every head is recomputed and certified on demand from one captured run, in milliseconds. The layer that is
asked for first is read by a run that ends behind it, all others by the next run. The cache has a bound: where
the attention of all layers is larger, the layers asked for last stay, and others are read again.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from threading import Lock, RLock

from attnscope.attention import Capture
from attnscope.measures import MEASURES
from attnscope.results import HeadTerms, HeadView, HeadWeights, Overview
from attnscope.session.choosing import Chosen
from attnscope.session.opening import look_at
from attnscope.session.questions.heads import TOKENS, Laid, OpenedHeads, lay_over
from attnscope.session.reading import Reading
from attnscope.session.wanted import Looking

HELD = 512 * 2**20  # bytes of attention in the cache
_OF_A_PAIR = 8  # bytes of a weight as it is captured, with the mask
_SOON = 0.7  # share of the layers from which a run may as well read all


class HeldReading:
    """A reading with cached attention of the `chosen` layers and heads; thread-safe.

    Only one run of the model goes on at a time: other code that runs it must hold `running`.
    """

    def __init__(self, reading: Reading, chosen: Chosen, running: RLock, held: int = HELD) -> None:
        self.reading, self.chosen, self.running = reading, chosen, running
        self._moving = Lock()
        self._parts: OrderedDict[int, Capture | None] = OrderedDict()
        pairs = len(reading.tokens_of(chosen.kind)) * len(reading.encoded.tokens)
        size = max(_OF_A_PAIR * pairs * max(chosen.tower.heads.values(), default=1), 1)
        self._most = max(held // size, 1)
        self._alone = reading.perceived is not None  # the windows of a picture are named layer by layer
        self.looked_at = chosen.layers[0]

    def head(self, layer: int, head: int, looking: Looking = TOKENS) -> HeadWeights | HeadView:
        """One head, or its view by `looking`; the returned weights where it cannot be recomputed."""
        self.looked_at = layer
        with self._opened(layer, (head,)) as heads:
            weights = heads.weights()
        return look_at(weights, looking) or weights

    def terms(self, layer: int, head: int) -> HeadTerms:
        """The terms that one head's scores are sums of."""
        with self._opened(layer, (head,)) as heads:
            return heads.terms()

    def over(self, layer: int, head: int, query: int | None) -> Laid:
        """The weights of one query over the patches or frames."""
        with self._opened(layer, (head,)) as heads:
            return lay_over(heads.reading, heads.chosen, None if query is None else f"@{query}")

    def measured(self, layer: int, measures: Sequence[str], heads: tuple[int, ...]) -> Overview:
        """An overview of these heads of one layer by all of `measures`, with certificates."""
        apart = any(MEASURES[name].description.apart for name in measures)
        with self._opened(layer, heads, runs=apart) as opened:
            return opened.overview(measures)

    @contextmanager
    def _opened(self, layer: int, heads: tuple[int, ...], *, runs: bool = False) -> Iterator[OpenedHeads]:
        """Context manager: these heads of a layer, under the lock where the model must run."""
        reading, chosen = self._layer(layer)
        kept = reading.captured is not None and not runs
        with nullcontext() if kept else self.running:
            yield OpenedHeads(reading, replace(chosen, heads=heads))

    def _layer(self, layer: int) -> tuple[Reading, Chosen]:
        chosen = replace(self.chosen, layers=(layer,))
        if self.reading.captured is not None:
            return self._cut(self.reading.captured, layer), chosen
        was_read, captured = self._find(layer)
        if not was_read:
            with self.running:
                was_read, captured = self._find(layer)
                if not was_read:
                    captured = self._read(layer)
        return (self.reading if captured is None else self._cut(captured, layer)), chosen

    def _find(self, layer: int) -> tuple[bool, Capture | None]:
        with self._moving:
            if layer not in self._parts:
                return False, None
            self._parts.move_to_end(layer)
            return True, self._parts[layer]

    def _cut(self, captured: Capture, layer: int) -> Reading:
        return replace(self.reading, captured=_of_layer(captured, layer))

    def _together(self, layer: int) -> tuple[int, ...]:
        """The layers to read in one run: at first this layer alone, so that it is there soon.

        Then all the others or, where these do not fit, as many neighbours as fill half of the cache.
        """
        layers = self.chosen.layers
        place = layers.index(layer)
        if self._alone or (not self._parts and place + 1 < _SOON * len(layers)):
            return (layer,)
        if len(layers) > self._most:
            half = max(self._most // 2, 1)
            layers = layers[place // half * half :][:half]
        return tuple(number for number in layers if number not in self._parts)

    def _read(self, layer: int) -> Capture | None:
        """Run the model once for this layer and those read with it, and cache them.

        The layers asked for longest ago are dropped, but never that of the head that is looked at.
        """
        layers = self._together(layer)
        with self.reading.listener.working("reading the attention"):
            attention = self.reading.attention(replace(self.chosen, layers=layers), projections=True)
        kept = attention if isinstance(attention, Capture) else None
        with self._moving:
            for number in layers:
                self._parts[number] = kept if kept is None else _of_layer(kept, number)
            self._parts.move_to_end(layer)
            if self.looked_at in self._parts:
                self._parts.move_to_end(self.looked_at)
            while len(self._parts) > max(self._most, 1):
                self._parts.popitem(last=False)
        return kept


def _of_layer(captured: Capture, layer: int) -> Capture:
    return replace(captured, calls=tuple(call for call in captured.calls if call.layer == layer))
