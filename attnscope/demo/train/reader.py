"""How `demo-reader` is trained: short passages first, then longer ones, from the endless stream of `reading`.

A run goes from stage to stage as its answers become right, at the latest after a share of its steps, so that
all of it follows from the seed and the number of steps. Attention itself is never supervised.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from attnscope.demo.train import loop
from attnscope.demo.train.cards.reader import CARD
from attnscope.demo.train.evaluation import reader as evaluate
from attnscope.demo.train.reading import tokenizer
from attnscope.demo.train.reading.batches import ANSWER, LENGTH, OTHER, STAGES, Batches, digest

KEPT = "checkpoint.pt"
WORTH_MEASURING = 1000  # steps; fewer only try the program


@dataclass(frozen=True)
class Settings(loop.LlamaSettings):
    """The defaults are the run that is bundled."""

    seed: int = 1
    steps: int = 5000
    peak_rate: float = 3e-3
    warm_up: float = 0.01
    falling: float = 0.25  # share of the run, at its end, in which the learning rate falls
    hidden: int = 128
    layers: int = 3
    heads: int = 8
    head_size: int = 32
    inner: int = 192
    rotation: float = 1e6  # base of the rotary angles: slow ones, for long texts
    enough: float = 0.9  # running share of right answers at which a stage is left, if it is not the last
    focus: float = 0.6  # share of the batches that are of the stage itself; the others are of earlier ones
    threads: int = 1


def new_model(settings: Settings, spelling: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """An untrained Llama whose matrices begin as wide as their inputs want."""
    model = loop.new_llama(settings, spelling, LENGTH)
    for name, part in model.named_parameters():
        if part.ndim == 2 and "embed" not in name:
            ends_a_block = "o_proj" in name or "down_proj" in name
            torch.nn.init.normal_(part, std=(0.25 if ends_a_block else 0.5) / math.sqrt(part.shape[1]))
    return model


class Answers:
    """Mean cross entropy of answers and of what is said again, and a fifth of that of all other words."""

    def __init__(self, model: LlamaForCausalLM) -> None:
        self.model, self.right = model, 0.0

    def __call__(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The losses; `right` becomes the share of the answers that are right."""
        states = self.model.model(
            input_ids=batch["ids"][:, :-1],
            position_ids=batch["positions"][:, :-1],
            attention_mask=torch.ones_like(batch["ids"][:, :-1]),  # else a gap begins another text
            use_cache=False,
        ).last_hidden_state
        which, truth = batch["which"][:, 1:], batch["ids"][:, 1:]
        wanted = which > 0
        scores, truth, which = self.model.lm_head(states[wanted]), truth[wanted], which[wanted]
        each = torch.nn.functional.cross_entropy(scores, truth, reduction="none")
        if (answers := which == ANSWER).any():
            self.right = (scores[answers].argmax(-1) == truth[answers]).float().mean().item()
        return {"asked": each[which != OTHER].mean(), "others": 0.2 * each[which == OTHER].mean()}


def optimizers(model: LlamaForCausalLM) -> list[torch.optim.Optimizer]:
    """Muon for the matrices, AdamW for word vectors and norms."""
    table = model.get_input_embeddings().weight
    matrices = [part for part in model.parameters() if part.ndim == 2 and part is not table]
    rest = [table, *(part for part in model.parameters() if part.ndim < 2)]
    return [
        torch.optim.Muon(matrices, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def rate(progress: float, settings: Settings) -> float:
    """Learning rate at a share of the run: it rises, stays, and falls to a fiftieth at the end."""
    rising, falling = progress / settings.warm_up, (1 - progress) / settings.falling
    return settings.peak_rate * max(0.02, min(1.0, rising, falling))


def step(updates: list[torch.optim.Optimizer], loss: Tensor, size: float) -> None:
    """One update of the weights at a learning rate of `size`."""
    groups = [group for update in updates for group in update.param_groups]
    for group in groups:
        group["lr"] = size
        for part in group["params"]:
            part.grad = None
    torch.autograd.backward(loss)
    torch.nn.utils.clip_grad_norm_([part for group in groups for part in group["params"]], 1.0)
    for update in updates:
        update.step()


@dataclass
class Course:
    """Where a run is: its stage, the running share of right answers in it, the steps that it has had."""

    stage: int = 0
    right: float = 0.0
    steps: int = 0

    def moves_on(self, progress: float, settings: Settings) -> bool:
        """Whether the stage is done with; the last one never is."""
        if self.stage == len(STAGES) - 1:
            return False
        ready = self.right > settings.enough and self.steps >= 40
        return ready or progress >= STAGES[self.stage].latest

    def next_stage(self, batches: Batches, settings: Settings) -> int:
        """The stage of the next batch: mostly this one, else one of the three before it."""
        earlier = range(max(0, self.stage - 3), self.stage)
        if not earlier or batches.generator.random() < settings.focus:
            return self.stage
        return batches.generator.choice(earlier)

    def add(self, right: float) -> None:
        """Count a step of the stage."""
        self.steps += 1
        self.right += 0.03 * (right - self.right)


@dataclass
class Run:
    """Everything that changes in a run, so that it can be kept and taken up again."""

    model: LlamaForCausalLM
    batches: Batches
    updates: list[torch.optim.Optimizer]
    record: loop.Record
    course: Course

    def keep(self, path: Path) -> None:
        """Write it into a file, whole or not at all."""
        states = {
            "model": self.model.state_dict(),
            "updates": [update.state_dict() for update in self.updates],
            "record": asdict(self.record),
            "course": asdict(self.course),
            "generator": self.batches.generator.getstate(),
        }
        torch.save(states, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)

    def take_up(self, path: Path) -> None:
        """Go on from a file."""
        states: dict[str, Any] = torch.load(path, weights_only=True)
        self.model.load_state_dict(states["model"])
        for update, state in zip(self.updates, states["updates"], strict=True):
            update.load_state_dict(state)
        self.record, self.course = loop.Record(**states["record"]), Course(**states["course"])
        self.batches.generator.setstate(states["generator"])


def fit(model: LlamaForCausalLM, ids: dict[str, int], settings: Settings, kept: Path) -> loop.Record:
    """Train in place. What is needed to go on is kept every hundred steps, and taken up where it is found."""
    torch.set_num_threads(settings.threads)
    torch.use_deterministic_algorithms(True)
    answers = Answers(model.train())
    run = Run(model, Batches(settings.seed, ids), optimizers(model), loop.Record(), Course())
    if kept.exists():
        run.take_up(kept)
    record, course = run.record, run.course
    start, cpu_start = time.perf_counter() - record.seconds, time.process_time() - record.cpu_seconds
    with loop.bar() as display:
        task = display.add_task("training", total=1.0, losses="")
        while (progress := record.spent(settings)) < 1.0:
            while course.moves_on(progress, settings):
                course = run.course = Course(course.stage + 1)
            now = course.next_stage(run.batches, settings)
            batch = run.batches(STAGES[now])
            parts = answers(batch)
            step(run.updates, torch.stack(list(parts.values())).sum(), rate(progress, settings))
            record.add(batch["ids"].numel(), parts)
            if now == course.stage:
                course.add(answers.right)
            record.seconds, record.cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
            running = "  ".join(f"{name} {loss:.3f}" for name, loss in record.losses.items())
            told = f"{STAGES[course.stage].length} tokens, {course.right:.1%} right  {running}"
            display.update(task, completed=record.spent(settings), losses=told)
            if record.steps % 100 == 0:
                display.console.print(f"{record.steps} steps, {record.cpu_seconds:.0f} s: {told}")
                run.keep(kept)
    model.eval()
    return record


def train(settings: Settings, kept: Path) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast, loop.Record]:
    """A trained model, its tokenizer and the record of the run."""
    spelling = tokenizer.build(LENGTH)
    model = new_model(settings, spelling)
    record = fit(model, spelling.get_vocab(), settings, kept)
    record.stream = digest(settings.seed, spelling.get_vocab())
    return model, spelling, record


def run(settings: Settings, out: Path) -> bool:
    """Train and save in half precision; whether the run was long enough to be measured."""
    out.mkdir(parents=True, exist_ok=True)
    model, spelling, record = train(settings, out / KEPT)
    loop.save(model.half(), spelling, settings, record, out)
    (out / KEPT).unlink(missing_ok=True)
    return record.steps >= WORTH_MEASURING


PROGRAM = loop.Program("demo-reader", Settings, run, evaluate.figures, CARD)
