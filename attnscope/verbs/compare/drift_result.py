"""What a tuning changed: how far the attention of every head moved on many texts, beside the noise floor."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.base.origin import Counted, Kind, Provenance, Verdict
from attnscope.results.base.presented import Presented, Value, fits
from attnscope.results.claims.prompts import Prompt
from attnscope.results.heads import head_name
from attnscope.results.scores import ordered

Place = tuple[int, int]
SAME = 1e-9  # of what a head writes: less is rounding of its measurement


class Case(StrEnum):
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
    def mean(self) -> Float[np.ndarray, "layer head"]:
        """How far each head moved, in the mean over texts."""
        return np.asarray(self.moved.mean(axis=0))

    @cached_property
    def own_mean(self) -> Float[np.ndarray, "layer head"]:
        """The mean of `own` over the texts."""
        return np.asarray(self.own.mean(axis=0))

    @cached_property
    def written_mean(self) -> Float[np.ndarray, "layer head"]:
        """The mean of `written` over the texts."""
        return np.asarray(self.written.mean(axis=0))

    @cached_property
    def floor_mean(self) -> Float[np.ndarray, "layer head"]:
        """The mean of `floor` over the texts."""
        return np.asarray(self.floor.mean(axis=0))

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
        if np.isnan(self.own_mean).any():
            return None
        changed = np.fmax(self.own_mean, self.written_mean) > SAME
        first = ordered(self.own_mean + SAME * np.nan_to_num(self.written_mean))
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
    def case(self) -> Case:
        """What can be said of all heads together."""
        if not self.moved.any() and not (self.written > SAME).any():  # of none, what it writes is not known
            return Case.SAME
        return Case.MOVED if self.beyond else Case.WITHIN

    @property
    def exceeding(self) -> tuple[Place, ...]:
        """The heads that moved further than the limit, the furthest first; none where there is no limit."""
        return tuple(
            place for place in self.ranking if self.limit is not None and self.mean[place] > self.limit
        )

    def name(self, place: Place) -> str:
        """`L3 H11`."""
        return head_name(self.layers[place[0]], self.heads[place[1]])

    @property
    def by_layer(self) -> Float[np.ndarray, " layer"]:
        """How far attention moved in each layer, in the mean over its heads."""
        return np.asarray(self.mean.mean(axis=1))

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
        numbers = {"moved": self.mean, "low": self.low, "high": self.high, "own": self.own_mean}
        numbers |= {"written": self.written_mean, "floor": self.floor_mean}
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
