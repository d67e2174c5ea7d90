"""Every figure of demo-reader's card: right answers by length, depth and kind, and the heads that copy."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

from attnscope.demo.train.evaluation.induction import without
from attnscope.demo.train.reading.prompts import KINDS, NEW_NAME, Prompt, prompt
from attnscope.demo.train.reading.stream import NONE, STYLES

SELECTION, REPORTED = 505, 606  # seeds: heads are chosen on one set of prompts and reported on the other
COUNTS = {64: 300, 128: 300, 256: 300, 512: 300, 1024: 200, 2048: 60}  # of tokens, questions about new names
OTHERS_AT, OTHERS_COUNT = 256, 300  # the same for names that were met
HEADS_AT, HEADS_COUNT = 256, 60  # tokens and prompts where heads are looked at
COPIES = 0.3  # mean weight on the fact from which on a head is said to look at it
Figures = dict[str, Any]
Place = tuple[int, int]


class Bundle:
    """A model with its tokenizer, ready to be asked."""

    def __init__(self, path: Path) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        self.tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(path)
        self.ids: dict[str, int] = self.tokenizer.get_vocab()
        self.words = {number: word for word, number in self.ids.items()}

    @torch.no_grad()
    def answers(self, prompts: Sequence[Prompt], at_once: int = 8) -> list[str]:
        """The likeliest next word after each of the prompts."""
        found = []
        for start in range(0, len(prompts), at_once):
            some = prompts[start : start + at_once]
            ids = torch.full((len(some), max(len(one.words) for one in some)), self.tokenizer.pad_token_id)
            for row, one in enumerate(some):
                ids[row, : len(one.words)] = torch.tensor([self.ids[word] for word in one.words])
            states = self.model.model(input_ids=ids, use_cache=False).last_hidden_state
            last = torch.tensor([len(one.words) - 1 for one in some])
            best = self.model.lm_head(states[torch.arange(len(some)), last]).argmax(-1)
            found += [self.words[number] for number in best.tolist()]
        return found

    @torch.no_grad()
    def weights(self, one: Prompt) -> Tensor:
        """What the answer's place attends to: `layer head key`."""
        self.model.set_attn_implementation("eager")
        ids = torch.tensor([[self.ids[word] for word in one.words]])
        attentions = self.model(ids, output_attentions=True, use_cache=False).attentions
        self.model.set_attn_implementation("sdpa")
        return torch.stack([layer[0, :, -1] for layer in attentions])


def prompts(length: int, kind: str, count: int, seed: int) -> list[Prompt]:
    """The questions of one length and kind."""
    generator = random.Random(f"{seed} {length} {kind}")
    return [prompt(length, kind, generator) for _ in range(count)]


def share(right: Iterable[bool]) -> float:
    """The share of what is right."""
    values = list(right)
    return round(sum(values) / len(values), 4) if values else 0.0


def accuracy(bundle: Bundle, length: int, kind: str, count: int) -> Figures:
    """Right answers at one length: in all, where the fact is stated (by depth and style), where it is not."""
    asked = prompts(length, kind, count, REPORTED)
    answers = bundle.answers(asked, at_once=max(1, 4096 // length))
    rows = [(one, answer == one.answer) for one, answer in zip(asked, answers, strict=True)]

    def of(chosen: Callable[[Prompt], bool]) -> float:
        return share(right for one, right in rows if chosen(one))

    def at(quarter: int) -> float | None:
        there = [right for one, right in rows if one.sentence and int(4 * one.depth) == quarter]
        return share(there) if there else None

    def styled(style: str) -> float:
        return of(lambda one: one.style == style)

    return {
        "prompts": count,
        "sentences": round(sum(" ".join(one.words).count(" .") for one in asked) / count, 1),
        "all": of(lambda one: True),
        "stated": of(lambda one: one.answer != NONE),
        "none": of(lambda one: one.answer == NONE),
        "depth": [at(quarter) for quarter in range(4)],
        "style": {style: styled(style) for style in STYLES},
    }


def looks(bundle: Bundle, asked: Sequence[Prompt]) -> dict[str, Tensor]:
    """Mean weights of the answer's place on the fact's sentence, its value, its full stop: `layer head`."""
    rows: dict[str, list[Tensor]] = {"sentence": [], "value": [], "stop": []}
    for one in asked:
        weights = bundle.weights(one)
        rows["sentence"].append(weights[..., one.sentence.start : one.sentence.stop].sum(-1))
        rows["value"].append(weights[..., one.value])
        rows["stop"].append(weights[..., one.sentence.stop - 1])
    return {name: torch.stack(values).mean(0) for name, values in rows.items()}


def heads(bundle: Bundle) -> Figures:
    """The heads that look at the fact from where the answer is due, and what is left without them.

    They are chosen, and put in order, on other prompts than those reported. The control silences as many
    others of their layer or of those above it; the layers below make what is looked at, and are no control.
    """
    chosen, asked = (
        [one for one in prompts(HEADS_AT, NEW_NAME, 2 * HEADS_COUNT, seed) if one.sentence][:HEADS_COUNT]
        for seed in (SELECTION, REPORTED)
    )
    found, told = looks(bundle, chosen)["sentence"], looks(bundle, asked)
    layer = int(found.sum(-1).argmax())
    order = found[layer].argsort(descending=True).tolist()
    copying = [(layer, head) for head in order if found[layer, head] >= COPIES]
    everyone = [[(at, head) for head in range(found.shape[1])] for at in range(len(found))]
    others = [place for row in everyone[layer:] for place in row if place not in copying]
    others = random.Random(SELECTION).sample(others, min(len(others), len(copying)))

    def left(places: Sequence[Place]) -> float:
        with without(bundle.model, list(places)):
            return share(a == one.answer for a, one in zip(bundle.answers(asked), asked, strict=True))

    return {
        "tokens": HEADS_AT,
        "prompts": len(asked),
        "copying": copying,
        "others": others,
        "all": left([]),
        "without_first": [left(copying[: number + 1]) for number in range(len(copying))],
        "without_as_many_others": [left(others[: number + 1]) for number in range(len(others))],
        "without_each": [[left([place]) for place in row] for row in everyone],
        "without_layer": [left(row) for row in everyone],
        **{
            name: [[round(value, 3) for value in row] for row in values.tolist()]
            for name, values in told.items()
        },
    }


def by_length(bundle: Bundle) -> Figures:
    """Right answers about names never met, at every length."""
    return {str(length): accuracy(bundle, length, NEW_NAME, count) for length, count in COUNTS.items()}


def figures(path: Path) -> Figures:
    """All figures of the model in a folder."""
    bundle = Bundle(path)
    return {
        "new_names": by_length(bundle),
        "kinds": {kind: accuracy(bundle, OTHERS_AT, kind, OTHERS_COUNT) for kind in KINDS},
        "heads": heads(bundle),
    }
