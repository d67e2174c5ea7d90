"""The card of demo-reader, written from measured figures into the text of `reader.md`."""

from __future__ import annotations

from typing import Any

from attnscope.demo.train.cards.card import Card, by_head, runs
from attnscope.demo.train.reading.batches import STAGES
from attnscope.demo.train.reading.sentences import FACTS, FIRST, LIKE, NAMES, NEW, SECOND, THINGS
from attnscope.demo.train.reading.stream import BEGUN, CHAT, PLAIN

TRAINED = [str(length) for length in sorted({stage.length for stage in STAGES})]
LONGER = "2048"
KINDS = {
    "new": "names that stand nowhere in training",
    "met": "names that were met",
}


def _accuracy(told: dict[str, Any]) -> str:
    depth = " ".join("–" if value is None else f"{value:.1%}" for value in told["depth"])
    return f"{told['prompts']} | {told['all']:.1%} | {told['stated']:.1%} | {told['none']:.1%} | {depth} |"


def _names(heads: list[list[int]]) -> str:
    layers = sorted({layer for layer, _ in heads})
    return ", ".join(
        f"L{layer} H" + ", ".join(str(head) for at, head in sorted(heads) if at == layer) for layer in layers
    )


def _mean(heads: dict[str, Any], where: str) -> float:
    """The mean weight of the heads that copy."""
    weights: list[float] = [heads[where][layer][head] for layer, head in heads["copying"]]
    return sum(weights) / len(weights)


def _away(heads: dict[str, Any]) -> str:
    """What is left without one, two, ... of the heads that copy, and without as many others."""
    rows = zip(heads["without_first"], heads["without_as_many_others"], strict=True)
    return "\n".join(
        f"| {number} | {left:.1%} | {control:.1%} |" for number, (left, control) in enumerate(rows, start=1)
    )


def row(run: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """The chief figures of one run."""
    told = figures["new_names"]
    return {
        "seed": run["settings"]["seed"],
        "steps": run["record"]["steps"],
        "right": {length: one["all"] for length, one in told.items()},
        "none": {length: one["none"] for length, one in told.items()},
        "copying": figures["heads"]["copying"],
    }


def _seeds(seeds: list[dict[str, Any]]) -> tuple[str, str]:
    """What is said of the runs, and their table rows."""
    rows, worst = [], []
    for one in seeds:
        right, none = (min(one[what][length] for length in TRAINED) for what in ("right", "none"))
        worst.append(right)
        layers = ", ".join(f"{layer}" for layer in sorted({layer for layer, _ in one["copying"]}))
        rows.append(
            f"| {one['seed']} | {one['steps']:,} | {right:.1%} | {none:.1%} | {one['right'][LONGER]:.1%} "
            f"| {len(one['copying'])} heads of layer {layers} |"
        )
    return runs(worst, "right answers at the worst trained length"), "\n".join(rows)


def _values(run: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    settings, heads = run["settings"], figures["heads"]
    said, rows = _seeds([row(run, figures), *figures.get("other_seeds", [])])
    styles = figures["kinds"]["new"]["style"]
    return {
        "seeds_said": said,
        "seed_rows": rows,
        "sharing": settings["heads"] // settings["key_heads"],
        "lengths": ", ".join(TRAINED),
        "all_names": len(NAMES),
        "new_names": len(NEW),
        "firsts": len(FIRST),
        "seconds_of_names": len(SECOND),
        "things": len(THINGS),
        "likes": len(LIKE),
        "forms": len(FACTS),
        "longest": STAGES[-1].length,
        "length_rows": "\n".join(
            f"| {length} | {told['sentences']:.0f} | {_accuracy(told)}"
            for length, told in figures["new_names"].items()
        ),
        "kind_rows": "\n".join(
            f"| {title} | {_accuracy(figures['kinds'][kind])}" for kind, title in KINDS.items()
        ),
        "chat": styles[CHAT],
        "plain": styles[PLAIN],
        "begun": styles[BEGUN],
        "heads_tokens": heads["tokens"],
        "heads_prompts": heads["prompts"],
        "copying": _names(heads["copying"]),
        "others": _names(heads["others"]),
        "with_all": heads["all"],
        "away_rows": _away(heads),
        "sentence_rows": by_head(heads["sentence"], ".2f"),
        "value": _mean(heads, "value"),
        "stop": _mean(heads, "stop"),
        "each_rows": by_head(heads["without_each"], ".2f"),
        "layer_rows": "\n".join(
            f"| {layer} | {left:.1%} |" for layer, left in enumerate(heads["without_layer"])
        ),
    }


CARD = Card("reader", _values)
