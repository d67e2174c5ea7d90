"""Train a bundled model: `python -m attnscope.demo.train [encoder] [--out DIR] [--seed 0] [--minutes 22]`.

The first word says which model, one of PROGRAMS; without one it is the encoder. What the models share is in
`loop`, each model's own part in the module of its name: its settings, whose fields are the options, and
`run`. `--measure` trains nothing: it measures the model in the folder again and prints the figures as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from transformers.utils.logging import disable_progress_bar

from attnscope.demo import folder
from attnscope.demo.train import caption, causal, encoder, reader, speech, translate

PROGRAMS = {
    "encoder": encoder.PROGRAM,
    "causal": causal.PROGRAM,
    "reader": reader.PROGRAM,
    "translate": translate.PROGRAM,
    "caption": caption.PROGRAM,
    "speech": speech.PROGRAM,
}


def main(given: list[str] | None = None) -> int:
    """Train, save, measure, write the card; or measure alone."""
    given = sys.argv[1:] if given is None else given
    disable_progress_bar()
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
    parser.add_argument("--measure", action="store_true", help="measure the model in the folder, and print")
    for option, default in asdict(program.settings()).items():
        parser.add_argument(
            "--" + option.replace("_", "-"), type=type(default), default=default, help=f"default {default}"
        )
    values = vars(parser.parse_args(given))
    out, measured = values.pop("out"), values.pop("measure")
    del values["model"]
    if measured:
        print(json.dumps(program.figures(out), indent=2, ensure_ascii=False))
    elif program.run(program.settings(**values), out):
        program.card.write(out, program.figures(out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
