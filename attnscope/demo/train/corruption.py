"""The noise of masked-word training: which positions are asked for and what stands there instead.

Pronouns and content words are asked for more often than "the" and full stops. A chosen pronoun is more often
than other words replaced by another pronoun or left as it is, so that a pronoun in plain sight has to be
checked against its antecedent as well: without that, nothing is ever asked of it.
"""

from __future__ import annotations

import torch
from torch import Tensor

PRONOUNS = ("he", "she", "it", "they", "him", "her", "them", "his", "its", "their")
LIGHT = "the a an of to in on at and . , ? with my our some so that is was were am are did not"
LOWEST, HIGHEST = 0.06, 0.35  # the masking rates among which every document draws


class Corruption:
    """Corrupts batches of ids; every document has its own masking rate, because people mask one word only."""

    def __init__(self, vocabulary: dict[str, int], lowest: float = LOWEST, highest: float = HIGHEST) -> None:
        self.mask, self.lowest, self.highest = vocabulary["[MASK]"], lowest, highest
        words = [
            index
            for word, index in vocabulary.items()
            if word == "i" or (len(word) > 1 and word[0] not in "[#")
        ]
        self.words = torch.tensor(sorted(words))  # a tokenizer's dictionary comes in no fixed order
        self.pronouns = torch.tensor([vocabulary[word] for word in PRONOUNS if word in vocabulary])
        self.weight = torch.zeros(len(vocabulary))
        self.weight[self.words] = 1.0
        for word in LIGHT.split():
            if word in vocabulary:
                self.weight[vocabulary[word]] = 0.4
        self.weight[self.pronouns] = 2.0

    def __call__(self, truth: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(corrupted ids, chosen positions as booleans); at least one position of a batch is chosen."""
        rates = self.lowest + (self.highest - self.lowest) * torch.rand(len(truth), 1, generator=generator)
        chosen = torch.rand(truth.shape, generator=generator) < rates * self.weight[truth]
        if not chosen.any():
            chosen[0, 1] = True
        fate = torch.rand(truth.shape, generator=generator)
        pronoun = torch.isin(truth, self.pronouns)
        masked = fate < torch.where(pronoun, 0.6, 0.8)
        swapped = ~masked & (fate < torch.where(pronoun, 0.8, 0.9))
        ids = torch.where(chosen & masked, self.mask, truth)
        ids = torch.where(chosen & swapped & ~pronoun, self._any(self.words, truth, generator), ids)
        return torch.where(
            chosen & swapped & pronoun, self._any(self.pronouns, truth, generator), ids
        ), chosen

    def _any(self, among: Tensor, like: Tensor, generator: torch.Generator) -> Tensor:
        """Random ids out of `among`, in the shape of `like`."""
        return among[torch.randint(len(among), like.shape, generator=generator)]
