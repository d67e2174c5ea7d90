"""The results of `compare`: one word on two sides, or two runs head by head."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from jaxtyping import Bool, Float

from attnscope.results.base.groups import Special
from attnscope.results.base.origin import Certificate, Kind, Provenance, Verdict, worst
from attnscope.results.base.presented import Presented, Value, fits, one_for_each, within
from attnscope.results.heads import HeadAttention, HeadView, head_name
from attnscope.tokens import Tokens
from attnscope.vocabulary import Unit

_SAME_COSINE, _SAME_ROW = 1e-6, 1e-4  # of a cosine and of a row's weight: what rounding may do


class Between(StrEnum):
    """The two sides of a comparison are two texts, two layers or two models."""

    TEXTS = "texts"
    LAYERS = "layers"
    MODELS = "models"


class Case(StrEnum):
    """Outcomes of comparing a word on two sides."""

    TEXTS_DIFFER = "texts differ"
    TEXTS_SAME = "texts same"
    ONE_LAYER = "one layer"
    TWO_LAYERS = "two layers"
    MODELS_DIFFER = "models differ"
    MODELS_BEGIN = "models begin"
    MODELS_SAME = "models same"
    MODELS_APART = "models apart"


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a comparison: a head in full, the word's position among its queries, and certificates.

    `certificates` are those of all heads whose numbers the comparison uses, by layer, then head. `view` is
    the head by words, or without special tokens, where it is looked at so; `position` is then that of the
    word's first piece.
    """

    head: HeadAttention = field(metadata={"file": "shown", "beside": True})
    position: int
    certificates: tuple[tuple[Certificate, ...], ...]
    view: HeadView | None = None

    @property
    def looked_at(self) -> HeadAttention | HeadView:
        """The head as it is shown: by words or without special tokens, else as it is."""
        return self.head if self.view is None else self.view

    @property
    def row(self) -> int:
        """The row of `looked_at` that belongs to the word."""
        row = self.position if self.view is None else self.view.query_row(self.position)
        assert row is not None, "a word that the view leaves out is not compared"
        return row

    @property
    def pieces(self) -> tuple[int, ...]:
        """The positions of the word's tokens among the queries of the head."""
        return (self.position,) if self.view is None else self.view.query_groups[self.row]

    @property
    def query_tokens(self) -> Tokens:
        """The query tokens, which the rows belong to."""
        return self.looked_at.query_tokens

    @property
    def key_tokens(self) -> Tokens:
        """The key tokens, which the columns belong to."""
        return self.looked_at.key_tokens

    @property
    def word(self) -> str:
        """The compared word, as the query tokens name it."""
        return self.query_tokens.names[self.row]

    @property
    def weights(self) -> Float[np.ndarray, " key"]:
        """The word's attention weights, in the view that is shown."""
        return np.asarray(self.looked_at.weights[self.row])

    @property
    def allowed(self) -> Bool[np.ndarray, " key"]:
        """Mask of the keys that the word may attend to."""
        return np.asarray(self.looked_at.allowed[self.row])

    @property
    def whole_row(self) -> Float[np.ndarray, " token"]:
        """The word's row over all tokens of the head: the mean over its pieces that have a key."""
        rows = self.head.weights[list(self.pieces)]
        return mean_of(rows, ~np.isnan(rows).any(axis=1))

    @property
    def special_weight(self) -> float | None:
        """The weight of `whole_row` on special tokens that the view hides; None where it hides none."""
        if self.view is None:
            return None
        kept = [position for group in self.view.key_groups for position in group]
        hidden = np.setdiff1d(np.arange(len(self.head.key_tokens)), kept)
        return float(self.whole_row[hidden].sum()) if len(hidden) else None

    @property
    def vectors(self) -> dict[str, Float[np.ndarray, " dim"]]:
        """The word's own vectors in this head by name: means over its pieces.

        The output is that over the pieces that have a key; in cross-attention there is no key and value.
        """
        pieces, head = list(self.pieces), self.head
        of = {"query": head.q} | ({} if head.kind is Kind.CROSS else {"key": head.k, "value": head.v})
        own = {name: np.asarray(each[pieces].mean(axis=0)) for name, each in of.items()}
        return own | {"output": mean_of(head.output[pieces], head.answered[pieces])}

    @property
    def every_certificate(self) -> tuple[Certificate, ...]:
        """The certificates of all heads of all layers in one tuple."""
        return tuple(certificate for layer in self.certificates for certificate in layer)

    def check_parts(self) -> None:
        inside = within(self.position, len(self.head.query_tokens))
        fits(inside, f"'position' is {self.position}, which is no token's")
        fits(
            self.view is None or self.view.query_row(self.position) is not None, "'view' leaves the word out"
        )

    def derived(self) -> dict[str, Value]:
        """JSON fields: the word's row and vectors; `scaled` is null where the row is over words."""
        scaled = self.head.scaled[self.position] if self.view is None else None
        return {
            "word": self.word,
            "pieces": self.pieces,
            "weights": self.weights,
            "scaled": scaled,
            "allowed": self.allowed,
            **self.vectors,
        }


def mean_of(
    rows: Float[np.ndarray, "piece column"], counted: Bool[np.ndarray, " piece"]
) -> Float[np.ndarray, " column"]:
    """The mean over the `counted` rows, or over all rows where none is counted."""
    return np.asarray(rows[counted if counted.any() else slice(None)].mean(axis=0))


@dataclass(frozen=True, eq=False)
class Similarity:
    """Cosine, from -1 to 1, between the vectors that the word has on both sides.

    `vector` is `query`, `key`, `value`, `output` (of the head, before the output projection) or
    `unrotated key`. `together` takes the vectors of all the heads of a layer as one. NaN where one of the
    two is zero or unknown. By words the vector of a word is the mean over its pieces.
    """

    vector: str
    heads: Float[np.ndarray, "layer head"]
    together: Float[np.ndarray, " layer"]


@dataclass(frozen=True, eq=False)
class Divergence:
    """Distance between the word's two rows of weights, by layer and head.

    `jensen_shannon` in nats, 0 for equal rows to ln 2 for rows without a common key (Lin 1991);
    `total_variation`, 0 to 1, is the weight that would have to move. A sink counts as one more key. NaN
    where a row has no key. By words a row is the mean over the pieces of the word, summed over those of
    each key. Special tokens are keys like any others where they are only hidden; where rows are divided by
    what remains without them, neither they nor a sink are counted.
    """

    jensen_shannon: Float[np.ndarray, "layer head"]
    total_variation: Float[np.ndarray, "layer head"]

    def derived(self) -> dict[str, Value]:
        return {"jensen_shannon_unit": "nats"}


def differing(
    similarities: tuple[Similarity, ...], divergence: Divergence | None
) -> Bool[np.ndarray, "layer head"] | None:
    """Mask of heads whose outputs or rows differ beyond rounding; None where neither is compared."""
    outputs = [each.heads for each in similarities if each.vector == "output"]
    told = [each < 1 - _SAME_COSINE for each in outputs]
    told += [] if divergence is None else [divergence.total_variation > _SAME_ROW]
    return np.logical_or.reduce(told) if told else None


def begin_to_differ(
    similarities: tuple[Similarity, ...], divergence: Divergence | None
) -> tuple[tuple[int, int], ...]:
    """Indices of the heads where two models part: all layers before are alike, and others of their layer.

    Later layers differ as a consequence. Empty where all heads of the first layer that differs do.
    """
    told = differing(similarities, divergence)
    if told is None or not told.any():
        return ()
    first = int(told.any(axis=1).argmax())
    return () if told[first].all() else tuple((first, int(j)) for j in np.flatnonzero(told[first]))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Presented):
    """Two sides, one head of each in full, and how alike they are in every compared layer and head.

    `layers[i]` holds the layer of side a and the layer of side b behind entry `i` of every layer axis.
    `similarities` are empty where the vectors do not live in one space, `divergence` is None where the
    rows are not over the same tokens. `chosen` says that the heads shown in full were not asked for but
    are those that differ most: by their outputs, or where there are no cosines by their rows. `passed_over`
    heads were not chosen from since they leave most of the word's weight on special tokens on one side.
    """

    between: Between
    a: Side
    b: Side
    layers: tuple[tuple[int, int], ...]
    heads: tuple[int, ...]
    similarities: tuple[Similarity, ...] = field(metadata={"file": "cosine", "by": "vector"})
    divergence: Divergence | None
    chosen: bool
    passed_over: int = 0

    for_readers = ("verdict", "case")

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both sides, a and b."""
        return self.a, self.b

    @property
    def provenance(self) -> Provenance:
        """The provenance of side a, with the files that either side read."""
        a, b = (side.head.provenance for side in self.sides)
        return replace(a, files=a.files | b.files)

    @property
    def by(self) -> Unit:
        """The unit that is compared: token, word, sentence or passage."""
        return Unit.TOKEN if self.a.view is None else self.a.view.by

    @property
    def special(self) -> Special:
        """The treatment of special tokens in the rows of weights."""
        return Special.SHOW if self.a.view is None else self.a.view.special

    @property
    def shown(self) -> tuple[int, int]:
        """Indices of the heads shown in full, on the axes of layers and heads."""
        layers = self.a.head.layer, self.b.head.layer
        return self.layers.index(layers), self.heads.index(self.a.head.head)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of both sides."""
        return worst(certificate.verdict for side in self.sides for certificate in side.every_certificate)

    @property
    def same(self) -> bool:
        """Whether no head differs beyond rounding, where that is known."""
        told = differing(self.similarities, self.divergence)
        return told is not None and not told.any()

    @property
    def begins(self) -> tuple[tuple[int, int], ...]:
        """Indices of the heads where two models part; empty where all heads of that layer differ."""
        return begin_to_differ(self.similarities, self.divergence) if self.between is Between.MODELS else ()

    @property
    def least_alike(self) -> int | None:
        """Index of the layer whose outputs, all heads as one, are least alike; None without any cosine."""
        output = self.similarity("output")
        none = output is None or np.isnan(output.together).all()
        return None if none or output is None else int(np.nanargmin(output.together))

    @property
    def case(self) -> Case:
        """The outcome of the comparison."""
        if self.between is Between.LAYERS:
            return Case.TWO_LAYERS
        if self.between is Between.TEXTS:
            output, least = self.similarity("output"), self.least_alike
            if len(self.layers) == 1 or output is None or least is None:
                return Case.ONE_LAYER
            return Case.TEXTS_SAME if output.together[least] >= 1 - _SAME_COSINE else Case.TEXTS_DIFFER
        if not self.similarities and self.divergence is None:
            return Case.MODELS_APART
        if self.same:
            return Case.MODELS_SAME
        return Case.MODELS_BEGIN if self.shown in self.begins else Case.MODELS_DIFFER

    def similarity(self, vector: str) -> Similarity | None:
        """The similarity of one kind of vector, or None."""
        return next((each for each in self.similarities if each.vector == vector), None)

    def check_parts(self) -> None:
        for side in self.sides:
            one_for_each(side.certificates, (len(self.layers), len(self.heads)), "certificates")
        ways = {(side.view.by, side.view.special) if side.view else None for side in self.sides}
        fits(len(ways) == 1, "its two sides are looked at in two ways")
        a, b = self.a.head, self.b.head
        compared = (a.layer, b.layer) in self.layers and a.head in self.heads
        fits(compared, "the heads that are shown are none of those that are compared")

    def derived(self) -> dict[str, Value]:
        return {"by": self.by, "special": self.special, "provenance": self.provenance}


class RunsCase(StrEnum):
    """Outcomes of comparing two runs."""

    NO_QUERY = "no query"
    SAME_TO_THE_BIT = "same to the bit"
    SAME_BUT_ROUNDING = "same but rounding"
    CHANGED = "changed"


@dataclass(frozen=True)
class Run:
    """One of two runs: its name, tokens, provenance and worst verdict."""

    name: str
    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    provenance: Provenance
    verdict: Verdict


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Presented):
    """Heads of run `a` beside heads of run `b`; `pairs` are layer and head of `a`, then of `b`.

    `rows` are Jensen-Shannon divergences of each query's weights in nats, 0 to ln 2 (Lin 1991; what a sink
    takes counts as one more key), NaN where a query has no key; `divergences` their mean. `largest` is the
    largest difference of a weight, `rounding` the sum of both certificates' tolerances, NaN where there is
    none: a difference below it is none. `unlike` is the control: the median divergence of two neighbouring
    heads of one layer of `a`, NaN where there are not two. `before` and `after` are the weights of the pair
    at the place `shown`.
    """

    a: Run
    b: Run
    pairs: tuple[tuple[int, int, int, int], ...]
    rows: Float[np.ndarray, "pair query"]
    divergences: Float[np.ndarray, " pair"]
    largest: Float[np.ndarray, " pair"]
    rounding: Float[np.ndarray, " pair"]
    unlike: float
    shown: int
    before: Float[np.ndarray, "query key"]
    after: Float[np.ndarray, "query key"]

    asks_alone = True
    for_readers = ("verdict", "case")

    @property
    def verdict(self) -> Verdict:
        """The worse verdict of both runs."""
        return worst((self.a.verdict, self.b.verdict))

    @property
    def provenance(self) -> Provenance:
        """The provenance of run a; pictures and files name both."""
        return self.a.provenance

    @property
    def ranking(self) -> list[int]:
        """Indices of the pairs by divergence, largest first; NaN last."""
        return [int(i) for i in np.argsort(-np.nan_to_num(self.divergences, nan=-1.0), kind="stable")]

    @property
    def within_rounding(self) -> int:
        """Number of heads whose largest difference is within the tolerance of rounding."""
        return int((self.largest <= self.rounding).sum())

    @property
    def is_same(self) -> bool:
        """Whether all weights of both runs are equal to the bit."""
        return bool((self.largest == 0).all())

    @property
    def case(self) -> RunsCase:
        """The outcome of the comparison of runs."""
        if np.isnan(self.divergences[self.shown]):
            return RunsCase.NO_QUERY
        if self.is_same:
            return RunsCase.SAME_TO_THE_BIT
        return RunsCase.SAME_BUT_ROUNDING if self.within_rounding == len(self.pairs) else RunsCase.CHANGED

    @property
    def signed(self) -> Float[np.ndarray, "query key"]:
        """Weights of `b` less those of `a`, in the pair that is shown."""
        return np.asarray(self.after - self.before)

    @property
    def other_tokens(self) -> int:
        """Number of query and key positions at which the two runs read different tokens."""
        sides = ((self.a.query_tokens, self.b.query_tokens), (self.a.key_tokens, self.b.key_tokens))
        places = [
            sum(x.name != y.name for x, y in zip(first.items, second.items, strict=True))
            for first, second in sides
        ]
        return places[0] if self.a.query_tokens == self.a.key_tokens else sum(places)

    def name(self, place: int) -> str:
        """The name of a pair: `L3 H11`, or `L3 H11 and L2 H10` where these are two heads."""
        layer, head, other, second = self.pairs[place]
        first = head_name(layer, head)
        return first if (layer, head) == (other, second) else f"{first} and {head_name(other, second)}"

    def check_parts(self) -> None:
        fits(within(self.shown, len(self.pairs)), "'shown' is none of the pairs")
        sizes = [(len(run.query_tokens), len(run.key_tokens)) for run in (self.a, self.b)]
        fits(sizes[0] == sizes[1] == self.before.shape, "'a' and 'b' have not as many tokens")

    def derived(self) -> dict[str, Value]:
        """JSON fields: counts, and the pairs ranked by divergence."""
        numbers = ("divergences", "largest", "rounding")
        names = ("layer", "head", "layer_b", "head_b")
        return {
            "looked_at": len(self.pairs),
            "within_rounding": self.within_rounding,
            "other_tokens": self.other_tokens,
            "unit": "nats",
            "provenance": self.a.provenance,
            "ranking": [
                dict(zip(names, self.pairs[i], strict=True))
                | {name.removesuffix("s"): float(getattr(self, name)[i]) for name in numbers}
                for i in self.ranking
            ],
        }
