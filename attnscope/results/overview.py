"""Overviews of several heads: scores, strongest links and certificates, or thumbnails of weights."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.errors import InputError, listed
from attnscope.results.base.evidence import Link, Weights, most_telling_link
from attnscope.results.base.groups import Special, SpecialMass, special_mass
from attnscope.results.base.origin import Certificate, Kind, Provenance, Verdict, worst
from attnscope.results.base.presented import Arrays, Presented, Value, fits, one_for_each
from attnscope.results.base.strongest import MOST, Aimed, Distances, at_distance, elsewhere, even, even_share
from attnscope.results.heads import HeadWeights
from attnscope.results.scores import HeadScores
from attnscope.tokens import Tokens
from attnscope.vocabulary import Route, Unit


@dataclass(frozen=True)
class Module:
    """The attention module at this `path`, from which a layer's heads were read.

    `layers` and `heads` are the numbers of the model's layers and the module's heads. Of the `blocks`
    separate attentions that it makes, `block` was read. `notes` say what is odd there.
    """

    path: str
    heads: int
    layers: int
    block: int = 0
    blocks: int = 1
    notes: tuple[str, ...] = ()


class Case(StrEnum):
    """The conclusion that is shown first for several heads."""

    NO_NUMBER = "no number"
    CLASSES = "classes"
    FOCUSED = "focused"
    MEASURED = "measured"
    QUERY = "query"
    PAIR = "pair"
    FIRST_OF_NONE = "first of none"


@dataclass(frozen=True, eq=False, repr=False)
class Overview(Presented):
    """Several heads of one model on one input.

    `scores` are by the name of their measure, at least one; `main` is the first of them that has a meaning.
    `strongest[i, j]` holds the query and key position of the strongest link of that head, (-1, -1) where
    no query has a key; `strongest_weight` its weight. With `ordinary` special tokens, the query itself and a
    token that alone takes more than half of the head's weight are passed over: `aside` is the share of the
    weight that is, and `heaviest` that token, -1 without one; None in older files.
    `aim` is the query, or the query and the key, that alone was asked for; where one of them is a span of
    several tokens, `aim_spans` are the positions of the tokens of each, and its weights are the sum over the
    keys of a span, the mean over its queries. Certificates are by layer, then head.

    Of an overview by words, or without special tokens, `tokens` is the one that it was made from. `tower`
    and `notes` are as in `HeadWeights`; `sharing` counts by layer how many heads read the same key head, 1
    where each has its own; it is empty where that is not known. `weights` are None in what was read from
    JSON, which leaves them out; `told_mass` and, by head, `told_shares` are what it says of special tokens,
    `told_distances` and `told_aimed` what it says of distances and of what was asked for. `modules` has one
    for each layer; it is empty where weights were computed in tiles.
    """

    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    scores: Mapping[str, HeadScores] = field(metadata={"file": "measures"})
    strongest: Int[np.ndarray, "layer head 2"]
    strongest_weight: Float[np.ndarray, "layer head"]
    weights: tuple[tuple[Float[np.ndarray, "query key"], ...], ...] | None = field(metadata={"npz": True})
    certificates: tuple[tuple[Certificate, ...], ...]
    provenance: Provenance
    by: Unit = Unit.TOKEN
    special: Special = Special.SHOW
    tokens: "Overview | None" = field(default=None, metadata={"file": "by_tokens"})
    tower: str = ""
    notes: tuple[str, ...] = ()
    sharing: tuple[int, ...] = ()
    told_mass: SpecialMass | None = field(
        default=None, metadata={"file": "special_mass", "of": "special_mass"}
    )
    told_shares: Float[np.ndarray, "layer head"] | None = field(
        default=None, metadata={"file": "special_shares", "of": "special_shares"}
    )
    told_distances: Distances | None = field(default=None, metadata={"file": "distances", "of": "distances"})
    told_aimed: Aimed | None = field(default=None, metadata={"file": "aimed", "of": "aimed"})
    ordinary: bool = False
    aside: Float[np.ndarray, "layer head"] | None = None
    heaviest: Int[np.ndarray, "layer head"] | None = None
    aim: tuple[int, int | None] | None = None
    aim_spans: tuple[tuple[int, ...], ...] = ()
    modules: tuple[Module, ...] = ()

    def head(self, layer: int, head: int) -> HeadWeights:
        """The weights of one head, by tokens; `InputError` where it is not in the overview."""
        found = self.tokens or self
        i, j = found.place_of(layer, head)
        weights, module = found.dense_weights[i][j], found.modules[i]
        returned = found.provenance.route == Route.RETURNED  # which tells no mask
        return HeadWeights(
            layer=layer,
            head=head,
            kind=found.kind,
            heads=module.heads,
            layers=module.layers,
            query_tokens=found.query_tokens,
            key_tokens=found.key_tokens,
            weights=weights,
            allowed=np.ones(weights.shape, dtype=bool) if returned else weights > 0,
            module=module.path,
            certificate=found.certificates[i][j],
            provenance=found.provenance,
            tower=found.tower,
            block=module.block,
            blocks=module.blocks,
            notes=module.notes,
        )

    def place_of(self, layer: int, head: int) -> tuple[int, int]:
        """The index of a head along the layer and head axes; `InputError` where it is not in the overview."""
        if layer in self.layers and head in self.heads:
            return self.layers.index(layer), self.heads.index(head)
        layers, heads = listed(self.layers), listed(self.heads)
        raise InputError(f"no L{layer} H{head} here: there are layers {layers} and heads {heads}")

    @property
    def dense_weights(self) -> tuple[tuple[Float[np.ndarray, "query key"], ...], ...]:
        """The weights by layer and head; `InputError` where they were not stored."""
        if self.weights is None:
            raise InputError(
                "this overview holds no weights: it was read from JSON, which leaves them out (its npz has "
                "them), or computed in tiles"
            )
        return self.weights

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head."""
        return worst(certificate.verdict for layer in self.certificates for certificate in layer)

    @property
    def special_mass(self) -> SpecialMass | None:
        """The share of weight on special tokens, by tokens, mean over heads; None without special tokens."""
        by_tokens = self.tokens or self
        if by_tokens.weights is None:
            return by_tokens.told_mass
        return special_mass([each for row in by_tokens.weights for each in row], by_tokens.key_tokens)

    @cached_property
    def special_shares(self) -> Float[np.ndarray, "layer head"] | None:
        """The share of each head's weight on special tokens, by tokens; None without special tokens."""
        by_tokens = self.tokens or self
        if by_tokens.weights is None:
            return by_tokens.told_shares
        masses = [[special_mass([each], by_tokens.key_tokens) for each in row] for row in by_tokens.weights]
        if all(mass is None for row in masses for mass in row):
            return None
        return np.array([[mass.total if mass else np.nan for mass in row] for row in masses])

    @cached_property
    def distances(self) -> Distances | None:
        """The most frequent offset of each head's strongest keys; None for cross attention, pictures, sounds.

        A key counts as allowed where its weight is not exactly 0, as only a mask makes it.
        """
        if self.weights is None:
            return self.told_distances
        if self.kind is Kind.CROSS or not self.query_tokens.texts:
            return None
        places = self.query_tokens.positions
        found = [[at_distance(each, each > 0, places) for each in row] for row in self.weights]
        by_part = (
            np.array([[getattr(each, part) for each in row] for row in found])
            for part in ("offset", "rows", "of")
        )
        return Distances(*by_part)

    @cached_property
    def aimed(self) -> Aimed | None:
        """Comparisons for the weights at the named query or pair; None where none was named."""
        if self.weights is None or self.aim is None:
            return self.told_aimed if self.aim is not None else None
        query, key = self.aim
        alike = self._even(query)
        if key is None:
            return Aimed(alike, None, None)
        rows = [np.nan_to_num(each[query], nan=-1.0) for row in self.weights for each in row]
        away = np.array([[elsewhere(each, each > 0, query, key) for each in row] for row in self.weights])
        # a span, or a sentence, has no other of its size at its distance
        alone = self.kind is Kind.CROSS or self.by.is_long or (bool(self.aim_spans) and not self.by.joins)
        apart = None if alone or np.isnan(away).all() else away
        return Aimed(alike, sum(int(each.argmax()) == key for each in rows), apart)

    def _even(self, query: int) -> float:
        by_tokens = self.tokens or self
        if not self.aim_spans or by_tokens.weights is None:
            return even(self.dense_weights[0][0] > 0, query)
        rows, *keys = self.aim_spans
        allowed = by_tokens.weights[0][0] > 0
        if self.special is Special.RENORMALISE:  # of what is left alone
            allowed = allowed & ~np.array([token.special for token in by_tokens.key_tokens.items])
        return even_share(allowed, rows, keys[0] if keys else (0,))

    def most_telling(self, controls: Weights | None = None) -> Link | None:
        """The link with the most evidence, by tokens; None where none is strong enough or there is no text.

        `controls` is the largest weight in any control text, over all tokens. `InputError` without weights.
        """
        found = self.tokens or self
        queries, keys = found.query_tokens, found.key_tokens
        crosses, causal = self.kind is Kind.CROSS, self.kind is Kind.DECODER
        if not queries.texts or not keys.texts:
            return None
        how = {"crosses": crosses, "causal": causal}
        return most_telling_link(found.dense_weights, queries, keys, **how, controls=controls)

    @property
    def main(self) -> HeadScores:
        """The scores that the grid shows first: the first measure with a meaning."""
        every = tuple(self.scores.values())
        return next((each for each in every if not each.absent), every[0])

    @property
    def case(self) -> Case:
        """The conclusion about these heads, or about the named query or pair."""
        if np.isnan(self.main.values).all():
            return Case.NO_NUMBER
        if self.aim is None:
            plain = Case.FOCUSED if self.main.measure == "entropy" else Case.MEASURED
            return Case.CLASSES if self.main.description.classes else plain
        if self.aim[1] is None:
            return Case.QUERY
        return Case.FIRST_OF_NONE if self.aimed is not None and self.aimed.largest == 0 else Case.PAIR

    @property
    def layers(self) -> tuple[int, ...]:
        """The layer numbers, in order of the first axis of every array."""
        return self.main.layers

    @property
    def heads(self) -> tuple[int, ...]:
        """The head numbers, in order of the second axis."""
        return self.main.heads

    @property
    def taken_up(self) -> Bool[np.ndarray, "layer head"]:
        """True where special tokens, or one single token, take more than half of a head's weight."""
        shares = self.special_shares
        special = np.zeros(self.main.values.shape, dtype=bool) if shares is None else shares > MOST
        return special if self.heaviest is None else special | (self.heaviest >= 0)

    def check_parts(self) -> None:
        fits(bool(self.scores), "'measures' are empty")
        shape = self.main.values.shape
        one_for_each(self.certificates, shape, "certificates")
        fits(
            self.strongest.shape[:2] == shape, "'strongest' is not one link for each of the layers and heads"
        )
        fits(
            all(each.values.shape == shape for each in self.scores.values()), "'measures' are of other heads"
        )
        most = self.strongest.max(axis=(0, 1), initial=-1)
        right = self.strongest.min(initial=0) >= -1
        right = right and most[0] < len(self.query_tokens) and most[1] < len(self.key_tokens)
        right = right and (self.heaviest is None or self.heaviest.max(initial=-1) < len(self.key_tokens))
        fits(right, "a strongest link leads to a token that is not there")
        held = self.tokens is None and self.weights is not None
        fits(not held or len(self.modules) == shape[0], "'modules' are not one for each of the layers")

    def derived(self) -> dict[str, Value]:
        """Derived file entries: a row per head with its scores, strongest link and verdict."""
        return {
            "layers": self.layers,
            "heads": self.heads,
            "case": self.case,
            "measure": self.main.measure,
            "unit": self.main.unit,
            "results": [self._row(i, j) for i, j in np.ndindex(self.main.values.shape)],
        }

    def _row(self, i: int, j: int) -> dict[str, Value]:
        query, key = (None if position < 0 else int(position) for position in self.strongest[i, j])
        return {
            "layer": self.layers[i],
            "head": self.heads[j],
            **{name: scores.value_of(i, j) for name, scores in self.scores.items()},
            "query": query,
            "key": key,
            "weight": float(self.strongest_weight[i, j]),
            "verdict": self.certificates[i][j].verdict,
        }

    def npz_columns(self) -> Arrays:
        verdicts = [[each.verdict.value for each in layer] for layer in self.certificates]
        places = {"layers": np.array(self.layers), "heads": np.array(self.heads)}
        measures = {name: each.values for name, each in self.scores.items()}
        return {**measures, **places, "verdicts": np.array(verdicts)}


class InSmall(StrEnum):
    """Whether any query of the heads has two keys or more to choose from."""

    LARGEST = "a largest weight"
    NO_CHOICE = "no choice"


@dataclass(frozen=True, eq=False, repr=False)
class Thumbnails(Presented):
    """The weights of several heads on one input, pooled to thumbnails with the same few cells.

    `weights[i, j]` belongs to `layers[i]` and `heads[j]`. A cell is the largest weight of a block of `steps`
    queries by keys (fewer at the ends), NaN where all of it is masked. `tower` and `notes` are as in
    `HeadWeights`. `by` is the unit of queries and keys, as in `HeadView`; `special` tokens may be left out.
    """

    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    steps: tuple[int, int]
    weights: Float[np.ndarray, "layer head row column"]
    verdicts: tuple[tuple[Verdict, ...], ...]
    provenance: Provenance
    tower: str = ""
    notes: tuple[str, ...] = ()
    by: Unit = Unit.TOKEN
    special: Special = Special.SHOW

    for_readers = ("verdict", "case")

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head."""
        return worst(verdict for layer in self.verdicts for verdict in layer)

    @cached_property
    def largest(self) -> tuple[int, int, int, int] | None:
        """Layer, head, row and column of the largest weight among queries with a choice; None without one."""
        free = np.isfinite(self.weights).sum(axis=3, keepdims=True) > 1
        weights = np.where(free, np.nan_to_num(self.weights, nan=-1.0), -1.0)
        i, j, row, column = (int(each) for each in np.unravel_index(weights.argmax(), weights.shape))
        return (i, j, row, column) if weights.max() >= 0 else None

    @property
    def case(self) -> InSmall:
        """The conclusion: whether any query has a choice."""
        return InSmall.NO_CHOICE if self.largest is None else InSmall.LARGEST

    def check_parts(self) -> None:
        fits(len(self.steps) == 2 and min(self.steps) >= 1, "'steps' are no numbers of queries and keys")
        one_for_each(self.verdicts, self.weights.shape, "verdicts")
        sides = self.query_tokens, self.key_tokens
        cells = tuple(-(-len(each) // step) for each, step in zip(sides, self.steps, strict=True))
        fits(self.weights.shape[2:] == cells, "'weights' is not of as many cells as the tokens make")
