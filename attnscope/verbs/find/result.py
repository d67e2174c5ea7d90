"""Results of `find`: heads ranked by a score beside control texts, links between words, retrieval heads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.base.evidence import Link
from attnscope.results.base.origin import Counted, Kind, Provenance, Verdict, worst
from attnscope.results.base.presented import Presented, Value, fits, in_tokens, one_for_each, within
from attnscope.results.claims.ranking import (
    LEAST_CONTROLS,
    LEVEL,
    TWICE,
    Contents,
    DependsOn,
    Evidence,
    Group,
    much,
)
from attnscope.results.scores import ordered
from attnscope.tokens import Tokens
from attnscope.vocabulary import Pattern, Special, Unit


class Case(StrEnum):
    """Which conclusion a ranking allows, and so which sentence answers (docs/guide/claims.md)."""

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
    """Target of a ranking: the weight of one query on one key, on a pattern of keys, or likeness to a head.

    Exactly one of the three is given. `query` and `key` are positions, `like` is a layer and a head. Where
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
    """Scores of every head in control texts, which have the shape of the text and other words.

    `low` and `high` hold the middle nine tenths of the controls, `spread` is a head's standard deviation over
    them. `below` counts controls that the text itself exceeds. `best` is the score of the best head in each
    control, and `best_excess` the largest excess of a head there over its scores in the other controls, in
    units of its spread. `wanted` is the number of controls asked for; `how` says what they keep, `of` what
    they are made of, and `seed` repeats them. `ids` are the controls as read by the model's input `input`:
    token ids, or for a picture or sound the index of the piece at each place. `mean` is that of each head
    over them.

    Where a text repeats words, several links of a pattern join the same two words, and chance moves their
    mean farther than in a control with other words there. So for `spread`, `below` and `best_excess` the
    distance of a control from the mean is multiplied by the root of the sum of n² over pairs of words with n
    links each in the text, over that root in the control.
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
        """The number of control texts."""
        return len(self.best)


@dataclass(frozen=True, eq=False, repr=False)
class Finding(Presented):
    """Heads ranked by one score each, with control texts and other comparisons.

    `weights[i, j]` is the score of `heads[j]` in `layers[i]`: the weight of the query on the key, 0 to 1; for
    a pattern the weight on all matching keys, averaged over the `rows` queries that have one; for likeness
    the Jensen-Shannon divergence from the given head in nats, averaged over queries (Lin 1991), where less is
    better. NaN where a head is not ranked.

    `ranks` is the rank of the key in the query's row, 1 for the strongest (for a pattern the mean). `norms`
    is the weight times the norm of what it moves, a_ij ||f(x_j)|| (Kobayashi et al. 2020), `shares` its share
    of that sum over the row; None where the output projection is not known. `even_attention` is the score of
    equal weights on all visible keys. `stayed` and `followed` are means over the controls with another word
    at the key: the query's weight on that position, and on the key's own token, wherever it went. `elsewhere`
    is the mean weight of other queries of the text on the same keys, of `sampled` queries spread over a long
    text (0: of all), and `key_lengths` is by layer the norm of the key's hidden state at its entry, over the
    median token's. Each is None where it has no meaning.

    Where they are `by` words, sentences or passages, weights are summed over the tokens of a key and
    averaged over those of a query (Clark et al. 2019), and a norm is that of what all pieces move
    together. `special` tokens may be left out, and each row divided by what is left.

    `links` are the scored pairs of positions in `query_tokens` and `key_tokens`: the one pair, all visible
    pairs of a pattern, none for likeness. `heads` are head numbers, from 0. With `by_rows` only the rows
    asked about were read of each head, and they alone are certified. Where heads of several layers were named
    one by one, `apart`, they alone have a score and are certified here.
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
        """Index pairs into `layers` and `heads` of the heads that the question chose."""
        every = ((i, j) for i in range(len(self.layers)) for j in range(len(self.heads)))
        named = {*self.apart}
        return tuple((i, j) for i, j in every if not named or (self.layers[i], self.heads[j]) in named)

    @property
    def every_verdict(self) -> tuple[Verdict, ...]:
        """Verdicts of the heads that the question chose, in the order of `places`."""
        return tuple(self.verdicts[i][j] for i, j in self.places)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head."""
        return worst(self.every_verdict)

    @cached_property
    def above_control(self) -> Float[np.ndarray, "layer head"]:
        """Score of each head minus the mean of its controls; for likeness, less than 0 is more alike."""
        return np.asarray(self.weights - self.controls.mean)

    @property
    def smaller_is_better(self) -> bool:
        """True where the score is a divergence (likeness to a head), False where it is a weight."""
        return self.question.like is not None

    @cached_property
    def evidence(self) -> Evidence:
        """Statistical evidence for each head: its group and its place in the ranking."""
        of, more = self.controls, (self.even_attention, self.stayed, self.followed, self.smaller_is_better)
        numbers = self.weights, of.mean, of.spread, of.below, of.best_excess
        return Evidence(*numbers, *more, elsewhere=self.elsewhere)

    @property
    def ranking(self) -> tuple[tuple[int, int], ...]:
        """Index pairs of all heads with a score, the strongest evidence first."""
        return self.evidence.ranking

    @property
    def best_heads(self) -> tuple[tuple[int, int], ...]:
        """Layer and head number of all heads with a score, the strongest evidence first."""
        return tuple((self.layers[i], self.heads[j]) for i, j in self.ranking)

    def stands_out(self, place: tuple[int, int]) -> bool:
        """Whether at most 5 % of controls have a head that stands out as far (Westfall and Young 1993)."""
        return self.evidence.group(place) is Group.STANDS_OUT

    @cached_property
    def case(self) -> Case:
        """Which conclusion the ranking allows: the first test that applies decides."""
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
        """Index pairs of all heads with a score, the largest score first."""
        return tuple(sorted(self.ranking, key=lambda place: (-float(self.weights[place]), place)))

    @property
    def control_texts(self) -> tuple[str, ...]:
        """Control texts as token names separated by blanks; empty for pictures and sounds."""
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
        """Table rows of all heads with their controls, the best first, heads without a score last."""
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


class LinksCase(StrEnum):
    """Which conclusion the links of a text allow."""

    NOTHING = "nothing"
    SEVERAL = "several"
    ONE = "one"
    FEW_CONTROLS = "few controls"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, eq=False, repr=False)
class Links(Presented):
    """Links between two words in all chosen heads, most evidence first.

    `layer` and `head` of a link are the model's numbers. Its evidence is its weight minus the largest simpler
    explanation: the most in any control text at the same two positions, the mean of other queries at that
    distance or to that key, even attention. Only links with at least .1 are listed; `more` are not kept.

    `best_of_controls` is the largest evidence of a link in each control text, computed with the text as one
    of its controls. A link stands out where at most 5 % of the controls reach its evidence (Westfall and
    Young 1993). `ids` are the controls as token ids, drawn with `seed`; `input` is the name of the model's
    input that they replace, and `how` says what changed places.
    """

    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    links: tuple[Link, ...]
    more: int
    best_of_controls: Float[np.ndarray, " control"]
    how: str
    seed: int
    ids: Int[np.ndarray, "control place"]
    input: str
    verdicts: tuple[tuple[Verdict, ...], ...]
    provenance: Provenance
    tower: str = ""
    notes: tuple[str, ...] = ()

    for_readers = ("verdict", "case", "controls", "standing_out", "p")

    def check_parts(self) -> None:
        for link in self.links:
            there = within(link.query, len(self.query_tokens)) and within(link.key, len(self.key_tokens))
            fits(there, "'links' are not all between tokens")
            fits(link.layer in self.layers, "'links' are not all of these layers")
            fits(link.head in self.heads, "'links' are not all of these heads")
        one_for_each(self.verdicts, (len(self.layers), len(self.heads)), "verdicts")

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head."""
        return worst(verdict for layer in self.verdicts for verdict in layer)

    @property
    def case(self) -> LinksCase:
        """Which conclusion the links allow."""
        if not self.links:
            return LinksCase.NOTHING
        if self.standing_out:
            return LinksCase.ONE if self.standing_out == 1 else LinksCase.SEVERAL
        return LinksCase.FEW_CONTROLS if self.few else LinksCase.CANNOT_TELL

    @property
    def controls(self) -> int:
        """Number of control texts."""
        return len(self.best_of_controls)

    @property
    def few(self) -> bool:
        """True where there are too few controls for any link to stand out."""
        return self.controls < LEAST_CONTROLS

    @property
    def standing_out(self) -> int:
        """Number of kept links that stand out; they come first in `links`."""
        return sum(self.chance(link) <= LEVEL for link in self.links)

    @property
    def p(self) -> float:
        """p-value of the first link; 1 where there is no link."""
        return self.chance(self.links[0]) if self.links else 1.0

    def chance(self, link: Link) -> float:
        """p-value: share of the text and its controls with a link of as much evidence."""
        return (1 + self.as_clear(link)) / (self.controls + 1)

    def as_clear(self, link: Link) -> int:
        """Number of controls with a link of at least as much evidence."""
        return int((self.best_of_controls >= link.evidence).sum())


COPIES = 0.1  # least score of a retrieval head, a share of answers (Wu et al. 2024)
SURE = 0.05  # probability that chance names any head
Head = tuple[int, int]


class RetrievalCase(StrEnum):
    """Which conclusion a retrieval test allows."""

    UNANSWERED = "no question answered"
    NAMED = "heads fetch"
    TOO_FEW = "too few answers"
    NONE = "no head fetches"


@dataclass(frozen=True)
class Needle:
    """A fact planted in a long text as the sentence `text`, and the `question` at the end that asks for it.

    The long text has `tokens` tokens, for a wanted `length`; `depth` is the place of the fact, 0 at the
    beginning, 1 at the end. `probability` is that of the `answer`, which is `right` where it is the
    likeliest, token by token. `other` is a fact of another answer in the same text, not asked for.
    """

    text: str
    question: str
    answer: str
    other: str
    length: int
    tokens: int
    depth: float
    probability: float
    right: bool


@dataclass(frozen=True)
class Masked:
    """Number of questions, `right`, that the model still answers without these `heads`."""

    heads: tuple[Head, ...]
    right: int


@dataclass(frozen=True)
class Confirmation:
    """Ablation on other facts: `right` of `asked` questions answered, and how many without some heads.

    `found` is without the named heads, at the 95 % ends `found_low` and `found_high` of a share; `others` are
    groups of as many heads that were not named, `others_low` the lower end of the mean share that is left.
    """

    asked: int
    right: int
    found: Masked
    found_low: float
    found_high: float
    others: tuple[Masked, ...]
    others_low: float

    for_readers = ("confirmed",)

    @property
    def confirmed(self) -> bool:
        """Whether clearly fewer questions are answered without the named heads than without others."""
        return bool(self.others) and self.found_high < self.others_low


@dataclass(frozen=True, eq=False, repr=False)
class Retrieval(Counted, Presented):
    """Retrieval scores of every head over all `needles`: how often it looks first at the right fact.

    `first[i, j, k]` is the share of the answer's tokens at which the strongest key of head `heads[j]` of
    `layers[i]` lies in the fact k; `first_other` is that share for the other fact. `weights` and
    `weights_other` are the mean weights on each. `scores`, with the 95 % interval `low` to `high` (Wilson's),
    and `controls` are the means of `first` and `first_other` over the needles that the model answers; NaN
    where it answers none. `chance` is the sign-test p of looking more often at the fact than at the other.

    `named` are the retrieval heads: they look first at the fact in a tenth of the answers or more, and
    significantly more often than at the other fact (sign test, Bonferroni). `alike` has for each of them the
    unnamed head nearest in weight on both facts together; None where none gives them half as much.
    `confirmation` is None where no head is named. `how` says where facts and text come from, `seed` draws
    them and their places. `certified` counts heads by verdict in the texts of the `sampled` needles, one
    certificate per head and text; `failed` are heads that differ from the recomputed ones in some of them.
    `acts` is the input on which it was tried whether changed head outputs act; empty: on every such text.
    """

    needles: tuple[Needle, ...]
    kind: Kind
    layers: tuple[int, ...]
    heads: tuple[int, ...] = field(metadata={"file": "head_numbers"})
    first: Float[np.ndarray, "layer head needle"]
    first_other: Float[np.ndarray, "layer head needle"]
    weights: Float[np.ndarray, "layer head needle"]
    weights_other: Float[np.ndarray, "layer head needle"]
    low: Float[np.ndarray, "layer head"]
    high: Float[np.ndarray, "layer head"]
    chance: Float[np.ndarray, "layer head"]
    confirmation: Confirmation | None
    how: str
    certified: dict[Verdict, int]
    provenance: Provenance
    tower: str = ""
    seed: int = 0
    notes: tuple[str, ...] = ()
    sampled: tuple[int, ...] = ()
    failed: tuple[Head, ...] = ()
    acts: str = ""

    for_readers = ("verdict", "case", "named", "scores", "controls", "alike")

    @property
    def answered(self) -> int:
        """Number of questions that the model answers rightly."""
        return sum(each.right for each in self.needles)

    @property
    def case(self) -> RetrievalCase:
        """Which conclusion the scores allow."""
        if not self.answered:
            return RetrievalCase.UNANSWERED
        if self.named:
            return RetrievalCase.NAMED
        return RetrievalCase.TOO_FEW if self.answered < self.enough else RetrievalCase.NONE

    @property
    def enough(self) -> int:
        """Least number of right answers at which the sign test can name any head."""
        return math.ceil(math.log2(self.chance.size / SURE))

    @cached_property
    def scores(self) -> Float[np.ndarray, "layer head"]:
        """Score of each head: share of answers with its strongest key in the fact asked for."""
        return self.mean(self.first)

    @cached_property
    def controls(self) -> Float[np.ndarray, "layer head"]:
        """Control score of each head: share of answers with its strongest key in the other fact."""
        return self.mean(self.first_other)

    def mean(self, values: Float[np.ndarray, "layer head needle"]) -> Float[np.ndarray, "layer head"]:
        """Mean of `values` over the needles that the model answers; NaN where it answers none."""
        right = [i for i, each in enumerate(self.needles) if each.right]
        return np.asarray(values[..., right].mean(-1) if right else np.full(values.shape[:2], np.nan))

    @cached_property
    def ranking(self) -> tuple[tuple[int, int], ...]:
        """Index pairs of all heads by score minus control score, the largest difference first."""
        return tuple(ordered(self.scores - self.controls))

    @cached_property
    def named(self) -> tuple[Head, ...]:
        """Retrieval heads by layer and number, the best first."""
        return named_of(self.ranking, self.scores, self.chance, self.layers, self.heads)

    @cached_property
    def alike(self) -> tuple[Head | None, ...]:
        """For each named head the unnamed head nearest in weight on both facts, or None."""
        mass = self.mean(self.weights + self.weights_other)
        others = [place for place in self.ranking if self.head(place) not in self.named]
        found = list[Head | None]()
        for own in (float(mass[self.place(head)]) for head in self.named):
            near = [place for place in others if mass[place] >= own / 2]
            far = [abs(float(mass[place]) - own) for place in near]
            found.append(self.head(near[far.index(min(far))]) if near else None)
        return tuple(found)

    def head(self, place: tuple[int, int]) -> Head:
        """Layer and head number at an index pair of the arrays."""
        return self.layers[place[0]], self.heads[place[1]]

    def place(self, head: Head) -> tuple[int, int]:
        """Index pair of a layer and head number in the arrays."""
        return self.layers.index(head[0]), self.heads.index(head[1])

    def check_parts(self) -> None:
        shape = (len(self.layers), len(self.heads), len(self.needles))
        fits(bool(self.needles), "'needles' are none")
        fits(all(within(i, shape[2]) for i in self.sampled), "'sampled' are not all needles")
        for name in ("first", "first_other", "weights", "weights_other"):
            fits(getattr(self, name).shape == shape, f"'{name}' is not of these heads and needles")
        for name in ("low", "high", "chance"):
            fits(getattr(self, name).shape == shape[:2], f"'{name}' is not of these heads")


def named_of(
    ranking: Sequence[tuple[int, int]],
    scores: Float[np.ndarray, "layer head"],
    chance: Float[np.ndarray, "layer head"],
    layers: Sequence[int],
    heads: Sequence[int],
) -> tuple[Head, ...]:
    """Heads with a score of `COPIES` or more and a significant sign test (Bonferroni), the best first."""
    named = (scores >= COPIES) & (chance * scores.size <= SURE)
    return tuple((layers[i], heads[j]) for i, j in ranking if named[i, j])
