"""Which heads do it: all of them ranked by one number, each beside the same number of control texts."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.base.origin import Kind, Provenance, Verdict, worst
from attnscope.results.base.presented import Presented, Value, fits, in_tokens, one_for_each
from attnscope.results.claims.ranking import TWICE, Contents, DependsOn, Evidence, Group, much
from attnscope.tokens import Tokens
from attnscope.vocabulary import Pattern, Special, Unit


class Case(StrEnum):
    """What can be said of a ranking: which of the sentences answers (docs/guide/claims.md)."""

    UNRANKED = "unranked"
    POSITION_SOUGHT = "position sought"
    POSITION_LOST = "position lost"
    TOO_SHORT = "too short"
    FEW_CONTROLS = "few controls"
    SEVERAL = "several"
    ONE = "one"
    NOTHING = "nothing"
    POSITION_ONLY = "position only"
    KEY_ONLY = "key only"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Sought:
    """What heads are ranked by: the weight of one query on one key, that on a pattern, or likeness to a head.

    Exactly one of the three is there. `query` and `key` are positions, `like` is a layer and a head. Where
    several tokens are named together, `query_span` and `key_span` are their positions: the weight is the sum
    over the keys, the mean over the queries.
    """

    query: int | None = None
    key: int | None = None
    pattern: Pattern | None = None
    like: tuple[int, int] | None = None
    query_span: tuple[int, ...] = ()
    key_span: tuple[int, ...] = ()


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

    Where a text repeats words, links of a pattern are several times the same two words: chance moves their
    mean farther than in a control, which has other words there. So for `spread`, `below` and `best_excess`
    the distance of a control from the mean is multiplied: by the root of the sum of n² over the pairs of
    words that are n links each, in the text, over that in the control.
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
    what attention that weighs all keys alike would have. `stayed` and `followed` are means over the controls
    that have another word in the place of the key: what the query gave to that place, and to the token that
    is the key here, wherever that went. `elsewhere` is the mean that other queries of the text give to the
    same keys, of `sampled` that are spread over it where it is long (0: of all), and `key_lengths` says by
    layer how many times as long as the median token's the hidden state of the key is that enters it. Each is
    None where it has no meaning.

    Where they are `by` words, sentences or passages, weights are summed over the tokens of a key and
    averaged over those of a query (Clark et al. 2019), and a norm is that of what all pieces move
    together. `special` tokens may be left out, and each row divided by what is left.

    `links` are the places of `query_tokens` and `key_tokens` that are meant: of a pair that one, of a pattern
    all of its keys that their query may look at, none of likeness. `heads` are their numbers, from 0. With
    `by_rows` only the rows that were asked about were read of each head, and they alone are certified. Where
    heads of several layers were named one by one, `apart`, they alone have a number and are certified here.
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
    by: Unit = Unit.TOKEN
    special: Special = Special.SHOW
    links: Int[np.ndarray, "link 2"] = field(default_factory=lambda: np.zeros((0, 2), dtype=int))
    by_rows: bool = False
    apart: tuple[tuple[int, int], ...] = ()
    stayed: Float[np.ndarray, "layer head"] | None = None
    elsewhere: Float[np.ndarray, "layer head"] | None = None
    sampled: int = 0
    key_lengths: Float[np.ndarray, " layer"] | None = None

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Where the heads that were asked stand among `layers` and `heads`."""
        every = ((i, j) for i in range(len(self.layers)) for j in range(len(self.heads)))
        named = {*self.apart}
        return tuple((i, j) for i, j in every if not named or (self.layers[i], self.heads[j]) in named)

    @property
    def every_verdict(self) -> tuple[Verdict, ...]:
        """The verdicts of the heads that were asked."""
        return tuple(self.verdicts[i][j] for i, j in self.places)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head."""
        return worst(self.every_verdict)

    @cached_property
    def above_control(self) -> Float[np.ndarray, "layer head"]:
        """How far each head lies above the mean of its controls; of distances a head below it is nearer."""
        return np.asarray(self.weights - self.controls.mean)

    @property
    def smaller_is_better(self) -> bool:
        """Whether heads were ranked by likeness, a divergence, and not by weight."""
        return self.question.like is not None

    @cached_property
    def evidence(self) -> Evidence:
        """What shows of each head that it does this, and the order that follows from it."""
        of, more = self.controls, (self.even_attention, self.stayed, self.followed, self.smaller_is_better)
        numbers = self.weights, of.mean, of.spread, of.below, of.best_excess
        return Evidence(*numbers, *more, elsewhere=self.elsewhere)

    @property
    def ranking(self) -> tuple[tuple[int, int], ...]:
        """The places of all heads that have a number, those with the strongest evidence first."""
        return self.evidence.ranking

    @property
    def best_heads(self) -> tuple[tuple[int, int], ...]:
        """The heads in that order, each by its layer and head."""
        return tuple((self.layers[i], self.heads[j]) for i, j in self.ranking)

    def stands_out(self, place: tuple[int, int]) -> bool:
        """Whether at most 5 % of controls have a head as far clear (Westfall and Young 1993)."""
        return self.evidence.group(place) is Group.STANDS_OUT

    @cached_property
    def case(self) -> Case:
        """What can be said, by one test after the other."""
        if not self.ranking:
            return Case.UNRANKED
        if self.question.pattern is not None and self.question.pattern.of_places:
            most, even = self.by_weight[0], self.even_attention
            if even is not None and self.weights[most] < TWICE * even[most]:
                return Case.NOTHING
            stays = self.evidence.depends_on(most) is DependsOn.POSITION
            return Case.POSITION_SOUGHT if stays else Case.POSITION_LOST
        if self.evidence.few:
            return Case.TOO_SHORT if self.controls.count < self.controls.wanted else Case.FEW_CONTROLS
        if out := len(self.evidence.of_group(Group.STANDS_OUT)):
            return Case.ONE if out == 1 else Case.SEVERAL
        if self.even_attention is not None and not (self.weights >= much(self.even_attention)).any():
            return Case.NOTHING
        if self.evidence.of_group(Group.POSITION) and not self.evidence.of_group(Group.ABOVE_ITS_OWN):
            return Case.POSITION_ONLY
        if self.evidence.group(self.by_weight[0]) is Group.KEY:
            return Case.KEY_ONLY
        return Case.CANNOT_TELL

    @property
    def by_weight(self) -> tuple[tuple[int, int], ...]:
        """The places of all heads that have a number, the largest first."""
        return tuple(sorted(self.ranking, key=lambda place: (-float(self.weights[place]), place)))

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
        fits(len(self.places) == (len(self.apart) or self.weights.size), "'apart' has heads of no layer")
        alike = len(self.controls.best) == len(self.controls.best_excess)
        fits(alike, "'best_excess_of_controls' is not of as many controls as 'best_of_controls'")

    def derived(self) -> dict[str, Value]:
        """Every head with what its controls have, the best first; those without a number come last."""
        unranked = [place for place in self.places if np.isnan(self.weights[place])]
        return {
            "case": self.case,
            "looked_at": len(self.places),
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
        controls |= {
            "above_control": self.above_control,
            "excess": self.evidence.excess,
            "stayed": self.stayed,
            "elsewhere": self.elsewhere,
            "followed": self.followed,
        }
        return {
            "layer": self.layers[i],
            "head": self.heads[j],
            **{name: at(values) for name, values in own.items()},
            "control": {name: at(values) for name, values in controls.items()},
            "depends_on": self.evidence.depends_on((i, j)),
            "stands_out": self.stands_out((i, j)),
            "verdict": self.verdicts[i][j],
        }
