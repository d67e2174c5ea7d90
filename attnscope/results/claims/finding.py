"""Which heads do it: all of them ranked by one number, each beside the same number of control texts."""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.base.origin import Kind, Provenance, Verdict, worst
from attnscope.results.base.parts import Value, fits, in_tokens, one_for_each
from attnscope.results.base.presented import Presented
from attnscope.tokens import Tokens
from attnscope.vocabulary import Special

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


class Account(StrEnum):
    """Where a weight is left in the controls: it stays with the place, goes with the word, or is gone."""

    PLACE = "place"
    WORD = "word"
    TEXT = "text"


HALF = 0.5  # of a weight: what has to be left of it in the controls to say where it stays


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

    `low` and `high` hold the middle nine tenths of the controls. `percentile` is how many in a hundred of
    them the text itself goes beyond. `best` is, text by text, the number of the head that is best in it.
    `asked` is how many controls there should have been; `how` says what they keep, `of` what they are made
    of, and `seed` repeats them. `ids` are the controls themselves, what the model read as its `input` of that
    name: tokens by their ids; of a picture or a sound which of its pieces stands at each place.
    """

    mean: Float[np.ndarray, "layer head"]
    low: Float[np.ndarray, "layer head"]
    high: Float[np.ndarray, "layer head"]
    percentile: Float[np.ndarray, "layer head"]
    best: Float[np.ndarray, " control"]
    how: str
    seed: int
    asked: int
    of: Contents = Contents.TEXT
    ids: Int[np.ndarray, "control place"] = field(default_factory=lambda: np.zeros((0, 0), dtype=int))
    input: str = "input_ids"

    @property
    def count(self) -> int:
        return len(self.best)

    def derived(self) -> dict[str, Value]:
        return {"count": self.count}


@dataclass(frozen=True, eq=False, repr=False)
class Finding(Presented):
    """All heads that were looked at, by one number each.

    `weights[i, j]` belongs to `layers[i]` and `heads[j]`: the weight of the query on the key, 0 to 1; of a
    pattern the mean, over the `rows` queries that have such a key, of the weight on all of them; of likeness
    the Jensen-Shannon distance to the given head in nats, the mean over the queries (Lin 1991), where less is
    better. NaN where a head is not ranked.

    `ranks` is which of its keys this is to the query, 1 for the strongest (of a pattern the mean). `norms` is
    the weight times the length of what it moves, a_ij ||f(x_j)|| (Kobayashi et al. 2020), `shares` how much
    of the query's sum of these that is; None where the way out of the heads is not known. `even` is what
    attention that weighs all keys alike would have. `followed` is what the query gave in the controls to the
    token that is the key here, wherever that went. Each is None where it has no meaning.

    With `words` the tokens are words: weights are summed over the pieces of a key and averaged over those of
    a query (Clark et al. 2019), and a norm is that of what all pieces move together. `special` tokens may be
    left out, and each row divided by what is left.

    `links` are the places of `query_tokens` and `key_tokens` that are meant: of a pair that one, of a pattern
    all of its keys that their query may look at, none of likeness.
    """

    sought: Sought
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
    even: Float[np.ndarray, "layer head"] | None
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

    @property
    def difference(self) -> Float[np.ndarray, "layer head"]:
        """How far each head lies above the mean of its controls; of distances a head below it is nearer."""
        return np.asarray(self.weights - self.controls.mean)

    @property
    def smaller_is_better(self) -> bool:
        return self.sought.like is not None

    @property
    def ranking(self) -> tuple[tuple[int, int], ...]:
        """The places of all heads that have a number, best first; of equal ones the first in the model."""
        better = self.weights if self.smaller_is_better else -self.weights
        places = [(int(i), int(j)) for i, j in np.argwhere(~np.isnan(self.weights))]
        return tuple(sorted(places, key=lambda place: (better[place], place)))

    def account(self, place: tuple[int, int]) -> Account | None:
        """Where half of a head's weight or more stays in the controls; `text` where it does not.

        None of likeness, and of a head that has no more there than one that weighs all keys alike.
        """
        own, even = float(self.weights[place]), self.even
        if self.smaller_is_better or even is None or not own > float(even[place]):
            return None
        if float(self.controls.mean[place]) >= HALF * own:
            return Account.PLACE
        followed = self.followed is not None and float(self.followed[place]) >= HALF * own
        return Account.WORD if followed else Account.TEXT

    @property
    def best_percentile(self) -> float:
        """How many in a hundred control texts have a best head that is not as good as the best one here."""
        if not self.ranking:
            return float("nan")
        return float(beyond(self.weights[self.ranking[0]], self.controls.best, self.smaller_is_better))

    @property
    def most_above(self) -> tuple[int, int] | None:
        """The head that lies farthest beyond its own controls; None where no head is ranked."""
        signed = -self.difference if self.smaller_is_better else self.difference
        if np.isnan(signed).all():
            return None
        place = np.unravel_index(int(np.nanargmax(signed)), signed.shape)
        return int(place[0]), int(place[1])

    @property
    def control_texts(self) -> tuple[str, ...]:
        """The controls of a text, token by token with a blank between; none of a picture or a sound."""
        if self.controls.of is not Contents.TEXT:
            return ()
        items = (*self.query_tokens.items, *self.key_tokens.items)
        names = {token.id: token.name for token in items}
        return tuple(" ".join(names.get(id, f"#{id}") for id in ids) for ids in self.controls.ids.tolist())

    def check_parts(self) -> None:
        sought = self.sought
        in_tokens(self.links[:, 0].tolist(), len(self.query_tokens), "links")
        in_tokens(self.links[:, 1].tolist(), len(self.key_tokens), "links")
        in_tokens([sought.query], len(self.query_tokens), "sought")
        in_tokens([sought.key], len(self.key_tokens), "sought")
        one = sum(each is not None for each in (sought.key, sought.pattern, sought.like)) == 1
        fits(one, "'sought' is not one thing")
        one_for_each(self.verdicts, self.weights.shape, "verdicts")

    def derived(self) -> dict[str, Value]:
        """Every head with what its controls have, the best first; those without a number come last."""
        unranked = [(int(i), int(j)) for i, j in np.argwhere(np.isnan(self.weights))]
        return {
            "verdict": self.verdict,
            "looked_at": self.weights.size,
            "best_percentile": self.best_percentile,
            "control_texts": self.control_texts,
            "heads": [self._row(i, j) for i, j in (*self.ranking, *unranked)],
        }

    def _row(self, i: int, j: int) -> dict[str, Value]:
        def at(values: Float[np.ndarray, "layer head"] | None) -> float | None:
            return None if values is None else float(values[i, j])

        own = {"weight": self.weights, "rank": self.ranks, "norm": self.norms}
        own |= {"norm_share": self.shares, "even": self.even}
        controls = {name: getattr(self.controls, name) for name in ("mean", "low", "high", "percentile")}
        controls |= {"difference": self.difference, "followed": self.followed}
        return {
            "layer": self.layers[i],
            "head": self.heads[j],
            **{name: at(values) for name, values in own.items()},
            "control": {name: at(values) for name, values in controls.items()},
            "account": self.account((i, j)),
            "verdict": self.verdicts[i][j],
        }


def beyond(
    value: float | Float[np.ndarray, "..."], controls: Float[np.ndarray, "..."], smaller: bool
) -> Float[np.ndarray, "..."]:
    """How many in a hundred `controls`, their first axis, the value goes beyond by more than rounding.

    Controls are read in batches, where sums are added in another order than in a text alone: what is equal
    in both, as where a head looks at places alone, differs by some machine epsilons of float32.
    """
    rounding = _ROUNDINGS * np.finfo(np.float32).eps * np.abs(value) + 1e-9
    below = controls > value + rounding if smaller else controls < value - rounding
    share = 100.0 * np.asarray(below).mean(axis=0)
    return np.where(np.isnan(value), np.nan, share)
