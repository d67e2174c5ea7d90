"""Many texts: how alike a word is in them and how far labels part it, or what a tuning changed over them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import factorial, prod

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.base.origin import Counted, Kind, Provenance, Verdict
from attnscope.results.base.presented import Presented, Value, fits
from attnscope.results.claims.prompts import Prompt
from attnscope.results.heads import head_name
from attnscope.results.scores import ordered
from attnscope.vocabulary import Unit

LEVEL = 0.05  # of all labelings: where more part the word as well, nothing is shown
ROUNDING = 1e-9  # of a gap, in its spread
SAME = 1e-9  # of what a head writes: less is rounding of its measurement
Place = tuple[int, int]


@dataclass(frozen=True)
class Usage:
    """The word in one text: the token that was taken, its position, and the text's label, "" without one.

    `word` is that token, and the pieces that belong to it; `pieces` are the positions of all of these.
    """

    text: str
    label: str
    word: str
    position: int
    pieces: tuple[int, ...] = ()


class SensesCase(StrEnum):
    """What can be said of a word in many texts: which of the sentences answers."""

    UNLABELLED = "unlabelled"
    FEW_TEXTS = "few texts"
    FEW_CONTROLS = "few controls"
    PARTED = "parted"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, eq=False)
class Separation:
    """Mean cosines of pairs of texts with one label (`within`) and with two (`between`), by layer and head.

    The gap is the one less the other. Its control are other labelings with groups as large: of the `splits`
    there are, the real one among them, all others where they are no more than was asked for (`exact`), else
    labels that were shuffled with `seed`. `control_mean` is the mean gap of all labelings that were gone
    through, `excess` how far the real gap is above it, in the standard deviation of that layer or head over
    them (at least .02), `below` how many of the `controls` stay below it in each layer. `strongest` is the
    largest excess of any layer in each control, so that the best layer is held against the best of every
    labeling (Westfall and Young 1993); `heads_strongest` is the same of all heads of all layers.
    `heads_within`, `heads_between`, `heads_control_mean` and `heads_excess` are the same of single heads.
    """

    within: Float[np.ndarray, " layer"]
    between: Float[np.ndarray, " layer"]
    heads_within: Float[np.ndarray, "layer head"]
    heads_between: Float[np.ndarray, "layer head"]
    control_mean: Float[np.ndarray, " layer"]
    heads_control_mean: Float[np.ndarray, "layer head"]
    excess: Float[np.ndarray, " layer"]
    heads_excess: Float[np.ndarray, "layer head"]
    below: Float[np.ndarray, " layer"]
    strongest: Float[np.ndarray, " control"]
    heads_strongest: Float[np.ndarray, " control"]
    splits: int
    exact: bool
    seed: int

    for_readers = ("controls", "above_control", "reached", "p", "heads_reached", "heads_p", "least_p")

    @property
    def gap(self) -> Float[np.ndarray, " layer"]:
        """How much more alike vectors of one label are, in cosine: `within` less `between`."""
        return np.asarray(self.within - self.between)

    @property
    def above_control(self) -> Float[np.ndarray, " layer"]:
        """The gap less the mean of that with other labels."""
        return np.asarray(self.gap - self.control_mean)

    @property
    def heads_gap(self) -> Float[np.ndarray, "layer head"]:
        """How much more alike outputs of a head are within one label, in cosine."""
        return np.asarray(self.heads_within - self.heads_between)

    @property
    def controls(self) -> int:
        """How many other labelings there are to be held against."""
        return len(self.strongest)

    @property
    def reached(self) -> int:
        """In how many controls some layer stands as clear of its own as the best one really does."""
        return reaching(self.strongest, self.excess)

    @property
    def heads_reached(self) -> int:
        """In how many controls some head stands as clear of its own as the best one really does."""
        return reaching(self.heads_strongest, self.heads_excess)

    @property
    def p(self) -> float:
        """How often other labels part the word as well: exact where all splits were gone through."""
        return (1 + self.reached) / (self.controls + 1)

    @property
    def heads_p(self) -> float:
        """How often other labels part the outputs of some head as well as those of the best one."""
        return (1 + self.heads_reached) / (self.controls + 1)

    @property
    def least_p(self) -> float:
        """The best that could have come out: what no control reaches."""
        return 1 / (self.controls + 1)


def reaching(controls: Float[np.ndarray, " control"], real: Float[np.ndarray, "..."]) -> int:
    """How many of the controls are not smaller than the largest of the real ones, rounding aside."""
    return int((~(controls < np.fmax.reduce(real, axis=None) - ROUNDING)).sum())


def splits_of(sizes: Sequence[int]) -> int:
    """In how many ways texts can be split into groups of these sizes, whatever the groups are called."""
    alike = Counter(sizes).values()
    return factorial(sum(sizes)) // prod(factorial(size) for size in (*sizes, *alike))


@dataclass(frozen=True, eq=False, repr=False)
class Senses(Counted, Presented):
    """A word in many texts. `cosines` are of its output vectors, those of all `heads` of a layer as one.

    The output of a head is that before the output projection. `separation` is None where the texts have no
    labels. `certified` counts the heads behind all numbers by verdict. `by` is the unit that was compared:
    token, word, sentence or passage. `question` is the word, as it was asked for.
    """

    question: str
    kind: Kind
    usages: tuple[Usage, ...]
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    cosines: Float[np.ndarray, "layer text text"]
    separation: Separation | None
    certified: dict[Verdict, int]
    provenance: Provenance
    by: Unit = Unit.TOKEN

    for_readers = ("verdict", "case")

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels there are, in the order of the texts."""
        return tuple(dict.fromkeys(usage.label for usage in self.usages if usage.label))

    @property
    def shown(self) -> int:
        """The place in `layers` of that which is shown in full: the one that parts best, else the last."""
        if self.separation is None:
            return len(self.layers) - 1
        return int(np.nan_to_num(self.separation.excess, nan=-np.inf).argmax())

    @property
    def case(self) -> SensesCase:
        """What can be said: first whether anything could have come out, then what has."""
        parted = self.separation
        if parted is None:
            return SensesCase.UNLABELLED
        if parted.splits * LEVEL < 1:
            return SensesCase.FEW_TEXTS
        if parted.least_p > LEVEL:
            return SensesCase.FEW_CONTROLS
        return SensesCase.PARTED if parted.p <= LEVEL else SensesCase.CANNOT_TELL

    def extremes(self, layer: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """The two texts whose vectors are most alike in the layer at that place, and the two least alike."""
        pairs = np.triu_indices(len(self.usages), 1)
        values = self.cosines[layer][pairs]
        most, least = int(np.nan_to_num(values, nan=-2).argmax()), int(np.nan_to_num(values, nan=2).argmin())
        return tuple((int(pairs[0][place]), int(pairs[1][place])) for place in (most, least))  # type: ignore[return-value]

    def check_parts(self) -> None:
        fits(len(self.usages) >= 2, "'usages' are of fewer than two texts")
        fits(self.cosines.shape[1:] == (len(self.usages),) * 2, "'cosines' are not between all 'usages'")
        if (parted := self.separation) is not None:
            one_each = len(parted.strongest) == len(parted.heads_strongest) > 0
            fits(one_each, "'strongest' and 'heads_strongest' are not one for each control")


class DriftCase(StrEnum):
    """What can be said, by one test after the other."""

    SAME = "same"
    WITHIN = "within rounding"
    MOVED = "moved"


@dataclass(frozen=True, eq=False)
class PutBack:
    """What the tuned model's answer becomes with the old outputs of heads in it.

    `texts` are the places of the texts that were tried, those on which attention moved most. `tuned` is how
    far the tuned model's answer lies from the old one's, by text; `heads` (layer and head) were put back one
    by one, which left the distances `alone`, and `others` in the mean over other heads of their layer, drawn
    by lot; NaN where there are none. `every` is left with all heads of the model put back at once.
    """

    texts: tuple[int, ...]
    heads: tuple[Place, ...]
    tuned: Float[np.ndarray, " text"]
    alone: Float[np.ndarray, "head text"]
    others: Float[np.ndarray, "head text"]
    every: Float[np.ndarray, " text"]

    @property
    def restored(self) -> Float[np.ndarray, " head"]:
        """The share of the change that is gone with one head put back; below 0: it has become larger."""
        return self._gone(self.alone)

    @property
    def restored_by_others(self) -> Float[np.ndarray, " head"]:
        """The share of the change that is gone with each of the other heads put back."""
        return self._gone(self.others)

    @property
    def restored_by_every(self) -> float:
        """The share that is gone with all heads put back at once: what is left is no head's output."""
        return float(self._gone(self.every[None])[0])

    def _gone(self, left: Float[np.ndarray, "head text"]) -> Float[np.ndarray, " head"]:
        whole = float(self.tuned.mean())
        if not whole > 0:
            return np.full(len(left), np.nan)
        return np.asarray(1 - left.mean(axis=1) / whole)

    def check_parts(self) -> None:
        alike = {self.alone.shape, self.others.shape, (len(self.heads), len(self.texts))}
        lengths = {len(each) for each in (self.tuned, self.every, self.texts)}
        fits(len(alike) == len(lengths) == 1, "'texts' differ")


@dataclass(frozen=True, eq=False, repr=False)
class Drift(Counted, Presented):
    """The attention of one model, `before`, beside that of its tuned form, `after`, over the texts of `file`.

    `moved` is the share of what a query gives that goes to other keys (total variation of its two rows of
    weights, 0 to 1; what a sink takes counts as one more key), in the mean over the queries of a text, by
    text. `own` is the same where each layer of the tuned model reads what the old one's read: it moves
    because of its own weights, and not of what earlier layers hand on. `written` is how far what it writes
    then lies from what it wrote, over the size of that, infinite where that is nothing. NaN where either
    could not be made. `floor` is how far the old model moves from itself in `floor_by`. `low` and `high` are
    the ends of the 95 % interval of the mean of `moved`, texts as trials (Student's t); NaN of fewer than
    six.

    `answers` is how far the answer of `after` lies from that of `before`, by text, and `answers_floor` how
    far that of the old model lies from itself in `floor_by`; `answers_by` says what such a distance is. NaN
    and empty where `unanswered` says why answers are not compared.

    `names` are those of both models, `texts` the lines of the `file` that were read, `certified` counts the
    heads of one text under both by verdict. `unanswered` says why answers are not compared, or no head was
    put back. `limit` is what no head was to move beyond, None where that was not asked.
    """

    names: tuple[str, str]
    file: str
    texts: tuple[Prompt, ...]
    kind: Kind
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    moved: Float[np.ndarray, "text layer head"]
    own: Float[np.ndarray, "text layer head"]
    written: Float[np.ndarray, "text layer head"]
    floor: Float[np.ndarray, "text layer head"]
    floor_by: str
    low: Float[np.ndarray, "layer head"]
    high: Float[np.ndarray, "layer head"]
    answers: Float[np.ndarray, " text"]
    answers_floor: Float[np.ndarray, " text"]
    answers_by: str
    put_back: PutBack | None
    unanswered: str
    certified: dict[Verdict, int]
    before: Provenance
    after: Provenance
    tower: str = ""
    limit: float | None = None
    notes: tuple[str, ...] = ()

    for_readers = ("verdict", "case")

    @property
    def provenance(self) -> Provenance:
        """That of the model before; pictures and files name both."""
        return self.before

    @cached_property
    def means(self) -> dict[str, Float[np.ndarray, "layer head"]]:
        """`moved`, `own`, `written` and `floor` of each head, in the mean over texts."""
        return {name: getattr(self, name).mean(axis=0) for name in ("moved", "own", "written", "floor")}

    @property
    def mean(self) -> Float[np.ndarray, "layer head"]:
        """How far each head moved, in the mean over texts."""
        return self.means["moved"]

    @cached_property
    def loudest(self) -> Float[np.ndarray, " text"]:
        """The floor of the head that has the highest in each text."""
        return np.asarray(self.floor.max(axis=(1, 2)))

    @cached_property
    def louder(self) -> Int[np.ndarray, "layer head"]:
        """In how many texts each head moved further than the floor moves any head."""
        return np.asarray((self.moved > self.loudest[:, None, None]).sum(axis=0))

    @cached_property
    def ranking(self) -> tuple[Place, ...]:
        """The places of all heads, those that moved most first; of equal ones the first in the model."""
        return tuple(ordered(self.mean))

    @cached_property
    def beyond(self) -> frozenset[Place]:
        """The heads that moved further than the floor moves any head, in more than half of the texts."""
        return frozenset((int(i), int(j)) for i, j in np.argwhere(2 * self.louder > len(self.texts)))

    @cached_property
    def touched(self) -> tuple[Place, ...] | None:
        """The heads that changed by their own weights, those whose attention did most first.

        Reading what they read before, they look elsewhere or write something else. None where that is not
        told from what they hear of others.
        """
        own, written = self.means["own"], self.means["written"]
        if np.isnan(own).any():
            return None
        changed = np.fmax(own, written) > SAME
        first = ordered(own + SAME * np.nan_to_num(written))
        return tuple(place for place in first if changed[place])

    @property
    def by_text(self) -> Float[np.ndarray, " text"]:
        """How far attention moved on each text, in the mean over heads."""
        return np.asarray(self.moved.mean(axis=(1, 2)))

    @property
    def answers_differ(self) -> bool | None:
        """Whether answers lie further apart than rounding moves one; None where they are not compared."""
        return bool(self.answers.mean() > self.answers_floor.mean()) if self.answers_by else None

    @property
    def case(self) -> DriftCase:
        """What can be said of all heads together."""
        if not self.moved.any() and not (self.written > SAME).any():  # of none, what it writes is not known
            return DriftCase.SAME
        return DriftCase.MOVED if self.beyond else DriftCase.WITHIN

    @property
    def exceeding(self) -> tuple[Place, ...]:
        """The heads that moved further than the limit, the furthest first; none where there is no limit."""
        return tuple(
            place for place in self.ranking if self.limit is not None and self.mean[place] > self.limit
        )

    def name(self, place: Place) -> str:
        """`L3 H11`."""
        return head_name(self.layers[place[0]], self.heads[place[1]])

    def check_parts(self) -> None:
        fits(bool(self.texts) and self.moved.size > 0, "'moved' is of no text or no head")
        shape = (len(self.texts), len(self.layers), len(self.heads))
        arrays = (self.moved, self.own, self.written, self.floor)
        fits(all(each.shape == shape for each in arrays), "the numbers are not one for each text and head")
        answers = {len(self.answers), len(self.answers_floor)}
        fits(answers == {len(self.texts)}, "'answers' are not one for each text")
        numbers = (self.moved, self.floor, *((self.answers, self.answers_floor) if self.answers_by else ()))
        fits(not any(np.isnan(each).any() for each in numbers), "what moved is no number")

    def derived(self) -> dict[str, Value]:
        """The heads as a ranking, those that moved most first."""
        numbers = {"moved": self.mean, "low": self.low, "high": self.high, **self.means}
        return {
            "unit": "total variation",
            "loudest": float(self.loudest.mean()),
            "beyond": len(self.beyond),
            "answers_differ": self.answers_differ,
            "touched": None if self.touched is None else [self.name(place) for place in self.touched],
            "exceeding": [self.name(place) for place in self.exceeding],
            "provenance": self.before,
            "ranking": [
                {"layer": self.layers[i], "head": self.heads[j], "beyond": (i, j) in self.beyond}
                | {name: float(values[i, j]) for name, values in numbers.items()}
                for i, j in self.ranking
            ],
        }
