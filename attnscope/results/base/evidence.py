"""Finds the link (head, query, key) that is least explained by position, key, uniformity or control texts.

A link is a head's weight from one query to one key. Four numbers may explain it: the largest weight in
control texts at the same places, the mean of other queries at the same distance, the mean of other queries
on the same key, and uniform attention. Its evidence is how far its weight exceeds the largest of them.

"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attnscope.tokens import Token, Tokens

LEAST = 0.1  # evidence of a link that is worth opening on
NEARLY = 0.1  # links with so much less than the best are as good: then the layer decides
HALF = 0.5  # of the evidence of a link with a word that says nothing
# words of English and French that say little by themselves; pronouns stay, since they stand for something
_WORDS = (
    "a about after all also although an and any are as at be because been before being but by can could "
    "did do does for from had has have if in into is just may might more most must no nor not of off on "
    "only or other out over own shall should so some such than that the then there these this those "
    "though through to too under until up very was were when where which while will with would "
    "au aux avait avec ce ces cet cette dans de des du d en est et était étaient la le les l mais ne ni "
    "ont ou où par parce pas pour qu que s sans sont sous sur un une"
)
_EMPTY = frozenset(_WORDS.split())
# what joins a token to the letters beside it, as in `3.0` or `Rabbit-Hole`
_MARKS = r"[!-/:-@\[-`{-~’–]+"
_BEFORE, _BEHIND = re.compile(rf"\w{_MARKS}\Z"), re.compile(rf"{_MARKS}\w")

Weights = Float[np.ndarray, "layer head query key"]
Pairs = Bool[np.ndarray, "query key"]


@dataclass(frozen=True)
class Link:
    """One link and the alternatives that may explain its weight; `layer` and `head` are indices of the grid.

    `query` and `key` are token positions, `weight` is from 0 to 1. `controls` is the largest weight there in
    any control text, None without; `distance` is the mean weight of the head's other queries at that
    distance, None where distances have no meaning or no other query has such a key; `others` is the mean
    weight of other queries on this key, and `even` that of uniform attention.
    """

    layer: int
    head: int
    query: int
    key: int
    weight: float
    controls: float | None
    distance: float | None
    others: float
    even: float

    for_readers = ("evidence",)

    @property
    def evidence(self) -> float:
        """The weight less the largest of its alternative explanations."""
        explained = (self.controls, self.distance, self.others, self.even)
        return self.weight - max(each for each in explained if each is not None)

    @property
    def explained(self) -> tuple[tuple[str, float], ...]:
        """The alternative explanations by name, with the weight that each predicts."""
        each = {
            "controls": self.controls,
            "distance": self.distance,
            "others": self.others,
            "even": self.even,
        }
        return tuple((by, share) for by, share in each.items() if share is not None)


@dataclass(frozen=True)
class Opening:
    """The link that a page opens on, or None, and the number of control texts it was compared with."""

    link: Link | None
    controls: int = 0


def telling_pairs(queries: Tokens, keys: Tokens, *, crosses: bool, causal: bool) -> Pairs:
    """True for pairs of two different whole words: no special tokens, punctuation, pieces or neighbours.

    The first key of a decoder is left out too, since causal heads rest on it.

    """
    asking, asked = (np.array([*_whole_words(side)], dtype=bool) for side in (queries, keys))
    pairs = asking[:, None] & asked
    if crosses:
        return np.asarray(pairs)
    apart = np.arange(len(keys)) - np.arange(len(queries))[:, None]
    pairs &= (np.abs(apart) > 1) & (np.array(queries.ids)[:, None] != keys.ids)
    if causal:
        pairs[:, 0] = False
    return np.asarray(pairs)


def _whole_words(tokens: Tokens) -> Iterator[bool]:
    placed = {place for stretch in tokens.stretches for place in stretch.positions}
    pieces = Counter((token.part, token.word) for token in tokens.items if token.word is not None)
    for i, token in enumerate(tokens.items):
        written = any(character.isalnum() for character in token.text)
        other = token.special or token.unknown or token.padding or i in placed
        piece = token.piece.startswith("##") or (
            token.word is not None and pieces[token.part, token.word] > 1
        )
        yield written and not other and not piece and not _joined(token, tokens.texts)


def _joined(token: Token, texts: Sequence[str]) -> bool:
    """Whether the token is joined to other letters by punctuation, as in `3.0` or `Rabbit-Hole`."""
    if token.span is None or not 0 <= token.part < len(texts):
        return False
    text, (start, end) = texts[token.part], token.span
    return bool(_BEFORE.search(text[max(start - 9, 0) : start]) or _BEHIND.match(text, end))


def says_something(token: Token) -> bool:
    """Whether a word is a content word or pronoun: no article, preposition, conjunction or auxiliary."""
    return (
        not token.unknown and unicodedata.normalize("NFKC", token.text).strip(" '’").casefold() not in _EMPTY
    )


@dataclass(frozen=True, eq=False)
class Explained:
    """Predictions of a layer's weights from position, key and uniformity alone: axes `head query key`.

    `distance` is the mean weight of a head's other queries at the same distance, NaN where there is none,
    and `others` that on the same key; `even` is that of uniform attention. A pair without weight in any head
    is masked, and not `allowed`.
    """

    weights: Float[np.ndarray, "head query key"]
    allowed: Pairs
    distance: Float[np.ndarray, "head query key"]
    others: Float[np.ndarray, "head query key"]
    even: Float[np.ndarray, "query key"]

    @classmethod
    def of(cls, weights: Float[np.ndarray, "head query key"], *, crosses: bool) -> "Explained":
        """Computes the predictions from a layer's weights, which are 0 where masked."""
        allowed = np.asarray((weights > 0).any(axis=0))
        even = np.broadcast_to(1.0 / np.maximum(allowed.sum(axis=1, keepdims=True), 1), allowed.shape)
        found = [_elsewhere(head, allowed, crosses=crosses) for head in weights]
        distance, others = (np.stack(each) for each in zip(*found, strict=True))
        return cls(weights, allowed, distance, others, even)

    @property
    def most(self) -> Float[np.ndarray, "head query key"]:
        """The largest of the three predictions."""
        return np.asarray(np.fmax(np.fmax(self.distance, self.others), self.even))

    def link(self, layer: int, place: tuple[int, int, int], controls: float | None) -> Link:
        """The link at `place` (head, query, key) with its predictions."""
        _, query, key = place
        away = float(self.distance[place])
        known = None if np.isnan(away) else away, float(self.others[place]), float(self.even[query, key])
        return Link(layer, *place, float(self.weights[place]), controls, *known)


def _elsewhere(
    weights: Float[np.ndarray, "query key"], allowed: Pairs, *, crosses: bool
) -> tuple[Float[np.ndarray, "query key"], Float[np.ndarray, "query key"]]:
    """Mean weight of other queries at the same distance (NaN where there are none), and on the same key."""
    held = np.where(allowed, weights, 0.0)
    others = (held.sum(axis=0) - held) / np.maximum(allowed.sum(axis=0) - allowed, 1)
    if crosses:
        return np.full(weights.shape, np.nan), others
    apart = np.arange(weights.shape[1]) - np.arange(weights.shape[0])[:, None] + len(weights) - 1
    sums = np.bincount(apart.ravel(), weights=held.ravel())[apart]
    count = np.bincount(apart.ravel(), weights=allowed.ravel().astype(float))[apart] - allowed
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(count > 0, (sums - held) / count, np.nan), others


def most_telling_link(
    weights: Sequence[Sequence[np.ndarray]],
    queries: Tokens,
    keys: Tokens,
    *,
    crosses: bool,
    causal: bool,
    controls: Weights | None = None,
) -> Link | None:
    """The link with the most evidence; None where no link has at least `LEAST`.

    A link with a function word counts half; for a query across two texts its next word counts too, which the
    decoder writes there. Among links with nearly as much, the deepest layer's is taken, since the first
    layers see tokens and no text. A pair that no head of a layer attends to is masked. `controls` is, by
    layer and head, the largest weight in any control text.
    """
    pairs, found, best = telling_pairs(queries, keys, crosses=crosses, causal=causal), list[Link](), LEAST
    telling = [np.array([says_something(token) for token in side.items]) for side in (queries, keys)]
    if crosses:
        telling[0][:-1] |= telling[0][1:].copy()
    meaning = np.where(telling[0][:, None] & telling[1], 1.0, HALF)
    for i, layer in enumerate(weights):
        explains = Explained.of(np.nan_to_num(np.stack(layer)), crosses=crosses)
        for j, (head, most) in enumerate(zip(explains.weights, explains.most, strict=True)):
            most = most if controls is None else np.fmax(most, controls[i, j])
            left = np.where(pairs & explains.allowed, head - most, -np.inf)
            left = np.where(left > 0, left * meaning, left)
            best = max(best, float(left.max(initial=-np.inf)))
            for query, key in np.argwhere(left >= max(LEAST, best - NEARLY)).tolist():
                of_controls = None if controls is None else float(controls[i, j, query, key])
                found.append(explains.link(i, (j, query, key), of_controls))

    def worth(link: Link) -> float:
        return link.evidence * float(meaning[link.query, link.key])

    nearly = (link for link in found if worth(link) >= best - NEARLY)
    return max(nearly, key=lambda link: (link.layer, worth(link), -link.head, -link.query), default=None)
