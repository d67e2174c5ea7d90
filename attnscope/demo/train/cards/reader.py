"""The card of demo-reader, written from measured figures into the text of `reader.md`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attnscope.demo.train.reading.batches import STAGES
from attnscope.demo.train.reading.sentences import FACTS
from attnscope.demo.train.reading.stream import BEGUN, CHAT, PLAIN
from attnscope.demo.train.reading.words import FIRST, LIKE, NAMES, NEW, SECOND, THINGS

KINDS = {
    "new": "names that stand nowhere in training",
    "met": "names that were met",
}


def _accuracy(told: dict[str, Any]) -> str:
    depth = " ".join(f"{value:.1%}" for value in told["depth"])
    return f"{told['prompts']} | {told['all']:.1%} | {told['stated']:.1%} | {told['none']:.1%} | {depth} |"


def _by_head(values: list[list[float]], digits: int = 2) -> str:
    """A figure of every head as a table."""
    numbers = range(len(values[0]))
    lines = ["| | " + " | ".join(f"H{head}" for head in numbers) + " |", "|---" * (len(numbers) + 1) + "|"]
    for layer, row in enumerate(values):
        lines.append(f"| L{layer} | " + " | ".join(f"{value:.{digits}f}" for value in row) + " |")
    return "\n".join(lines)


def _numbers(heads: list[int]) -> str:
    return ", ".join(map(str, heads)) or "none"


def _values(run: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """Everything that the card's text names."""
    settings, record, model, heads = run["settings"], run["record"], run["model"], figures["heads"]
    styles = figures["kinds"]["new"]["style"]
    return {
        **settings,
        **record,
        **model,
        "sharing": settings["heads"] // settings["key_heads"],
        "minutes": record["seconds"] / 60,
        "cpu": record["cpu_seconds"] / 60,
        "lengths": ", ".join(str(stage.length) for stage in STAGES),
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
        "layer": heads["layer"],
        "copying": _numbers(heads["copying"]),
        "others": _numbers(heads["others"]),
        "with_all": heads["all"],
        "without_copying": heads["without_copying"],
        "without_others": heads["without_others"],
        "sentence_rows": _by_head(heads["sentence"]),
        "value": max(heads["value"][heads["layer"]]),
        "stop": max(heads["stop"][heads["layer"]]),
        "each_rows": _by_head(heads["without_each"]),
        "layer_rows": "\n".join(
            f"| all of layer {layer} | {left:.1%} |" for layer, left in enumerate(heads["without_layer"])
        ),
    }


def text(run: dict[str, Any], figures: dict[str, Any]) -> str:
    """The card of a run with these figures."""
    return Path(__file__).with_suffix(".md").read_text("utf-8").format(**_values(run, figures))


def write(path: Path) -> None:
    """Write README.md in a model folder from its training.json and figures.json."""
    run, figures = (
        json.loads((path / name).read_text("utf-8")) for name in ("training.json", "figures.json")
    )
    (path / "README.md").write_text(text(run, figures), "utf-8", newline="\n")
