"""What each head answers for each word: from the weights of tokens to those of words, to one word each.

    weight of word i on word j = mean over the pieces of i of the sum over the pieces of j

Special tokens and the diagonal are left out. For a word there are two answers: the word that it attends to
most, and the word that attends to it most. Of a dependent either may be its head (Clark et al. 2019, Section
4.2); the first, of a head, may be its dependent.

A few sentences captured in full (`Sample`) prove what was counted in them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.attention import AttentionCall, Capture
from attnscope.reference import exact
from attnscope.results import Provenance, Verdict
from attnscope.tokens import Tokens
from attnscope.verify import certify_heads

Pieces = Bool[Tensor, "row word token"]


def pieces_of(tokens: Tokens, words: int) -> Bool[Tensor, "word token"]:
    """Which tokens are pieces of each word; a word that the tokenizer leaves out has none."""
    pieces = torch.zeros(words, len(tokens), dtype=torch.bool)
    for i, token in enumerate(tokens.items):
        if token.span is not None and token.word is not None and not token.special:
            pieces[token.word, i] = True
    return pieces


def together(pieces: Sequence[Bool[Tensor, "_ token"]]) -> Pieces:
    """Those of several sentences of as many tokens; a shorter sentence's missing words have no pieces."""
    longest = max(map(len, pieces))
    joined = torch.zeros(len(pieces), longest, pieces[0].shape[1], dtype=torch.bool)
    for row, mine in enumerate(pieces):
        joined[row, : len(mine)] = mine
    return joined


def word_weights(
    weights: Float[Tensor, "row head query key"], pieces: Pieces
) -> Float[Tensor, "row head word other"]:
    """By words: summed over the pieces of a key, averaged over those of a query; 0 where there are none."""
    weights = exact(weights)
    sums = exact(pieces).to(weights.device)[:, None]
    means = sums / sums.sum(-1, keepdim=True).clamp_min(1)
    return means @ weights @ sums.transpose(-1, -2)


def answers(weights: Float[Tensor, "row head query key"], pieces: Pieces) -> Int[Tensor, "row head way word"]:
    """The word that each word attends to most, and the word that attends to it most; -1 for none.

    Other words alone may be answers, the first of several that are alike; where no other word gets anything,
    as for the first word of a causal text, there is none.
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
    """Whether any query gives anything to a later key."""
    return bool((weights.triu(1) > 0).any())


@dataclass
class Sample:
    """What full captures of a few sentences say of the chosen layers and heads."""

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
        """Certify every chosen head of one sentence, and that the weights that were `counted` are its own."""
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
        """Every chosen head of one layer by its `counted` weights; faults are tried first on `queries`."""
        call = replace(call, weights=dict(zip(self.heads, counted, strict=True)))
        for head, certificate in zip(self.heads, certify_heads(call, self.heads, queries), strict=True):
            self.verdicts[certificate.verdict] += 1
            if certificate.verdict is Verdict.FAILED:
                self.failed.append((call.layer, head))
