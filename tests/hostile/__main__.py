"""`python -m tests.hostile --runs 1000 --seed 1 [--kind NAME] [--only N] [--log FILE] [--keep FOLDER]
[--write docs/hostile.md]`, or of slices that were logged `--logged FILE... --write docs/hostile.md`.

Ends with 1 where something was found. `--only N` runs one invocation and shows all of it; with `--keep` its
folder stays. `--write` puts what was found into the table of that page.
"""

import argparse
import itertools
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .place import QUIET

if TYPE_CHECKING:
    from .campaign import Record
    from .invocation import Invocation, Outcome
    from .oracle import Finding

TOLD = 250  # invocations, after which a line says how far it is


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="the first number")
    parser.add_argument("--kind", help="only invocations of this kind")
    parser.add_argument("--only", type=int, help="this number alone, with all that it printed")
    parser.add_argument("--log", type=Path, help="a line of JSON for each invocation")
    parser.add_argument("--keep", type=Path, help="work in this folder, and leave it")
    parser.add_argument("--write", type=Path, help="a page that has a place for the table")
    parser.add_argument("--logged", type=Path, nargs="+", help="run nothing: what these logs tell together")
    options = parser.parse_args()
    os.environ.update(QUIET)  # before anything heavy is imported

    from .campaign import Campaign, Record, told
    from .material import Material, kept

    if options.logged:
        return _end(Record.logged(*options.logged), options.write)
    campaign, record = Campaign(options.seed, Material(kept()), options.keep), Record()
    numbers = itertools.count(options.start) if options.only is None else [options.only]
    try:
        for number in numbers:
            kind = campaign.kind(number)
            if options.only is None and options.kind not in (None, kind):
                continue
            repeats = record.repeats
            invocation, outcome, found = campaign.run(number, record)
            if options.only is not None:
                _show(kind, invocation, outcome, found)
            if options.log:
                with options.log.open("a") as log:
                    log.write(
                        told(options.seed, number, kind, invocation, outcome, found, record.repeats > repeats)
                    )
                    log.write("\n")
            for finding in found:
                if record.found[finding.sort, finding.cause][0] == number:
                    print(f"{number} {finding.sort}: {finding.cause}")
                    print(f"  python -m tests.hostile --seed {options.seed} --only {number}", flush=True)
            if record.runs % TOLD == 0:
                print(f"-- after number {number}:", next(record.lines()), flush=True)
            if record.runs >= options.runs:
                break
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        campaign.close()
    return _end(record, options.write)


def _end(record: "Record", page: Path | None) -> int:
    """What was found, told and written into its page; the exit code."""
    from tests import dated

    from .campaign import table

    print(*record.lines(), sep="\n")
    if page:
        head = ("kind", "runs", "exit codes", "findings")
        dated.write(page, head, table(record), f"{record.whole()}.")
    return int(bool(record.found))


def _show(kind: str, invocation: "Invocation", outcome: "Outcome", found: "list[Finding]") -> None:
    """Everything about one invocation, with nothing in it that could steer a terminal."""
    typed = shlex.join(each[:300] for each in ("attnscope", *invocation.argv))
    print(f"kind {kind}: {_escaped(typed)}")
    print({name: value for name, value in vars(invocation).items() if name != "argv" and value})
    print(f"exit {outcome.code} after {outcome.seconds:.2f} s {outcome.stopped}, left {outcome.left}")
    for name, content in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        print(f"--- {name}\n{_escaped(content.decode('utf-8', 'replace')[-4000:])}")
    for finding in found:
        print(f"--- {finding.sort}: {finding.cause}\n{_escaped(finding.detail)}")


def _escaped(text: str) -> str:
    return "\n".join(line.encode("unicode_escape").decode() for line in text.split("\n"))


if __name__ == "__main__":
    sys.exit(main())
