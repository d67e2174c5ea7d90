"""The result of `corpus`: each head's mean over texts, its standard error, and how texts differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attnscope.errors import InputError
from attnscope.results.base.origin import Counted, Kind, Provenance, Verdict
from attnscope.results.base.presented import Presented, Value, fits
from attnscope.results.scores import HeadScores

FEWEST = 5  # texts of a class that both corpora have: of fewer their scatter says too little


@dataclass(frozen=True)
class CorpusText:
    """A text of a corpus.

    `place` is where it stands, `file:line`; `tokens` are how many were read of it; `text` is how it begins;
    `whole` says that this is all of it, and that read alone it gives the same numbers.
    """

    place: str
    tokens: int
    text: str
    whole: bool = True


@dataclass(frozen=True)
class LengthClass:
    """Texts of about one length.

    `least` and `most` are the fewest and the most tokens of a text; `texts` is how many there are,
    `tokens` how many tokens these have in all.
    """

    least: int
    most: int
    texts: int
    tokens: int

    @property
    def mean(self) -> float:
        """Mean number of tokens of a text."""
        return self.tokens / self.texts

    def check_parts(self) -> None:
        fits(self.texts > 0, "'texts' are none")
        fits(
            self.least * self.texts <= self.tokens <= self.most * self.texts, "'tokens' are not of the class"
        )


@dataclass(frozen=True)
class LengthPair:
    """Texts of about one length in two corpora.

    `least` and `most` are the fewest and the most tokens of a text; `texts` is how many either corpus has,
    `tokens` how many tokens these have in all.
    """

    least: int
    most: int
    texts: tuple[int, int]
    tokens: tuple[int, int]

    @property
    def shared(self) -> bool:
        """Whether both corpora have enough texts of this length."""
        return min(self.texts) >= FEWEST

    def check_parts(self) -> None:
        fits(max(self.texts) > 0 and min(self.texts) >= 0, "'texts' are none")


def alike(lengths: Sequence[LengthPair]) -> bool:
    """Whether every length class has the same share of texts in both corpora."""
    first, second = (sum(pair.texts[side] for pair in lengths) for side in (0, 1))
    return all(pair.texts[0] * second == pair.texts[1] * first for pair in lengths)


def can_be_equal(lengths: Sequence[LengthPair]) -> bool:
    """Whether two corpora need a comparison at equal length, and some class has enough texts of both."""
    return not alike(lengths) and any(pair.shared for pair in lengths)


LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
# of one part of speech to another, the same by distance alone, and what it is above that
LINK, DISTANCE_ALONE, GAIN = LINKS = ("link", "link-distance", "link-gain")
SURE = 2.0  # standard errors that a gain on texts held out takes


class Case(StrEnum):
    """Outcomes of a corpus (docs/guide/corpora.md)."""

    UNRANKED = "unranked"
    CLASSES = "classes"
    STRONGEST = "strongest"
    LINKED = "linked"
    ALL_LINK = "all heads link"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, eq=False)
class CorpusScores:
    """One measure of every head over the texts; each text counts as one, however long.

    `scores` hold the mean, or the commonest class, which a share `agreement` of the texts has (None for
    numbers). `error` is the standard error of the mean with texts as its trials, NaN for classes and where
    fewer than two texts count. `count` says how many do: a text without the value does not. `quantiles` are
    by `LEVELS`, off by at most a share `off` of themselves. `halves` are the means over every other text.
    `ends` are the lowest values and the highest, the outermost first, exact, and `texts` whose they are by
    the corpus's texts; NaN and -1 where there are fewer. `of_lengths` are mean, standard error and count over
    the texts of each class of length.
    """

    scores: HeadScores = field(metadata={"spread": True})
    error: Float[np.ndarray, "layer head"]
    count: Float[np.ndarray, "layer head"]
    quantiles: Float[np.ndarray, "level layer head"]
    halves: Float[np.ndarray, "half layer head"]
    ends: Float[np.ndarray, "end place layer head"]
    texts: Int[np.ndarray, "end place layer head"]
    of_lengths: Float[np.ndarray, "3 length layer head"]
    agreement: Float[np.ndarray, "layer head"] | None = None
    off: float = 2.0**-7

    @property
    def values(self) -> Float[np.ndarray, "layer head"]:
        """The mean over the texts, in the measure's unit."""
        return self.scores.values

    @property
    def absent(self) -> str:
        """The reason why there are no values; empty where there are."""
        return self.scores.absent

    @property
    def least(self) -> Float[np.ndarray, "layer head"]:
        """The lowest value of any text, by head."""
        return np.asarray(self.ends[0, 0])

    @property
    def largest(self) -> Float[np.ndarray, "layer head"]:
        """The highest value of any text, by head."""
        return np.asarray(self.ends[1, 0])

    def furthest(self, place: tuple[int, int]) -> list[tuple[int, float]]:
        """Texts furthest from one head's mean, as (number, value).

        As many as are kept at either end, for those at one end may all be further off than any at the other;
        then the outermost at the other end stands behind them.
        """
        values, texts = (each[(..., *place)] for each in (self.ends, self.texts))
        ends = [
            [(int(t), float(v)) for t, v in zip(*each, strict=True) if t >= 0]
            for each in zip(texts, values, strict=True)
        ]
        mean = float(self.values[place])
        every = sorted({*ends[0], *ends[1]}, key=lambda text: (-abs(text[1] - mean), text[0]))
        first = every[: self.ends.shape[1]]
        return first + [end[0] for end in ends if end and not {*end} & {*first}]

    @property
    def strongest(self) -> tuple[int, int] | None:
        """Indices of the head with the largest value, or the smallest if that is sought; None without any."""
        return _strongest(self.values, self.scores.description.strong)

    @property
    def strongest_of_halves(self) -> tuple[tuple[int, int] | None, ...]:
        """Indices of the strongest head on each half of the texts."""
        return tuple(_strongest(half, self.scores.description.strong) for half in self.halves)

    @property
    def settled(self) -> bool:
        """Whether both halves of the texts have the same strongest head."""
        first, second = self.strongest_of_halves
        return first is not None and first == second

    def check_parts(self) -> None:
        fits(len(self.quantiles) == len(LEVELS), "'quantiles' are not those of the levels")
        fits(len(self.halves) == 2, "'halves' are not two")
        fits(
            self.ends.shape == self.texts.shape and len(self.ends) == 2,
            "'ends' and 'texts' do not go together",
        )
        fits(not np.isnan(self.ends[self.texts >= 0]).any(), "'ends' lack a value of a text")


@dataclass(frozen=True)
class CorpusRead:
    """The files that were read, by name and hash, and how much of them counts.

    `set_aside` counts what could not be measured by its reason, `blanks` lines without a text. `padded` texts
    stood in a batch with longer ones, `cut` were cut to `limit` tokens, `unknown` counts pieces that the
    model cannot spell. `files` are the names, `digests` their hashes. `texts` and `tokens` are how many were
    measured, `longest` the tokens of the longest.
    """

    files: tuple[str, ...]
    digests: tuple[str, ...]
    texts: int
    tokens: int
    longest: int
    blanks: int
    set_aside: Mapping[str, int]
    padded: int
    cut: int
    unknown: int
    limit: int | None = None

    @property
    def name(self) -> str:
        """The files in short: `dev.conllu`, `a.txt and 3 more`."""
        more = len(self.files) - 1
        return f"{self.files[0]} and {more} more" if more else self.files[0]

    @property
    def tagged(self) -> bool:
        """Whether the corpus is one treebank file, which has parts of speech."""
        return len(self.files) == 1 and self.files[0].endswith(".conllu")

    @property
    def left_out(self) -> int:
        """Number of texts and lines that were set aside."""
        return sum(self.set_aside.values())

    def check_parts(self) -> None:
        fits(len(self.files) == len(self.digests) > 0, "'files' and 'digests' are not one for each")


class ByMeasures:
    """Values of heads by several measures, of which one is `shown`."""

    layers: tuple[int, ...]
    heads: tuple[int, ...]
    measures: Mapping[str, Any]
    shown: str

    def check_parts(self) -> None:
        fits(bool(self.measures), "'measures' are none")
        fits(not self.shown or self.shown in self.measures, "'shown' is none of the measures")
        every = [(each.scores.layers, each.scores.heads) for each in self.measures.values()]
        alike = all(each == (self.layers, self.heads) for each in every)
        fits(alike, "'measures' are of other layers and heads")


@dataclass(frozen=True, eq=False, repr=False)
class Corpus(ByMeasures, Counted, Presented):
    """All measures of the chosen heads over a corpus, by name; `shown` is the main one.

    `linked` are the parts of speech that were asked for, from and to, None where none were. `certified`
    counts heads by verdict in the `sampled` texts, a certificate a head and text; `unlike` is the largest
    difference of a weight there from that of the text read alone, in `held` of its `queries`, and `failed`
    says what of them is not as it was measured, and where. Whether answers act was tried on one sentence, not
    on these texts; of `untried` heads that could not be told. `texts` are those that lie outermost in any
    measure of any head, in their order, and `lengths` the classes of length that texts fall into.
    """

    read: CorpusRead
    kind: Kind
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    measures: Mapping[str, CorpusScores]
    certified: dict[Verdict, int]
    sampled: int
    unlike: float
    provenance: Provenance
    texts: tuple[CorpusText, ...]
    lengths: tuple[LengthClass, ...]
    tower: str = ""
    shown: str = ""
    linked: tuple[str, str] | None = None
    notes: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    held: int = 0
    queries: int = 0
    untried: int = 0

    @property
    def main(self) -> CorpusScores:
        """The main measure: the one that is `shown`, else the first that has values."""
        if self.shown:
            return self.measure(self.shown)
        every = tuple(self.measures.values())
        return next((each for each in every if not each.absent), every[0])

    def measure(self, name: str) -> CorpusScores:
        """The scores of one measure; `InputError` lists the names."""
        if name not in self.measures:
            raise InputError(f"no measure '{name}' in this corpus: {', '.join(self.measures)}")
        return self.measures[name]

    @property
    def held_out(self) -> tuple[float, float] | None:
        """Gain of each half's best head in the other half of the texts (mean), and its standard error.

        Of a link; None where one of the halves has no number.
        """
        gain = self.measure(GAIN)
        first, second = gain.strongest_of_halves
        if first is None or second is None:
            return None
        value = float(np.mean([gain.halves[1][first], gain.halves[0][second]]))
        return value, float(np.mean([gain.error[first], gain.error[second]]))

    @property
    def case(self) -> Case:
        """The first outcome whose test holds."""
        main = self.measure(GAIN) if self.linked else self.main
        if main.strongest is None:
            return Case.UNRANKED
        if self.linked is None:
            if main.scores.description.classes:
                return Case.CLASSES
            return Case.STRONGEST if main.settled else Case.CANNOT_TELL
        held = self.held_out
        if held is None or not held[0] > SURE * held[1]:
            return Case.CANNOT_TELL
        there = main.values[~np.isnan(main.values)]
        return Case.ALL_LINK if 2 * (there > 0).sum() >= there.size else Case.LINKED

    def check_parts(self) -> None:
        super().check_parts()
        for name, each in self.measures.items():
            known = each.texts.max(initial=-1) < len(self.texts) and each.texts.min(initial=-1) >= -1
            fits(known, f"'{name}' names a text that is not there")
            fits(each.of_lengths.shape[1] == len(self.lengths), f"'{name}' has other classes of length")
        missing = [each for each in LINKS if self.linked and each not in self.measures]
        fits(not missing, f"there is no measure {', '.join(missing)} of what is 'linked'")

    def derived(self) -> dict[str, Value]:
        held = None if self.linked is None or self.held_out is None else self.held_out
        told: dict[str, Value] = {"verdict": self.verdict, "case": self.case, "levels": LEVELS}
        if held is not None:
            told["held_out"] = {"above_control": held[0], "error": held[1]}
        return told


def _strongest(values: Float[np.ndarray, "layer head"], strong: str) -> tuple[int, int] | None:
    if np.isnan(values).all():
        return None
    place = int(np.nanargmin(values) if strong == "low" else np.nanargmax(values))
    i, j = np.unravel_index(place, values.shape)
    return int(i), int(j)
