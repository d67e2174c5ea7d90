"""The card of the translation model: the text of `translate.md` with the numbers of a run."""

from __future__ import annotations

from typing import Any

from attnscope.demo.train.cards.card import Card
from attnscope.demo.train.corpora.corpus import HELD_OUT_SHARE
from attnscope.demo.train.corpora.translation import EXAMPLES, held_out_pairs


def _rows(heads: dict[str, Any]) -> str:
    """The table rows of the heads and of the rules."""
    lines = []
    for words, name in (("all", "all words"), ("swapped", "nouns and adjectives that changed places")):
        shares = heads[words]
        for place in ("best", "l3_h11"):
            cells = []
            for row in ("next", "word"):
                one = shares[f"{row}_{place}"]
                label = f"L{one['layer']} H{one['head']}"
                cells.append(f"{label}: {one['found']:.1%} (weight {one['weight']:.2f})")
            lines.append(
                f"| {name}, {'best head' if place == 'best' else 'L3 H11'} | {cells[0]} | {cells[1]} |"
            )
        for rule, label in (("offset", f"fixed offset ({shares['offset']:+d})"), ("diagonal", "diagonal")):
            share = f"{shares[f'{rule}_found']:.1%}"
            lines.append(f"| {name}, {label} | {share} | {share} |")
    return "\n".join(lines)


def _values(run: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    pairs, heads = held_out_pairs(), figures["heads"]
    flat = {
        f"{part}_{name}": value
        for part in ("translations", "paired")
        for name, value in figures[part].items()
    }
    examples = "\n".join(
        f"| {source} | {said} | {'yes' if said == EXAMPLES[source] else 'no: ' + EXAMPLES[source]} |"
        for source, said in figures["examples"].items()
    )
    return {
        **flat,
        "share": HELD_OUT_SHARE,
        "pairs": len(pairs),
        "pair_list": ", ".join(f"{adjective.english} {noun.english}" for adjective, noun in pairs),
        "selection": 2 * heads["sentences"],
        "heads_sentences": heads["sentences"],
        "all_count": heads["all"]["count"],
        "swapped_count": heads["swapped"]["count"],
        "head_rows": _rows(heads),
        "example_rows": examples,
    }


CARD = Card("translate", _values)
