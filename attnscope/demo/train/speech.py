"""How `demo-speech` is trained: from synthetic clips to the words that are spoken in them.

The clips come from the seeded stream of `sound.clips`, short ones first: a decoder that reads a clip of one
or two syllables learns where to look long before it could find its way through nine. While the clips are
short the encoder reads only as many of its positions as they fill; it is whole when it is saved. Half of
each batch is new, the other half is read again. Only the words are supervised, never the attention. The
schedule is one of steps, so that a slow machine trains the same model as a fast one.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import Embedding
from torch.nn.functional import cross_entropy
from transformers import WhisperConfig, WhisperForConditionalGeneration
from transformers.models.whisper.modeling_whisper import sinusoids

from attnscope.demo.train import loop
from attnscope.demo.train.cards.speech import CARD
from attnscope.demo.train.evaluation import speech as evaluate_speech
from attnscope.demo.train.sound import spelling
from attnscope.demo.train.sound.clips import MOST, Kind, clip
from attnscope.demo.train.sound.spelling import BOS, EOS, IDS, NOTHING, PAD

SAVED_EVERY, UNFINISHED = 500, "unfinished"  # steps; the folder, in that of the model, for what there is then


@dataclass(frozen=True)
class Settings:
    """Everything that decides the result, apart from the machine. The defaults are the bundled run."""

    seed: int = 0
    steps: int = 3000
    batch: int = 32
    peak_rate: float = 1.5e-3
    warm_up: int = 100  # steps
    flat: float = 0.45  # share of the run at the peak rate, before it falls
    remembered: int = 250  # halves of batches that may be read again
    hidden: int = 96
    inner: int = 192  # width of the feed-forward layers
    spread: float = 0.1  # standard deviation of the first weights
    encoder_layers: int = 3
    decoder_layers: int = 2
    heads: int = 4
    threads: int = 1


# Until which share of the run, what clips there are.
LESSONS = (
    (0.12, Kind(1, 2, seconds=1.0)),
    (0.30, Kind(1, 4, seconds=1.6)),
    (0.45, Kind(1, MOST)),
    (1.0, Kind(3, MOST)),
)


def lesson(progress: float) -> Kind:
    """What is taught at this share of the run."""
    return next((kind for until, kind in LESSONS if progress < until), LESSONS[-1][1])


def rate(step: int, settings: Settings) -> float:
    """Learning rate: linear warm-up, level, then a cosine down to zero."""
    falling = max(0.0, step / settings.steps - settings.flat) / (1 - settings.flat)
    return (
        settings.peak_rate * min(1.0, (step + 1) / settings.warm_up) * 0.5 * (1 + math.cos(math.pi * falling))
    )


def build(settings: Settings) -> WhisperForConditionalGeneration:
    """The untrained model."""
    torch.manual_seed(settings.seed)
    config = WhisperConfig(
        vocab_size=len(IDS), num_mel_bins=spelling.BANDS, d_model=settings.hidden,
        max_source_positions=spelling.POSITIONS, max_target_positions=spelling.LENGTH + 1,
        encoder_layers=settings.encoder_layers, decoder_layers=settings.decoder_layers,
        encoder_attention_heads=settings.heads, decoder_attention_heads=settings.heads,
        encoder_ffn_dim=settings.inner, decoder_ffn_dim=settings.inner, dropout=0.0,
        init_std=settings.spread,
        pad_token_id=IDS[PAD], bos_token_id=IDS[BOS], eos_token_id=IDS[EOS], decoder_start_token_id=IDS[BOS],
        suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config)
    model.generation_config = loop.greedy(IDS, spelling.LENGTH)
    return model


def optimizer(model: WhisperForConditionalGeneration) -> torch.optim.AdamW:
    """AdamW; biases and norms are not decayed."""
    parts = [part for part in model.parameters() if part.requires_grad]
    groups = [
        {"params": [part for part in parts if part.ndim > 1], "weight_decay": 0.02, "scale": 1.0},
        {"params": [part for part in parts if part.ndim <= 1], "weight_decay": 0.0, "scale": 1.0},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98))


def batches(settings: Settings) -> Iterator[tuple[Tensor, Tensor]]:
    """Log-mel pictures and labels without end: half of each batch new, half of it read before."""
    reader, chooser = spelling.extractor(), np.random.default_rng(settings.seed)
    remembered: deque[tuple[Tensor, Tensor]] = deque(maxlen=settings.remembered)
    half, kind = settings.batch // 2, lesson(0.0)
    for step in count():
        if (now := lesson(step / settings.steps)) != kind:
            kind = now
            remembered.clear()
        clips = [clip(settings.seed, "training", step * half + place, kind) for place in range(half)]
        columns = 2 * math.ceil(kind.seconds / spelling.LASTS)
        new = spelling.features(clips, reader)[:, :, :columns], spelling.labels(clips)
        remembered.append(new)
        again = remembered[int(chooser.integers(len(remembered)))]
        yield torch.cat([new[0], again[0]]), torch.cat([new[1], again[1]])


def shorten(model: WhisperForConditionalGeneration, positions: int) -> None:
    """Let the encoder read so many positions, in place; it tells them apart by sines, which do not change."""
    encoder = model.model.encoder
    if positions != encoder.embed_positions.num_embeddings:
        model.config.max_source_positions = positions
        encoder.embed_positions = Embedding(
            positions, model.config.d_model, _weight=sinusoids(positions, model.config.d_model), _freeze=True
        )


def loss(model: WhisperForConditionalGeneration, features: Tensor, labels: Tensor) -> Tensor:
    """Mean loss of a token, in nats."""
    shorten(model, features.shape[-1] // 2)
    logits = model(input_features=features, decoder_input_ids=spelling.read(labels), use_cache=False).logits
    return cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=NOTHING)


def train(settings: Settings, out: Path) -> tuple[WhisperForConditionalGeneration, loop.Record]:
    """Train for the wanted steps; what there is every SAVED_EVERY steps is saved in a folder of its own."""
    torch.set_num_threads(settings.threads)
    torch.use_deterministic_algorithms(True)
    model = build(settings).train()
    record, update, source = loop.Record(), optimizer(model), batches(settings)
    start, cpu_start = time.perf_counter(), time.process_time()
    while record.steps < settings.steps:
        features, labels = next(source)
        value = loss(model, features, labels)
        loop.step(model, update, value, rate(record.steps, settings))
        record.add(int((labels != NOTHING).sum()), {"word": value})
        record.seconds, record.cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
        if record.steps % 50 == 0:
            print(f"{record.steps} steps, {record.seconds:.0f} s, loss {value.item():.3f}", file=sys.stderr)
        if record.steps % SAVED_EVERY == 0:
            save(model, settings, record, out / UNFINISHED)
    return model.eval(), record


def save(model: WhisperForConditionalGeneration, settings: Settings, record: loop.Record, out: Path) -> None:
    """An ordinary Hugging Face folder in half precision, and `training.json` with what the card says."""
    out.mkdir(parents=True, exist_ok=True)
    whole = deepcopy(model)
    shorten(whole, spelling.POSITIONS)
    whole.half().save_pretrained(out)
    spelling.tokenizer().save_pretrained(out)
    spelling.extractor().save_pretrained(out)
    (out / "model.safetensors").chmod(0o644)
    written = record.written()
    run = {
        "settings": asdict(settings),
        "record": {
            name: written[name] for name in ("steps", "tokens", "seconds", "cpu_seconds", "word_loss")
        },
        "model": {
            "parameters": sum(part.numel() for part in model.parameters()),
            "vocabulary": len(IDS),
            "positions": spelling.POSITIONS,
        },
    }
    (out / "training.json").write_text(json.dumps(run, indent=2) + "\n", "utf-8", newline="\n")


def run(settings: Settings, out: Path) -> bool:
    """Train and save, with the sound that comes along."""
    model, record = train(settings, out)
    save(model, settings, record, out)
    shutil.rmtree(out / UNFINISHED, ignore_errors=True)
    evaluate_speech.write_example(out)
    return True


PROGRAM = loop.Program("demo-speech", Settings, run, evaluate_speech.figures, CARD)
