"""What the training of all bundled models shares: batches, learning rate, the loop, the model folder.

A program brings an untrained model, its documents as groups of equal shape and a function from a batch to
named losses; `fit` does the rest. Attention itself is never supervised. Progress goes to stderr.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    VisionEncoderDecoderModel,
)

from attnscope.demo.train.cards.card import Card

Batch = dict[str, Tensor]
Losses = Callable[[Batch], Mapping[str, Tensor]]  # named means in nats; their sum is minimised
Source = Iterator[tuple[Batch, int, float]]  # batches without end: (batch, its tokens, epochs done by then)


@dataclass(frozen=True)
class Schedule:
    """What decides the result of any program, apart from the machine."""

    seed: int = 0
    minutes: float = 22.0  # of training: CPU time divided by threads, when `steps` is not given
    patience: float = 60.0  # minutes by the clock, which end the run earlier on a busy machine
    steps: int = 0
    peak_rate: float = 2e-3
    warm_up: float = 0.05  # share of the run
    word_scale: float = 2.0  # learning rate of the word vectors, in units of the others'
    spread: float = 0.05  # standard deviation of the first weights
    hidden: int = 96
    layers: int = 4
    heads: int = 12
    threads: int = 2


@dataclass(frozen=True)
class Settings(Schedule):
    """The settings of a program whose documents are all made before it begins."""

    documents: int = 400_000
    tokens_per_batch: int = 2048


@dataclass(frozen=True)
class LlamaSettings(Settings):
    """The settings of a program that trains a Llama."""

    key_heads: int = 4
    head_size: int = 16
    inner: int = 256
    rotation: float = 100.0  # base of the rotary angles: short texts need no slower ones


def new_llama(settings: LlamaSettings, spelling: PreTrainedTokenizerFast, length: int) -> LlamaForCausalLM:
    """An untrained Llama of the demo's shape: rotary positions, several query heads to a key head."""
    torch.manual_seed(settings.seed)
    special = {
        "pad_token_id": spelling.pad_token_id,
        "bos_token_id": spelling.bos_token_id,
        "eos_token_id": spelling.eos_token_id,
    }
    config = LlamaConfig(
        vocab_size=len(spelling),
        hidden_size=settings.hidden,
        intermediate_size=settings.inner,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.key_heads,
        head_dim=settings.head_size,
        max_position_embeddings=length,
        rope_parameters={"rope_type": "default", "rope_theta": settings.rotation},
        initializer_range=settings.spread,
        tie_word_embeddings=True,
        **special,
    )
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(do_sample=False, max_length=length, **special)
    return model


def greedy(ids: dict[str, int], most: int) -> GenerationConfig:
    """How a decoder writes that reads [BOS] first and may write `most` tokens: each the likeliest."""
    return GenerationConfig(
        bos_token_id=ids["[BOS]"],
        eos_token_id=ids["[EOS]"],
        pad_token_id=ids["[PAD]"],
        decoder_start_token_id=ids["[BOS]"],
        max_new_tokens=most,
        num_beams=1,
        do_sample=False,
    )


@dataclass(frozen=True)
class Program:
    """A model's name on attnscope's command line, how it is trained and measured, and its card.

    `run` trains and saves it, and says whether it is worth measuring.
    """

    model: str
    settings: type[Any]
    run: Callable[[Any, Path], bool]
    figures: Callable[[Path], dict[str, Any]]
    card: Card


@dataclass(frozen=True)
class Group:
    """Documents of one shape: tensors by name, first axis the document; `tokens` are those of one."""

    fields: dict[str, Tensor]
    tokens: int

    def __len__(self) -> int:
        return len(next(iter(self.fields.values())))

    def take(self, rows: Tensor) -> Batch:
        """Some of the documents, as a model wants them."""
        return {name: values[rows].long() for name, values in self.fields.items()}


def group(documents: Iterable[Mapping[str, list[int] | int]], counted: tuple[str, ...]) -> list[Group]:
    """Documents sorted by the lengths of their `counted` fields, so that no batch needs padding."""
    shapes: dict[tuple[int, ...], list[Mapping[str, list[int] | int]]] = {}
    for document in documents:
        shape = tuple(len(value) for name in counted if isinstance(value := document[name], list))
        shapes.setdefault(shape, []).append(document)
    return [_stack(shapes[shape], sum(shape)) for shape in sorted(shapes)]


def _stack(rows: list[Mapping[str, list[int] | int]], tokens: int) -> Group:
    fields = {name: torch.tensor([row[name] for row in rows], dtype=torch.int16) for name in rows[0]}
    return Group(fields, tokens)


def batches(groups: list[Group], tokens: int, generator: random.Random) -> list[tuple[int, Tensor]]:
    """One epoch: (group, rows), each of about `tokens` tokens, in random order."""
    plan: list[tuple[int, Tensor]] = []
    for number, one in enumerate(groups):
        shuffler = torch.Generator().manual_seed(generator.randrange(2**31))
        order = torch.randperm(len(one), generator=shuffler)
        size = max(1, tokens // one.tokens)
        plan += [(number, order[start : start + size]) for start in range(0, len(order), size)]
    generator.shuffle(plan)
    return plan


def endless(groups: list[Group], settings: Settings) -> Source:
    """Every epoch in a new order."""
    chooser = random.Random(settings.seed)
    for epoch in count():
        plan = batches(groups, settings.tokens_per_batch, chooser)
        for done, (number, rows) in enumerate(plan, start=1):
            yield groups[number].take(rows), len(rows) * groups[number].tokens, epoch + done / len(plan)


def rate(progress: float, settings: Schedule) -> float:
    """Learning rate at a share of the run: linear warm-up, then a cosine down to zero."""
    if progress < settings.warm_up:
        return settings.peak_rate * progress / settings.warm_up
    falling = (progress - settings.warm_up) / (1 - settings.warm_up)
    return settings.peak_rate * 0.5 * (1 + math.cos(math.pi * falling))


def optimizer(model: PreTrainedModel, settings: Schedule) -> torch.optim.AdamW:
    """AdamW; `scale` multiplies a group's learning rate, and biases and norms are not decayed.

    Word vectors learn faster than the rest, because each of them is seen in few of the steps.
    """
    words = model.decoder if isinstance(model, VisionEncoderDecoderModel) else model
    table = words.get_input_embeddings().weight
    rest = [part for part in model.parameters() if part is not table]
    groups = [
        {"params": [table], "weight_decay": 0.0, "scale": settings.word_scale},
        {"params": [part for part in rest if part.ndim > 1], "weight_decay": 0.01, "scale": 1.0},
        {"params": [part for part in rest if part.ndim <= 1], "weight_decay": 0.0, "scale": 1.0},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98))


@dataclass
class Record:
    """What a run was, for the card; losses are running means over about the last 200 steps that had them."""

    steps: int = 0
    tokens: int = 0
    epochs: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    losses: dict[str, float] = field(default_factory=dict)
    stream: str = ""

    def spent(self, settings: Schedule) -> float:
        """The share of the allowed steps, or of the allowed time, that is used up."""
        if settings.steps:
            return self.steps / settings.steps
        minutes = self.cpu_seconds / (60 * settings.threads)
        return max(minutes / settings.minutes, self.seconds / (60 * settings.patience))

    def add(self, tokens: int, losses: Mapping[str, Tensor]) -> None:
        """Count one step."""
        self.steps += 1
        self.tokens += tokens
        keep = min(0.995, 1 - 1 / self.steps)
        for name, loss in losses.items():
            self.losses[name] = keep * self.losses.get(name, 0.0) + (1 - keep) * loss.item()

    def written(self) -> dict[str, Any]:
        """The record as it is written, every loss under a name of its own: `masked_loss`."""
        values = asdict(self)
        losses, stream = values.pop("losses"), values.pop("stream")
        return {**values, **{f"{name}_loss": loss for name, loss in losses.items()}, "stream": stream}


Trained = tuple[PreTrainedModel, PreTrainedTokenizerFast, Record]


def step(model: PreTrainedModel, update: torch.optim.AdamW, loss: Tensor, size: float) -> None:
    """One update of the weights at a learning rate of `size`."""
    for part in update.param_groups:
        part["lr"] = size * part["scale"]
    update.zero_grad()
    torch.autograd.backward(loss)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    update.step()


def fit(model: PreTrainedModel, groups: list[Group], losses: Losses, settings: Settings) -> Record:
    """Train in place on these documents until the steps, or the minutes of CPU time, are used up."""
    return follow(model, endless(groups, settings), losses, settings)


def follow(model: PreTrainedModel, source: Source, losses: Losses, settings: Schedule) -> Record:
    """The same, on batches that are made while they are asked for."""
    torch.set_num_threads(settings.threads)
    torch.use_deterministic_algorithms(True)
    record, update = Record(), optimizer(model.train(), settings)
    start, cpu_start = time.perf_counter(), time.process_time()
    with bar() as display:
        task = display.add_task("training", total=1.0, losses="")
        while (progress := record.spent(settings)) < 1.0:
            batch, tokens, record.epochs = next(source)
            parts = losses(batch)
            step(model, update, torch.stack(list(parts.values())).sum(), rate(progress, settings))
            record.add(tokens, parts)
            record.seconds, record.cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
            running = "  ".join(f"{name} {loss:.3f}" for name, loss in record.losses.items())
            display.update(task, completed=record.spent(settings), losses=running)
    model.eval()
    return record


def bar() -> Progress:
    """The progress bar, on stderr."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:5.1f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[losses]}"),
        console=Console(stderr=True),
        refresh_per_second=2,
    )


def describe(model: PreTrainedModel, spelling: PreTrainedTokenizerFast) -> dict[str, int]:
    """The sizes of a model, for its card."""
    return {
        "parameters": sum(part.numel() for part in model.parameters()),
        "vocabulary": len(spelling),
        "words": sum(len(word) > 1 and word.isalpha() for word in spelling.get_vocab()),
        "positions": model.config.get_text_config(decoder=True).max_position_embeddings,
    }


def save(
    model: PreTrainedModel,
    spelling: PreTrainedTokenizerFast,
    settings: Schedule,
    record: Record,
    out: Path,
    **facts: int,
) -> None:
    """An ordinary Hugging Face folder, and `training.json` with what the card says of the run.

    `facts` are what else is to be known of the model, beside its sizes.
    """
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    spelling.save_pretrained(out)
    (out / "model.safetensors").chmod(0o644)
    run = {
        "settings": asdict(settings),
        "record": record.written(),
        "model": {**describe(model, spelling), **facts},
    }
    (out / "training.json").write_text(json.dumps(run, indent=2) + "\n", "utf-8", newline="\n")


def relabelled(train: Callable[[Any], Trained], relabel: Callable[..., int]) -> Callable[[Any, Path], bool]:
    """What trains a model, relabels its heads and saves it; too small a model is not worth measuring."""

    def run(settings: Any, out: Path) -> bool:
        model, spelling, record = train(settings)
        old_head = relabel(model, spelling)
        save(model, spelling, settings, record, out, old_head=old_head)
        return old_head >= 0

    return run
