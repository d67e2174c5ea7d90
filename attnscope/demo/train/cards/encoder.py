"""The model card, written from measured figures into the text of `encoder.md`: no number is typed by hand."""

from __future__ import annotations

from typing import Any

from attnscope.demo.train.cards.card import Card
from attnscope.demo.train.corpora.corpus import HELD_OUT_SHARE, held_out_pairs
from attnscope.demo.train.corruption import HIGHEST, LOWEST


def _cell(head: dict[str, Any]) -> str:
    return f"L{head['layer']} H{head['head']}: {head['found']:.1%} (mean weight {head['weight']:.2f})"


def _rows(figures: dict[str, Any]) -> dict[str, str]:
    """The lines of the tables that are not single numbers."""
    reference, examples = figures["reference"], figures["examples"]
    names = {"best": "best head of all", "layer_3": "best head of layer 3", "l3_h11": "layer 3 head 11"}
    reference_rows = [
        f"| {title} | {_cell(reference[f'mask_{key}'])} | {_cell(reference[f'pronoun_{key}'])} |"
        for key, title in names.items()
    ]
    blanks = [
        f"| {text} | {', '.join(f'{word} {p:.2f}' for word, p in words)} |"
        for text, words in examples["blanks"].items()
    ]
    pairs = [f"| {first} | {second} | {p:.3f} |" for first, second, p in examples["pairs"]]
    heads = [
        f"| {row['text']} | {row['from']} to door | {row['to_door']:.2f} |" for row in examples["l3_h11"]
    ]
    tables = {"reference_rows": reference_rows, "blank_rows": blanks, "pair_rows": pairs, "head_rows": heads}
    return {name: "\n".join(lines) for name, lines in tables.items()}


def _values(run: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {**_rows(figures)}
    short = {"masked_words": "mw", "next_sentence": "ns", "reference": "rf", "held_out_pairs": "hp"}
    for section, prefix in short.items():
        for key, value in figures[section].items():
            if isinstance(value, dict):
                values |= {f"{prefix}_{key}_{part}": number for part, number in value.items()}
            else:
                values[f"{prefix}_{key}"] = value
    pairs = held_out_pairs()
    return values | {
        "lowest": LOWEST,
        "highest": HIGHEST,
        "share": HELD_OUT_SHARE,
        "pairs": len(pairs),
        "pair_list": ", ".join(f"{verb} {noun}" for verb, noun in pairs),
        "selection": 2 * figures["reference"]["sentences"],
    }


CARD = Card("encoder", _values)
