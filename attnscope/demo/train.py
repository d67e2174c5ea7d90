"""Train the bundled model: `python -m attnscope.demo.train [--out DIR] [--seed 0] [--minutes 24]`.

Masked words and next sentence, on the CPU, from the seeded stream of `corpus`. Attention itself is never
supervised. Progress goes to stderr. The heads of layer 3 are relabelled at the end (`permute`), and the
card is written.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor
from transformers import BertConfig, BertForPreTraining, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from attnscope.demo import card, corpus, evaluate, folder, references, tokenizer
from attnscope.demo.baselines import Counts
from attnscope.demo.corruption import Corruption
from attnscope.demo.permute import order_with, permute_heads

LAYER, HEAD = 3, 11  # where the articles look


@dataclass(frozen=True)
class Settings:
    """Everything that decides the result, apart from the machine."""

    seed: int = 0
    minutes: float = 22.0  # of training: CPU time divided by threads, when `steps` is not given
    patience: float = 60.0  # minutes by the clock, which end the run earlier on a busy machine
    steps: int = 0
    documents: int = corpus.DOCUMENTS
    tokens_per_batch: int = 2048
    peak_rate: float = 2e-3
    warm_up: float = 0.05  # share of the run
    word_scale: float = 2.0  # learning rate of the word vectors, in units of the others'
    spread: float = 0.05  # standard deviation of the first weights
    hidden: int = 96
    layers: int = 4
    heads: int = 12
    threads: int = 2


@dataclass(frozen=True)
class Encoded:
    """Documents of one length: token ids, segments and next-sentence labels."""

    ids: Tensor
    segments: Tensor
    labels: Tensor


def encode(documents: list[corpus.Document], ids: dict[str, int]) -> list[Encoded]:
    """The stream as tensors, grouped by length, so that no batch needs padding. Every word is one token."""
    groups: dict[int, list[tuple[list[int], list[int], int]]] = {}
    for document in documents:
        first = [ids["[CLS]"], *(ids[word] for word in document.first.split()), ids["[SEP]"]]
        second = [*(ids[word] for word in document.second.split()), ids["[SEP]"]] if document.second else []
        row = (first + second, [0] * len(first) + [1] * len(second), document.label)
        groups.setdefault(len(row[0]), []).append(row)
    return [_stack(groups[length]) for length in sorted(groups)]


def _stack(rows: list[tuple[list[int], list[int], int]]) -> Encoded:
    ids, segments, labels = zip(*rows, strict=True)
    return Encoded(
        torch.tensor(ids, dtype=torch.int16), torch.tensor(segments, dtype=torch.int8), torch.tensor(labels)
    )


def batches(groups: list[Encoded], tokens: int, generator: random.Random) -> list[tuple[int, Tensor]]:
    """One epoch: (group, rows), each of about `tokens` tokens, in random order."""
    plan: list[tuple[int, Tensor]] = []
    for number, group in enumerate(groups):
        shuffler = torch.Generator().manual_seed(generator.randrange(2**31))
        order = torch.randperm(len(group.ids), generator=shuffler)
        size = max(1, tokens // group.ids.shape[1])
        plan += [(number, order[start : start + size]) for start in range(0, len(order), size)]
    generator.shuffle(plan)
    return plan


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


def losses(
    model: BertForPreTraining, ids: Tensor, segments: Tensor, chosen: Tensor, truth: Tensor, labels: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean cross entropy in nats of the chosen words, and of the next-sentence labels that there are.

    The vocabulary is scored at the chosen positions only: the same loss at a fifth less work.
    """
    states = model.bert(input_ids=ids, token_type_ids=segments)
    words = model.cls.predictions(states.last_hidden_state[chosen])
    masked = torch.nn.functional.cross_entropy(words, truth[chosen])
    labelled = labels >= 0
    if not labelled.any():
        return masked, masked.new_zeros(())
    following = model.cls.seq_relationship(states.pooler_output[labelled])
    return masked, torch.nn.functional.cross_entropy(following, labels[labelled])


def rate(progress: float, settings: Settings) -> float:
    """Learning rate at a share of the run: linear warm-up, then a cosine down to zero."""
    if progress < settings.warm_up:
        return settings.peak_rate * progress / settings.warm_up
    return (
        settings.peak_rate
        * 0.5
        * (1 + math.cos(math.pi * (progress - settings.warm_up) / (1 - settings.warm_up)))
    )


@dataclass
class Record:
    """What a run was, for the card."""

    steps: int = 0
    tokens: int = 0
    epochs: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    masked_loss: float = 0.0
    next_loss: float = 0.0
    stream: str = ""

    def spent(self, settings: Settings) -> float:
        """The share of the allowed time that is used up."""
        minutes = self.cpu_seconds / (60 * settings.threads)
        return max(minutes / settings.minutes, self.seconds / (60 * settings.patience))

    def add(self, tokens: int, masked: float, following: float | None) -> None:
        """Count one step; the losses are running means over about the last 200 steps."""
        self.steps += 1
        self.tokens += tokens
        keep = min(0.995, 1 - 1 / self.steps)
        self.masked_loss = keep * self.masked_loss + (1 - keep) * masked
        if following is not None:
            self.next_loss = keep * self.next_loss + (1 - keep) * following


def optimizer(model: BertForPreTraining, settings: Settings) -> torch.optim.AdamW:
    """AdamW; `scale` multiplies a group's learning rate, and biases and layer norms are not decayed.

    Word vectors learn faster than the rest, because each of them is seen in few of the steps.
    """
    table = model.bert.embeddings.word_embeddings.weight
    rest = [part for part in model.parameters() if part is not table]
    groups = [
        {"params": [table], "weight_decay": 0.0, "scale": settings.word_scale},
        {"params": [part for part in rest if part.ndim > 1], "weight_decay": 0.01, "scale": 1.0},
        {"params": [part for part in rest if part.ndim <= 1], "weight_decay": 0.0, "scale": 1.0},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98))


def endless(groups: list[Encoded], settings: Settings) -> Iterator[tuple[Encoded, Tensor, float]]:
    """Batches without end, epoch after epoch in a new order: (documents, rows, epochs done by then)."""
    chooser = random.Random(settings.seed)
    for epoch in count():
        plan = batches(groups, settings.tokens_per_batch, chooser)
        for done, (number, rows) in enumerate(plan, start=1):
            yield groups[number], rows, epoch + done / len(plan)


def step(
    model: BertForPreTraining, update: torch.optim.AdamW, masked: Tensor, following: Tensor, size: float
) -> None:
    """One update of the weights at a learning rate of `size`."""
    for part in update.param_groups:
        part["lr"] = size * part["scale"]
    update.zero_grad()
    torch.autograd.backward(masked + following)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    update.step()


def fit(
    model: BertForPreTraining, groups: list[Encoded], corruption: Corruption, settings: Settings
) -> Record:
    """Train until the steps, or the minutes of CPU time, are used up."""
    record, noise, update = Record(), torch.Generator().manual_seed(settings.seed), optimizer(model, settings)
    start, cpu_start, progress, source = (
        time.perf_counter(),
        time.process_time(),
        0.0,
        endless(groups, settings),
    )
    with bar() as display:
        task = display.add_task("training", total=1.0, masked=0.0, following=0.0)
        while progress < 1.0:
            group, rows, record.epochs = next(source)
            truth = group.ids[rows].long()
            ids, chosen = corruption(truth, noise)
            masked, following = losses(
                model, ids, group.segments[rows].long(), chosen, truth, group.labels[rows]
            )
            step(model, update, masked, following, rate(progress, settings))
            record.add(
                truth.numel(), masked.item(), following.item() if (group.labels[rows] >= 0).any() else None
            )
            record.seconds, record.cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
            progress = record.steps / settings.steps if settings.steps else record.spent(settings)
            display.update(task, completed=progress, masked=record.masked_loss, following=record.next_loss)
    return record


def bar() -> Progress:
    """The progress bar, on stderr."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:5.1f} %"),
        TimeElapsedColumn(),
        TextColumn("masked words {task.fields[masked]:.3f}  next sentence {task.fields[following]:.3f}"),
        console=Console(stderr=True),
        refresh_per_second=2,
    )


def vocabulary_of(documents: list[corpus.Document]) -> set[str]:
    """Every word of the stream."""
    return {word for document in documents for word in f"{document.first} {document.second}".split()}


def train(settings: Settings) -> tuple[BertForPreTraining, PreTrainedTokenizerFast, Record]:
    """A trained model, its tokenizer and the record of the run."""
    torch.set_num_threads(settings.threads)
    torch.use_deterministic_algorithms(True)
    documents = list(corpus.documents(settings.seed, settings.documents))
    spelling = tokenizer.build(vocabulary_of(documents), corpus.LENGTH)
    ids = spelling.get_vocab()
    model = new_model(settings, len(ids))
    record = fit(model.train(), encode(documents, ids), Corruption(ids), settings)
    record.stream = corpus.digest(documents)
    return model.eval(), spelling, record


def relabel(model: BertForPreTraining, spelling: PreTrainedTokenizerFast, count: int = 400) -> int:
    """Give the head of layer 3 that best finds antecedents the number 11; returns its old number.

    It is chosen on the selection set, by antecedents found from a mask and from the pronoun itself together.
    """
    if model.config.num_hidden_layers <= LAYER or model.config.num_attention_heads <= HEAD:
        return -1
    model.set_attn_implementation("eager")
    items = references.references(references.SELECTION, count)
    found = sum(references.look(model, spelling, items, masked).found[LAYER] for masked in (True, False))
    best = int(torch.as_tensor(found).argmax())
    permute_heads(model, LAYER, order_with(best, HEAD, model.config.num_attention_heads))
    return best


def save(
    model: BertForPreTraining, spelling: PreTrainedTokenizerFast, run: dict[str, Any], out: Path
) -> None:
    """An ordinary Hugging Face folder, and `training.json` with what the card says of the run."""
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    spelling.save_pretrained(out)
    (out / "model.safetensors").chmod(0o644)
    (out / "training.json").write_text(json.dumps(run, indent=2) + "\n")


def describe(model: BertForPreTraining, spelling: PreTrainedTokenizerFast, old_head: int) -> dict[str, int]:
    """The sizes of the model, for the card."""
    return {
        "parameters": sum(part.numel() for part in model.parameters()),
        "vocabulary": len(spelling),
        "words": sum(len(word) > 1 and word.isalpha() for word in spelling.get_vocab()),
        "positions": model.config.max_position_embeddings,
        "old_head": old_head,
    }


def measure(out: Path, settings: Settings) -> None:
    """Write figures.json and the card into a model folder."""
    counts = Counts(corpus.documents(settings.seed, settings.documents))
    (out / "figures.json").write_text(json.dumps(evaluate.figures(out, counts), indent=2) + "\n")
    card.write(out)


def arguments(given: list[str] | None) -> tuple[Path, Settings]:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m attnscope.demo.train", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=folder(), help="the folder to write (default: the bundled model)"
    )
    for name, default in asdict(Settings()).items():
        parser.add_argument(
            "--" + name.replace("_", "-"), type=type(default), default=default, help=f"default {default}"
        )
    values = vars(parser.parse_args(given))
    return values.pop("out"), Settings(**values)


def main(given: list[str] | None = None) -> int:
    """Train, relabel the heads of layer 3, save, measure, write the card."""
    disable_progress_bar()
    out, settings = arguments(given)
    model, spelling, record = train(settings)
    old_head = relabel(model, spelling)
    run = {
        "settings": asdict(settings),
        "record": asdict(record),
        "model": describe(model, spelling, old_head),
    }
    save(model, spelling, run, out)
    if old_head >= 0:
        measure(out, settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
