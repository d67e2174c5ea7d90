"""The card of the speech model: the text of `speech.md` with the numbers of a run."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import wrap
from typing import Any

from attnscope.demo.train.sound import clips, spelling, voice

SPELLED = {"1": "One run was made.", "2": "Two runs were made.", "3": "Three runs were made."}


def _alignment(found: dict[str, Any]) -> str:
    """The table rows of the heads and of their mean, for each row that was looked at."""
    said = {
        "writes": "row that writes the syllable",
        "reads": "row that reads it",
        "reads_next": "the same row, against the next syllable",
    }
    lines = []
    for row, words in said.items():
        one = found[row]
        for whose, mean in (
            (f"best head, L{one['layer']} H{one['head']}", ""),
            ("mean of all heads", "mean_"),
        ):
            peak, centre, share = (one[f"{mean}{name}"] for name in ("peak_ms", "centre_ms", "share"))
            lines.append(f"| {words}: {whose} | {peak} ms | {centre} ms | {share:.0%} |")
    return "\n".join(lines)


def _seeds(runs: list[dict[str, Any]]) -> tuple[str, str]:
    """What is said of the runs, and their table rows."""
    rows = "\n".join(
        f"| {one['seed']} | {one['steps']:,} | {one['word_error']:.2%} | {one['new_word_error']:.2%} "
        f"| L{one['layer']} H{one['head']} | {one['peak_ms']} ms | {one['mean_peak_ms']} ms |"
        for one in runs
    )
    if len(runs) == 1:
        return "One run was made, with one seed: how much runs differ is not known.", rows
    errors = [one["word_error"] for one in runs]
    said = (
        f"{SPELLED[str(len(runs))]} The bundled one is the first of the table, chosen before the others were "
        f"measured; from run to run between {min(errors):.2%} and {max(errors):.2%} of the words are wrong."
    )
    if any(one["steps"] < runs[0]["steps"] for one in runs):
        said += (
            " A run with fewer steps than the first was measured before its end, as what it saves on its way."
        )
    return "\n".join(wrap(said, 120)), rows


def _across(values: dict[str, float], unit: str) -> dict[str, str]:
    """The cells of a table of one row."""
    return {
        "heads": " | ".join(f"{name}{unit}" for name in values),
        "bars": "|".join("---" for _ in values),
        "cells": " | ".join(f"{value:.1%}" for value in values.values()),
    }


def text(run: dict[str, Any], figures: dict[str, Any]) -> str:
    """The card of a run with these figures."""
    settings, record, model, found = run["settings"], run["record"], run["model"], figures["alignment"]
    flat = {f"{part}_{name}": value for part in ("known", "new") for name, value in figures[part].items()}
    tables = {
        f"{part}_{name}": cells
        for part, unit in (("noise", " dB"), ("length", ""))
        for name, cells in _across(figures[part], unit).items()
    }
    said, rows = _seeds(figures["seeds"])
    heads = ", ".join(
        f"L{layer} H{head} {value}"
        for layer, values in enumerate(found["writes"]["heads_peak_ms"])
        for head, value in enumerate(values)
    )
    quiet, loud = clips.NOISE
    return (
        Path(__file__)
        .with_suffix(".md")
        .read_text("utf-8")
        .format(
            **{**settings, **record, **model, **flat, **tables},
            longest=clips.SECONDS,
            bands=spelling.BANDS,
            hop_ms=round(1000 * spelling.HOP / voice.RATE),
            position_ms=found["position_ms"],
            spoken=figures["example"]["spoken"],
            written=figures["example"]["written"],
            syllables=len(voice.SYLLABLES),
            consonants=", ".join(voice.CONSONANTS),
            vowels=", ".join(voice.VOWELS),
            quiet=quiet,
            loud=loud,
            most=clips.MOST,
            alignment_clips=found["clips"],
            alignment_syllables=found["syllables"],
            alignment_rows=_alignment(found),
            diagonal_ms=found["diagonal_ms"],
            sounded_ms=found["sounded_ms"],
            head_list=heads,
            share=clips.HELD_OUT_SHARE,
            cpu=record["cpu_seconds"] / 60,
            minutes=record["seconds"] / 60,
            seeds_said=said,
            seed_rows=rows,
        )
    )


def write(path: Path) -> None:
    """Write README.md in a model folder from its training.json and figures.json."""
    run, figures = (
        json.loads((path / name).read_text("utf-8")) for name in ("training.json", "figures.json")
    )
    (path / "README.md").write_text(text(run, figures), "utf-8", newline="\n")
