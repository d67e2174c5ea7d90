"""`python -m tests.hostile --runs 1000 --seed 1 [--kind NAME] [--write docs/hostile.md]`

Ends with 1 where something was found, each cause in the smallest invocation that hypothesis came to; these
are kept in `.hypothesis`, and come first when it is asked again. `--write` puts the table into that page.
"""

import argparse
import datetime
import importlib.metadata
import os
import platform
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from .place import QUIET

MADE = re.compile(r"(?<=<!-- campaign -->\n).*?(?=<!-- end of campaign -->)", re.DOTALL)
LIBRARIES = ("torch", "transformers", "numpy")


def write(page: Path, head: Sequence[str], rows: Iterable[Sequence[object]], told: str) -> None:
    """Put the table between the two marks of a page, below command, date and versions."""
    lines = [head, ["---"] * len(head), *rows]
    table = "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
    text = page.read_text("utf-8")
    assert MADE.search(text), f"{page} has no place for the table"
    page.write_text(MADE.sub(lambda _: f"\n{_provenance()}\n\n{table}\n\n{told}\n\n", text), "utf-8")


def _provenance() -> str:
    versions = ", ".join(f"{name} {importlib.metadata.version(name).split('+')[0]}" for name in LIBRARIES)
    today, machine = datetime.date.today().isoformat(), f"{platform.system()} {platform.machine()}"
    return (
        f"    python -m tests.hostile {shlex.join(sys.argv[1:])}\n\n"
        f"On {today}: Python {platform.python_version()}, {versions}, {machine}."
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", help="only invocations of this kind")
    parser.add_argument("--write", type=Path, help="a page that has a place for the table")
    options = parser.parse_args()
    os.environ.update(QUIET)  # before anything heavy is imported

    from hypothesis.database import DirectoryBasedExampleDatabase

    from .campaign import Campaign
    from .material import Material, kept

    campaign = Campaign(Material(kept()), DirectoryBasedExampleDatabase(".hypothesis/hostile"))
    try:
        for each in campaign.run(options.runs, options.seed, options.kind):
            print(f"\n{type(each).__name__}\n{each}")
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        campaign.close()
    record = campaign.record
    print(record.whole(), *(" ".join(map(str, row)) for row in record.table()), sep="\n")
    if options.write:
        head = ("kind, command", "runs", "exit codes", "findings")
        write(options.write, head, record.table(), f"{record.whole()}.")
    return int(bool(record.found))


if __name__ == "__main__":
    sys.exit(main())
