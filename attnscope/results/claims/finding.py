"""Which heads do it: all of them ranked by one number, each beside the same number of control texts."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.base.origin import Kind, Provenance, Verdict, worst
from attnscope.results.base.parts import Value, fits, in_tokens, one_for_each
from attnscope.results.base.presented import Presented
from attnscope.tokens import Tokens
from attnscope.vocabulary import Special

_SAME = 1e-4  # of an excess: further apart than rounding makes two that are equal
_ROUNDINGS = 64  # machine epsilons of a number, between a text alone and in a batch


class Pattern(StrEnum):
    """Which keys of a query are meant, in place of one query and one key that are named.

    `same` are other places with the query's own token; `induction` are the tokens that followed an earlier
    one of these (Olsson et al. 2022).
    """

    PREVIOUS = "previous"
    NEXT = "next"
    SELF = "self"
    FIRST = "first"
    SAME = "same"
    INDUCTION = "induction"
    PUNCTUATION = "punctuation"
    SPECIAL = "special"

    @property
    def of_places(self) -> bool:
        """Whether it is about where a key stands alone, which exchanged words leave as it is."""
        return self in (Pattern.PREVIOUS, Pattern.NEXT, Pattern.SELF, Pattern.FIRST, Pattern.SPECIAL)


class Contents(StrEnum):
    """What controls are made of: the words of a text, the patches of a picture or the frames of a sound."""

    TEXT = "text"
    PICTURE = "picture"
    SOUND = "sound"

    @property
    def part(self) -> str:
        """One of what changes places."""
        return {Contents.TEXT: "word", Contents.PICTURE: "patch", Contents.SOUND: "frame"}[self]

    @property
    def parts(self) -> str:
        """What changes places."""
        named = {Contents.PICTURE: "patches of the picture", Contents.SOUND: "frames of the sound"}
        return named.get(self, "words of the text")


class DependsOn(StrEnum):
    """What a weight depends on: it stays with the position, goes with the word, or needs the context."""

    POSITION = "position"
    WORD = "word"
    CONTEXT = "context"


class Case(StrEnum):
    """What can be said of a ranking: which of the sentences answers (docs/guide/claims.md)."""

    UNRANKED = "unranked"
    POSITION_SOUGHT = "position sought"
    FEW_CONTROLS = "few controls"
    SEVERAL = "several"
    ONE = "one"
    NOTHING = "nothing"
    POSITION_ONLY = "position only"
    CANNOT_TELL = "cannot tell"


class Group(StrEnum):
    """How strong the evidence for a head is, the strongest first."""

    STANDS_OUT = "stand out"
    ABOVE_ITS_OWN = "above their own controls only"
    POSITION = "explained by position"
    NEITHER = "neither"


HALF = 0.5  # of a weight: what has to be left of it in the controls to say what it depends on
TWICE = 2.0  # even attention: what a weight is called weight from, and explained by position
LEVEL = 0.05  # of the controls: more of them that reach as far leave nothing shown
LEAST_CONTROLS = 19  # the fewest of which none reaching as far is that share
LEAST_SPREAD = 0.02  # of a head over its controls, in the numbers' own unit


@dataclass(frozen=True)
class Sought:
    """What heads are ranked by: the weight of one query on one key, that on a pattern, or likeness to a head.

    Exactly one of the three is there. `query` and `key` are positions, `like` is a layer and a head.
    """

    query: int | None = None
    key: int | None = None
    pattern: Pattern | None = None
    like: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class Controls:
    """The same number of every head in control texts, which have the shape of the text and other words.

    `low` and `high` hold the middle nine tenths of the controls, `spread` is a head's own standard deviation
    over them. `below` counts those that the text itself goes beyond. `best` is, text by text, the number of
    the head that is best in it, and `best_excess` how far the head that stands clearest of its own other
    controls does, in its own spread. `wanted` is how many controls there should have been; `how` says what
    they keep, `of` what they are made of, and `seed` repeats them. `ids` are the controls themselves, what
    the model read as its `input` of that name: tokens by their ids; of a picture or a sound which of its
    pieces stands at each place. `mean` is that of each head over them.
    """

    mean: Float[np.ndarray, "layer head"]
    low: Float[np.ndarray, "layer head"]
    high: Float[np.ndarray, "layer head"]
    spread: Float[np.ndarray, "layer head"]
    below: Float[np.ndarray, "layer head"]
    best: Float[np.ndarray, " control"] = field(metadata={"file": "best_of_controls"})
    best_excess: Float[np.ndarray, " control"] = field(metadata={"file": "best_excess_of_controls"})
    how: str
    seed: int
    wanted: int
    of: Contents = Contents.TEXT
    ids: Int[np.ndarray, "control place"] = field(default_factory=lambda: np.zeros((0, 0), dtype=int))
    input: str = "input_ids"

    for_readers = ("count",)

    @property
    def count(self) -> int:
        """How many controls there are."""
        return len(self.best)


@dataclass(frozen=True, eq=False, repr=False)
class Finding(Presented):
    """All heads that were looked at, by one number each.

    `weights[i, j]` belongs to `layers[i]` and `heads[j]`: the weight of the query on the key, 0 to 1; of a
    pattern the mean, over the `rows` queries that have such a key, of the weight on all of them; of likeness
    the Jensen-Shannon distance to the given head in nats, the mean over the queries (Lin 1991), where less is
    better. NaN where a head is not ranked.

    `ranks` is which of its keys this is to the query, 1 for the strongest (of a pattern the mean). `norms` is
    the weight times the length of what it moves, a_ij ||f(x_j)|| (Kobayashi et al. 2020), `shares` how much
    of the query's sum of these that is; None where the way out of the heads is not known. `even_attention` is
    what attention that weighs all keys alike would have. `followed` is what the query gave in the controls to
    the token that is the key here, wherever that went. Each is None where it has no meaning.

    With `words` the tokens are words: weights are summed over the pieces of a key and averaged over those of
    a query (Clark et al. 2019), and a norm is that of what all pieces move together. `special` tokens may be
    left out, and each row divided by what is left.

    `links` are the places of `query_tokens` and `key_tokens` that are meant: of a pair that one, of a pattern
    all of its keys that their query may look at, none of likeness. `heads` are their numbers, from 0.
    """

    question: Sought
    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    layers: tuple[int, ...]
    heads: tuple[int, ...] = field(metadata={"file": "head_numbers"})
    rows: int
    weights: Float[np.ndarray, "layer head"]
    ranks: Float[np.ndarray, "layer head"] | None
    norms: Float[np.ndarray, "layer head"] | None
    shares: Float[np.ndarray, "layer head"] | None
    even_attention: Float[np.ndarray, "layer head"] | None
    followed: Float[np.ndarray, "layer head"] | None
    controls: Controls
    verdicts: tuple[tuple[Verdict, ...], ...]
    provenance: Provenance
    tower: str = ""
    notes: tuple[str, ...] = ()
    words: bool = False
    special: Special = Special.SHOW
    links: Int[np.ndarray, "link 2"] = field(default_factory=lambda: np.zeros((0, 2), dtype=int))

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head."""
        return worst(verdict for layer in self.verdicts for verdict in layer)

    @cached_property
    def above_control(self) -> Float[np.ndarray, "layer head"]:
        """How far each head lies above the mean of its controls; of distances a head below it is nearer."""
        return np.asarray(self.weights - self.controls.mean)

    @property
    def smaller_is_better(self) -> bool:
        return self.question.like is not None

    @cached_property
    def excess(self) -> Float[np.ndarray, "layer head"]:
        """How far a head stands clear of its own controls, in its own spread over them (at least .02)."""
        clear = -self.above_control if self.smaller_is_better else self.above_control
        return np.asarray(clear / np.maximum(self.controls.spread, LEAST_SPREAD))

    @cached_property
    def ranking(self) -> tuple[tuple[int, int], ...]:
        """The places of all heads that have a number, those with the strongest evidence first.

        Heads that stand out, then those above their own controls only, those explained by position, the
        rest, which with too few controls come before position; in each by their excess, of position by
        weight and of likeness those that are most alike; of equal ones the first in the model.
        """

        groups, excess = self.groups, self.excess

        def evidence(place: tuple[int, int]) -> tuple[int, float, tuple[int, int]]:
            group, clear = self.group(place), excess
            if group is Group.POSITION:
                clear = self.weights
            elif group is Group.NEITHER and self.smaller_is_better:
                clear = -self.weights
            return groups.index(group), -float(clear[place]), place

        places = [(int(i), int(j)) for i, j in np.argwhere(~np.isnan(self.weights))]
        return tuple(sorted(places, key=evidence))

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups in the order of their evidence."""
        first, second = Group.STANDS_OUT, Group.ABOVE_ITS_OWN
        few = self.controls.count < LEAST_CONTROLS
        last = (Group.NEITHER, Group.POSITION) if few else (Group.POSITION, Group.NEITHER)
        return first, second, *last

    def as_far(self, place: tuple[int, int]) -> int:
        """In how many controls some head stands as far clear of its own others as this one does here."""
        return int((self.controls.best_excess >= self.excess[place] - _SAME).sum())

    def group(self, place: tuple[int, int]) -> Group:
        """The evidence for a head: one that position explains is so however far it stands clear.

        Nothing is shown of a head that gives no more than even attention.
        """
        return self._groups[place]

    @cached_property
    def _groups(self) -> dict[tuple[int, int], Group]:
        return {(i, j): self._group((i, j)) for i, j in np.ndindex(self.weights.shape)}

    def _group(self, place: tuple[int, int]) -> Group:
        if self.depends_on(place) is DependsOn.POSITION:
            return Group.POSITION
        looks = self.even_attention is None or self.weights[place] > self.even_attention[place]
        if looks and self.controls.count >= LEAST_CONTROLS and self.excess[place] > 0:
            if _rare(self.as_far(place), self.controls.count):
                return Group.STANDS_OUT
            if _rare(self.controls.count - int(self.controls.below[place]), self.controls.count):
                return Group.ABOVE_ITS_OWN
        return Group.NEITHER

    def of_group(self, group: Group) -> tuple[tuple[int, int], ...]:
        """The places of the heads of one group, best first."""
        return tuple(place for place in self.ranking if self._groups[place] is group)

    def stands_out(self, place: tuple[int, int]) -> bool:
        """Whether at most 5 % of controls have a head as far clear (Westfall and Young 1993)."""
        return self.group(place) is Group.STANDS_OUT

    def depends_on(self, place: tuple[int, int]) -> DependsOn | None:
        """Where half of a head's weight or more stays in the controls; the context where nowhere.

        None of likeness, and of a head that has no more there than even attention; of one that stays, no
        more than twice that.
        """
        own, even = float(self.weights[place]), self.even_attention
        if self.smaller_is_better or even is None or not own > float(even[place]):
            return None
        if float(self.controls.mean[place]) >= HALF * own:
            return DependsOn.POSITION if own >= TWICE * float(even[place]) else None
        followed = self.followed is not None and float(self.followed[place]) >= HALF * own
        return DependsOn.WORD if followed else DependsOn.CONTEXT

    @cached_property
    def case(self) -> Case:
        """What can be said, by one test after the other."""
        if not self.ranking:
            return Case.UNRANKED
        if self.question.pattern is not None and self.question.pattern.of_places:
            return Case.POSITION_SOUGHT
        if self.controls.count < LEAST_CONTROLS:
            return Case.FEW_CONTROLS
        if out := len(self.of_group(Group.STANDS_OUT)):
            return Case.ONE if out == 1 else Case.SEVERAL
        if self.even_attention is not None and not (self.weights >= TWICE * self.even_attention).any():
            return Case.NOTHING
        if self.of_group(Group.POSITION) and not self.of_group(Group.ABOVE_ITS_OWN):
            return Case.POSITION_ONLY
        return Case.CANNOT_TELL

    @property
    def control_texts(self) -> tuple[str, ...]:
        """The controls of a text, token by token with a blank between; none of a picture or a sound."""
        if self.controls.of is not Contents.TEXT:
            return ()
        items = (*self.query_tokens.items, *self.key_tokens.items)
        names = {token.id: token.name for token in items}
        return tuple(" ".join(names.get(id, f"#{id}") for id in ids) for ids in self.controls.ids.tolist())

    def check_parts(self) -> None:
        question = self.question
        in_tokens(self.links[:, 0].tolist(), len(self.query_tokens), "links")
        in_tokens(self.links[:, 1].tolist(), len(self.key_tokens), "links")
        in_tokens([question.query], len(self.query_tokens), "question")
        in_tokens([question.key], len(self.key_tokens), "question")
        one = sum(each is not None for each in (question.key, question.pattern, question.like)) == 1
        fits(one, "'question' is not one thing")
        one_for_each(self.verdicts, self.weights.shape, "verdicts")
        alike = len(self.controls.best) == len(self.controls.best_excess)
        fits(alike, "'best_excess_of_controls' is not of as many controls as 'best_of_controls'")

    def derived(self) -> dict[str, Value]:
        """Every head with what its controls have, the best first; those without a number come last."""
        unranked = [(int(i), int(j)) for i, j in np.argwhere(np.isnan(self.weights))]
        return {
            "case": self.case,
            "looked_at": self.weights.size,
            "control_texts": self.control_texts,
            "heads": [self._row(i, j) for i, j in (*self.ranking, *unranked)],
        }

    def _row(self, i: int, j: int) -> dict[str, Value]:
        def at(values: Float[np.ndarray, "layer head"] | None) -> float | None:
            return None if values is None else float(values[i, j])

        own = {"weight": self.weights, "rank": self.ranks, "norm": self.norms}
        own |= {"norm_share": self.shares, "even_attention": self.even_attention}
        names = ("mean", "low", "high", "spread", "below")
        controls = {name: getattr(self.controls, name) for name in names}
        controls |= {"above_control": self.above_control, "excess": self.excess, "followed": self.followed}
        return {
            "layer": self.layers[i],
            "head": self.heads[j],
            **{name: at(values) for name, values in own.items()},
            "control": {name: at(values) for name, values in controls.items()},
            "depends_on": self.depends_on((i, j)),
            "stands_out": self.stands_out((i, j)),
            "verdict": self.verdicts[i][j],
        }


def _rare(reaching: int, controls: int) -> bool:
    """Whether so few of the controls reach as far that chance alone does so in at most 5 % of cases."""
    return (1 + reaching) / (controls + 1) <= LEVEL + 1e-12


def beyond(
    value: float | Float[np.ndarray, "..."], controls: Float[np.ndarray, "..."], smaller: bool
) -> Float[np.ndarray, "..."]:
    """How many of the `controls`, their first axis, the value goes beyond by more than rounding.

    Controls are read in batches, where sums are added in another order than in a text alone: what is equal
    in both, as where a head looks at places alone, differs by some machine epsilons of float32.
    """
    rounding = _ROUNDINGS * np.finfo(np.float32).eps * np.abs(value) + 1e-9
    below = controls > value + rounding if smaller else controls < value - rounding
    return np.where(np.isnan(value), np.nan, np.asarray(below).sum(axis=0, dtype=float))
