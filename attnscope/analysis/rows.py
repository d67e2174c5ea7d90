"""Rows of weights of a layer by tokens or words, and each head's answer (strongest word) for a word.

A `Lens` groups them: by tokens, by words, or without special tokens, like `heads`. Weights are summed over
the pieces of a key and averaged over those pieces of a query that have a key (Clark et al. 2019); special
tokens may be left out, and each row divided by its sum. A word moves the length of the sum of its pieces'
vectors, not the sum of their lengths.

Each head's answer for a word is one other word, found from the weights of tokens through those of words:

    weight of word i on word j = mean over the pieces of i of the sum over the pieces of j

Special tokens and the diagonal are left out. For a word there are two answers: the word that it attends to
most, and the word that attends to it most. Of a dependent either may be its head (Clark et al. 2019, Section
4.2); the first, of a head, may be its dependent.

Full captures of some sentences (`Sample`) certify the counted weights.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isnan

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.analysis.heads.view import Name, Units, units_of
from attnscope.arithmetic import Operands, weights_alone
from attnscope.attention import AttentionCall, Capture
from attnscope.capture.returned import ReturnedLayer
from attnscope.errors import CertificateError, InputError
from attnscope.reference import exact
from attnscope.results import Certificate, Provenance, Special, Verdict
from attnscope.tiles.softmax import certify_rows
from attnscope.tiles.tiling import LongCall
from attnscope.tokens import Tokens
from attnscope.verify import certify_heads
from attnscope.vocabulary import Unit


@dataclass(frozen=True, eq=False)
class LayerRows:
    """Some queries' weights on every key of a layer, in float64: all that is kept of a long control text."""

    layer: int
    queries: tuple[int, ...]
    weights: Float[Tensor, "head row key"]
    allowed: Bool[Tensor, "#head row key"] | None

    @classmethod
    def of(cls, call: AttentionCall, queries: Sequence[int]) -> "LayerRows":
        """Recomputes the rows of `queries` of a call."""
        rows = call.rows(queries)
        return cls(call.layer, tuple(queries), weights_alone(_operands(rows)), rows.allowed)

    def places(self, queries: Sequence[int] | None) -> list[int]:
        """Indices of these queries among the stored rows; all for None."""
        return [self.queries.index(query) for query in (self.queries if queries is None else queries)]


Layer = AttentionCall | ReturnedLayer
AnyRows = Layer | LayerRows


def rows_of(
    layer: AnyRows, heads: Sequence[int], queries: Sequence[int] | None = None
) -> Float[np.ndarray, "head row key"]:
    """The weights of `heads` for some queries, or all (None), recomputed in float64 or as returned."""
    if isinstance(layer, ReturnedLayer):
        found = exact(layer.weights[list(heads)])
        return np.asarray((found if queries is None else found[:, list(queries)]).numpy())
    if isinstance(layer, LayerRows):
        return np.asarray(layer.weights[list(heads)][:, layer.places(queries)].cpu().numpy())
    rows = layer if queries is None else layer.rows(queries)
    return np.asarray(weights_alone(_operands(rows))[list(heads)].cpu().numpy())


def _operands(call: AttentionCall) -> Operands:
    return Operands(
        q=exact(call.q),
        k=exact(call.k),
        v=exact(call.v[..., :0]),
        scale=call.scale,
        softcap=call.softcap,
        bias=call.bias,
        allowed=call.allowed,
        sinks=None if call.sinks is None else exact(call.sinks),
    )


def check_numbers(layers: Sequence[AnyRows]) -> None:
    """Raises `CertificateError` where a control text gives values that are not finite."""
    for layer in layers:
        if isinstance(layer, LayerRows):
            found = layer.weights.isfinite()
            right = found if layer.allowed is None else found | ~layer.allowed.any(-1, keepdim=True)
        else:
            given = (layer.weights,) if isinstance(layer, ReturnedLayer) else (layer.q, layer.k)
            right = torch.stack([each.isfinite().all() for each in given])
        if not bool(right.all()):
            raise CertificateError(
                f"a control text gives no numbers in layer {layer.layer}: broken weights, or too large for "
                "the model's precision"
            )


def allowed_rows(layer: AnyRows, head: int, queries: Sequence[int]) -> Tensor:
    """True where these queries may attend in one head; all True where only returned weights are known."""
    if isinstance(layer, ReturnedLayer):
        return torch.ones(len(queries), layer.weights.shape[2], dtype=torch.bool)
    if isinstance(layer, LayerRows):
        rows, allowed = layer.places(queries), layer.allowed
        if allowed is None:
            return torch.ones(len(rows), layer.weights.shape[2], dtype=torch.bool)
        return allowed[head if len(allowed) > 1 else 0, rows].cpu()
    return layer.rows(queries).allowed_matrix(head).cpu()


def allowed_of(
    layer: AnyRows, heads: Sequence[int], queries: Sequence[int]
) -> Bool[np.ndarray, "head query key"]:
    """True where these queries may attend, for several heads; cuts the rows out of the call once."""
    if isinstance(layer, ReturnedLayer | LayerRows):
        return np.stack([allowed_rows(layer, head, queries).numpy() for head in heads])
    cut = layer.rows(queries)
    return np.stack([cut.allowed_matrix(head).cpu().numpy() for head in heads])


def verdicts_of(layer: Layer, heads: Sequence[int]) -> tuple[Verdict, ...]:
    """The verdict on each head, for a long text from its sampled rows; `uncertified` for returned weights."""
    if not isinstance(layer, AttentionCall):
        return (Verdict.UNCERTIFIED,) * len(heads)
    return tuple(proof.verdict for proof in certificates_of(layer, heads))


def certificates_of(layer: AttentionCall, heads: Sequence[int]) -> tuple[Certificate, ...]:
    """The certificates of these heads, for a long text from its sampled rows."""
    return certify_rows(layer, heads) if isinstance(layer, LongCall) else certify_heads(layer, heads)


def moved(layer: Layer) -> Float[np.ndarray, "head key"] | None:
    """||f(x)|| of each key in each head; None where the output projection is not known."""
    if isinstance(layer, ReturnedLayer) or layer.projection is None:
        return None
    from attnscope.measures.rows import moved_norms

    return np.asarray(moved_norms(layer.v, layer.projection).numpy())


def vectors_of(
    layer: Layer, heads: Sequence[int], keys: Sequence[int]
) -> Float[np.ndarray, "head key hidden"] | None:
    """f(x) of some keys: the value through the output projection; None where that is not known."""
    if isinstance(layer, ReturnedLayer) or layer.projection is None:
        return None
    shared = layer.heads // len(layer.v)
    values = [exact(layer.v[head // shared][list(keys)]) for head in heads]
    made = [each @ exact(layer.projection[head]) for head, each in zip(heads, values, strict=True)]
    return np.asarray(torch.stack(made).numpy())


Rows = Float[np.ndarray, "head row key"]
TokenRows = Float[np.ndarray, "head row token"]


@dataclass(frozen=True, eq=False)
class Lens(Units):
    """The row and column groups of weights; `count` is the number of key tokens."""

    count: int = field(kw_only=True)
    by: Unit = Unit.TOKEN
    special: Special = Special.SHOW

    @cached_property
    def plain(self) -> bool:
        """Whether rows and columns are single tokens, special ones included."""
        return super().plain and not self.by.joins and self.special is Special.SHOW

    @cached_property
    def members(self) -> Bool[np.ndarray, "key token"]:
        """True where a token belongs to a column."""
        found = np.zeros((len(self.keys), self.count), dtype=bool)
        for column, group in enumerate(self.keys):
            found[column, list(group)] = True
        return found

    def rows(self, layer: AnyRows, heads: Sequence[int], queries: Sequence[int] | None = None) -> Rows:
        """The weights of `heads` for some rows, or all (None), by group; NaN where a row has no key."""
        if self.plain:
            return rows_of(layer, heads, queries)
        return self._columns(self._token_rows(layer, heads, self._all(queries)))

    def even(self, layer: Layer, heads: Sequence[int], queries: Sequence[int]) -> Rows:
        """The rows of uniform attention over the keys that each query may attend to."""
        flat = [token for query in queries for token in self.queries[query]]
        allowed = allowed_of(layer, heads, flat).astype(float)
        with np.errstate(invalid="ignore"):
            alike = allowed / allowed.sum(axis=2, keepdims=True)
        return alike if self.plain else self._columns(self._averaged(alike, queries))

    def on_tokens(
        self, layer: AnyRows, heads: Sequence[int], query: int, tokens: Sequence[int]
    ) -> Float[np.ndarray, " head"]:
        """The weight of one row on these tokens together; NaN where it may attend to none of them."""
        given = self._token_rows(layer, heads, [query])
        if self.special is Special.RENORMALISE:
            given = _over(given, given[..., self.members.any(axis=0)].sum(axis=2, keepdims=True))
        pieces, there = self.queries[query], list(tokens)
        seen = allowed_of(layer, heads, pieces)[:, :, there].any(axis=(1, 2))
        return np.where(seen, given[:, 0, there].sum(axis=1), np.nan)

    def visible(
        self, layer: Layer, heads: Sequence[int], queries: Sequence[int]
    ) -> Bool[np.ndarray, "row key"]:
        """True where any of `heads` may attend from these queries."""
        groups = [self.queries[query] for query in queries]
        flat = [token for group in groups for token in group]
        tokens = allowed_of(layer, heads, flat).any(axis=0)
        if self.plain:
            return np.asarray(tokens)
        ends = np.cumsum([len(group) for group in groups])[:-1]
        rows = np.array([each.any(axis=0) for each in np.split(tokens, ends)])
        return np.asarray(rows @ self.members.T)

    def moved(
        self, layer: Layer, heads: Sequence[int], queries: Sequence[int]
    ) -> tuple[Rows, Float[np.ndarray, "head row"]] | None:
        """Weight times ||f(x)|| of each column, and the sum over each row; None where f is not known.

        The sum of a renormalised row is over its columns only, else also over hidden tokens.

        """
        lengths = moved(layer)
        if lengths is None:
            return None
        rows = self._token_rows(layer, heads, queries)
        by_token = rows * lengths[list(heads)][:, None]
        if self.plain:
            return by_token, by_token.sum(axis=2)
        found = by_token @ self.members.T.astype(float)
        for column, group in enumerate(self.keys):
            if len(group) > 1:
                found[:, :, column] = _together(layer, heads, group, rows)
        hidden = ~self.members.any(axis=0) & (self.special is not Special.RENORMALISE)
        return found, found.sum(axis=2) + by_token[..., hidden].sum(axis=2)

    def _all(self, queries: Sequence[int] | None) -> Sequence[int]:
        return range(len(self.queries)) if queries is None else queries

    def _token_rows(self, layer: AnyRows, heads: Sequence[int], queries: Sequence[int]) -> TokenRows:
        flat = [token for query in queries for token in self.queries[query]]
        return self._averaged(rows_of(layer, heads, flat), queries)

    def _averaged(self, rows: Float[np.ndarray, "head piece token"], queries: Sequence[int]) -> TokenRows:
        ends = np.cumsum([len(self.queries[query]) for query in queries])[:-1]
        return np.stack([_mean(each) for each in np.split(rows, ends, axis=1)], axis=1)

    def _columns(self, rows: TokenRows) -> Rows:
        summed = rows @ self.members.T.astype(float)
        if self.special is not Special.RENORMALISE:
            return np.asarray(summed)
        return _over(summed, summed.sum(axis=2, keepdims=True))


def _mean(rows: Float[np.ndarray, "head piece token"]) -> Float[np.ndarray, "head token"]:
    answered = ~np.isnan(rows).any(axis=2, keepdims=True)
    count = answered.sum(axis=1)
    total = np.where(answered, rows, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _over(rows: TokenRows, sums: Float[np.ndarray, "head row 1"]) -> TokenRows:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums > 0, rows / sums, np.nan)


def _together(
    layer: Layer, heads: Sequence[int], pieces: Sequence[int], rows: TokenRows
) -> Float[np.ndarray, "head row"]:
    """The length of the weighted sum of these keys' f(x)."""
    vectors = vectors_of(layer, heads, pieces)
    assert vectors is not None, "the lengths of these are known"
    products = np.einsum("hpd,hqd->hpq", vectors, vectors)
    taken = rows[..., list(pieces)]
    return np.asarray(np.sqrt(np.maximum(np.einsum("hrp,hpq,hrq->hr", taken, products, taken), 0.0)))


def lens(
    queries: Tokens,
    keys: Tokens,
    *,
    by: Unit,
    special: Special,
    query: Name | None = None,
    key: Name | None = None,
) -> Lens:
    """The `Lens` for these tokens; each named `query` and `key` is one group.

    `InputError` where no token or no text is left, and for names that `units_of` does not find.
    """
    if by.joins and not queries.texts and not keys.texts and (queries.stretches or keys.stretches):
        raise InputError(f"--by {by} takes tokens of a text together: a picture or a sound has none")
    units = units_of(queries, keys, by=by, special=special, query=query, key=key)
    return Lens(**vars(units), count=len(keys), by=by, special=special)


Pieces = Bool[Tensor, "row word token"]


def pieces_of(tokens: Tokens, words: int) -> Bool[Tensor, "word token"]:
    """True where a token is a piece of a word; a word that the tokenizer leaves out has none."""
    pieces = torch.zeros(words, len(tokens), dtype=torch.bool)
    for i, token in enumerate(tokens.items):
        if token.span is not None and token.word is not None and not token.special:
            pieces[token.word, i] = True
    return pieces


def together(pieces: Sequence[Bool[Tensor, "_ token"]]) -> Pieces:
    """Word pieces of several sentences with equally many tokens, padded with words that have no pieces."""
    longest = max(map(len, pieces))
    joined = torch.zeros(len(pieces), longest, pieces[0].shape[1], dtype=torch.bool)
    for row, mine in enumerate(pieces):
        joined[row, : len(mine)] = mine
    return joined


def word_weights(
    weights: Float[Tensor, "row head query key"], pieces: Pieces
) -> Float[Tensor, "row head word other"]:
    """Weights between words: summed over a key's pieces, averaged over a query's; 0 without pieces."""
    weights = exact(weights)
    sums = exact(pieces).to(weights.device)[:, None]
    means = sums / sums.sum(-1, keepdim=True).clamp_min(1)
    return means @ weights @ sums.transpose(-1, -2)


def answers(weights: Float[Tensor, "row head query key"], pieces: Pieces) -> Int[Tensor, "row head way word"]:
    """For each word the other word it attends to most, and the one that attends to it most; -1 for none.

    The first of equal words is taken; where no other word gets any weight, as for the first word of a causal
    text, there is none.
    """
    by_word = word_weights(weights, pieces)
    there = pieces.any(-1).to(by_word.device)
    other = ~torch.eye(by_word.shape[-1], dtype=torch.bool, device=by_word.device)
    among = (there[:, :, None] & there[:, None, :] & other)[:, None]
    by_word = by_word.masked_fill(~among, -1.0)
    both = torch.stack([by_word, by_word.transpose(-1, -2)], dim=2)
    largest, place = both.max(-1)
    return place.masked_fill(~(largest > 0), -1).cpu()


def looks_ahead(weights: Float[Tensor, "row head query key"]) -> bool:
    """Whether any query attends to a later key."""
    return bool((weights.triu(1) > 0).any())


@dataclass
class Sample:
    """Certificates of the chosen layers and heads, from full captures of some sentences."""

    layers: Sequence[int]
    heads: Sequence[int]
    block: int
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    sentences: int = 0
    unlike: float = 0.0
    provenance: Provenance | None = None
    tower: str = ""
    failed: list[tuple[int, int]] = field(default_factory=list)  # heads, by layer and number

    def add(self, captured: Capture, counted: dict[int, Tensor], alone: dict[int, Tensor]) -> None:
        """Certifies all chosen heads of a sentence, and compares `counted` weights with those read alone."""
        for layer in self.layers:
            call = captured.call(layer, block=self.block)
            self.certify(call, counted[layer])
            off = float((counted[layer] - alone[layer]).abs().max())
            self.unlike = max(self.unlike, inf if isnan(off) else off)
        self.sentences += 1
        self.provenance, self.tower = captured.provenance, captured.tower

    def certify(
        self,
        call: AttentionCall,
        counted: Float[Tensor, "head query key"],
        queries: Sequence[int] | None = None,
    ) -> None:
        """Certifies a layer's chosen heads by `counted` weights; faults are tried on `queries` first."""
        call = replace(call, weights=dict(zip(self.heads, counted, strict=True)))
        for head, certificate in zip(self.heads, certify_heads(call, self.heads, queries), strict=True):
            self.verdicts[certificate.verdict] += 1
            if certificate.verdict is Verdict.FAILED:
                self.failed.append((call.layer, head))
