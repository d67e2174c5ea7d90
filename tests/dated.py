"""What a campaign found when it last ran: a dated table in its page of `docs/`, written by the campaign.

A page holds the two marks; all between them is replaced.
"""

import datetime
import importlib.metadata
import platform
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

MADE = re.compile(r"(?<=<!-- campaign -->\n).*?(?=<!-- end of campaign -->)", re.DOTALL)
LIBRARIES = ("torch", "transformers", "numpy")


def write(page: Path, head: Sequence[str], rows: Iterable[Sequence[object]], told: str) -> None:
    """The table, above it the command, date and versions, below it what is `told` of the whole."""
    lines = [head, ["---"] * len(head), *rows]
    table = "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
    text = page.read_text("utf-8")
    assert MADE.search(text), f"{page} has no place for the table"
    page.write_text(MADE.sub(lambda _: f"\n{_provenance()}\n\n{table}\n\n{told}\n\n", text), "utf-8")


def _provenance() -> str:
    module = Path(sys.argv[0]).parent.name
    versions = ", ".join(f"{name} {importlib.metadata.version(name).split('+')[0]}" for name in LIBRARIES)
    today, machine = datetime.date.today().isoformat(), f"{platform.system()} {platform.machine()}"
    return (
        f"    python -m tests.{module} {shlex.join(sys.argv[1:])}\n\n"
        f"On {today}: Python {platform.python_version()}, {versions}, {machine}."
    )
