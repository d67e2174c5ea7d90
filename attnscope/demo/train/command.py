"""Train a bundled model: `python -m attnscope.demo.train [encoder] [--out DIR] [--seed 0] [--minutes 22]`.

The first word says which model, one of PROGRAMS; without one it is the encoder. What the models share is in
`loop`, each model's own part in the module of its name: its settings, whose fields are the options, and
`run`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transformers.utils.logging import disable_progress_bar

from attnscope.demo import folder
from attnscope.demo.train import caption, causal, encoder, reader, speech, translate


@dataclass(frozen=True)
class Program:
    """The name of its model on attnscope's command line, its settings, and what trains and writes it."""

    model: str
    settings: type[Any]
    run: Callable[[Any, Path], None]


PROGRAMS = {
    "encoder": Program("demo", encoder.Settings, encoder.run),
    "causal": Program("demo-causal", causal.Settings, causal.run),
    "reader": Program("demo-reader", reader.Settings, reader.run),
    "translate": Program("demo-translate", translate.Settings, translate.run),
    "caption": Program("demo-caption", caption.Settings, caption.run),
    "speech": Program("demo-speech", speech.Settings, speech.run),
}


def arguments(given: list[str]) -> tuple[Program, Any, Path]:
    """The command line: a program, its settings and the folder to write."""
    name = given[0] if given and not given[0].startswith("-") else "encoder"
    program = PROGRAMS.get(name, PROGRAMS["encoder"])
    parser = argparse.ArgumentParser(prog="python -m attnscope.demo.train", description=__doc__)
    parser.add_argument("model", nargs="?", choices=tuple(PROGRAMS), default="encoder", help="comes first")
    parser.add_argument(
        "--out",
        type=Path,
        default=folder(program.model),
        help="the folder to write (default: the bundled model)",
    )
    for option, default in asdict(program.settings()).items():
        parser.add_argument(
            "--" + option.replace("_", "-"), type=type(default), default=default, help=f"default {default}"
        )
    values = vars(parser.parse_args(given))
    del values["model"]
    return (
        program,
        program.settings(**{name: values[name] for name in values if name != "out"}),
        values["out"],
    )


def main(given: list[str] | None = None) -> int:
    """Train, save, measure, write the card."""
    disable_progress_bar()
    program, settings, out = arguments(sys.argv[1:] if given is None else given)
    program.run(settings, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
