"""What is kept of so many texts: moments, a sketch of where values lie, and the outermost texts; merged.

Moments are held apart for every other text, so that a head can be chosen on one half and judged by the other,
and by the length of texts. A text without the value (NaN) does not count.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from attnscope.measures import MEASURES
from attnscope.results import HeadScores, MeasureDescription
from attnscope.verbs.corpus.moments import ROUNDED, ByLength, Moments, Outer, Sketch, Statistic
from attnscope.verbs.corpus.result import DISTANCE_ALONE, GAIN, LEVELS, LINK, CorpusScores, CorpusText

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


def scores(
    totals: Totals,
    axes: tuple[Sequence[str], tuple[int, ...], tuple[int, ...]],
    absent: Mapping[str, str],
    longest: int,
    linked: tuple[str, str] | None,
) -> Mapping[str, CorpusScores]:
    """Every measure by its name; `axes` are measures, layers and heads, `absent` says why one has no meaning.

    `longest` are the tokens of the longest text, `linked` the parts of speech that are asked about.
    """
    measures, layers, heads = axes
    described = {name: measure.description for name, measure in MEASURES.items()}
    if linked is not None:
        described |= {description.name: description for description in _of_links(*linked)}
    count, mean, error = totals.moments.whole()
    halves = totals.moments.each()[1]
    places, by_length = totals.outer.places(), np.stack([totals.lengths.moments.each()[i] for i in (1, 2, 0)])
    quantiles = totals.quantiles(LEVELS)
    scored = {}
    for i, name in enumerate(measures):
        description = described[name]
        missing = absent.get(name, "")
        if not missing and not count[i].any():
            missing = "no text has it"
        values, agreement = (mean[i], None) if not description.classes else _commonest(totals, i, description)
        limits = _limits(name, description, values, longest)
        scored[name] = CorpusScores(
            scores=HeadScores(description, layers, heads, values, limits, absent=missing),
            error=np.full_like(error[i], np.nan) if description.classes else error[i],
            count=count[i],
            quantiles=quantiles[:, i],
            halves=halves[:, i],
            ends=totals.outer.values[:, :, i],
            texts=places[:, :, i],
            of_lengths=by_length[:, :, i],
            agreement=agreement,
            off=ROUNDED,
        )
    return scored


def _of_links(source: str, target: str) -> tuple[MeasureDescription, ...]:
    """What is said of the three, in their order."""
    pair = f"{source}->{target}"
    return (
        MeasureDescription(
            name=LINK,
            unit="weight",
            meaning=f"Mean weight of a {source} word on the {target} words of its text.",
            label=f"weight of {pair}",
            strongest=f"head of each layer that links {pair} most",
        ),
        MeasureDescription(
            name=DISTANCE_ALONE,
            unit="weight",
            meaning=f"The same for what any word of the text gives at the distances of {pair}.",
            label=f"weight at the distances of {pair}",
            strongest=f"head of each layer that looks most to where {target} stands",
        ),
        MeasureDescription(
            name=GAIN,
            unit="weight",
            meaning=f"Weight of {pair} less what its distances alone explain.",
            label=f"{pair} beyond its distances",
            least="-1",
            low="avoids them",
            high="seeks them",
            strongest=f"head of each layer that seeks {pair} most",
            signed=True,
        ),
    )


def _limits(name: str, description: MeasureDescription, values: np.ndarray, keys: int) -> tuple[float, float]:
    if name in MEASURES:
        return MEASURES[name].limits_of(values, keys)
    return (-1.0 if description.signed else 0.0), 1.0


def _commonest(totals: Totals, i: int, description: MeasureDescription) -> tuple[np.ndarray, np.ndarray]:
    """The commonest class of every head, of several the first, and the share of texts that have it."""
    shape, size = totals.least.shape, totals.least.size
    counts = np.stack(
        [totals.sketch.times_of(float(j), size).reshape(shape)[i] for j in range(len(description.classes))]
    )
    whole = counts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(whole > 0, counts.max(axis=0) / whole, np.nan)
    return np.where(whole > 0, counts.argmax(axis=0).astype(float), np.nan), share
