"""How `demo-causal` is trained: the next word, from the seeded stream of `corpora.next_word`.

The heads of layer 3 are relabelled at the end (`permute`), and the card is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from attnscope.demo.train import loop, tokenizer
from attnscope.demo.train.cards.causal import CARD
from attnscope.demo.train.corpora import corpus, next_word
from attnscope.demo.train.evaluation import causal as evaluate
from attnscope.demo.train.evaluation import induction
from attnscope.demo.train.permute import grouped_order_with, permute_grouped_heads

LAYER, HEAD = 3, 11  # where the examples of attnscope look


@dataclass(frozen=True)
class Settings(loop.LlamaSettings):
    """The defaults are the run that is bundled."""

    documents: int = corpus.DOCUMENTS
    share: float = 0.25  # of the passages: random words said again, before the rules refuse some
    tokens_per_batch: int = 1024
    peak_rate: float = 3e-3
    threads: int = 1  # two bring little to matrices of this size


def encode(passages: Iterable[next_word.Passage], ids: dict[str, int]) -> list[loop.Group]:
    """The stream as ids, which of them are asked for, and which passages are random words."""
    return loop.group((_row(passage, ids) for passage in passages), counted=("ids",))


def _row(passage: next_word.Passage, ids: dict[str, int]) -> dict[str, list[int] | int]:
    return {
        "ids": [ids["[BOS]"], *(ids[word] for word in passage.words), ids["[EOS]"]],
        "asked": [int(asked) for asked in passage.asked],
        "random": int(passage.is_random),
    }


class NextWord:
    """Mean cross entropy of the next word: in running text, and in random words where it can be known."""

    def __init__(self, model: LlamaForCausalLM) -> None:
        self.model = model

    def __call__(self, batch: loop.Batch) -> dict[str, Tensor]:
        """Random and running text of one length share a batch; each has its mean, whatever their numbers."""
        ids, asked = batch["ids"], batch["asked"].bool()
        states = self.model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
        each = torch.nn.functional.cross_entropy(
            self.model.lm_head(states[asked]), ids[:, 1:][asked], reduction="none"
        )
        random = batch["random"].bool()[:, None].expand_as(asked)[asked]
        parts = {"running": each[~random], "random": each[random]}
        return {name: part.mean() for name, part in parts.items() if part.numel()}


def train(settings: Settings) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast, loop.Record]:
    """A trained model, its tokenizer and the record of the run."""
    documents = list(corpus.documents(settings.seed, settings.documents))
    stream = list(next_word.passages(documents, settings.seed, settings.share))
    spelling = tokenizer.build_causal(corpus.vocabulary_of(documents), corpus.LENGTH)
    model = loop.new_llama(settings, spelling, corpus.LENGTH)
    groups = encode(stream, spelling.get_vocab())
    record = loop.fit(model, groups, NextWord(model), settings)
    record.stream = next_word.digest(stream)
    return model, spelling, record


def relabel(model: LlamaForCausalLM, spelling: PreTrainedTokenizerFast) -> int:
    """Give the head of layer 3 with the highest induction score the number 11; returns its old number.

    It is chosen on the selection set. Query heads move with the key head that they share.
    """
    heads, key_heads = model.config.num_attention_heads, model.config.num_key_value_heads
    if model.config.num_hidden_layers <= LAYER or heads <= HEAD:
        return -1
    model.set_attn_implementation("eager")
    scores = induction.scores(model, spelling, induction.SELECTION).induction[LAYER]
    best = int(scores.argmax())
    permute_grouped_heads(model, LAYER, grouped_order_with(best, HEAD, heads, key_heads))
    return best


PROGRAM = loop.Program("demo-causal", Settings, loop.relabelled(train, relabel), evaluate.figures, CARD)
