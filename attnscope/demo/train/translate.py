"""How `demo-translate` is trained: French after English, from the seeded stream of `corpora.translation`.

The cross-attention heads of layer 3 are relabelled at the end (`evaluation.alignment`), the card is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import BartConfig, BartForConditionalGeneration, GenerationConfig, PreTrainedTokenizerFast

from attnscope.demo.train import loop
from attnscope.demo.train import translation_tokenizer as tokenizer
from attnscope.demo.train.cards import translate as card_translate
from attnscope.demo.train.corpora import translation
from attnscope.demo.train.evaluation import alignment
from attnscope.demo.train.evaluation import translate as evaluate_translate
from attnscope.demo.train.permute import order_with, rows

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
    model.generation_config = GenerationConfig(
        bos_token_id=start,
        eos_token_id=end,
        pad_token_id=pad,
        decoder_start_token_id=start,
        max_new_tokens=translation.LENGTH - 1,
        num_beams=1,
        do_sample=False,
    )
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
    best = int(report.found["next"]["all"][LAYER].argmax())
    permute_cross_heads(model, LAYER, order_with(best, HEAD, model.config.decoder_attention_heads))
    return best


@torch.no_grad()
def permute_cross_heads(model: BartForConditionalGeneration, layer: int, order: Sequence[int]) -> None:
    """Make new cross-attention head `j` of a decoder layer the old head `order[j]`, in place."""
    attention = model.model.decoder.layers[layer].encoder_attn
    moved = rows(order, attention.head_dim)
    for projection in (attention.q_proj, attention.k_proj, attention.v_proj):
        projection.weight.copy_(projection.weight[moved].clone())
        projection.bias.copy_(projection.bias[moved].clone())
    attention.out_proj.weight.copy_(attention.out_proj.weight[:, moved].clone())


def run(settings: Settings, out: Path) -> None:
    """Train, relabel the cross-attention heads of layer 3, save, measure, write the card."""
    model, spelling, record = train(settings)
    old_head = relabel(model, spelling)
    loop.save(model, spelling, settings, record, out, old_head=old_head)
    if old_head >= 0:
        figures = evaluate_translate.figures(out, translation.documents(settings.seed, settings.documents))
        (out / "figures.json").write_text(
            json.dumps(figures, indent=2, ensure_ascii=False) + "\n", "utf-8", newline="\n"
        )
        card_translate.write(out)
