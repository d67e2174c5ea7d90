"""Every figure of demo-causal's card, measured on sentences and random words that were never trained on."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoTokenizer, LlamaForCausalLM, PreTrainedTokenizerBase

from attnscope.demo.train.corpora import corpus
from attnscope.demo.train.corpora.next_word import passages, prose
from attnscope.demo.train.evaluation import induction
from attnscope.demo.train.evaluation.baselines import EDGE, Continuations
from attnscope.demo.train.evaluation.encoder import Figures, held_out_sentences

PROMPTS = (
    "I was watching the",
    "The key opened the",
    "I put my money in the",
    "Bill is going to the theatre to watch a new",
    "river piano doctor window apple river piano",
)
RULES = {"unigram": 0, "bigram": 1, "trigram": 2}  # words of context
FORMED = 0.5  # mean weight from which on a head is called an induction head, settled before the full run
HELPING = 0.3  # weight on the selection set from which on heads are silenced together


class Bundle:
    """A model with its tokenizer, ready to be asked."""

    def __init__(self, path: Path) -> None:
        self.model = LlamaForCausalLM.from_pretrained(path, attn_implementation="eager").eval()
        self.tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(path)
        words = sorted(self.tokenizer.get_vocab().items(), key=lambda item: item[1])
        self.words = [EDGE if word == self.tokenizer.eos_token else word for word, _ in words]
        self.ids: dict[str, int] = dict(words)
        self.ids[EDGE] = self.tokenizer.eos_token_id  # the character "|" is no word of the grammar

    def id(self, word: str) -> int:
        """The token of a word of the grammar, or of its end."""
        return self.ids.get(word, self.ids["[UNK]"])

    @torch.no_grad()
    def after(self, words: Sequence[str]) -> Tensor:
        """The probability of every token after none, one, ... all of these words: `place token`."""
        ids = torch.tensor([[self.tokenizer.bos_token_id, *map(self.id, words)]])
        probabilities: Tensor = self.model(ids).logits[0].softmax(-1)
        return probabilities

    def next_words(self, text: str) -> list[tuple[str, float]]:
        """The five likeliest words after a text, each with its probability."""
        probability, index = self.after(corpus.spaced(text).split())[-1].topk(5)
        names = self.tokenizer.convert_ids_to_tokens(index.tolist())
        return [(word, round(p, 3)) for word, p in zip(names, probability.tolist(), strict=True)]

    @torch.no_grad()
    def goes_on(self, text: str, longest: int = 16) -> str:
        """The text with the likeliest words behind it, until the model ends it or `longest` are said."""
        ids = self.model.generate(**self.tokenizer(text, return_tensors="pt"), max_new_tokens=longest)[0]
        continued: str = self.tokenizer.decode(ids, skip_special_tokens=True)
        return continued


Guess = tuple[list[str], float]  # five words, the best first, and the probability of the true one


def by_model(bundle: Bundle, texts: list[list[str]]) -> Iterator[Guess]:
    """The model's guesses at every word of the texts and at their ends."""
    for words in texts:
        rows = bundle.after(words)
        best = rows.topk(5).indices.tolist()
        for row, five, word in zip(rows, best, [*words, EDGE], strict=True):
            yield [bundle.words[index] for index in five], row[bundle.id(word)].item()


def by_rule(counts: Continuations, length: int, texts: list[list[str]]) -> Iterator[Guess]:
    """The guesses of a counting rule at the same places."""
    for words in texts:
        line = [*[EDGE] * counts.longest, *words]
        for place, word in enumerate([*words, EDGE], start=counts.longest):
            before = line[:place]
            yield counts.best(before, length), counts.probabilities([word], before, length)[word]


def _quality(guesses: Iterator[Guess], truth: list[str]) -> dict[str, float]:
    """First guesses right, right among five, mean cross entropy in nats, perplexity."""
    first = five = loss = 0.0
    for (words, probability), word in zip(guesses, truth, strict=True):
        first += word == words[0]
        five += word in words
        loss -= math.log(probability)
    first, five, loss = (round(value / len(truth), 4) for value in (first, five, loss))
    return {"first": first, "five": five, "cross_entropy": loss, "perplexity": round(math.exp(loss), 2)}


def next_word(bundle: Bundle, counts: Continuations, count: int = 1500) -> Figures:
    """How well the next word of held-out sentences is guessed, the end among them, by model and counting."""
    texts = [text.split() for text in held_out_sentences(count)]
    truth = [word for words in texts for word in [*words, EDGE]]
    figures: Figures = {"sentences": count, "tokens": len(truth)}
    figures["model"] = _quality(by_model(bundle, texts), truth)
    for name, length in RULES.items():
        figures[name] = _quality(by_rule(counts, length, texts), truth)
    return figures


def heads(bundle: Bundle) -> Figures:
    """The heads with the highest scores on the selection set, and their scores on the reported one."""
    chosen, reported = (
        induction.scores(bundle.model, bundle.tokenizer, seed)
        for seed in (induction.SELECTION, induction.REPORTED)
    )
    result: Figures = {"sequences": len(induction.SIZES) * induction.EACH, "sizes": list(induction.SIZES)}
    for name in ("induction", "previous", "duplicate"):
        layer, head = chosen.best(name)
        score = getattr(reported, name)[layer, head].item()
        result[name] = {"layer": layer, "head": head, "score": round(score, 4)}
    values = reported.induction
    result["uniform"] = round(uniform(), 4)
    result["threshold"] = FORMED
    result["formed"] = result["induction"]["score"] >= FORMED
    result["induction_heads"] = int((values >= FORMED).sum())
    result["by_head"] = [[round(value, 3) for value in layer] for layer in values.tolist()]
    return result


def uniform() -> float:
    """The induction score of a head that looks at all it may look at alike."""
    means = [
        sum(1 / (position + 1) for position in range(size + 1, 2 * size + 1)) / size
        for size in induction.SIZES
    ]
    return sum(means) / len(means)


def copying(bundle: Bundle) -> Figures:
    """Next words guessed right in repeated random words, with all heads and with some of them silenced.

    Every other head, and as many other heads drawn by lot, are silenced too: what the loss is held against.
    """
    chosen = induction.scores(bundle.model, bundle.tokenizer, induction.SELECTION)
    scores = chosen.induction
    everyone = [(layer, head) for layer in range(len(scores)) for head in range(scores.shape[1])]
    best = max(everyone, key=lambda place: scores[place].item())
    helping = [place for place in everyone if scores[place] >= HELPING] or [best]
    others = [place for place in everyone if place not in helping]
    generator = random.Random(0)
    draws = [generator.sample(others, min(len(helping), len(others))) for _ in range(10)]

    def second(*silenced: Sequence[tuple[int, int]]) -> float:
        """The share guessed right in the second r, the mean over several sets of silenced heads."""
        shares = []
        for places in silenced:
            with induction.without(bundle.model, list(places)):
                shares.append(induction.accuracy(bundle.model, bundle.tokenizer, induction.REPORTED)[1])
        return round(sum(shares) / len(shares), 4)

    before, after = induction.accuracy(bundle.model, bundle.tokenizer, induction.REPORTED)
    return {
        "first_half": round(before, 4),
        "second_half": round(after, 4),
        "without_best": second([best]),
        "without_another": second(*([place] for place in everyone if place != best)),
        "without_previous": second([chosen.best("previous")]),
        "helping_from": HELPING,
        "helping": len(helping),
        "without_helping": second(helping),
        "without_as_many_others": second(*draws),
    }


def examples(bundle: Bundle) -> Figures:
    """What comes after some beginnings, as it comes."""
    return {text: {"next": bundle.next_words(text), "goes_on": bundle.goes_on(text)} for text in PROMPTS}


def stream(documents: Sequence[corpus.Document], seed: int, share: float) -> Figures:
    """What the training stream is made of: the rules refuse some of the random passages drawn."""
    kinds = Counter(passage.is_random for passage in passages(documents, seed, share))
    return {"passages": kinds.total(), "random_share": round(kinds[True] / kinds.total(), 4)}


def figures(path: Path) -> Figures:
    """All figures of the model in a folder, against counts of the running text that it was trained on."""
    run = json.loads((path / "training.json").read_text("utf-8"))["settings"]
    documents = list(corpus.documents(run["seed"], run["documents"]))
    counts = Continuations(prose(document).words for document in documents)
    bundle = Bundle(path)
    return {
        "stream": stream(documents, run["seed"], run["share"]),
        "next_word": next_word(bundle, counts),
        "heads": heads(bundle),
        "copying": copying(bundle),
        "examples": examples(bundle),
    }
