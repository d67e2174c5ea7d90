"""The card of the captioner: the text of `caption.md` with the numbers of a run."""

from __future__ import annotations

from typing import Any

from attnscope.demo.train.cards.card import Card, by_head, runs
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


def _rows(seeds: list[dict[str, Any]]) -> str:
    return "\n".join(
        f"| {one['seed']} | {one['steps']:,} | {one['exact']:.1%} | {one['exact_3']:.1%} "
        f"| L{one['layer']} H{one['head']} | {one['weight']:.1%} | {one['control']:.1%} "
        f"| {one['mean_weight']:.1%} |"
        for one in seeds
    )


def _values(run: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    settings, gaze, sentences = run["settings"], figures["heads"], figures["sentences"]
    seeds = [row(run, figures), *figures.get("other_seeds", [])]
    faults = [f"{count} of the {name}" for name, count in sentences["faults"].items() if count]
    return {
        "shown": run["record"]["steps"] * settings["pictures"],
        "side": pictures.SIDE,
        "smallest": pictures.SMALLEST,
        "largest": pictures.LARGEST,
        "gap": pictures.GAP,
        "share": pictures.HELD_OUT_SHARE,
        "example": figures["example"],
        "sentences": sentences,
        "gaze": gaze,
        "faults": ", ".join(faults) or "nothing",
        "seeds_said": runs([one["exact"] for one in seeds], "right sentences"),
        "seed_rows": _rows(seeds),
        "all_heads": settings["decoder_layers"] * settings["heads"],
        "gaze_rows": _gaze_rows(gaze),
        "by_head": by_head(gaze["colour"]["weights"], ".1%"),
    }


CARD = Card("caption", _values)
