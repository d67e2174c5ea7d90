"""What the model cards share: the text with its numbers, tables of heads, what is said of several runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

WIDTH = 120
COUNTED = {2: "Two", 3: "Three", 4: "Four"}
Figures = dict[str, Any]


@dataclass(frozen=True)
class Card:
    """The text of `name.md`, and what it names beside the settings, the record and the sizes of a run."""

    name: str
    values: Callable[[Figures, Figures], Figures]

    def text(self, run: Figures, figures: Figures) -> str:
        """The card of a run with these figures."""
        settings, record = run["settings"], run["record"]
        minutes = {"minutes": record["seconds"] / 60, "cpu": record["cpu_seconds"] / 60 / settings["threads"]}
        known = {**settings, **record, **run["model"], **minutes, **self.values(run, figures)}
        return Path(__file__).with_name(f"{self.name}.md").read_text("utf-8").format(**known)

    def write(self, path: Path, figures: Figures) -> None:
        """Write figures.json and README.md into the folder of a model."""
        run = json.loads((path / "training.json").read_text("utf-8"))
        told = json.dumps(figures, indent=2, ensure_ascii=False) + "\n"
        (path / "figures.json").write_text(told, "utf-8", newline="\n")
        (path / "README.md").write_text(self.text(run, figures), "utf-8", newline="\n")


def by_head(values: Sequence[Sequence[float]], form: str) -> str:
    """A figure of every head as a table."""
    numbers = range(len(values[0]))
    lines = ["| | " + " | ".join(f"H{head}" for head in numbers) + " |", "|---" * (len(numbers) + 1) + "|"]
    for layer, row in enumerate(values):
        lines.append(f"| L{layer} | " + " | ".join(f"{value:{form}}" for value in row) + " |")
    return "\n".join(lines)


def runs(values: Sequence[float], of_what: str, digits: int = 1, more: str = "") -> str:
    """The sentences before the table of runs; `values` are a share of each run, the bundled one first."""
    if len(values) == 1:
        said = "One run was made, with one seed: how much runs differ is not known."
    else:
        low, high = (f"{value:.{digits}%}" for value in (min(values), max(values)))
        between = f"{low} in every run" if low == high else f"from run to run between {low} and {high}"
        said = (
            f"{COUNTED.get(len(values), len(values))} runs were made. The bundled one is the first of the "
            f"table, chosen before the others were measured; {of_what}: {between}."
        )
    return "\n".join(wrap(said + more, WIDTH))
