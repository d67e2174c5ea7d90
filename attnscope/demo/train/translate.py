"""How `demo-translate` is trained: French after English, from the seeded stream of `corpora.translation`.

The cross-attention heads of layer 3 are relabelled at the end (`evaluation.alignment`), the card is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

from attnscope.demo.train import loop
from attnscope.demo.train import translation_tokenizer as tokenizer
from attnscope.demo.train.cards.translate import CARD
from attnscope.demo.train.corpora import translation
from attnscope.demo.train.evaluation import alignment
from attnscope.demo.train.evaluation import translate as evaluate
from attnscope.demo.train.permute import order_with, permute_cross_heads

LAYER, HEAD = 3, 11  # where the articles look
NOTHING = -100  # a label that is not scored
STEP = 4  # French sentences are padded to a multiple of so many tokens


@dataclass(frozen=True)
class Settings(loop.Settings):
    """The defaults are the run that is bundled."""

    documents: int = translation.DOCUMENTS
    steps: int = 6000
    threads: int = 1
    hidden: int = 84
    inner: int = 224  # width of the feed-forward layers


def encode(documents: Iterable[translation.Pair], ids: dict[str, int]) -> list[loop.Group]:
    """The stream as source, decoder input and labels. Every word is one token."""
    return loop.group((_row(one, ids) for one in documents), counted=("source", "target"))


def _row(one: translation.Pair, ids: dict[str, int]) -> dict[str, list[int] | int]:
    """One pair; padding follows the last target token, which causal attention never reads."""
    start, end, pad = (ids[name] for name in ("[BOS]", "[EOS]", "[PAD]"))
    french = [ids[word] for word in one.french]
    rest = -(len(french) + 1) % STEP
    return {
        "source": [*(ids[word] for word in one.english), end],
        "target": [start, *french, *[pad] * rest],
        "labels": [*french, end, *[NOTHING] * rest],
    }


def new_model(settings: Settings, ids: dict[str, int]) -> BartForConditionalGeneration:
    """An untrained BART of the demo's shape; one table of word vectors serves both sides and the output."""
    torch.manual_seed(settings.seed)
    start, end, pad = (ids[name] for name in ("[BOS]", "[EOS]", "[PAD]"))
    config = BartConfig(
        vocab_size=len(ids),
        d_model=settings.hidden,
        encoder_layers=settings.layers,
        decoder_layers=settings.layers,
        encoder_attention_heads=settings.heads,
        decoder_attention_heads=settings.heads,
        encoder_ffn_dim=settings.inner,
        decoder_ffn_dim=settings.inner,
        max_position_embeddings=translation.LENGTH,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        init_std=settings.spread,
        bos_token_id=start,
        eos_token_id=end,
        pad_token_id=pad,
        decoder_start_token_id=start,
        forced_eos_token_id=None,
    )
    model = BartForConditionalGeneration(config)
    model.generation_config = loop.greedy(ids, translation.LENGTH - 1)
    return model


class NextFrenchWord:
    """Mean cross entropy of the French words and the end, each after those before it."""

    def __init__(self, model: BartForConditionalGeneration) -> None:
        self.model = model

    def __call__(self, batch: loop.Batch) -> dict[str, Tensor]:
        labels = batch["labels"]
        states = self.model.model(
            input_ids=batch["source"], decoder_input_ids=batch["target"], use_cache=False
        )
        scored = labels != NOTHING
        words = self.model.lm_head(states.last_hidden_state[scored])
        return {"word": torch.nn.functional.cross_entropy(words, labels[scored])}


def train(
    settings: Settings,
) -> tuple[BartForConditionalGeneration, PreTrainedTokenizerFast, loop.Record]:
    """A trained model, its tokenizer and the record of the run."""
    documents = list(translation.documents(settings.seed, settings.documents))
    words = {word for one in documents for word in one.english + one.french}
    spelling = tokenizer.build(words, translation.LENGTH)
    ids = spelling.get_vocab()
    model = new_model(settings, ids)
    model.set_attn_implementation("eager")  # on short sentences faster than the fused kernel
    record = loop.fit(model, encode(documents, ids), NextFrenchWord(model), settings)
    record.stream = translation.digest(documents)
    return model, spelling, record


def relabel(model: BartForConditionalGeneration, spelling: PreTrainedTokenizerFast, count: int = 400) -> int:
    """Give the cross-attention head of layer 3 that best finds the word to be said next the number 11.

    It is chosen on the selection set; returns its old number.
    """
    if model.config.decoder_layers <= LAYER or model.config.decoder_attention_heads <= HEAD:
        return -1
    items = translation.held_out_sentences(alignment.SELECTION, count)
    report = alignment.look(model, spelling, items)
    best = int(report["next", "all"].found[LAYER].argmax())
    permute_cross_heads(model, LAYER, order_with(best, HEAD, model.config.decoder_attention_heads))
    return best


PROGRAM = loop.Program("demo-translate", Settings, loop.relabelled(train, relabel), evaluate.figures, CARD)
