"""Recomputes an ablation by PyTorch hooks that replace a head's slice of its output projection's input.

The outputs of all heads lie side by side in what that projection reads, so a head is a slice of it. In its
place stand zeros, its mean over control texts, or what it is in another text.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch
from torch import Tensor

from attnscope.render.script.again import SHOWN, Figures, Given, attention, inputs, load, report, stop

INSIDE = ("o_proj", "out_proj", "c_proj", "out_lin", "o", "dense", "wo", "Wo")  # in the attention, or else
BESIDE = ("output.dense",)  # beside it, as in BERT
Heads = list[tuple[int, int]]


def projections(model: Any) -> dict[int, Any]:
    """The output projection module of each layer's attention, by layer."""
    found, there = {}, dict(model.named_modules())
    for layer, path in SHOWN["modules"].items():
        around = path.rpartition(".")[0]
        places = [f"{path}.{name}" for name in INSIDE] + [f"{around}.{name}" for name in BESIDE]
        found[int(layer)] = next((there[place] for place in places if place in there), None)
    if None in found.values() or len({*map(id, found.values())}) < len(found):
        stop(f"the output projections of {SHOWN['architecture']} are not found by their names")
    return found


@contextmanager
def hooked(model: Any, change: Any) -> Iterator[None]:
    """While open, replaces what each layer's output projection reads by `change(layer, tensor)`."""
    handles = [
        part.register_forward_pre_hook(lambda _, given, layer=layer: (change(layer, given[0]), *given[1:]))
        for layer, part in projections(model).items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def answers(model: Any, given: Given) -> Tensor:
    """Log probabilities of every possible answer, a row for each answer token."""
    output = model(**given)
    names = ("seq_relationship_logits", "sop_logits", "prediction_logits", "logits")
    axes = 3 if SHOWN["rows"] else 2
    scores: Tensor = next(output[name] for name in names if name in output and output[name].ndim == axes)[0]
    return (scores[SHOWN["rows"]] if SHOWN["rows"] else scores[None]).double().log_softmax(-1)


def of_answer(scores: Tensor) -> float:
    """The log probability of the whole answer."""
    return float(scores[range(len(scores)), SHOWN["answer"]].sum())


def outputs(model: Any, texts: list[Given]) -> dict[int, Tensor]:
    """Mean input of each layer's output projection over these texts, by layer."""
    sums: dict[int, Tensor] = {}

    def keep(layer: int, read: Tensor) -> Tensor:
        sums[layer] = sums.get(layer, 0) + read.double() / len(texts)
        return read

    with hooked(model, keep):
        for given in texts:
            answers(model, given)
    return sums


def without(model: Any, heads: Heads, counts: dict[int, int], instead: dict[int, Tensor]) -> Tensor:
    """Log probabilities of every answer without these heads; zeros or `instead` stand in their place."""

    def take_away(layer: int, read: Tensor) -> Tensor:
        read = read.clone()
        size = read.shape[-1] // counts[layer]
        for head in (head for its, head in heads if its == layer):
            own = slice(head * size, (head + 1) * size)
            read[..., own] = instead[layer][..., own].to(read) if instead else 0
        return read

    with hooked(model, take_away):
        return answers(model, inputs())


def figures() -> Figures:
    model = load()
    counts = {layer: len(weights) for layer, weights in enumerate(attention(model, inputs()))}
    instead = outputs(model, [inputs(**text) for text in SHOWN["texts"]])
    before = answers(model, inputs())

    def lost(heads: Heads) -> float:
        return of_answer(without(model, heads, counts, instead)) - of_answer(before)

    yield "the answer's probability", SHOWN["probability"], math.exp(of_answer(before))
    for layer, head, change, kl in SHOWN["heads"]:
        after = without(model, [(layer, head)], counts, instead)
        yield f"L{layer} H{head}", change, of_answer(after) - of_answer(before)
        yield f"L{layer} H{head} divergence", kl, float((before.exp() * (before - after)).sum())
    for layer, head, change in SHOWN["random heads"]:
        yield f"L{layer} H{head}, drawn by lot", change, lost([(layer, head)])
    if SHOWN["group"]:
        yield "all of them at once", SHOWN["group change"], lost(SHOWN["group"])
    if SHOWN["drawn"]:
        sizes = [abs(lost(heads)) for heads in SHOWN["drawn"]]
        yield f"{len(sizes)} other groups, the median", SHOWN["drawn median"], median(sizes)


if __name__ == "__main__":
    report(figures())
