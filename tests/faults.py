"""Faults that somebody might make, planted one by one, and the tests that have to see them.

    python -m tests.faults [--only FILE] [--jobs 2]

`faults.toml` has for each a file, an old text that stands in it once, the new one, and the tests that cover
it. It is planted in a copy of the package; a process that has torch and transformers in memory forks a child
that asks these tests until one fails, for a minute of the processor at most, and that one again without the
fault. Ends with 1 where a fault is not seen. Mutmut and cosmic-ray change every operator; these are few, over
all of the program, and tell whether a change of the tests lost something.
"""

import argparse
import importlib
import os
import re
import shutil
import signal
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, sleep

ROOT = Path(__file__).parents[1]
PATIENCE = 60  # seconds of the processor for each, ten times as many by the clock
WARM = (
    "torch",
    "transformers",
    "scipy.stats",
    "sklearn.manifold",
    "matplotlib.figure",
    "pytest",
    "hypothesis",
)


@dataclass(frozen=True)
class Fault:
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.file}: {self.old.strip()!r} -> {self.new.strip()!r}"

    def planted(self, text: str) -> str:
        """The file's text with the fault; `ValueError` where the old text does not stand in it once."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} has {text.count(self.old)} times {self.old!r}")
        return text.replace(self.old, self.new)


def faults() -> list[Fault]:
    listed = tomllib.loads((ROOT / "tests" / "faults.toml").read_text("utf-8"))
    return [
        Fault(each["file"], each["old"], each["new"], tuple(f"tests/{test}" for test in group["tests"]))
        for group in listed["group"]
        for each in group["fault"]
    ]


@contextmanager
def copy_with(fault: Fault) -> Iterator[Path]:
    """A copy of package and tests in which it is planted."""
    with tempfile.TemporaryDirectory() as room:
        for name in ("attnscope", "tests"):
            shutil.copytree(ROOT / name, Path(room, name), copy_function=os.link, symlinks=True)
        for name in ("pyproject.toml", "README.md", "docs"):
            Path(room, name).symlink_to(ROOT / name)
        file = Path(room, "attnscope", fault.file)
        text = fault.planted(file.read_text("utf-8"))
        file.unlink()  # the link, not what it links to
        file.write_text(text, "utf-8")
        yield Path(room)


def seen(fault: Fault) -> tuple[bool, str]:
    """Whether a test fails with it that passes without it; and what the tests said last."""
    code, said = asked(fault)
    failed = re.search(r"^FAILED (.+?)(?: - .*)?$", said, re.MULTILINE)
    if code != 1 or failed is None:
        return False, said.splitlines()[-1] if said else ""
    code, _ = asked(replace(fault, new=fault.old, tests=(failed[1],)))
    return code == 0, f"{failed[1]}{' also without it' * (code != 0)}"


def asked(fault: Fault) -> tuple[int, str]:
    """How its tests end in a child, and what they said."""
    with copy_with(fault) as room:
        log, child = room / "log", os.fork()
        if child == 0:
            code = 2
            try:
                os.setpgid(0, 0)
                signal.setitimer(signal.ITIMER_PROF, PATIENCE)
                written = os.open(log, os.O_WRONLY | os.O_CREAT)
                os.dup2(written, 1)
                os.dup2(written, 2)
                code = _tests(fault, room)
            finally:
                sys.stdout.flush()
                os._exit(code)
        ends = monotonic() + 10 * PATIENCE
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if monotonic() > ends:
                with suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
            sleep(0.05)
        return os.waitstatus_to_exitcode(ended[1]), log.read_text(errors="replace").strip()


def _tests(fault: Fault, room: Path) -> int:
    """In the child: 0 where every test passes."""
    import pytest

    os.chdir(room)
    os.environ.update(PYTHONPATH=str(room), PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(room))
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    return int(pytest.main(["-x", "-p", "no:cacheprovider", "--tb=line", "-W", "ignore", *fault.tests]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", default="", help="faults of files that have this in their name")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    for name in WARM:
        importlib.import_module(name)
    chosen = [fault for fault in faults() if options.only in fault.file]
    missed = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for fault, (found, said) in zip(chosen, pool.map(seen, chosen), strict=True):
            print(f"{'seen  ' if found else 'MISSED'} {fault.name}   {said}", flush=True)
            missed += [] if found else [fault]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults are seen")
    return bool(missed)


if __name__ == "__main__":
    raise SystemExit(main())
