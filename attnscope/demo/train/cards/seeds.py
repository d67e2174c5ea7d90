"""Runs of other seeds on the card of a bundled model.

`python -m attnscope.demo.train.cards.seeds MODEL FOLDER ...` reads what `python -m attnscope.demo.train MODEL
--seed N --out FOLDER` has measured when it ended, and writes a row for each folder into the table of runs on
the card of the bundled model. A seed that is in the table already is replaced. The bundled run stays the
first; nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from attnscope.demo import folder
from attnscope.demo.train.cards import caption, reader, speech
from attnscope.demo.train.cards.card import Figures

CARDS = {"caption": caption, "reader": reader, "speech": speech}


def read(path: Path) -> tuple[Figures, Figures]:
    """What a run wrote of itself and what was measured of it."""
    run, figures = (
        json.loads((path / name).read_text("utf-8")) for name in ("training.json", "figures.json")
    )
    return run, figures


def added(bundled: tuple[Figures, Figures], others: Sequence[tuple[Figures, Figures]], model: str) -> Figures:
    """The figures of the bundled run with a row for each of the others, in the order of their seeds."""
    (own, figures), rows = bundled, {row["seed"]: row for row in bundled[1].get("other_seeds", [])}
    for run, measured in others:
        given, wanted = run["settings"], own["settings"]
        seed = given["seed"]
        changed = {name for name in given.keys() | wanted if given.get(name) != wanted.get(name)} - {"seed"}
        if changed:
            raise ValueError(f"seed {seed} was run with other settings: {', '.join(sorted(changed))}")
        if seed == wanted["seed"]:
            raise ValueError(f"seed {seed} is that of the bundled run")
        rows[seed] = CARDS[model].row(run, measured)
    return {**figures, "other_seeds": [rows[seed] for seed in sorted(rows)]}


def add(model: str, folders: Sequence[Path], bundled: Path) -> None:
    """Put the runs in these folders on the card of the bundled model."""
    figures = added(read(bundled), [read(path) for path in folders], model)
    CARDS[model].CARD.write(bundled, figures)


def main(given: list[str] | None = None) -> int:
    """Read the command line and write the card."""
    parser = argparse.ArgumentParser(prog="python -m attnscope.demo.train.cards.seeds", description=__doc__)
    parser.add_argument("model", choices=tuple(CARDS))
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    values = parser.parse_args(sys.argv[1:] if given is None else given)
    try:
        add(values.model, values.folders, folder(f"demo-{values.model}"))
    except (OSError, ValueError) as wrong:
        print(wrong, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
