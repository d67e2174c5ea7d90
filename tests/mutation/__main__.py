"""`python -m tests.mutation --module PATH ...`: the mutants of some modules, and which of them survive.

Run from the checkout, which is copied and not touched; the tests of the arithmetic and of the capture are
asked unless `--tests` names others, and slow ones too with `--slow`. `--log FILE` keeps what became of each
mutant; `--again` tries only those that FILE does not know or calls survivors, which is quick after a new
test. `--write docs/mutation.md` puts the counts into the table of that page. Ends with 1 where a survivor is
not explained. All of a module in some minutes:

    python -m tests.mutation --module attnscope/sdpa.py --tests tests/test_records.py tests/test_sdpa.py
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import dated
from tests.mutation.mutants import Mutant, mutants

CHECKOUT = Path(__file__).parents[2]
TESTS = (
    "tests/test_records.py",
    "tests/test_sdpa.py",
    "tests/test_measures.py",
    "tests/test_certificate_by_hand.py",
    "tests/test_verify.py",
    "tests/capture",
)
EXPLAINED = Path(__file__).with_name("explained.toml")

HEAD = ("module", "mutants", "tried", "killed", "timeouts", "explained", "unexplained")

Key = tuple[str, str, str]  # module, function, change


def explained() -> dict[Key, str]:
    """The survivors that no test can or should kill, with the reason."""
    entries = tomllib.loads(EXPLAINED.read_text())["survivor"]
    return {(each["module"], each["function"], each["change"]): each["reason"] for each in entries}


def known(log: Path | None) -> dict[Key, str]:
    """What became of each mutant by the log so far, the newest word last."""
    if log is None or not log.exists():
        return {}
    lines = map(json.loads, log.read_text().splitlines())
    return {(each["module"], each["function"], each["change"]): each["fate"] for each in lines}


def main() -> None:
    options = _options()
    for name, value in {
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }.items():
        os.environ[name] = value
    from tests.mutation.reach import Reach
    from tests.mutation.trial import Imported, Spliced, copied, with_tests

    planned = plan(options, known(options.log))
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        root = copied(CHECKOUT, Path(folder))
        log, kept = options.log or root / "outcomes.jsonl", root / "reach.json"

        def spliced(session: Any) -> None:
            trial = Spliced(root, options.module, session, options.budget)
            kept.write_text(trial.reach.to_json())
            say(f"{len(planned)} mutants, {len(trial.reach.seconds)} tests")
            for test in trial.reach.failed:
                say(f"left out, since it fails without a change: {test}")
            for module, mutant in planned:
                attempt(trial, module, mutant, log)

        def say(line: str) -> None:
            print(line, file=screen, flush=True)

        def attempt(trial: Any, module: str, mutant: Mutant, log: Path) -> None:
            start = time.monotonic()
            outcome = trial.outcome(module, mutant)
            if outcome is not None:
                place = f"{module}:{mutant.line} {mutant.function}: {mutant.change}"
                say(f"{outcome.fate:9} {time.monotonic() - start:6.1f}s  {place}  {outcome.test}")
                keep(log, module, mutant, outcome)

        with os.fdopen(os.dup(1), "w") as screen:
            if (child := os.fork()) == 0:
                marked = "" if options.slow else "not slow"
                with_tests(root, ["-m", marked, *(options.tests or TESTS)], spliced)
                screen.flush()
                os._exit(0)
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
                raise SystemExit("the tests could not be asked")
            done = known(log)
            left = [each for each in plan(options, done) if done.get((each[0], *each[1].key)) is None]
            trial = Imported(root, Reach.from_json(kept.read_text()), options.budget)
            for module, mutant in left:
                attempt(trial, module, mutant, log)
        rows = list(report(options.module, known(log)))
    unexplained = sum(int(row[-1]) for row in rows)
    if options.write:
        dated.write(options.write, HEAD, rows, f"{unexplained} survivors that nobody has explained.")
    sys.exit(bool(unexplained))


def plan(options: argparse.Namespace, fates: dict[Key, str]) -> list[tuple[str, Mutant]]:
    """The mutants to try, with their modules."""
    planned = []
    for module in options.module:
        there = mutants((CHECKOUT / module).read_text())
        if options.sample is not None and options.sample < len(there):
            there = random.Random(options.seed).sample(there, options.sample)
        for each in there:
            fate = fates.get((module, *each.key))
            if not options.again or fate in (None, "survived", "unreached"):
                planned.append((module, each))
    return planned


def keep(log: Path, module: str, mutant: Mutant, outcome: Any) -> None:
    told = {"module": module, "function": mutant.function, "change": mutant.change}
    with log.open("a") as file:
        file.write(json.dumps({**told, "fate": outcome.fate, "test": outcome.test}) + "\n")


def report(modules: list[str], fates: dict[Key, str]) -> Iterator[tuple[str | int, ...]]:
    """A row for each module; survivors without an explanation and explanations without one are printed."""
    reasons = explained()
    for module in modules:
        there = {(module, *each.key) for each in mutants((CHECKOUT / module).read_text())}
        mine = {key: fate for key, fate in fates.items() if key in there}
        counts = Counter(mine.values())
        left = {key for key, fate in mine.items() if fate in ("survived", "unreached")}
        row = (
            f"`{module}`", len(there), len(mine), counts["killed"], counts["timeout"],
            len(left & reasons.keys()), len(left - reasons.keys()),
        )  # fmt: skip
        print(", ".join(f"{name} {value}" for name, value in zip(HEAD, row, strict=True)))
        for key in sorted(left - reasons.keys()):
            print(f"    {fates[key]}: {key[1]}: {key[2]}")
        for key in sorted(key for key in reasons if key[0] == module and key not in left):
            if key in mine or key not in there:
                print(f"    explained, and {'killed' if key in mine else 'not there'}: {key[1]}: {key[2]}")
        yield row


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--module", nargs="+", required=True, help="such as attnscope/sdpa.py")
    parser.add_argument("--tests", nargs="+", help="files and folders of tests to ask instead of the usual")
    parser.add_argument("--slow", action="store_true", help="ask the slow tests among them too")
    parser.add_argument("--sample", type=int, help="so many mutants of each module instead of all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--write", type=Path, help="a page that has a place for the table")
    parser.add_argument("--log", type=Path, help="a file to keep what becomes of each mutant")
    parser.add_argument("--again", action="store_true", help="only those of which the log knows no end")
    parser.add_argument(
        "--budget", type=float, default=20, help="seconds of tests, the quickest first, for each mutant"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
