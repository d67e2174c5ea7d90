"""`python -m tests.hostile --runs 1000 --seed 1 [--kind NAME] [--write docs/hostile.md]`

Ends with 1 where something was found, each cause in the smallest invocation that hypothesis came to; these
are kept in `.hypothesis`, and come first when it is asked again. `--write` puts the table into that page.
"""

import argparse
import os
import sys
from pathlib import Path

from .place import QUIET


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", help="only invocations of this kind")
    parser.add_argument("--write", type=Path, help="a page that has a place for the table")
    options = parser.parse_args()
    os.environ.update(QUIET)  # before anything heavy is imported

    from hypothesis.database import DirectoryBasedExampleDatabase

    from tests import dated

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
        dated.write(options.write, head, record.table(), f"{record.whole()}.")
    return int(bool(record.found))


if __name__ == "__main__":
    sys.exit(main())
