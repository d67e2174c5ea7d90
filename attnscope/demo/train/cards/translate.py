"""The card of the translation model: the text of `translate.md` with the numbers of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


def text(run: dict[str, Any], figures: dict[str, Any]) -> str:
    """The card of a run with these figures."""
    settings, record, model = run["settings"], run["record"], run["model"]
    pairs = held_out_pairs()
    flat = {
        f"{part}_{name}": value
        for part in ("translations", "paired")
        for name, value in figures[part].items()
    }
    examples = "\n".join(
        f"| {source} | {said} | {'yes' if said == EXAMPLES[source] else 'no: ' + EXAMPLES[source]} |"
        for source, said in figures["examples"].items()
    )
    return Path(__file__).with_suffix(".md").read_text("utf-8").format(
        **{**settings, **record, **model, **flat, "minutes_taken": record["seconds"] / 60},
        cpu=record["cpu_seconds"] / 60 / settings["threads"], share=HELD_OUT_SHARE, pairs=len(pairs),
        pair_list=", ".join(f"{adjective.english} {noun.english}" for adjective, noun in pairs),
        selection=2 * figures["heads"]["sentences"], heads_sentences=figures["heads"]["sentences"],
        all_count=figures["heads"]["all"]["count"], swapped_count=figures["heads"]["swapped"]["count"],
        head_rows=_rows(figures["heads"]), example_rows=examples,
    )  # fmt: skip


def write(path: Path) -> None:
    """Write README.md in a model folder from its training.json and figures.json."""
    run, figures = (
        json.loads((path / name).read_text("utf-8")) for name in ("training.json", "figures.json")
    )
    (path / "README.md").write_text(text(run, figures), "utf-8", newline="\n")
