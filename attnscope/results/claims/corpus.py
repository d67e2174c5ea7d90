"""Measures of heads over a corpus: of each head the mean over texts, how sure it is, and how texts differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from jaxtyping import Float

from attnscope.errors import InputError
from attnscope.results.base.origin import Kind, Provenance, Verdict, worst
from attnscope.results.base.parts import Value, fits
from attnscope.results.base.presented import Presented
from attnscope.results.scores import HeadScores

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
# of one part of speech to another, the same by distance alone, and what it is above that
LINK, DISTANCE_ALONE, GAIN = LINKS = ("link", "link-distance", "link-gain")
SURE = 2.0  # standard errors that a gain on texts held out takes


class Case(StrEnum):
    """What can be said of a corpus, or of two: which of the sentences answers (docs/guide/corpora.md)."""

    UNRANKED = "unranked"
    CLASSES = "classes"
    STRONGEST = "strongest"
    LINKED = "linked"
    ALL_LINK = "all heads link"
    CANNOT_TELL = "cannot tell"
    ONE_HEAD = "one head"
    ALIKE = "alike"
    APART = "apart"


@dataclass(frozen=True, eq=False)
class CorpusScores:
    """One measure of every head over the texts; each text counts as one, however long.

    `scores` hold the mean, or the commonest class, which a share `agreement` of the texts has (None for
    numbers). `error` is the standard error of the mean with texts as its trials, NaN for classes and where
    fewer than two texts count. `count` says how many do: a text without the value does not. `quantiles` are
    by `LEVELS`, off by at most a share `off` of themselves; `least` and `largest` are exact. `halves` are the
    means over every other text.
    """

    scores: HeadScores = field(metadata={"spread": True})
    error: Float[np.ndarray, "layer head"]
    count: Float[np.ndarray, "layer head"]
    least: Float[np.ndarray, "layer head"] = field(metadata={"file": "smallest"})
    largest: Float[np.ndarray, "layer head"]
    quantiles: Float[np.ndarray, "level layer head"]
    halves: Float[np.ndarray, "half layer head"]
    agreement: Float[np.ndarray, "layer head"] | None = None
    off: float = 2.0**-7

    @property
    def values(self) -> Float[np.ndarray, "layer head"]:
        return self.scores.values

    @property
    def absent(self) -> str:
        return self.scores.absent

    @property
    def strongest(self) -> tuple[int, int] | None:
        """The head that has most of it, or least where that is looked for; None where none has a number."""
        return _strongest(self.values, self.scores.description.strong)

    @property
    def strongest_of_halves(self) -> tuple[tuple[int, int] | None, ...]:
        """The same over every other text, and over those between."""
        return tuple(_strongest(half, self.scores.description.strong) for half in self.halves)

    @property
    def settled(self) -> bool:
        """Whether either half of the texts has the same strongest head."""
        first, second = self.strongest_of_halves
        return first is not None and first == second

    def check_parts(self) -> None:
        fits(len(self.quantiles) == len(LEVELS), "'quantiles' are not those of the levels")
        fits(len(self.halves) == 2, "'halves' are not two")


@dataclass(frozen=True)
class CorpusRead:
    """What was read: files by name and hash, and how much of them counts.

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
        """`dev.conllu`, `a.txt and 3 more`."""
        more = len(self.files) - 1
        return f"{self.files[0]} and {more} more" if more else self.files[0]

    @property
    def left_out(self) -> int:
        """How many texts and lines were set aside."""
        return sum(self.set_aside.values())

    def check_parts(self) -> None:
        fits(len(self.files) == len(self.digests) > 0, "'files' and 'digests' are not one for each")


@dataclass(frozen=True, eq=False, repr=False)
class Corpus(Presented):
    """All measures of the chosen heads over a corpus, by name; `shown` is the one that is looked at.

    `linked` are the parts of speech that were asked for, from and to, None where none were. `certified`
    counts heads by verdict in the `sampled` texts, a certificate a head and text; `unlike` is the largest
    difference of a weight there from that of the text read alone.
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
    tower: str = ""
    shown: str = ""
    linked: tuple[str, str] | None = None
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head in the texts that were sampled."""
        return worst(each for each, count in self.certified.items() if count)

    @property
    def main(self) -> CorpusScores:
        """What is looked at: the one that is `shown`, else the first that has a meaning."""
        if self.shown:
            return self.measure(self.shown)
        every = tuple(self.measures.values())
        return next((each for each in every if not each.absent), every[0])

    def measure(self, name: str) -> CorpusScores:
        """One measure by its name; `InputError` that lists what there is."""
        if name not in self.measures:
            raise InputError(f"no measure '{name}' in this corpus: {', '.join(self.measures)}")
        return self.measures[name]

    @property
    def held_out(self) -> tuple[float, float] | None:
        """What the best head of either half gains in the other half of the texts, and its standard error.

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
        """What can be said, by one test after the other."""
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
        _check_measures(self)
        missing = [each for each in LINKS if self.linked and each not in self.measures]
        fits(not missing, f"there is no measure {', '.join(missing)} of what is 'linked'")

    def derived(self) -> dict[str, Value]:
        held = None if self.linked is None or self.held_out is None else self.held_out
        told: dict[str, Value] = {"verdict": self.verdict, "case": self.case, "levels": LEVELS}
        if held is not None:
            told["held_out"] = {"above_control": held[0], "error": held[1]}
        return told


@dataclass(frozen=True, eq=False)
class ScoresApart:
    """What one measure is more over the second corpus than over the first, head by head.

    `difference` is of the means, `error` its standard error (of independent texts, Welch 1947), `reached` how
    many of them it is. Of many heads some differ much by chance alone: `chance` is how many errors one of
    them would be off by then, in the mean (normal scores, texts independent). `first` and `second` are the
    means of both.
    """

    scores: HeadScores = field(metadata={"spread": True})
    first: Float[np.ndarray, "layer head"]
    second: Float[np.ndarray, "layer head"]
    error: Float[np.ndarray, "layer head"]
    chance: float

    @property
    def difference(self) -> Float[np.ndarray, "layer head"]:
        return self.scores.values

    @property
    def reached(self) -> Float[np.ndarray, "layer head"]:
        """Difference in standard errors; NaN where there is none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(self.error > 0, self.difference / self.error, np.nan))

    @property
    def beyond(self) -> frozenset[tuple[int, int]]:
        """The heads that differ by more errors than chance makes one of them differ."""
        return frozenset((int(i), int(j)) for i, j in np.argwhere(np.abs(self.reached) > self.chance))


@dataclass(frozen=True, eq=False, repr=False)
class CorpusDifference(Presented):
    """Two corpora under one model, or one under two: every measure of every head, second less first.

    `shown` is the measure that is looked at.
    """

    reads: tuple[CorpusRead, CorpusRead]
    kind: Kind
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    measures: Mapping[str, ScoresApart]
    verdict_of_each: tuple[Verdict, Verdict]
    provenances: tuple[Provenance, Provenance]
    tower: str = ""
    shown: str = ""
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worse of both."""
        return worst(self.verdict_of_each)

    @property
    def provenance(self) -> Provenance:
        """That of the first; pictures and files name both."""
        return self.provenances[0]

    @property
    def main(self) -> ScoresApart:
        """What is looked at."""
        if self.shown:
            return self.measures[self.shown]
        return next(iter(self.measures.values()))

    @property
    def case(self) -> Case:
        """What can be said of the measure that is looked at: luck alone takes one head beyond `chance`."""
        main = self.main
        if np.isnan(main.reached).all():
            return Case.UNRANKED
        if np.isnan(main.chance):
            return Case.ONE_HEAD
        return Case.APART if len(main.beyond) > 1 else Case.ALIKE

    def check_parts(self) -> None:
        _check_measures(self)

    def derived(self) -> dict[str, Value]:
        return {"verdict": self.verdict, "case": self.case}


def _strongest(values: Float[np.ndarray, "layer head"], strong: str) -> tuple[int, int] | None:
    if np.isnan(values).all():
        return None
    place = int(np.nanargmin(values) if strong == "low" else np.nanargmax(values))
    i, j = np.unravel_index(place, values.shape)
    return int(i), int(j)


def _check_measures(result: Corpus | CorpusDifference) -> None:
    """Raises `Damaged` where there is no measure to show, or one of other heads."""
    fits(bool(result.measures), "'measures' are none")
    fits(not result.shown or result.shown in result.measures, "'shown' is none of the measures")
    every = [(each.scores.layers, each.scores.heads) for each in result.measures.values()]
    alike = all(each == (result.layers, result.heads) for each in every)
    fits(alike, "'measures' are of other layers and heads")
