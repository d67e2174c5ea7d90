"""The card of the captioner: the text of `caption.md` with the numbers of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attnscope.demo.train.cards import spread
from attnscope.demo.train.corpora import pictures

ROWS = {
    "colour": 'the colour word ("red"), which decides on the shape word',
    "a": '"a", which decides on the colour word',
    "form": 'the shape word ("square"), which decides on what comes next',
}


def _gaze_rows(gaze: dict[str, Any]) -> str:
    """For each row the best head, and the mean of all heads."""
    lines = []
    for row, name in ROWS.items():
        one = gaze[row]
        best = f"best head, L{one['layer']} H{one['head']}"
        for who, part in ((best, ""), ("mean of all heads", "mean_")):
            figures = " | ".join(f"{one[part + kind]:.1%}" for kind in ("weight", "found", "control"))
            lines.append(f"| {name} | {who} | {figures} |")
    return "\n".join(lines)


def row(run: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """The chief figures of one run."""
    colour = figures["heads"]["colour"]
    return {
        "seed": run["settings"]["seed"],
        "steps": run["record"]["steps"],
        "exact": figures["sentences"]["exact"],
        "exact_3": figures["sentences"]["exact_3"],
        **{name: colour[name] for name in ("layer", "head", "weight", "control", "mean_weight")},
    }


def _seeds(runs: list[dict[str, Any]]) -> tuple[str, str]:
    """What is said of the runs, and their table rows."""
    rows = "\n".join(
        f"| {one['seed']} | {one['steps']:,} | {one['exact']:.1%} | {one['exact_3']:.1%} "
        f"| L{one['layer']} H{one['head']} | {one['weight']:.1%} | {one['control']:.1%} "
        f"| {one['mean_weight']:.1%} |"
        for one in runs
    )
    return spread.wrapped(spread.said([one["exact"] for one in runs], "right sentences")), rows


def text(run: dict[str, Any], figures: dict[str, Any]) -> str:
    """The card of a run with these figures."""
    settings, record, model = run["settings"], run["record"], run["model"]
    gaze, sentences = figures["heads"], figures["sentences"]
    said, rows = _seeds([row(run, figures), *figures.get("other_seeds", [])])
    faults = [f"{count} of the {name}" for name, count in sentences["faults"].items() if count]
    weights = gaze["colour"]["weights"]
    heads = range(settings["heads"])
    return Path(__file__).with_suffix(".md").read_text("utf-8").format(
        **{**settings, **record, **model, "minutes_taken": record["seconds"] / 60},
        cpu=record["cpu_seconds"] / 60 / settings["threads"], shown=record["steps"] * settings["pictures"],
        side=pictures.SIDE, smallest=pictures.SMALLEST, largest=pictures.LARGEST, gap=pictures.GAP,
        share=pictures.HELD_OUT_SHARE, example=figures["example"], sentences=sentences, gaze=gaze,
        faults=", ".join(faults) or "nothing", seeds_said=said, seed_rows=rows,
        all_heads=settings["decoder_layers"] * settings["heads"], gaze_rows=_gaze_rows(gaze),
        head_names=" | ".join(f"H{head}" for head in heads), rule="---|" * len(heads) + "---",
        head_rows="\n".join(
            f"| L{layer} | {' | '.join(f'{each:.1%}' for each in row)} |" for layer, row in enumerate(weights)
        ),
    )  # fmt: skip


def write(path: Path) -> None:
    """Write README.md in a model folder from its training.json and figures.json."""
    run, figures = (
        json.loads((path / name).read_text("utf-8")) for name in ("training.json", "figures.json")
    )
    (path / "README.md").write_text(text(run, figures), "utf-8", newline="\n")
