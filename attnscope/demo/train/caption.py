"""How `demo-caption` is trained: a sentence about a picture, from the seeded stream of `corpora.pictures`.

Every picture is new: it is drawn when its batch is asked for, and none comes twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    TrOCRProcessor,
    VisionEncoderDecoderConfig,
    VisionEncoderDecoderModel,
    ViTConfig,
    ViTImageProcessorPil,
    ViTModel,
)

from attnscope.demo.train import loop
from attnscope.demo.train import translation_tokenizer as tokenizer
from attnscope.demo.train.cards.caption import CARD
from attnscope.demo.train.corpora import pictures
from attnscope.demo.train.evaluation import caption as evaluate_caption

LENGTH = pictures.LONGEST + 1  # tokens that are written: the sentence and its end
POSITIONS = LENGTH + 2  # tokens that are read: the start, the sentence and its end, and one to spare
NOTHING = -100  # a label that is not scored
MOSTLY_ONE: pictures.Counts = (0.7, 0.2, 0.1)  # shapes in the pictures of the beginning
DIGESTED = 1000  # pictures of the stream that its checksum is made of
EXAMPLE = 0  # number of the held-out picture that comes along as example.png


@dataclass(frozen=True)
class Settings(loop.Schedule):
    """The defaults are the run that is bundled."""

    steps: int = 4500
    pictures: int = 48  # in a batch
    beginning: float = 0.08  # share of the run with mostly one shape
    peak_rate: float = 2e-3
    layers: int = 3  # of the encoder
    decoder_layers: int = 2
    heads: int = 4
    inner: int = 192  # width of the feed-forward layers
    threads: int = 1


def counts(step: int, settings: Settings) -> pictures.Counts:
    """How many shapes the pictures of a step have."""
    return MOSTLY_ONE if step < settings.beginning * settings.steps else pictures.EVENLY


def as_input(drawn: Sequence[NDArray[np.uint8]]) -> Tensor:
    """Pictures as the model reads them: `picture colour row column`, from -1 to 1."""
    return torch.from_numpy(np.stack(drawn).transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1)


def batch(seed: int, step: int, settings: Settings, ids: dict[str, int]) -> loop.Batch:
    """The pictures of a step, what the decoder reads and what it is to write."""
    first, shapes = step * settings.pictures, counts(step, settings)
    scenes, drawn = zip(
        *(pictures.picture(seed, first + place, shapes) for place in range(settings.pictures)), strict=True
    )
    longest = 1 + max(len(scene.words) for scene in scenes)
    labels = torch.full((len(scenes), longest), NOTHING)
    for row, scene in zip(labels, scenes, strict=True):
        row[: len(scene.words) + 1] = torch.tensor([*(ids[word] for word in scene.words), ids["[EOS]"]])
    start = torch.full((len(scenes), 1), ids["[BOS]"])
    read = torch.cat([start, labels[:, :-1].where(labels[:, :-1] != NOTHING, ids["[PAD]"])], 1)
    return {"pixels": as_input(drawn), "target": read, "labels": labels}


def stream(settings: Settings, ids: dict[str, int]) -> loop.Source:
    """Batches without end; what is counted are the tokens to be written."""
    for step in count():
        made = batch(settings.seed, step, settings, ids)
        yield made, int((made["labels"] != NOTHING).sum()), 0.0


def new_model(settings: Settings, ids: dict[str, int]) -> VisionEncoderDecoderModel:
    """An untrained ViT and GPT-2 of the demo's shape, with cross-attention between them.

    The ViT keeps its pooler, which nothing here reads: transformers makes one whenever it loads a ViT.
    """
    torch.manual_seed(settings.seed)
    start, end, pad = (ids[name] for name in ("[BOS]", "[EOS]", "[PAD]"))
    sees = ViTConfig(
        hidden_size=settings.hidden,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        intermediate_size=settings.inner,
        image_size=pictures.SIDE,
        patch_size=pictures.PATCH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=settings.spread,
    )
    writes = GPT2Config(
        vocab_size=len(ids),
        n_positions=POSITIONS,
        n_embd=settings.hidden,
        n_layer=settings.decoder_layers,
        n_head=settings.heads,
        n_inner=settings.inner,
        add_cross_attention=True,
        is_decoder=True,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        initializer_range=settings.spread,
        bos_token_id=start,
        eos_token_id=end,
        pad_token_id=pad,
    )
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(sees, writes)
    config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = start, pad, end
    config.tie_word_embeddings = True
    model = VisionEncoderDecoderModel(config=config, encoder=ViTModel(sees), decoder=GPT2LMHeadModel(writes))
    model.generation_config = loop.greedy(ids, LENGTH)
    return model


class NextWord:
    """Mean cross entropy of the words and the end, each after the picture and the words before it."""

    def __init__(self, model: VisionEncoderDecoderModel) -> None:
        self.model = model

    def __call__(self, batch: loop.Batch) -> dict[str, Tensor]:
        output = self.model(pixel_values=batch["pixels"], decoder_input_ids=batch["target"], use_cache=False)
        words = output.logits.flatten(0, 1)
        labels = batch["labels"].flatten()
        return {"word": torch.nn.functional.cross_entropy(words, labels, ignore_index=NOTHING)}


def train(
    settings: Settings,
) -> tuple[VisionEncoderDecoderModel, PreTrainedTokenizerFast, loop.Record]:
    """A trained model, its tokenizer and the record of the run."""
    spelling = tokenizer.build(pictures.WORDS, POSITIONS)
    ids = spelling.get_vocab()
    model = new_model(settings, ids)
    model.set_attn_implementation("eager")
    record = loop.follow(model, stream(settings, ids), NextWord(model), settings)
    record.stream = digest(settings)
    return model, spelling, record


def digest(settings: Settings) -> str:
    """The checksum of the first pictures of the stream."""
    return pictures.digest(
        pictures.scene(
            np.random.default_rng([settings.seed, number]), counts(number // settings.pictures, settings)
        )
        for number in range(DIGESTED)
    )


def processor() -> ViTImageProcessorPil:
    """What turns any picture into the model's input; it is loaded back as an AutoImageProcessor."""
    return ViTImageProcessorPil(
        size={"height": pictures.SIDE, "width": pictures.SIDE},
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
        do_convert_rgb=True,
    )


def save_processor(out: Path) -> None:
    """The image processor, and the name of the class by which an AutoProcessor puts the tokenizer to it."""
    processor().save_pretrained(out)
    named = json.dumps({"processor_class": TrOCRProcessor.__name__}, indent=2)
    (out / "processor_config.json").write_text(named + "\n", "utf-8", newline="\n")


def example() -> tuple[pictures.Scene, Image.Image]:
    """The held-out picture that comes along, four times as large as the model sees it."""
    chooser = np.random.default_rng([evaluate_caption.SHOWN, EXAMPLE])
    scene = pictures.scene(chooser, pictures.ONLY[3], held_out=True)
    return scene, Image.fromarray(pictures.paint(scene, chooser, scale=4, grain=0.0))


def run(settings: Settings, out: Path) -> bool:
    """Train and save in half precision, with the picture that comes along."""
    model, spelling, record = train(settings)
    loop.save(model.half(), spelling, settings, record, out)
    save_processor(out)
    example()[1].save(out / "example.png", optimize=True)
    return True


PROGRAM = loop.Program("demo-caption", Settings, run, evaluate_caption.figures, CARD)
