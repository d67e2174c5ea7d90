"""`python -m tests.capture.constructed [--only PATTERN] [--wrong]`: what each construction is certified as.

One line each: whether it may be certified, what was said, its name, the reasons. PATTERN is searched for in
the name; `--wrong` prints those alone that are not what they must be. Behind them how many of each kind.
"""

import argparse
import re
import sys
from collections import Counter

import torch

from tests.capture.constructed.harmless import HARMLESS
from tests.capture.constructed.judged import judged
from tests.capture.constructed.misleading import MISLEADING


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--wrong", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    counts: Counter[tuple[str, str, str]] = Counter()
    wrong = counts.copy()
    for name, construction in {**MISLEADING, **HARMLESS}.items():
        if not re.search(options.only, name):
            continue
        seen = judged(construction, name in MISLEADING)
        kind = (seen.wanted, construction.kind, construction.route)
        counts[kind] += 1
        wrong[kind] += bool(seen.faults)
        if seen.faults or not options.wrong:
            right = "WRONG" if seen.faults else "right"
            print(f"{right}  {seen.wanted:<14} {seen.got:<20} {name}  {seen.reasons}")
            for fault in seen.faults:
                print(f"         {fault}")
    print()
    for kind, count in sorted(counts.items()):
        if wrong[kind] or not options.wrong:
            wanted, place, route = kind
            print(f"{wrong[kind]:>4} of {count:>3} wrong  {wanted:<16} {route:<7} {place}")
    print(f"{wrong.total():>4} of {counts.total():>3} wrong")
    return 1 if wrong.total() else 0


if __name__ == "__main__":
    sys.exit(main())
