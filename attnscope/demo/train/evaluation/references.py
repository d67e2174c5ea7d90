"""Does a head look from a pronoun to its antecedent? Sentences with a distractor, none of them trained on."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import BertForPreTraining, PreTrainedTokenizerBase

from attnscope.demo.train.corpora.corpus import ARTICLES, has_held_out_pair, is_held_out, sentences
from attnscope.demo.train.english import pronoun_patterns
from attnscope.demo.train.english.phrases import Speaker, links, plain

PATTERNS = (
    pronoun_patterns.beside,
    pronoun_patterns.company,
    pronoun_patterns.encounter,
    pronoun_patterns.owner_and_thing,
)
SELECTION, REPORTED = 101, 202  # seeds: heads are chosen on one set and reported on the other


@dataclass(frozen=True)
class Reference:
    """A sentence, the position of its pronoun and those of the antecedent's nouns ([CLS] is position 0)."""

    text: str
    pronoun: int
    antecedent: tuple[int, ...]

    @property
    def masked(self) -> str:
        """The sentence with the mask in the pronoun's place."""
        words = self.text.split()
        return " ".join([*words[: self.pronoun - 1], "[MASK]", *words[self.pronoun :]])


def references(seed: int, count: int) -> list[Reference]:
    """Held-out sentences with one pronoun, an antecedent before it and another noun that does not fit."""
    s, chosen, seen = Speaker(random.Random(seed)), list[Reference](), set[str]()
    while len(chosen) < count:
        marked = s.pick(PATTERNS)(s)
        text, marks = plain(marked), links(marked)
        held_out = is_held_out(sentences(text)[0]) and not (ARTICLES.search(text) or has_held_out_pair(text))
        if held_out and len(marks) == 1 and text not in seen:
            seen.add(text)
            pronoun, nouns = marks[0]
            chosen.append(Reference(text, pronoun + 1, tuple(noun + 1 for noun in nouns)))
    return chosen


@torch.no_grad()
def attention_rows(
    model: BertForPreTraining, tokenizer: PreTrainedTokenizerBase, text: str, position: int
) -> Tensor:
    """The attention row of one position in every head: `layer head key`. The model must run eager."""
    output = model(**tokenizer(text, return_tensors="pt"), output_attentions=True)
    return torch.stack([weights[0, :, position] for weights in output.attentions])


@dataclass(frozen=True)
class HeadReport:
    """Per layer and head: how often the largest weight lies where it should, and the mean weight there."""

    found: Tensor
    weight: Tensor

    def best(self, layer: int | None = None) -> tuple[int, int]:
        """(layer, head) that finds most, of one layer or all; then the larger weight."""
        score = self.found + 1e-3 * self.weight
        if layer is not None:
            return layer, int(score[layer].argmax())
        return divmod(int(score.argmax()), score.shape[1])

    def figures(self, layer: int, head: int) -> dict[str, float]:
        """Those of one head."""
        return {
            "layer": layer,
            "head": head,
            "found": round(self.found[layer, head].item(), 4),
            "weight": round(self.weight[layer, head].item(), 4),
        }


def look(
    model: BertForPreTraining, tokenizer: PreTrainedTokenizerBase, items: list[Reference], masked: bool
) -> HeadReport:
    """How well each head finds the antecedent, from the pronoun itself or from a mask in its place."""
    found, weight = torch.zeros(0), torch.zeros(0)
    for item in items:
        rows = attention_rows(model, tokenizer, item.masked if masked else item.text, item.pronoun)
        hit = torch.isin(rows.argmax(-1), torch.tensor(item.antecedent)).float()
        mass = rows[..., list(item.antecedent)].sum(-1)
        found, weight = (hit, mass) if not found.numel() else (found + hit, weight + mass)
    return HeadReport(found / len(items), weight / len(items))


def fixed_offset(items: list[Reference]) -> tuple[int, float]:
    """The best rule "so many tokens back", chosen on these very sentences, and how often it is right."""
    offsets = Counter(item.pronoun - noun for item in items for noun in item.antecedent)
    offset, hits = max(offsets.items(), key=lambda pair: (pair[1], -pair[0]))
    return offset, hits / len(items)
