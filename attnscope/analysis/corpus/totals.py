"""What is kept of so many texts: moments, a sketch of where values lie, and the outermost texts; merged.

Moments are held apart for every other text, so that a head can be chosen on one half and judged by the other,
and by the length of texts. A text without the value (NaN) does not count.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from attnscope.analysis.corpus.moments import ByLength, Moments, Statistic
from attnscope.analysis.corpus.outer import Outer
from attnscope.analysis.corpus.sketch import ROUNDED, Sketch
from attnscope.results.claims.lengths import CorpusText

HALVES = 2
_MOMENTS = ("count", "mean", "squares")
_CLASSES = ("classes", "texts", "tokens")


@dataclass(frozen=True, eq=False)
class Totals:
    """All that is kept of the values of some texts; `statistic` is measure, layer, head."""

    moments: Moments
    lengths: ByLength
    sketch: Sketch
    outer: Outer

    @classmethod
    def of(
        cls,
        values: Float[np.ndarray, "text measure layer head"],
        numbers: Int[np.ndarray, " text"],
        texts: Sequence[CorpusText],
    ) -> "Totals":
        """Those of texts by their numbers, which rise in the order of the corpus and are never the same."""
        statistics = int(np.prod(values.shape[1:]))
        return cls(
            Moments.of(values, numbers % HALVES, HALVES),
            ByLength.of(values, np.array([each.tokens for each in texts], np.int64)),
            Sketch.of(values.reshape(len(values), statistics)),
            Outer.of(values, numbers, texts),
        )

    def merged(self, later: "Totals") -> "Totals":
        """With those of texts that come later."""
        return Totals(
            self.moments.merged(later.moments),
            self.lengths.merged(later.lengths),
            self.sketch.merged(later.sketch),
            self.outer.merged(later.outer),
        )

    @property
    def least(self) -> Statistic:
        """The lowest value of every statistic."""
        return np.asarray(self.outer.values[0, 0])

    @property
    def largest(self) -> Statistic:
        """The highest."""
        return np.asarray(self.outer.values[1, 0])

    def quantiles(self, levels: Sequence[float]) -> Float[np.ndarray, "level measure layer head"]:
        """Those of every statistic, between its least and its largest value."""
        found = self.sketch.quantiles(levels, self.least.size).reshape(len(levels), *self.least.shape)
        return np.asarray(np.clip(found, self.least, self.largest))

    def moved(self, place: Callable[[str], str]) -> "Totals":
        """The totals with every text where `place` says that it stands in the corpus."""
        texts = {number: replace(each, place=place(each.place)) for number, each in self.outer.texts.items()}
        return replace(self, outer=replace(self.outer, texts=texts))

    def arrays(self) -> dict[str, np.ndarray]:
        """By name, for a file."""
        texts = [(number, asdict(each)) for number, each in self.outer.texts.items()]
        return {
            **{name: getattr(self.moments, name) for name in _MOMENTS},
            **{f"length_{name}": getattr(self.lengths.moments, name) for name in _MOMENTS},
            **{f"length_{name}": _narrow(getattr(self.lengths, name)) for name in _CLASSES},
            "steps": _narrow(np.diff(self.sketch.entry, prepend=0)),
            "times": _narrow(self.sketch.times),
            "outer": self.outer.values,
            "outer_places": _narrow(self.outer.places() + 1),
            "outer_texts": np.frombuffer(json.dumps(texts).encode(), np.uint8),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Totals":
        """The totals of which `arrays` are what a file holds."""
        whole, apart = (
            Moments(*(arrays[f"{beginning}{name}"] for name in _MOMENTS)) for beginning in ("", "length_")
        )
        classes, texts_of, tokens = (arrays[f"length_{name}"].astype(np.int64) for name in _CLASSES)
        lengths = ByLength(classes, texts_of, tokens, apart)
        sketch = Sketch(np.cumsum(arrays["steps"], dtype=np.int64), arrays["times"].astype(np.int64))
        texts = {
            number: CorpusText(**each)
            for number, each in json.loads(arrays["outer_texts"].tobytes().decode())
        }
        numbers = np.array([-1, *texts], np.int64)[arrays["outer_places"]]
        return cls(whole, lengths, sketch, Outer(arrays["outer"], numbers, texts))


def _narrow(whole: Int[np.ndarray, "..."]) -> np.ndarray:
    return whole.astype(np.min_scalar_type(int(whole.max(initial=0))))


__all__ = ["HALVES", "ROUNDED", "Moments", "Sketch", "Totals"]
