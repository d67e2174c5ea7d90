"""How `demo` is trained: masked words and next sentence, from the seeded stream of `corpora.corpus`.

The heads of layer 3 are relabelled at the end (`permute`), and the card is written.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import BertConfig, BertForPreTraining, PreTrainedTokenizerFast

from attnscope.demo.train import loop, tokenizer
from attnscope.demo.train.cards.encoder import CARD
from attnscope.demo.train.corpora import corpus
from attnscope.demo.train.corruption import Corruption
from attnscope.demo.train.evaluation import encoder as evaluate
from attnscope.demo.train.evaluation import references
from attnscope.demo.train.permute import order_with, permute_heads

LAYER, HEAD = 3, 11  # where the articles look


@dataclass(frozen=True)
class Settings(loop.Settings):
    """The defaults are the run that is bundled."""

    documents: int = corpus.DOCUMENTS


def encode(documents: list[corpus.Document], ids: dict[str, int]) -> list[loop.Group]:
    """The stream as ids, segments and next-sentence labels. Every word is one token."""
    return loop.group((_row(document, ids) for document in documents), counted=("ids",))


def _row(document: corpus.Document, ids: dict[str, int]) -> dict[str, list[int] | int]:
    first = [ids["[CLS]"], *(ids[word] for word in document.first.split()), ids["[SEP]"]]
    second = [*(ids[word] for word in document.second.split()), ids["[SEP]"]] if document.second else []
    return {
        "ids": first + second,
        "segments": [0] * len(first) + [1] * len(second),
        "labels": document.label,
    }


def new_model(settings: Settings, words: int) -> BertForPreTraining:
    """An untrained BERT of the demo's shape."""
    torch.manual_seed(settings.seed)
    config = BertConfig(
        vocab_size=words,
        hidden_size=settings.hidden,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        intermediate_size=4 * settings.hidden,
        max_position_embeddings=corpus.LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=settings.spread,
    )
    return BertForPreTraining(config)


class MaskedAndNext:
    """Mean cross entropy of the masked words, and of the next-sentence labels where there are any."""

    def __init__(self, model: BertForPreTraining, corruption: Corruption, seed: int) -> None:
        self.model, self.corruption = model, corruption
        self.noise = torch.Generator().manual_seed(seed)

    def __call__(self, batch: loop.Batch) -> dict[str, Tensor]:
        """The vocabulary is scored at the chosen positions only: the same loss at a fifth less work."""
        truth, labels = batch["ids"], batch["labels"]
        ids, chosen = self.corruption(truth, self.noise)
        states = self.model.bert(input_ids=ids, token_type_ids=batch["segments"])
        words = self.model.cls.predictions(states.last_hidden_state[chosen])
        losses = {"masked": torch.nn.functional.cross_entropy(words, truth[chosen])}
        labelled = labels >= 0
        if labelled.any():
            following = self.model.cls.seq_relationship(states.pooler_output[labelled])
            losses["next"] = torch.nn.functional.cross_entropy(following, labels[labelled])
        return losses


def train(settings: Settings) -> tuple[BertForPreTraining, PreTrainedTokenizerFast, loop.Record]:
    """A trained model, its tokenizer and the record of the run."""
    documents = list(corpus.documents(settings.seed, settings.documents))
    spelling = tokenizer.build(corpus.vocabulary_of(documents), corpus.LENGTH)
    ids = spelling.get_vocab()
    model = new_model(settings, len(ids))
    losses = MaskedAndNext(model, Corruption(ids), settings.seed)
    record = loop.fit(model, encode(documents, ids), losses, settings)
    record.stream = corpus.digest(documents)
    return model, spelling, record


def relabel(model: BertForPreTraining, spelling: PreTrainedTokenizerFast, count: int = 400) -> int:
    """Give the head of layer 3 that best finds antecedents the number 11; returns its old number.

    It is chosen on the selection set, by antecedents found from a mask and from the pronoun itself together.
    """
    if model.config.num_hidden_layers <= LAYER or model.config.num_attention_heads <= HEAD:
        return -1
    model.set_attn_implementation("eager")
    items = references.references(references.SELECTION, count)
    shares = sum(references.look(model, spelling, items, masked).found[LAYER] for masked in (True, False))
    best = int(torch.as_tensor(shares).argmax())
    permute_heads(model, LAYER, order_with(best, HEAD, model.config.num_attention_heads))
    return best


PROGRAM = loop.Program("demo", Settings, loop.relabelled(train, relabel), evaluate.figures, CARD)
