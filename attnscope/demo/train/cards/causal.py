"""The card of demo-causal, written from measured figures into the text of `causal.md`."""

from __future__ import annotations

from typing import Any

from attnscope.demo.train.cards.card import Card, by_head
from attnscope.demo.train.corpora import corpus
from attnscope.demo.train.corpora.next_word import LONGEST_GAP

NAMES = {"induction": "induction", "previous": "previous token", "duplicate": "duplicate"}
FORMED = {True: "Induction heads formed.", False: "No induction head formed."}


def _quality(name: str, values: dict[str, float]) -> str:
    return (
        f"| {name} | {values['first']:.1%} | {values['five']:.1%} | {values['cross_entropy']:.3f} "
        f"| {values['perplexity']:.2f} |"
    )


def _rows(figures: dict[str, Any]) -> dict[str, str]:
    """The tables that are not single numbers."""
    heads, examples = figures["heads"], figures["examples"]
    names = {"model": "this model"} | {f"{rule}": rule for rule in ("trigram", "bigram", "unigram")}
    tables = {
        "next_word_rows": [_quality(title, figures["next_word"][key]) for key, title in names.items()],
        "head_rows": [
            f"| L{heads[key]['layer']} H{heads[key]['head']} | {title} | {heads[key]['score']:.3f} |"
            for key, title in NAMES.items()
        ],
        "example_rows": [
            f"| {text} ... | {', '.join(f'{word} {p:.2f}' for word, p in row['next'])} |"
            for text, row in examples.items()
        ],
        "story_rows": [f"- {row['goes_on']}" for row in examples.values()],
    }
    return {name: "\n".join(lines) for name, lines in tables.items()}


def _values(run: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    settings, heads = run["settings"], figures["heads"]
    return {
        **figures["copying"],
        **figures["stream"],
        **_rows(figures),
        "by_head": by_head(heads["by_head"], ".2f"),
        "nw_sentences": figures["next_word"]["sentences"],
        "nw_tokens": figures["next_word"]["tokens"],
        "sequences": heads["sequences"],
        "uniform": heads["uniform"],
        "threshold": heads["threshold"],
        "induction_heads": heads["induction_heads"],
        "formed": FORMED[heads["formed"]],
        "sizes": ", ".join(map(str, heads["sizes"])),
        "all_heads": settings["layers"] * settings["heads"],
        "sharing": settings["heads"] // settings["key_heads"],
        "gap": LONGEST_GAP,
        "held_out": corpus.HELD_OUT_SHARE,
        "pairs": len(corpus.held_out_pairs()),
    }


CARD = Card("causal", _values)
