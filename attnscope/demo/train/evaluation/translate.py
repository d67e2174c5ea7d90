"""Every figure of the translation model's card, measured on sentences that were never trained on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, PreTrainedTokenizerBase

from attnscope.demo.train.corpora import translation
from attnscope.demo.train.corpora.translation import EXAMPLES, Pair, written
from attnscope.demo.train.evaluation import alignment

Figures = dict[str, Any]
SENTENCES, PAIRED = 11, 12  # seeds of the two evaluation sets
Context = tuple[str, ...]


class Bundle:
    """A model with its tokenizer, ready to translate."""

    def __init__(self, path: Path) -> None:
        self.model = AutoModelForSeq2SeqLM.from_pretrained(path, attn_implementation="eager").eval()
        self.tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(path)

    def translate(self, text: str) -> str:
        """The greedy translation of one text."""
        return self.translations([text])[0]

    @torch.no_grad()
    def translations(self, texts: Sequence[str]) -> list[str]:
        """Greedy translations; texts of one length go through together, so that nothing is padded."""
        encoded = [self.tokenizer(text)["input_ids"] for text in texts]
        said: dict[int, str] = {}
        for length in {len(ids) for ids in encoded}:
            places = [place for place, ids in enumerate(encoded) if len(ids) == length]
            rows = self.model.generate(input_ids=torch.tensor([encoded[place] for place in places]))
            french = self.tokenizer.batch_decode(rows, skip_special_tokens=True)
            said.update(zip(places, french, strict=True))
        return [said[place] for place in range(len(texts))]

    @torch.no_grad()
    def words_right(self, pair: Pair) -> tuple[int, int]:
        """How many French words (and the end) are the likeliest after the true ones; of how many."""
        ids = self.tokenizer(written(pair.english), text_target=written(pair.french), return_tensors="pt")
        likeliest = self.model(input_ids=ids["input_ids"], labels=ids["labels"]).logits.argmax(-1)
        return int((likeliest == ids["labels"]).sum()), ids["labels"].numel()


class Dictionary:
    """Word-for-word translation: the commonest French of an English word, as it was seen in training.

    Seen with its two neighbours it may agree and elide; words never seen among these neighbours fall back
    to the following word, then to nothing but themselves. The order is always the English one.
    """

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self.seen: dict[Context, Counter[Context]] = {}
        for pair in pairs:
            for place, said in enumerate(_by_last_source(pair)):
                for context in contexts(pair.english, place):
                    self.seen.setdefault(context, Counter())[said] += 1
        self.best = {context: said.most_common(1)[0][0] for context, said in self.seen.items()}
        self.seen = {}

    def translate(self, english: Context, neighbours: bool) -> str:
        """The French of these words, each with its neighbours or alone."""
        french: list[str] = []
        for place in range(len(english)):
            ladder = contexts(english, place) if neighbours else contexts(english, place)[2:]
            french += next((self.best[context] for context in ladder if context in self.best), ())
        return written(french)


def contexts(english: Context, place: int) -> tuple[Context, Context, Context]:
    """A word with both neighbours, with the following one, alone."""
    edged = ("", *english, "")
    before, word, after = edged[place : place + 3]
    return (before, word, after), (word, after), (word,)


def _by_last_source(pair: Pair) -> list[Context]:
    """For every English word the French words whose last source it is."""
    said: list[list[str]] = [[] for _ in pair.english]
    for word, places in zip(pair.french, pair.sources, strict=True):
        if places:
            said[max(places)].append(word)
    return [tuple(words) for words in said]


def exact(bundle: Bundle, pairs: Sequence[Pair]) -> float:
    """The share of sentences whose greedy translation is the expected one, letter by letter."""
    said = bundle.translations([written(pair.english) for pair in pairs])
    right = sum(text == written(pair.french) for text, pair in zip(said, pairs, strict=True))
    return round(right / len(pairs), 4)


def translations(bundle: Bundle, words: Dictionary, count: int = 1000) -> Figures:
    """Whole held-out sentences: the model against two word-for-word rules."""
    pairs = translation.held_out_sentences(SENTENCES, count)

    def rule(neighbours: bool) -> float:
        right = sum(words.translate(one.english, neighbours) == written(one.french) for one in pairs)
        return round(right / count, 4)

    counted = [bundle.words_right(pair) for pair in pairs]
    return {
        "sentences": count,
        "model": exact(bundle, pairs),
        "words": round(sum(right for right, _ in counted) / sum(total for _, total in counted), 4),
        "alone": rule(neighbours=False),
        "neighbours": rule(neighbours=True),
    }


def paired(bundle: Bundle, count: int = 400) -> Figures:
    """Sentences that hold an adjective and a noun which no training document held together."""
    pairs = translation.held_out_sentences(PAIRED, count, pairs=True)
    return {"sentences": count, "pairs": len(translation.held_out_pairs()), "model": exact(bundle, pairs)}


def heads(bundle: Bundle, count: int = 200) -> Figures:
    """English words found by heads that were chosen on twice as many other sentences, and by two rules."""
    chosen = translation.held_out_sentences(alignment.SELECTION, 2 * count)
    reported = translation.held_out_sentences(alignment.REPORTED, count)
    select, report = (alignment.look(bundle.model, bundle.tokenizer, pairs) for pairs in (chosen, reported))
    result: Figures = {"sentences": count}
    for words in alignment.WORDS:
        offset = alignment.best_offset(chosen, words)
        result[words] = {
            "count": sum(len(alignment.positions(pair, words)) for pair in reported),
            "offset": offset,
            "offset_found": round(alignment.by_offset(reported, words, offset), 4),
            "diagonal_found": round(alignment.by_diagonal(reported, words), 4),
        }
        for row in alignment.ROWS:
            for name, (layer, head) in {"best": select[row, words].best(), "l3_h11": (3, 11)}.items():
                result[words][f"{row}_{name}"] = report[row, words].figures(layer, head)
    return result


def figures(path: Path) -> Figures:
    """All figures of the model in a folder, against the stream that it was trained on."""
    run = json.loads((path / "training.json").read_text("utf-8"))["settings"]
    stream = translation.documents(run["seed"], run["documents"])
    bundle = Bundle(path)
    return {
        "translations": translations(bundle, Dictionary(stream)),
        "paired": paired(bundle),
        "heads": heads(bundle),
        "examples": {text: bundle.translate(text) for text in EXAMPLES},
    }
