"""One word in one layer, as it is compared: its vectors in every head, and its rows of weights.

A word that was cut into pieces has the mean of their vectors, and of their rows the mean, summed over the
pieces of each key (Clark et al. 2019).

Other forms of it (`banks` for `bank`) are found by a rule of a few endings, not a grammar: two words are
forms of one where, in small letters, one ending at most taken from each, the same is left, of three letters
at least. The endings are those of English plurals and verbs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.heads.view import Places, groups_of, place_in_text, without_padding
from attnscope.arithmetic import attend
from attnscope.attention import AttentionCall
from attnscope.reference import exact
from attnscope.results import Certificate, Kind, Special
from attnscope.results.base.groups import Groups, joined, regrouped, taken_together, units_of_text
from attnscope.tokens import Token, Tokens
from attnscope.verify import certify_heads
from attnscope.vocabulary import Unit

Vectors = Float[np.ndarray, "head dim"]

ENDINGS = (("'s", ""), ("’s", ""), ("ies", "y"), ("es", ""), ("s", ""), ("ed", ""), ("d", ""), ("ing", ""))
_SHORTEST = 3


@dataclass(frozen=True)
class Look:
    """How words are looked at: by words instead of tokens, with special tokens or without.

    What is only hidden still counts where rows are compared: a row with gaps is no distribution. Unless
    `all_heads`, a head that leaves most of the word's weight on special tokens is not the one to show.
    """

    by: Unit = Unit.TOKEN
    special: Special = Special.SHOW
    all_heads: bool = False

    @property
    def changes(self) -> bool:
        """Whether anything is looked at in another way than by all tokens."""
        return self.by.joins or self.special is not Special.SHOW

    @property
    def units(self) -> str:
        return self.by.several

    def pieces(self, queries: Tokens, places: Places) -> Places:
        """The positions of the tokens that make up the word, or the words, that stand at `places`."""
        groups = units_of_text(queries, self.by) if self.by.joins else ()
        return tuple(i for group in groups if {*group} & {*places} for i in group) or places

    def compared(self, keys: Tokens, span: Places = ()) -> Groups | None:
        """The tokens of each key that a row is compared over; None where that is every token.

        The tokens of the `span` are one key.
        """
        if not self.by.joins and self.special is not Special.RENORMALISE and len(span) < 2:
            return None
        special = self.special if self.special is Special.RENORMALISE else Special.SHOW
        groups = groups_of(keys, "key", self.by, special)
        places = [i for i, group in enumerate(groups) if {*group} & {*span}]
        return taken_together(groups, *([places] if places else []))


TOKENS = Look()


@dataclass(frozen=True, eq=False)
class ComparedWord:
    """The word in one layer: its vectors by name and its rows of weights, one row per compared head.

    `on_special` is how much of the word's weight each head puts on special tokens.
    """

    vectors: dict[str, Vectors]
    weights: Float[np.ndarray, "head key"]
    on_special: Float[np.ndarray, " head"]
    certificates: tuple[Certificate, ...]

    @property
    def rotated(self) -> bool:
        """Whether its unrotated key is another one than its key; else they are the same numbers and means."""
        return not np.array_equal(self.vectors["key"], self.vectors["unrotated key"])


def word_in(call: AttentionCall, heads: Sequence[int], places: Places, look: Look = TOKENS) -> ComparedWord:
    """The word at `places` among the queries of one layer; a sink's share is the last of its weights.

    Where rows are divided by what remains without special tokens, a sink is left out like these. In
    cross-attention the word is a query only: keys and values belong to other tokens.
    """
    whole, call = call, without_padding(call)
    span = look.pieces(call.query_tokens, tuple(place_in_text(whole, place) for place in places))
    pieces = list(span)
    stages = [attend(call.operands(head)) for head in heads]
    shared = [call.key_head(head) for head in heads]
    weights = torch.stack([stage.weights[0, pieces] for stage in stages])
    vectors = {"query": exact(call.q[list(heads)][:, pieces]).mean(dim=1)}
    if call.kind is not Kind.CROSS:
        vectors["key"] = exact(call.k[shared][:, pieces]).mean(dim=1)
        if call.unrotated_k is not None:
            vectors["unrotated key"] = exact(call.unrotated_k[shared][:, pieces]).mean(dim=1)
        vectors["value"] = exact(call.v[shared][:, pieces]).mean(dim=1)
    vectors["output"] = _mean_output(torch.stack([stage.output[0, pieces] for stage in stages]), weights)
    special = [i for i, token in enumerate(call.key_tokens.items) if token.special]
    on_special = weights[..., special].sum(-1).nanmean(dim=1)
    if call.sinks is not None:
        weights = torch.cat([weights, (1 - weights.sum(-1, keepdim=True)).clamp_min(0)], dim=-1)
    return ComparedWord(
        {name: vector.numpy() for name, vector in vectors.items()},
        _rows(weights, look, call, span),
        on_special.numpy(),
        certify_heads(whole, heads),
    )


def _mean_output(
    outputs: Float[Tensor, "head piece dim"], weights: Float[Tensor, "head piece key"]
) -> Float[Tensor, "head dim"]:
    """The mean over the pieces that have a key, as their rows of weights are averaged; NaN where none has."""
    answered = ~weights.isnan().any(dim=-1, keepdim=True)
    counted = answered | ~answered.any(dim=1, keepdim=True)
    return outputs.masked_fill(~counted, 0).sum(dim=1) / counted.sum(dim=1)


def _rows(
    weights: Float[Tensor, "head piece key_and_sink"], look: Look, call: AttentionCall, span: Places
) -> Float[np.ndarray, "head key"]:
    groups = look.compared(call.key_tokens, () if call.kind is Kind.CROSS else span)
    if groups is None and len(span) > 1:
        groups = groups_of(call.key_tokens, "key", Unit.TOKEN, Special.SHOW)
    if groups is None:
        return np.asarray(weights[:, 0].numpy())
    scaled, count = look.special is Special.RENORMALISE, weights.shape[1]
    if call.sinks is not None and not scaled:
        groups = (*groups, (len(call.key_tokens),))
    members = tuple(tuple(range(first, first + count)) for first in range(0, len(weights) * count, count))
    return regrouped(weights.flatten(0, 1).numpy(), members, groups, renormalise=scaled)


def same_keys(a: AttentionCall, b: AttentionCall, look: Look = TOKENS) -> bool:
    """Whether the keys of both are the same pieces or words of the same text, and both or neither sink."""

    def spelled(tokens: Tokens) -> list[object]:
        groups = look.compared(tokens)
        items = tokens.items if groups is None else joined(tokens, groups, look.by).items
        of = _spelled_word if look.by.joins else _spelled_token
        return [tokens.texts, *map(of, items)]

    sinks = look.special is Special.RENORMALISE or (a.sinks is None) == (b.sinks is None)
    first, second = (spelled(without_padding(each).key_tokens) for each in (a, b))
    return first == second and sinks


def _spelled_token(token: Token) -> tuple[object, ...]:
    return token.piece, token.span, token.part


def _spelled_word(token: Token) -> tuple[object, ...]:
    """What tells a word from others, however it was cut: its characters and where they start."""
    if token.span is None:
        return token.piece, None, token.part
    blanks = len(token.text) - len(token.text.lstrip())
    return token.text.strip(), token.span[0] + blanks, token.part


def stems(word: str) -> set[str]:
    """What a word may be a form of: itself, and what is left without an ending."""
    small = word.lower()
    cut = {small.removesuffix(ending) + put for ending, put in ENDINGS if small.endswith(ending)}
    return {small} | {each for each in cut if len(each) >= _SHORTEST}


def forms_in(tokens: Tokens, word: str) -> list[int]:
    """Positions of the other forms of `word` among the tokens; none of a word that is there itself."""
    names = [token.text.strip() for token in tokens.items]
    if word in names or not word.isalpha():
        return []
    wanted = stems(word)
    return [i for i, name in enumerate(names) if name.isalpha() and wanted & stems(name)]
