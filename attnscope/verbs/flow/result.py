"""Result of `flow`: attribution of a query to input tokens by several methods, and replacement effects."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Bool, Float

from attnscope.results.base.origin import Counted, Kind, Provenance, Verdict
from attnscope.results.base.presented import Presented, Value, fits, in_tokens, within
from attnscope.results.claims.attributed import DISTANCE, Attributed, Pooled, Trust
from attnscope.results.claims.effect import Intervention
from attnscope.tokens import Tokens
from attnscope.vocabulary import Unit

LEVEL, LITTLE = 0.05, 0.1  # p-value for agreement; nats below which an effect is negligible


class Case(StrEnum):
    """Which conclusion a flow allows: whether some method agrees with the replacement effects."""

    NOT_REPLACED = "nothing replaced"
    FLAT = "no token matters"
    TOO_FEW = "too few tokens"  # for a rank correlation
    AGREES = "a method agrees"
    CANNOT_TELL = "no method agrees"  # better than with shuffled effects


@dataclass(frozen=True, eq=False)
class Ablated:
    """Effects of replacing each input token by `replacement`: how much the query's answer changes.

    `effects` are the losses of log probability, in nats, of the `answer` with that `probability`; for a model
    without an answer there (`answer` is empty), 1 less the cosine of the query's last vector before and
    after. NaN for tokens that were not replaced: the query, special ones, tokens that it cannot see. `trust`
    has the rank correlation of every method, and of `distance alone`, a control without attention.
    `best_of_shuffled` is the 95 % quantile, over `controls` shufflings of the effects, of the best
    correlation of any method, and `as_far` counts shufflings that reach the best correlation with the real
    effects. `groups` are the sets of positions that were replaced at once; each position has the effect of
    its set. `input` is the name of the changed model input; in ids `replacement_id` was put in, None for a
    zero embedding. `answer_ids` are the answer's tokens, empty without an answer; their probabilities are
    multiplied. With an answer `against`, effects are losses of the `lead`, the difference of the two logits,
    and there is no `probability`. `tag` is True where the answer is the tag of the query itself, or a span of
    which `answer_ids` are the ends, not a word at the query or after it.
    """

    effects: Float[np.ndarray, " key"]
    replacement: str
    answer: str
    probability: float
    trust: tuple[Trust, ...]
    best_of_shuffled: float
    as_far: int
    controls: int
    seed: int
    groups: tuple[tuple[int, ...], ...] = ()
    input: str = "input_ids"
    replacement_id: int | None = None
    answer_ids: tuple[int, ...] = ()
    against: str = ""
    lead: float = float("nan")
    tag: bool = False

    for_readers = ("count", "unit")

    @property
    def unit(self) -> str:
        """Unit of the effects: `logits`, `nats` or `1 less cosine`."""
        return "logits" if self.against else "nats" if self.answer else "1 less cosine"

    @property
    def of_span(self) -> bool:
        """True where the answer is a span that starts and ends at the ends of the query."""
        return self.tag and len(self.answer_ids) > 1

    @property
    def count(self) -> int:
        """Number of tokens or groups replaced, each in a separate run."""
        return len(self.groups) or int((~np.isnan(self.effects)).sum())

    @property
    def together(self) -> int:
        """Size of the largest group of positions replaced at once."""
        return max((len(each) for each in self.groups), default=1)

    @property
    def best(self) -> Trust | None:
        """The method with the highest rank correlation with the effects, or None without any."""
        methods = [each for each in self.trust if each.method != DISTANCE]
        known = [each for each in methods if not np.isnan(each.correlation)]
        return max(known, key=lambda each: each.correlation, default=None)

    @property
    def ranking(self) -> tuple[int, ...]:
        """Replaced positions, the largest effect first; each group stands by its first position."""
        places = [each[0] for each in self.groups] or np.flatnonzero(~np.isnan(self.effects)).tolist()
        return tuple(sorted(places, key=lambda place: (-abs(float(self.effects[place])), place)))


@dataclass(frozen=True, eq=False, repr=False)
class Flow(Counted, Presented):
    """Attribution of one query to every input token through the layers, by several methods.

    `query` is its position; None where the query is the `pooled` vector of the whole text: its weights then
    average the rows of the tokens. For several tokens named together, `query_span`, the rows are averaged,
    and `query` is the one of them where the model answers.

    Attention is averaged over `heads`, and each layer mixed half and half with its own input (Abnar and
    Zuidema 2020). `raw[i]` is the mean attention of the query in `layers[i]` alone; `rollout[i]` the rollout
    through all layers up to that one; `by_norm[i]` the rollout of weights times the norm of what they move
    (Kobayashi et al. 2020), None where an output projection is not known. Rows sum to 1. `flow` is the
    maximum flow from the query in the last layer to each input token, None for texts longer than `most`
    tokens, and for units of several tokens.

    `zeroed[i]` is the rollout up to that layer by value zeroing (Mohebbi et al. 2023), of how far each
    token's vector turns in a layer without the values of each key; `zeroing` says whether these values were
    really zero. Both are None where a layer cannot be run so, `no_zeroing` says why.

    `attributed` are attributions by gradients of the model's answer, empty where nothing was replaced.

    `by` is the unit that tokens were joined to: positions then count units, shares are summed over the tokens
    of a unit and averaged over those of the query, and all tokens of a unit are replaced at once.
    `answers_at` is the position of the token where the model answers, if tokens were joined.

    `ablated` is None where nothing could be replaced; `reason` then says why. `sampled` is the number of rows
    per head that were certified in a long text; 0: all were.
    """

    query: int | None
    kind: Kind
    tokens: Tokens
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    raw: Float[np.ndarray, "layer key"]
    rollout: Float[np.ndarray, "layer key"]
    by_norm: Float[np.ndarray, "layer key"] | None
    flow: Float[np.ndarray, " key"] | None
    most: int
    ablated: Ablated | None
    reason: str
    certified: dict[Verdict, int]
    provenance: Provenance
    tower: str = ""
    notes: tuple[str, ...] = ()
    zeroed: Float[np.ndarray, "layer key"] | None = None
    zeroing: Intervention | None = None
    no_zeroing: str = ""
    sampled: int = 0
    attributed: tuple[Attributed, ...] = ()
    pooled: Pooled | None = None
    by: Unit = Unit.TOKEN
    answers_at: int | None = None
    query_span: tuple[int, ...] = ()

    for_readers = ("verdict", "case", "inputs")

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head; `failed` where values were not zero that should have been."""
        if self.zeroing is not None and self.zeroing.verdict is Verdict.FAILED:
            return Verdict.FAILED
        return super().verdict

    @property
    def case(self) -> Case:
        """Which conclusion the effects allow, with the best method tested against shuffled effects."""
        if self.ablated is None:
            return Case.NOT_REPLACED
        largest = max((abs(float(self.ablated.effects[each])) for each in self.ablated.ranking), default=0.0)
        if self.ablated.answer and largest < LITTLE:
            return Case.FLAT
        if self.ablated.best is None:
            return Case.TOO_FEW
        rare = (1 + self.ablated.as_far) / (self.ablated.controls + 1) <= LEVEL
        return Case.AGREES if rare else Case.CANNOT_TELL

    @property
    def reached(self) -> Bool[np.ndarray, " key"]:
        """True for input tokens that the query can see, directly or through earlier layers."""
        return np.asarray(self.rollout[-1] > 0)

    @property
    def query_tokens(self) -> Tokens:
        """Tokens of the input, the queries of every layer."""
        return self.tokens

    @property
    def key_tokens(self) -> Tokens:
        """Tokens of the input, the keys of every layer."""
        return self.tokens

    @property
    def methods(self) -> dict[str, Float[np.ndarray, " key"]]:
        """Attribution of every input token, by method.

        Methods of attention give shares of the last layer that sum to 1; those of `attributed` give signed
        numbers.
        """
        found = {"attention": self.raw[-1], "rollout": self.rollout[-1]}
        if self.by_norm is not None:
            found["by norm"] = self.by_norm[-1]
        if self.flow is not None:
            found["flow"] = self.flow / self.flow.sum()
        if self.zeroed is not None:
            found["zeroing"] = self.zeroed[-1]
        if self.pooled is not None and self.pooled.own is not None:
            found["own vector"] = self.pooled.own
        return found | {each.method: each.values for each in self.attributed if each.values is not None}

    def check_parts(self) -> None:
        fits(within(self.query, len(self.tokens)), "'query' is no token's position")
        in_tokens(self.query_span, len(self.tokens), "query_span")
        fits((self.query is None) == (self.pooled is not None), "'pooled' is not in the place of a query")
        if self.pooled is not None:
            fits(len(self.pooled.weights) == len(self.tokens), "'pooled' is not of these tokens")
        for each in self.attributed:
            given = each.values is None or each.values.shape == (len(self.tokens),)
            fits(given, "'attributed' has not a number for each token")
        for group in () if self.ablated is None else self.ablated.groups:
            fits(bool(group), "'groups' has one of no positions")
            in_tokens(group, len(self.tokens), "groups")

    @property
    def inputs(self) -> tuple[dict[str, Value], ...]:
        """Table rows: each input token with its attributions and its replacement effect."""
        effects = None if self.ablated is None else self.ablated.effects
        shares = {name.replace(" ", "_"): each for name, each in self.methods.items()}
        return tuple(
            {"position": key, "token": label}
            | {name: float(each[key]) for name, each in shares.items()}
            | {"effect": None if effects is None else float(effects[key])}
            for key, label in enumerate(self.tokens.labels)
        )
