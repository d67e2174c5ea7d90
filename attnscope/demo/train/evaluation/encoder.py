"""Every figure of the model card, measured on sentences that were never trained on and returned as data."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoTokenizer, BertForPreTraining, PreTrainedTokenizerBase

from attnscope.demo.train.corpora import corpus
from attnscope.demo.train.english import lexicon as lex
from attnscope.demo.train.english.inflection import past
from attnscope.demo.train.english.phrases import Speaker, plain
from attnscope.demo.train.english.sentences import sentence
from attnscope.demo.train.english.stories import Story, story
from attnscope.demo.train.evaluation import references
from attnscope.demo.train.evaluation.baselines import EDGE, Counts

MASK = "[MASK]"
BLANKS = (
    "I was watching the [MASK] when it opened.",
    "I was watching the door when [MASK] opened.",
    "I [MASK] a person.",
    "I am going to the [MASK].",
    "Bill is going to the [MASK] to watch a new movie",
    "Bill is going to the theatre to [MASK] a new movie",
    "I sat on the [MASK] of the river.",
    "I put my [MASK] in the bank.",
    "I have to [MASK] the plant in the yard.",
    "He [MASK] in the plant with the big machines.",
)
PAIRS = (
    ("I am going to the supermarket.", "I would like to buy apples."),
    ("I am going to the supermarket.", "And that is how I met your mother."),
)
Figures = dict[str, Any]


class Bundle:
    """A model with its tokenizer, ready to be asked."""

    def __init__(self, path: Path) -> None:
        self.model = BertForPreTraining.from_pretrained(path, attn_implementation="eager").eval()
        self.tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(path)
        words = sorted(self.tokenizer.get_vocab().items(), key=lambda item: item[1])
        self.words = [word for word, _ in words]

    @torch.no_grad()
    def at_mask(self, texts: list[str]) -> Tensor:
        """Probabilities of every word at the first mask of each text: `text word`."""
        parts = []
        for start in range(0, len(texts), 64):
            batch = self.tokenizer(texts[start : start + 64], return_tensors="pt", padding=True)
            where = (batch["input_ids"] == self.tokenizer.mask_token_id).int().argmax(-1)
            scores = self.model(**batch).prediction_logits
            parts.append(scores[torch.arange(len(where)), where].softmax(-1))
        return torch.cat(parts)

    @torch.no_grad()
    def follows(self, pairs: list[tuple[str, str]]) -> Tensor:
        """The probability that the second text follows from the first: `pair`."""
        parts = []
        for start in range(0, len(pairs), 64):
            first, second = zip(*pairs[start : start + 64], strict=True)
            batch = self.tokenizer(list(first), list(second), return_tensors="pt", padding=True)
            parts.append(self.model(**batch).seq_relationship_logits.softmax(-1)[:, corpus.FOLLOWS])
        return torch.cat(parts)

    def top(self, text: str, best: int = 5) -> list[tuple[str, float]]:
        """The likeliest words at the mask, each with its probability."""
        probability, index = self.at_mask([text])[0].topk(best)
        return [
            (self.words[i], round(p, 3)) for p, i in zip(probability.tolist(), index.tolist(), strict=True)
        ]


def held_out_sentences(count: int, seed: int = 11) -> list[str]:
    """Different sentences of the held-out share."""
    s, texts = Speaker(random.Random(seed)), dict[str, None]()
    while len(texts) < count:
        text = plain(sentence(s))
        if corpus.is_held_out(corpus.sentences(text)[0]):
            texts[text] = None
    return list(texts)


def masked_words(bundle: Bundle, counts: Counts, count: int = 1500) -> Figures:
    """Share of right words when one word per held-out sentence is masked, first guess and among five."""
    generator, cases = random.Random(5), list[tuple[str, str, str, str]]()
    for text in held_out_sentences(count):
        words = [EDGE, *text.split(), EDGE]
        at = generator.choice([i for i, word in enumerate(words) if word not in (EDGE, ".", ",", "?")])
        masked = " ".join([*words[1:at], MASK, *words[at + 1 : -1]])
        cases.append((masked, words[at], words[at - 1], words[at + 1]))
    ranked = bundle.at_mask([case[0] for case in cases]).topk(5).indices.tolist()
    guesses = {
        "model": [[bundle.words[index] for index in row] for row in ranked],
        "bigram": [counts.bigram(left, right, 5) for _, _, left, right in cases],
        "unigram": [counts.unigram(5) for _ in cases],
    }
    truth = [case[1] for case in cases]

    def share(who: str, best: int) -> float:
        right = sum(word in row[:best] for word, row in zip(truth, guesses[who], strict=True))
        return round(right / len(truth), 4)

    return {"sentences": count, **{who: {"first": share(who, 1), "five": share(who, 5)} for who in guesses}}


def next_sentence(bundle: Bundle, count: int = 600) -> Figures:
    """Share of right verdicts on real, hard and random second sentences; the first is always held out."""
    s, stories = Speaker(random.Random(21)), list[Story]()
    while len(stories) < count:
        tale = story(s)
        if corpus.is_held_out(corpus.sentences(plain(tale.first))[0]):
            stories.append(tale)
    seconds = {
        "real": [tale.second for tale in stories],
        "hard": [tale.wrong for tale in stories],
        "random": [story(s).second for _ in stories],
    }
    right = {}
    for name, texts in seconds.items():
        pairs = [(plain(tale.first), plain(text)) for tale, text in zip(stories, texts, strict=True)]
        believed = (bundle.follows(pairs) > 0.5).float().mean().item()
        right[name] = believed if name == "real" else 1 - believed
    return {
        "pairs": count,
        **{f"{name}_right": round(value, 4) for name, value in right.items()},
        "accuracy_random": round((right["real"] + right["random"]) / 2, 4),
        "accuracy_hard": round((right["real"] + right["hard"]) / 2, 4),
    }


def reference(bundle: Bundle, count: int = 200) -> Figures:
    """Antecedents found on `count` sentences by heads that were chosen on twice as many others."""
    chosen = references.references(references.SELECTION, 2 * count)
    reported = references.references(references.REPORTED, count)
    offset, rule = references.fixed_offset(reported)
    result: Figures = {"sentences": count, "fixed_offset": offset, "fixed_offset_found": round(rule, 4)}
    for name, masked in (("mask", True), ("pronoun", False)):
        heads = references.look(bundle.model, bundle.tokenizer, chosen, masked)
        report = references.look(bundle.model, bundle.tokenizer, reported, masked)
        for where, (layer, head) in {
            "best": heads.best(),
            "layer_3": heads.best(3),
            "l3_h11": (3, 11),
        }.items():
            result[f"{name}_{where}"] = report.figures(layer, head)
    words = bundle.at_mask([item.masked for item in reported]).argmax(-1).tolist()
    truth = [item.text.split()[item.pronoun - 1] for item in reported]
    result["pronoun_right"] = round(
        sum(bundle.words[i] == word for i, word in zip(words, truth, strict=True)) / count, 4
    )
    return result


def held_out_pairs(bundle: Bundle) -> Figures:
    """How a held-out noun ranks at "the [MASK] <verb>": the mean share of nouns of other kinds that it beats.

    0.5 is chance. Nothing but the company that the noun keeps with the other verbs of its kind can tell.
    """
    ids = bundle.tokenizer.get_vocab()
    kinds = lex.THINGS + lex.ANIMALS
    ranks = []
    for verb, noun in corpus.held_out_pairs():
        kind = next(kind for kind in kinds if noun in kind.nouns and verb in kind.does + kind.done)
        text = f"The {MASK} {past(verb)}." if verb in kind.does else f"I {past(verb)} the {MASK}."
        others = [
            ids[name]
            for other in kinds
            if other is not kind and verb not in other.does + other.done
            for name in other.nouns
            if name in ids
        ]
        row = bundle.at_mask([text])[0]
        ranks.append((row[ids.get(noun, bundle.tokenizer.unk_token_id)] > row[others]).float().mean().item())
    return {"pairs": len(ranks), "other_nouns_beaten": round(sum(ranks) / len(ranks), 4)}


def examples(bundle: Bundle) -> Figures:
    """What the model says to the articles' sentences, as it comes."""
    rows = []
    for text in ("I was watching the door when [MASK] opened.", "I was watching the door when it opened."):
        words = ["[CLS]", *corpus.spaced(text).split()]
        weights = references.attention_rows(bundle.model, bundle.tokenizer, text, 7)[3, 11]
        rows.append(
            {"text": text, "from": words[7], "to_door": round(weights[words.index("door")].item(), 3)}
        )
    return {
        "blanks": {text: bundle.top(text) for text in BLANKS},
        "pairs": [[*pair, round(bundle.follows([pair]).item(), 3)] for pair in PAIRS],
        "l3_h11": rows,
    }


def figures(path: Path) -> Figures:
    """All figures of the model in a folder, against counts of the stream that it was trained on."""
    run = json.loads((path / "training.json").read_text("utf-8"))["settings"]
    counts = Counts(corpus.documents(run["seed"], run["documents"]))
    bundle = Bundle(path)
    return {
        "masked_words": masked_words(bundle, counts),
        "next_sentence": next_sentence(bundle),
        "reference": reference(bundle),
        "held_out_pairs": held_out_pairs(bundle),
        "examples": examples(bundle),
    }
