"""Induction heads, looked for as Olsson et al. (2022) do: random words r said twice, [BOS] r r.

Where a word of the second r stands, an induction head looks at the word that followed it in the first r.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import LlamaForCausalLM, PreTrainedTokenizerBase

SELECTION, REPORTED = 303, 404  # seeds: heads are chosen on one set and reported on the other
SIZES = (5, 10, 15, 20, 25, 30)  # words of r
EACH = 40  # sequences of every size


def repeated(tokenizer: PreTrainedTokenizerBase, size: int, count: int, seed: int) -> Tensor:
    """Ids of `count` sequences [BOS] r r, where r is `size` different words: `sequence token`."""
    words = torch.tensor(sorted(index for word, index in tokenizer.get_vocab().items() if word.isalpha()))
    generator = torch.Generator().manual_seed(seed * 1000 + size)
    r = torch.stack([words[torch.randperm(len(words), generator=generator)[:size]] for _ in range(count)])
    return torch.cat([torch.full((count, 1), tokenizer.bos_token_id), r, r], dim=1)


@dataclass(frozen=True)
class Scores:
    """Mean weights per layer and head, each between 0 and 1: `layer head`."""

    induction: Tensor  # from a word of the second r to what followed it in the first
    duplicate: Tensor  # from a word of the second r to the same word in the first
    previous: Tensor  # from any word to the token before it

    def best(self, name: str) -> tuple[int, int]:
        """(layer, head) with the highest score of this name."""
        values: Tensor = getattr(self, name)
        layer, head = divmod(int(values.argmax()), values.shape[1])
        return layer, head


def scores_of(weights: Tensor, size: int) -> dict[str, Tensor]:
    """The three scores from the weights on [BOS] r r with r of `size` words; ... are any leading axes.

    weights: `... query key`. Queries are 1 to 2 size for the token before, size + 1 to 2 size for the others.
    """

    def back(offset: int) -> Tensor:
        return weights.diagonal(-offset, -2, -1)

    return {
        "induction": back(size - 1)[..., 2:].mean(-1),
        "duplicate": back(size)[..., 1:].mean(-1),
        "previous": back(1).mean(-1),
    }


@torch.no_grad()
def scores(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase, seed: int, sizes: tuple[int, ...] = SIZES
) -> Scores:
    """The scores of every head, each size of r counting alike. The model must run eager."""
    by_score: dict[str, list[Tensor]] = {"induction": [], "duplicate": [], "previous": []}
    for size in sizes:
        output = model(repeated(tokenizer, size, EACH, seed), output_attentions=True)
        weights = torch.stack(output.attentions)  # layer sequence head query key
        for name, values in scores_of(weights, size).items():
            by_score[name].append(values.mean(1))
    return Scores(**{name: torch.stack(values).mean(0) for name, values in by_score.items()})


@torch.no_grad()
def accuracy(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase, seed: int, sizes: tuple[int, ...] = SIZES
) -> tuple[float, float]:
    """Share of next words guessed right in the first r and in the second, without the first word of each."""
    shares = []
    for size in sizes:
        ids = repeated(tokenizer, size, EACH, seed)
        right = (model(ids).logits[:, :-1].argmax(-1) == ids[:, 1:]).float().mean(0)
        shares.append((right[1:size].mean(), right[size + 1 :].mean()))
    first, second = torch.tensor(shares).mean(0).tolist()
    return first, second


@contextmanager
def without(model: LlamaForCausalLM, heads: list[tuple[int, int]]) -> Iterator[None]:
    """The model with the outputs of some (layer, head) set to zero, before they are projected and summed."""
    size = model.config.head_dim

    def silence(head: int) -> Callable[[nn.Module, tuple[Tensor, ...]], tuple[Tensor, ...]]:
        def hook(module: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            outputs = arguments[0].clone()
            outputs[..., head * size : (head + 1) * size] = 0
            return (outputs, *arguments[1:])

        return hook

    handles = [
        model.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(silence(head))
        for layer, head in heads
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
