"""The model card, written from measured figures: no number in it is typed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attnscope.demo.corpus import HELD_OUT_SHARE, held_out_pairs
from attnscope.demo.corruption import HIGHEST, LOWEST

CARD = """---
language: en
license: apache-2.0
library_name: transformers
tags: [bert, toy, artificial-grammar]
---

# attnscope demo encoder

A small BERT, really trained, so that attention can be looked at where no model can be downloaded.

**What it is.** A `BertForPreTraining` with {layers} layers of {heads} heads, hidden size {hidden},
{parameters:,} parameters and {vocabulary:,} word pieces, of which {words:,} are words. It learned masked words and
next sentences from sentences that a hand-written grammar makes up: things open, ring, fly, bark, flow or are eaten;
pronouns agree with what they refer to; `bank` and `plant` have two senses each. Attention was never supervised.

**What it is not.** A toy. It knows that grammar and nothing of the world; its judgement of real text means
nothing. Words that it does not know are spelled in single characters. It reads at most {positions} tokens. Do not
use it for anything but showing how attention works.

## Training

`python -m attnscope.demo.train --seed {seed}`: {documents:,} documents from the seeded grammar,
{steps:,} steps of about {tokens_per_batch:,} tokens, {tokens:,} tokens in all, {epochs:.1f} epochs with fresh
masks. AdamW, peak learning rate {peak_rate:g}, linear warm-up over {warm_up:.0%} of the run, cosine decay to zero.
It took {minutes:.1f} minutes on {threads} CPU cores ({cpu:.1f} minutes of CPU time divided by {threads}: the machine
was shared). At the end the running loss was {masked_loss:.3f} nats per masked word and {next_loss:.3f} nats per
next-sentence label.

Positions are chosen at a rate between {lowest:.0%} and {highest:.0%} that is drawn for each document; pronouns twice
as often as other words, function words less. Chosen words become `[MASK]` (80 %), another word (10 %) or stay (10 %);
chosen pronouns become `[MASK]` (60 %), another pronoun (20 %) or stay (20 %).

**Reproducible:** the stream of documents, the vocabulary, the split and every evaluation set are the same, byte for
byte, for the same seed. **Not reproducible bit by bit:** the weights, which depend on the thread count, the processor
and the torch version, and, when the length of the run is given in minutes, on how many steps fit. With
`--steps {steps} --threads {threads}` the same machine and versions repeat the same steps.

**Heads of layer 3 were relabelled after training.** Heads are summed, so their order is arbitrary; the head of layer 3
that best finds antecedents on a selection set (not the sentences reported below) was number {old_head} and is now
number 11: rows of query, key and value and columns of the output projection were exchanged, and the model computes
the same function. No other layer was touched.

## Kept out of training

The example sentences below, with any word in the place of their mask; one sentence in {share} of all that the grammar
can say, by a checksum; and {pairs} verb-noun pairs, whose two words never stand in one document in any form:
{pair_list}. A test generates the stream again and proves it.

## Figures, all on sentences kept out of training

Masked words, one word masked in each of {mw_sentences:,} sentences (full stops and commas never):

| | first guess | among five |
|---|---|---|
| this model | {mw_model_first:.1%} | {mw_model_five:.1%} |
| bigram (left and right neighbour) | {mw_bigram_first:.1%} | {mw_bigram_five:.1%} |
| unigram (commonest words) | {mw_unigram_first:.1%} | {mw_unigram_five:.1%} |

The grammar chooses most words at random within their class, so no reader could come near 100 %.

Next sentence, {ns_pairs} stories, each with its real second sentence, a hard negative (same pattern, does not fit)
and a random one:

| | right |
|---|---|
| real continuations accepted | {ns_real_right:.1%} |
| random negatives rejected | {ns_random_right:.1%} |
| hard negatives rejected | {ns_hard_right:.1%} |
| accuracy, real against random | {ns_accuracy_random:.1%} |
| accuracy, real against hard | {ns_accuracy_hard:.1%} |

Antecedents of a pronoun, {rf_sentences} sentences with a distractor noun at varying distance. "Found" means that the
largest weight of the head's row lies on the antecedent, special tokens and all other words included. Heads were
chosen on another {selection} sentences.

| | from a mask in the pronoun's place | from the pronoun itself |
|---|---|---|
{reference_rows}
| best fixed offset ({rf_fixed_offset} back, chosen on these sentences) | {rf_fixed_offset_found:.1%} | {rf_fixed_offset_found:.1%} |

The masked pronoun itself is guessed right in {rf_pronoun_right:.1%} of them.

Held-out verb-noun pairs: in "The [MASK] <verb>." and "I <verb> the [MASK].", the noun that was never seen with the
verb beats {hp_other_nouns_beaten:.1%} of the nouns of other kinds (chance: 50 %).

## The example sentences, as they come

| sentence | likeliest words |
|---|---|
{blank_rows}

| first | second | follows |
|---|---|---|
{pair_rows}

| sentence | layer 3 head 11 | weight |
|---|---|---|
{head_rows}
"""


def _cell(head: dict[str, Any]) -> str:
    return f"L{head['layer']} H{head['head']}: {head['found']:.1%} (mean weight {head['weight']:.2f})"


def _rows(figures: dict[str, Any]) -> dict[str, str]:
    """The lines of the tables that are not single numbers."""
    reference, shown = figures["reference"], figures["examples"]
    names = {"best": "best head of all", "layer_3": "best head of layer 3", "l3_h11": "layer 3 head 11"}
    reference_rows = [
        f"| {title} | {_cell(reference[f'mask_{key}'])} | {_cell(reference[f'pronoun_{key}'])} |"
        for key, title in names.items()
    ]
    blanks = [
        f"| {text} | {', '.join(f'{word} {p:.2f}' for word, p in words)} |"
        for text, words in shown["blanks"].items()
    ]
    pairs = [f"| {first} | {second} | {p:.3f} |" for first, second, p in shown["pairs"]]
    heads = [f"| {row['text']} | {row['from']} to door | {row['to_door']:.2f} |" for row in shown["l3_h11"]]
    tables = {"reference_rows": reference_rows, "blank_rows": blanks, "pair_rows": pairs, "head_rows": heads}
    return {name: "\n".join(lines) for name, lines in tables.items()}


def _values(run: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """Everything that the card's text names."""
    values: dict[str, Any] = {**run["settings"], **run["record"], **run["model"], **_rows(figures)}
    short = {"masked_words": "mw", "next_sentence": "ns", "reference": "rf", "held_out_pairs": "hp"}
    for section, prefix in short.items():
        for key, value in figures[section].items():
            if isinstance(value, dict):
                values |= {f"{prefix}_{key}_{part}": number for part, number in value.items()}
            else:
                values[f"{prefix}_{key}"] = value
    pairs = held_out_pairs()
    values |= {
        "minutes": run["record"]["seconds"] / 60,
        "cpu": run["record"]["cpu_seconds"] / 60 / run["settings"]["threads"],
        "lowest": LOWEST,
        "highest": HIGHEST,
        "share": HELD_OUT_SHARE,
        "pairs": len(pairs),
        "pair_list": ", ".join(f"{verb} {noun}" for verb, noun in pairs),
        "selection": 2 * figures["reference"]["sentences"],
    }
    return values


def text(run: dict[str, Any], figures: dict[str, Any]) -> str:
    """The card of a run with these figures."""
    return CARD.format(**_values(run, figures))


def write(path: Path) -> None:
    """Write README.md in a model folder from its training.json and figures.json."""
    run, figures = (json.loads((path / name).read_text()) for name in ("training.json", "figures.json"))
    (path / "README.md").write_text(text(run, figures))
