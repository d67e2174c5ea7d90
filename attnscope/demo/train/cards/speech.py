"""The card of the speech model: the text of `speech.md` with the numbers of a run."""

from __future__ import annotations

from typing import Any

from attnscope.demo.train.cards.card import Card, runs
from attnscope.demo.train.sound import clips, spelling, voice


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


def row(run: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """The chief figures of one run."""
    writes = figures["alignment"]["writes"]
    return {
        "seed": run["settings"]["seed"],
        "steps": run["record"]["steps"],
        "word_error": figures["known"]["word_error"],
        "new_word_error": figures["new"]["word_error"],
        **{name: writes[name] for name in ("layer", "head", "peak_ms", "mean_peak_ms")},
    }


def _seeds(seeds: list[dict[str, Any]]) -> tuple[str, str]:
    """What is said of the runs, and their table rows."""
    rows = "\n".join(
        f"| {one['seed']} | {one['steps']:,} | {one['word_error']:.2%} | {one['new_word_error']:.2%} "
        f"| L{one['layer']} H{one['head']} | {one['peak_ms']} ms | {one['mean_peak_ms']} ms |"
        for one in seeds
    )
    fewer = " A run with fewer steps than the first was measured before its end, as what it saves on its way."
    unfinished = any(one["steps"] < seeds[0]["steps"] for one in seeds)
    errors = [one["word_error"] for one in seeds]
    return runs(errors, "words wrong", digits=2, more=fewer if unfinished else ""), rows


def _across(values: dict[str, float], unit: str) -> dict[str, str]:
    """The cells of a table of one row."""
    return {
        "heads": " | ".join(f"{name}{unit}" for name in values),
        "bars": "|".join("---" for _ in values),
        "cells": " | ".join(f"{value:.1%}" for value in values.values()),
    }


def _values(run: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    found = figures["alignment"]
    flat = {f"{part}_{name}": value for part in ("known", "new") for name, value in figures[part].items()}
    tables = {
        f"{part}_{name}": cells
        for part, unit in (("noise", " dB"), ("length", ""))
        for name, cells in _across(figures[part], unit).items()
    }
    said, rows = _seeds([row(run, figures), *figures.get("other_seeds", [])])
    heads = ", ".join(
        f"L{layer} H{head} {value}"
        for layer, values in enumerate(found["writes"]["heads_peak_ms"])
        for head, value in enumerate(values)
    )
    quiet, loud = clips.NOISE
    return {
        **flat,
        **tables,
        **figures["example"],
        "longest": clips.SECONDS,
        "bands": spelling.BANDS,
        "hop_ms": round(1000 * spelling.HOP / voice.RATE),
        "position_ms": found["position_ms"],
        "syllables": len(voice.SYLLABLES),
        "consonants": ", ".join(voice.CONSONANTS),
        "vowels": ", ".join(voice.VOWELS),
        "quiet": quiet,
        "loud": loud,
        "most": clips.MOST,
        "alignment_clips": found["clips"],
        "alignment_syllables": found["syllables"],
        "alignment_rows": _alignment(found),
        "diagonal_ms": found["diagonal_ms"],
        "sounded_ms": found["sounded_ms"],
        "head_list": heads,
        "share": clips.HELD_OUT_SHARE,
        "seeds_said": said,
        "seed_rows": rows,
    }


CARD = Card("speech", _values)
