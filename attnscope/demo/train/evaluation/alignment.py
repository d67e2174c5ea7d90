"""Does a cross-attention head look at the English word that a French word stands for?

The rows of a decoder's map are the tokens that it reads, and each row predicts the token after it. So a
French word can be looked for in two rows: "word", its own, and "next", the row before it, in which it is
being chosen. A head finds it if the largest weight of the row lies on one of the English words that it
stands for. None of the sentences was trained on.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import BartForConditionalGeneration, PreTrainedTokenizerBase

from attnscope.demo.train.corpora.translation import Pair
from attnscope.demo.train.evaluation.references import HeadReport

SELECTION, REPORTED = 303, 404  # seeds: heads are chosen on one set and reported on the other
ROWS = {"word": 1, "next": 0}  # how many places behind a French word's index its row stands ([BOS] is row 0)
WORDS = ("all", "swapped")


def positions(pair: Pair, words: str) -> list[int]:
    """Indices of French words that stand for something, or of nouns and adjectives that changed places."""
    if words == "all":
        return [index for index, places in enumerate(pair.sources) if places]
    places = set()
    for index in range(len(pair.french) - 1):
        both = {pair.roles[index], pair.roles[index + 1]} <= {"noun", "adjective"}
        if both and min(pair.sources[index]) > min(pair.sources[index + 1]):
            places |= {index, index + 1}
    return sorted(places)


@torch.no_grad()
def cross_weights(
    model: BartForConditionalGeneration, tokenizer: PreTrainedTokenizerBase, pair: Pair
) -> Tensor:
    """The cross-attention of a pair, with [BOS] before the French and [EOS] behind the English words.

    Axes: `layer head query key`. The model must run eager.
    """
    source = tokenizer.convert_tokens_to_ids([*pair.english, tokenizer.eos_token])
    target = tokenizer.convert_tokens_to_ids([tokenizer.bos_token, *pair.french])
    output = model(
        input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target]), output_attentions=True
    )
    return torch.cat(output.cross_attentions)


def look(
    model: BartForConditionalGeneration, tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair]
) -> dict[tuple[str, str], HeadReport]:
    """How well each head finds the English words of these pairs, by row and kind of words."""
    model.set_attn_implementation("eager")
    hits: dict[tuple[str, str], list[Tensor]] = {(row, words): [] for row in ROWS for words in WORDS}
    mass: dict[tuple[str, str], list[Tensor]] = {key: [] for key in hits}
    for pair in pairs:
        weights = cross_weights(model, tokenizer, pair)
        for (row, words), hit in hits.items():
            for index in positions(pair, words):
                looking = weights[:, :, index + ROWS[row]]
                places = list(pair.sources[index])
                hit.append(torch.isin(looking.argmax(-1), torch.tensor(places)).float())
                mass[row, words].append(looking[..., places].sum(-1))
    return {
        key: HeadReport(torch.stack(hit).mean(0), torch.stack(mass[key]).mean(0)) for key, hit in hits.items()
    }


def by_offset(pairs: Sequence[Pair], words: str, offset: int) -> float:
    """How often "the English word at my place plus `offset`" is right."""
    return _share([(pair, index, index + offset) for pair in pairs for index in positions(pair, words)])


def by_diagonal(pairs: Sequence[Pair], words: str) -> float:
    """How often "as far along as I am, from the first word to the stop" is right."""
    return _share(
        [
            (pair, index, round(index * (len(pair.english) - 1) / max(1, len(pair.french) - 1)))
            for pair in pairs
            for index in positions(pair, words)
        ]
    )


def best_offset(pairs: Sequence[Pair], words: str) -> int:
    """The fixed offset that is right most often."""
    return max(range(-6, 7), key=lambda offset: (by_offset(pairs, words, offset), -abs(offset)))


def _share(guesses: list[tuple[Pair, int, int]]) -> float:
    return sum(place in pair.sources[index] for pair, index, place in guesses) / len(guesses)
