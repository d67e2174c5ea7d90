"""Weights of one attention head on one input, the stages that lead to them, and regrouped views."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from attnscope.results.base.groups import Groups, Special, SpecialMass, members, special_mass
from attnscope.results.base.origin import Certificate, Certified, Kind, Provenance, Verdict
from attnscope.results.base.presented import Presented, Value, fits, within
from attnscope.results.base.strongest import MOST, Rest, rest_of
from attnscope.tokens import Tokens
from attnscope.vocabulary import Unit

MEAN = -1  # in the place of the number of a head: the mean over heads


def head_name(layer: int, head: int) -> str:
    """The name of a head: `L3 H11`, `the mean of all heads of L3` or `the mean of all heads`."""
    if head != MEAN:
        return f"L{layer} H{head}"
    return "the mean of all heads" + ("" if layer == MEAN else f" of L{layer}")


class Placed:
    """Base of results about one head: its `layer` and `head`."""

    layer: int
    head: int

    @property
    def name(self) -> str:
        """The head's name: `L3 H11`, or the heads it is the mean of."""
        return head_name(self.layer, self.head)


class Case(StrEnum):
    """The conclusion that is shown first for one head."""

    LINK = "link"
    TAKEN_UP = "taken up"
    LINK_FOR_ITS_LENGTH = "link for its length"
    NO_MORE_THAN_LENGTHS = "no more than lengths"
    NO_KEY = "no key"


class Linked(Presented):
    """Base of results with weights between queries and keys, and a strongest link."""

    query_tokens: Tokens
    key_tokens: Tokens
    weights: Float[np.ndarray, "query key"]

    @property
    def crosses(self) -> bool:
        """Whether queries and keys belong to different sequences."""
        raise NotImplementedError

    @property
    def expected(self) -> Float[np.ndarray, "query key"] | None:
        """Each weight as predicted by the lengths of its groups; None where lengths are not compared."""
        return None

    @cached_property
    def rest(self) -> Rest:
        """The pairs among which the strongest link is chosen, and those passed over."""
        return rest_of(self.weights, self.query_tokens, self.key_tokens, crosses=self.crosses)

    @property
    def strongest(self) -> tuple[int, int] | None:
        """The query and key of the largest weight that is not passed over; None where no query has a key.

        Of sentences and passages it is the weight that lies farthest above what their lengths give.
        """
        if not self.rest.pairs.any():
            return None
        values = self.weights if self.expected is None else self.weights - self.expected
        query, key = np.unravel_index(np.where(self.rest.pairs, values, -np.inf).argmax(), values.shape)
        return int(query), int(key)

    @property
    def case(self) -> Case:
        """The conclusion: no key, a link, most weight passed over, or a link compared with its length."""
        if (link := self.strongest) is None:
            return Case.NO_KEY
        if self.expected is not None:
            longer = self.weights[link] > self.expected[link]
            return Case.LINK_FOR_ITS_LENGTH if longer else Case.NO_MORE_THAN_LENGTHS
        most = 0.0 if self.rest.whole else max(map(self.rest.share, self.rest.parts))
        return Case.TAKEN_UP if most > MOST else Case.LINK


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HeadWeights(Placed, Certified, Linked):
    """The weights of one head on one input, where queries, keys and values may be unknown.

    `weights` have a row for each query; a row without any allowed key is NaN and False in `answered`.
    `allowed` is False where a key is masked. `layers` and `heads` are the model's numbers of them. `tower`
    is the part of the model with the head, "" where its kind tells; `block` is which of the `blocks`
    separate attentions of its layer this is; `notes` say what is odd about the weights. For a mean over
    heads `head` is -1, and so is `layer` for a mean over all layers.
    """

    layer: int
    head: int
    kind: Kind
    heads: int
    layers: int
    query_tokens: Tokens
    key_tokens: Tokens
    weights: Float[np.ndarray, "query key"]
    allowed: Bool[np.ndarray, "query key"]
    module: str
    certificate: Certificate
    provenance: Provenance
    tower: str = ""
    block: int = 0
    blocks: int = 1
    notes: tuple[str, ...] = ()

    @property
    def crosses(self) -> bool:
        """Whether queries and keys belong to different sequences."""
        return self.kind is Kind.CROSS

    @property
    def answered(self) -> Bool[np.ndarray, " query"]:
        """True for queries that may attend to at least one key."""
        return np.asarray(self.allowed.any(axis=1))

    @property
    def row_sums(self) -> tuple[float, float]:
        """The smallest and largest sum of a row that has a key; NaN where none has."""
        sums = self.weights[self.answered].sum(axis=1)
        return (float(sums.min()), float(sums.max())) if sums.size else (np.nan, np.nan)

    @property
    def special_mass(self) -> SpecialMass | None:
        """The share of weight on special tokens; None where there are none."""
        return special_mass([self.weights], self.key_tokens)

    def special_mass_of(self, queries: Sequence[int]) -> SpecialMass | None:
        """The share of weight on special tokens for some queries: mean over those that have a key."""
        return special_mass([self.weights[list(queries)]], self.key_tokens)

    def derived(self) -> dict[str, Value]:
        """Derived file entries; fields that only a full head has are null."""
        terms = getattr(self, "terms", None)
        absent = {slot.name for slot in fields(HeadAttention)} - {slot.name for slot in fields(self)}
        return dict.fromkeys(sorted(absent)) | {
            "name": self.name,
            "case": self.case,
            "special_mass": self.special_mass,
            "added": None if terms is None else list(terms),
        }


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HeadAttention(HeadWeights):
    """One head on one input, with every stage of its computation.

    `q`, `k` and `v` are its query, key and value vectors. `scores` are q.k; `scale` multiplies them,
    `softcap` then bounds them (None: nothing does), and `terms` are added, by name. `scaled` is the result,
    which enters the softmax, NaN where a key is masked. `weights` rows sum to 1 unless the head has a sink;
    `output` is the weights times the values. `key_head` is the key/value head that this query head reads, of
    the layer's `key_heads`. `sink` is the logit of its sink, the mean where every query has its own
    (`sink_by_query`). `window` is how many keys a query may look back at, None for all.
    """

    key_head: int
    key_heads: int
    q: Float[np.ndarray, "query dim"]
    k: Float[np.ndarray, "key dim"]
    v: Float[np.ndarray, "key value_dim"]
    scores: Float[np.ndarray, "query key"]
    scaled: Float[np.ndarray, "query key"]
    output: Float[np.ndarray, "query value_dim"]
    scale: float
    softcap: float | None
    sink: float | None
    window: int | None
    terms: Mapping[str, Float[np.ndarray, "query key"]] = field(default_factory=dict)
    sink_by_query: bool = False

    def check_parts(self) -> None:
        fits(self.q.shape[1] > 0, "'q' has no dimensions")


class OfOneHead(Presented):
    """Base of results about one head; the verdict is the head's."""

    head: HeadWeights

    @property
    def verdict(self) -> Verdict:
        """The verdict of the head's certificate."""
        return self.head.verdict


@dataclass(frozen=True, eq=False, repr=False)
class HeadView(OfOneHead, Linked):
    """The weights of `head` with its tokens grouped, and special tokens treated as `special` says.

    Entry i of `query_groups` holds the positions of the head's tokens in row i, which `query_tokens` names;
    `key_groups` and `key_tokens` likewise for columns. `weights` are summed over the tokens of a key group
    and averaged over those of a query group (Clark et al. 2019). `allowed` is False where all pairs of a
    cell are masked. A row with nothing left is False in `answered`, and NaN where rows are renormalised.

    Scores and vectors belong to tokens and stay in `head`, whose certificate is about its own weights.
    """

    head: HeadWeights = field(metadata={"file": "by_tokens", "beside": True})
    by: Unit
    special: Special
    query_tokens: Tokens = field(metadata={"file": "row_tokens"})
    key_tokens: Tokens = field(metadata={"file": "column_tokens"})
    query_groups: Groups = field(metadata={"file": "row_groups"})
    key_groups: Groups = field(metadata={"file": "column_groups"})
    weights: Float[np.ndarray, "query key"]
    allowed: Bool[np.ndarray, "query key"]

    @property
    def answered(self) -> Bool[np.ndarray, " query"]:
        """True for rows with an allowed key left and weight on it."""
        left = np.nan_to_num(self.weights).sum(axis=1) > 0
        return np.asarray(self.allowed.any(axis=1) & left)

    @property
    def crosses(self) -> bool:
        """Whether queries and keys belong to different sequences."""
        return self.head.crosses

    @property
    def expected(self) -> Float[np.ndarray, "query key"] | None:
        """The weights that uniform attention would give, for sentences and passages; else None."""
        return self.even if self.by.is_long else None

    @property
    def even(self) -> Float[np.ndarray, "query key"]:
        """The weights of uniform attention: proportional to a group's number of tokens."""
        allowed = self.head.allowed
        if self.special is Special.RENORMALISE:  # of what is left alone
            allowed = allowed & members(self.key_groups, allowed.shape[1]).any(axis=0)
        rows = allowed / allowed.sum(axis=1, keepdims=True).clip(min=1)
        sizes = np.array([[len(group)] for group in self.query_groups])
        queries, keys = (
            members(groups, count).astype(float)
            for groups, count in zip((self.query_groups, self.key_groups), allowed.shape, strict=True)
        )
        return np.asarray(queries / sizes @ rows @ keys.T)

    @property
    def emptied(self) -> int:
        """The number of rows that have a key, but no weight left without special tokens."""
        had = [bool(self.head.answered[list(group)].any()) for group in self.query_groups]
        return int((np.array(had, dtype=bool) & ~self.answered).sum())

    def query_row(self, position: int) -> int | None:
        """The row whose group contains the query at `position`; None where it is left out."""
        return next((row for row, group in enumerate(self.query_groups) if position in group), None)

    def check_parts(self) -> None:
        for groups, rows, tokens in (
            (self.query_groups, self.query_tokens, self.head.query_tokens),
            (self.key_groups, self.key_tokens, self.head.key_tokens),
        ):
            inside = all(group and all(within(each, len(tokens)) for each in group) for group in groups)
            fits(inside, "'row_groups' and 'column_groups' hold tokens that the head does not have")
            fits(
                len(groups) == len(rows),
                "'row_groups' and 'column_groups' are not as many as rows and columns",
            )

    def derived(self) -> dict[str, Value]:
        """Derived file entries: the case, and the token positions in each row and column."""
        named = {
            "queries": (self.query_tokens, self.query_groups),
            "keys": (self.key_tokens, self.key_groups),
        }
        return {"case": self.case, "emptied_queries": self.emptied} | {
            name: [
                {"label": label, "tokens": group} for label, group in zip(tokens.labels, groups, strict=True)
            ]
            for name, (tokens, groups) in named.items()
        }
