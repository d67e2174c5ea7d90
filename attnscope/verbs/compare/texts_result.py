"""The results of `compare` over many texts: senses of a word, or what a tuning changed."""

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
    """The word in one text: its token and position, and the text's label ("" for none).

    `word` is that token, and the pieces that belong to it; `pieces` are the positions of all of these.
    """

    text: str
    label: str
    word: str
    position: int
    pieces: tuple[int, ...] = ()


class SensesCase(StrEnum):
    """Outcomes for a word in many texts: whether labels part it."""

    UNLABELLED = "unlabelled"
    FEW_TEXTS = "few texts"
    FEW_CONTROLS = "few controls"
    PARTED = "parted"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, eq=False)
class Separation:
    """Mean cosines of text pairs with one label (`within`) and with two (`between`), by layer and head.

    The gap is the one less the other. Controls are other labelings with groups as large: of the `splits`
    there are, the real one among them, all others where they are few enough (`exact`), else labels shuffled
    with `seed`. `control_mean` is the mean gap over all these labelings, `excess` the real gap less that, in
    standard deviations over them (at least .02), `below` the number of `controls` with a smaller gap in each
    layer. `strongest` is the largest excess of any layer in each control, so that the best layer is compared
    with the best of every labeling (Westfall and Young 1993); `heads_strongest` is the largest of any head.
    `heads_within`, `heads_between`, `heads_control_mean` and `heads_excess` are those of single heads.
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
        """The gap less its mean over all labelings."""
        return np.asarray(self.gap - self.control_mean)

    @property
    def heads_gap(self) -> Float[np.ndarray, "layer head"]:
        """Mean cosine of a head's outputs within labels, less that between labels."""
        return np.asarray(self.heads_within - self.heads_between)

    @property
    def controls(self) -> int:
        """Number of other labelings that the real one is compared with."""
        return len(self.strongest)

    @property
    def reached(self) -> int:
        """Number of controls in which some layer's excess is at least the best real one."""
        return reaching(self.strongest, self.excess)

    @property
    def heads_reached(self) -> int:
        """Number of controls in which some head's excess is at least the best real one."""
        return reaching(self.heads_strongest, self.heads_excess)

    @property
    def p(self) -> float:
        """The p-value of the best layer; exact where all splits were gone through."""
        return (1 + self.reached) / (self.controls + 1)

    @property
    def heads_p(self) -> float:
        """The p-value of the best head."""
        return (1 + self.heads_reached) / (self.controls + 1)

    @property
    def least_p(self) -> float:
        """The smallest possible p-value, where no control reaches the real gap."""
        return 1 / (self.controls + 1)


def reaching(controls: Float[np.ndarray, " control"], real: Float[np.ndarray, "..."]) -> int:
    """Number of controls that are at least the largest real value, rounding aside."""
    return int((~(controls < np.fmax.reduce(real, axis=None) - ROUNDING)).sum())


def splits_of(sizes: Sequence[int]) -> int:
    """Number of ways to split texts into unnamed groups of these sizes."""
    alike = Counter(sizes).values()
    return factorial(sum(sizes)) // prod(factorial(size) for size in (*sizes, *alike))


@dataclass(frozen=True, eq=False, repr=False)
class Senses(Counted, Presented):
    """One word's vectors in many texts: `cosines` of its outputs, those of all `heads` of a layer as one.

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
        """The labels, in the order of their first texts."""
        return tuple(dict.fromkeys(usage.label for usage in self.usages if usage.label))

    @property
    def shown(self) -> int:
        """Index in `layers` of the layer shown: the one that parts labels best, else the last."""
        if self.separation is None:
            return len(self.layers) - 1
        return int(np.nan_to_num(self.separation.excess, nan=-np.inf).argmax())

    @property
    def case(self) -> SensesCase:
        """The outcome: first whether a result was possible, then what it is."""
        parted = self.separation
        if parted is None:
            return SensesCase.UNLABELLED
        if parted.splits * LEVEL < 1:
            return SensesCase.FEW_TEXTS
        if parted.least_p > LEVEL:
            return SensesCase.FEW_CONTROLS
        return SensesCase.PARTED if parted.p <= LEVEL else SensesCase.CANNOT_TELL

    def extremes(self, layer: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Indices of the two texts that are most alike at index `layer`, and of the two least alike."""
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
    """Outcomes of comparing a tuned model with its original."""

    SAME = "same"
    WITHIN = "within rounding"
    MOVED = "moved"


@dataclass(frozen=True, eq=False)
class PutBack:
    """Distances of the tuned model's answer with old head outputs put back.

    `texts` are the indices of the texts that were tried, those on which attention moved most. `tuned` is the
    distance of the tuned model's answer from the old one's, by text; `alone` is the distance left with each
    of the `heads` (layer and head) put back by itself, `others` the mean with other heads of the same layer,
    drawn by lot; NaN where there are none. `every` is left with all heads of the model put back at once.
    """

    texts: tuple[int, ...]
    heads: tuple[Place, ...]
    tuned: Float[np.ndarray, " text"]
    alone: Float[np.ndarray, "head text"]
    others: Float[np.ndarray, "head text"]
    every: Float[np.ndarray, " text"]

    @property
    def restored(self) -> Float[np.ndarray, " head"]:
        """The share of the change that is gone with one head put back; below 0 the change grew."""
        return self._gone(self.alone)

    @property
    def restored_by_others(self) -> Float[np.ndarray, " head"]:
        """The share of the change that is gone with other heads put back, in the mean over these."""
        return self._gone(self.others)

    @property
    def restored_by_every(self) -> float:
        """The share of the change that is gone with all heads put back: the rest is no head's output."""
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

    `moved` is the total variation of a query's two rows of weights (0 to 1; a sink counts as one more key),
    in the mean over the queries of a text, by text. `own` is the same where each layer of the tuned model
    reads what the old one's read, so that only its own weights matter. `written` is then the change of what a
    head writes, over the size of what it wrote, infinite where that is zero. Both are NaN where they could
    not be computed. `floor` is how far the old model moves from itself in `floor_by`. `low` and `high` are
    the ends of the 95 % interval of the mean of `moved` over texts (Student's t); NaN for fewer than six.

    `answers` is the distance between both models' answers, by text, `answers_floor` that of the old model
    from itself in `floor_by`; `answers_by` names the distance. NaN and empty where answers are not compared;
    `unanswered` says why, or why no head was put back.

    `names` are those of both models, `texts` the lines of the `file` that were read, `certified` counts the
    heads of one text under both by verdict. `limit` is the most that a head may move, None without a limit.
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
        """The provenance of the model before; pictures and files name both."""
        return self.before

    @cached_property
    def means(self) -> dict[str, Float[np.ndarray, "layer head"]]:
        """`moved`, `own`, `written` and `floor` of each head, mean over texts."""
        return {name: getattr(self, name).mean(axis=0) for name in ("moved", "own", "written", "floor")}

    @property
    def mean(self) -> Float[np.ndarray, "layer head"]:
        """Total variation of each head's rows between the models, mean over texts."""
        return self.means["moved"]

    @cached_property
    def loudest(self) -> Float[np.ndarray, " text"]:
        """The largest floor of any head, in each text."""
        return np.asarray(self.floor.max(axis=(1, 2)))

    @cached_property
    def louder(self) -> Int[np.ndarray, "layer head"]:
        """Number of texts in which each head moved further than any head's floor."""
        return np.asarray((self.moved > self.loudest[:, None, None]).sum(axis=0))

    @cached_property
    def ranking(self) -> tuple[Place, ...]:
        """Indices of all heads by how far they moved, furthest first; ties in the model's order."""
        return tuple(ordered(self.mean))

    @cached_property
    def beyond(self) -> frozenset[Place]:
        """Indices of heads that moved further than any head's floor in more than half of the texts."""
        return frozenset((int(i), int(j)) for i, j in np.argwhere(2 * self.louder > len(self.texts)))

    @cached_property
    def touched(self) -> tuple[Place, ...] | None:
        """Indices of the heads that changed by their own weights, those first whose attention moved most.

        Given their old inputs they look elsewhere or write something else. None where that is not known.
        """
        own, written = self.means["own"], self.means["written"]
        if np.isnan(own).any():
            return None
        changed = np.fmax(own, written) > SAME
        first = ordered(own + SAME * np.nan_to_num(written))
        return tuple(place for place in first if changed[place])

    @property
    def by_text(self) -> Float[np.ndarray, " text"]:
        """Total variation of attention on each text, mean over heads."""
        return np.asarray(self.moved.mean(axis=(1, 2)))

    @property
    def answers_differ(self) -> bool | None:
        """Whether answers differ by more than rounding makes, on average; None where not compared."""
        return bool(self.answers.mean() > self.answers_floor.mean()) if self.answers_by else None

    @property
    def case(self) -> DriftCase:
        """The outcome over all heads."""
        if not self.moved.any() and not (self.written > SAME).any():  # of none, what it writes is not known
            return DriftCase.SAME
        return DriftCase.MOVED if self.beyond else DriftCase.WITHIN

    @property
    def exceeding(self) -> tuple[Place, ...]:
        """Indices of the heads that moved further than the limit, furthest first; empty without a limit."""
        return tuple(
            place for place in self.ranking if self.limit is not None and self.mean[place] > self.limit
        )

    def name(self, place: Place) -> str:
        """The head's name, such as `L3 H11`."""
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
        """JSON fields: the heads ranked by how far they moved, and counts."""
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
