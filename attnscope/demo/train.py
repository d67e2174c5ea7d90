"""Train the bundled model: `python -m attnscope.demo.train [--out DIR] [--seed 0] [--minutes 24]`.

Masked words and next sentence, on the CPU, from the seeded stream of `corpus`. Attention itself is never supervised.
Progress goes to stderr. The heads of layer 3 are relabelled at the end (`permute`), and the card is written.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor
from transformers import BertConfig, BertForPreTraining, PreTrainedTokenizerFast

from attnscope.demo import corpus, folder, tokenizer
from attnscope.demo.corruption import Corruption


@dataclass(frozen=True)
class Settings:
    """Everything that decides the result, apart from the machine."""

    seed: int = 0
    minutes: float = 24.0  # of training proper, when `steps` is not given
    steps: int = 0
    documents: int = corpus.DOCUMENTS
    tokens_per_batch: int = 4096
    peak_rate: float = 2e-3
    warm_up: float = 0.05  # share of the run
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
    return Encoded(torch.tensor(ids, dtype=torch.int16), torch.tensor(segments, dtype=torch.int8), torch.tensor(labels))


def batches(groups: list[Encoded], tokens: int, generator: random.Random) -> list[tuple[int, Tensor]]:
    """One epoch: (group, rows), each of about `tokens` tokens, in random order."""
    plan: list[tuple[int, Tensor]] = []
    for number, group in enumerate(groups):
        shuffler = torch.Generator().manual_seed(generator.randrange(2**31))
        order = torch.randperm(len(group.ids), generator=shuffler)
        plan += [(number, rows) for rows in order.split(max(1, tokens // group.ids.shape[1]))]
    generator.shuffle(plan)
    return plan


def new_model(settings: Settings, words: int) -> BertForPreTraining:
    """An untrained BERT of the demo's shape."""
    torch.manual_seed(settings.seed)
    config = BertConfig(
        vocab_size=words, hidden_size=settings.hidden, num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads, intermediate_size=4 * settings.hidden,
        max_position_embeddings=corpus.LENGTH, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return BertForPreTraining(config)


def losses(model: BertForPreTraining, ids: Tensor, segments: Tensor, chosen: Tensor, truth: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
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
    return settings.peak_rate * 0.5 * (1 + math.cos(math.pi * (progress - settings.warm_up) / (1 - settings.warm_up)))


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


def optimizer(model: BertForPreTraining) -> torch.optim.AdamW:
    """AdamW; biases and layer norms are not decayed."""
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    return torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
                             betas=(0.9, 0.98))  # fmt: skip


def fit(model: BertForPreTraining, groups: list[Encoded], corruption: Corruption, settings: Settings) -> Record:
    """Train until the steps, or the minutes of CPU time, are used up."""
    record, chooser = Record(), random.Random(settings.seed)
    noise = torch.Generator().manual_seed(settings.seed)
    update, plan, epochs = optimizer(model), list[tuple[int, Tensor]](), 0
    start, cpu_start, progress = time.perf_counter(), time.process_time(), 0.0
    with bar() as display:
        task = display.add_task("training", total=1.0, masked=0.0, following=0.0)
        while progress < 1.0:
            if not plan:
                plan, epochs = batches(groups, settings.tokens_per_batch, chooser), epochs + 1
                per_epoch = len(plan)
            number, rows = plan.pop()
            group = groups[number]
            truth = group.ids[rows].long()
            ids, chosen = corruption(truth, noise)
            masked, following = losses(model, ids, group.segments[rows].long(), chosen, truth, group.labels[rows])
            for part in update.param_groups:
                part["lr"] = rate(progress, settings)
            update.zero_grad()
            (masked + following).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            update.step()
            record.steps += 1
            record.tokens += truth.numel()
            smooth = min(0.99, record.steps / (record.steps + 10))
            record.masked_loss = smooth * record.masked_loss + (1 - smooth) * masked.item()
            record.next_loss = smooth * record.next_loss + (1 - smooth) * following.item()
            record.cpu_seconds = time.process_time() - cpu_start
            progress = record.steps / settings.steps if settings.steps else record.cpu_seconds / (60 * settings.minutes * settings.threads)
            display.update(task, completed=progress, masked=record.masked_loss, following=record.next_loss)
    record.epochs = epochs - len(plan) / per_epoch
    record.seconds = time.perf_counter() - start
    return record


def bar() -> Progress:
    """The progress bar, on stderr."""
    return Progress(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:5.1f} %"), TimeElapsedColumn(),
                    TextColumn("masked words {task.fields[masked]:.3f}  next sentence {task.fields[following]:.3f}"),
                    console=Console(stderr=True), refresh_per_second=2)  # fmt: skip


def vocabulary_of(documents: list[corpus.Document]) -> set[str]:
    """Every word of the stream."""
    return {word for document in documents for word in f"{document.first} {document.second}".split()}


def train(settings: Settings) -> tuple[BertForPreTraining, PreTrainedTokenizerFast, Record]:
    """A trained model, its tokenizer and the record of the run."""
    torch.set_num_threads(settings.threads)
    documents = list(corpus.documents(settings.seed, settings.documents))
    spelling = tokenizer.build(vocabulary_of(documents), corpus.LENGTH)
    ids = spelling.get_vocab()
    model = new_model(settings, len(ids))
    record = fit(model.train(), encode(documents, ids), Corruption(ids), settings)
    return model.eval(), spelling, record


def save(model: BertForPreTraining, spelling: PreTrainedTokenizerFast, settings: Settings, record: Record, out: Path) -> None:
    """An ordinary Hugging Face folder, and `training.json` with what the card says of the run."""
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    spelling.save_pretrained(out)
    run = {"settings": asdict(settings), "record": asdict(record)}
    (out / "training.json").write_text(json.dumps(run, indent=2) + "\n")


def arguments(given: list[str] | None) -> tuple[Path, Settings]:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m attnscope.demo.train", description=__doc__)
    parser.add_argument("--out", type=Path, default=folder(), help="the folder to write (default: the bundled model)")
    for name, default in asdict(Settings()).items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default, help=f"default {default}")
    values = vars(parser.parse_args(given))
    return values.pop("out"), Settings(**values)


def main(given: list[str] | None = None) -> int:
    """Train, relabel the heads of layer 3, save, measure, write the card."""
    out, settings = arguments(given)
    model, spelling, record = train(settings)
    save(model, spelling, settings, record, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
