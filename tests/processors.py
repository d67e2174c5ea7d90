"""The tests that touch arithmetic, under settings that stand for other processors: a table of what passed.

    python -m tests.processors                      every setting, the arithmetic part; the longest
    python -m tests.processors --part fragile       every setting, the files that once depended on one
    python -m tests.processors --part gate          few files, few settings: the gate runs it at every commit
    python -m tests.processors --table docs/machines.md

A library that is told to do without some of the processor's instructions adds in another order, as it does on
a machine that has none of them; so does one that shares its sums among two threads. What fails under one of
these settings fails on a machine that somebody owns. Settings are variables of the environment, which count
before torch is loaded: every one of them has a process of its own.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
SETTINGS: dict[str, dict[str, str]] = {
    "as it is": {},
    "MKL without its kernels for this processor": {"MKL_CBWR": "COMPATIBLE"},
    "MKL with AVX2 alone": {"MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "torch without vector instructions": {"ATEN_CPU_CAPABILITY": "default"},
    "torch with AVX2 alone": {"ATEN_CPU_CAPABILITY": "avx2"},
    "oneDNN with AVX2 alone": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
}
THREADS = (1, 2)
ARITHMETIC = (
    "tests/test_certificate_by_hand.py",
    "tests/test_measures.py",
    "tests/test_arithmetic.py",
    "tests/test_verify.py",
    "tests/test_verify_together.py",
    "tests/analysis",
    "tests/capture",
    "tests/session",
    "tests/tiles",
    "tests/verbs",
)
FRAGILE = (  # what once held equal bits against one another that nothing makes equal
    "tests/test_verify_together.py",
    "tests/analysis/heads/test_padding.py",
    "tests/capture/intervening/test_along.py",
    "tests/capture/intervening/test_intervening.py",
    "tests/capture/test_long.py",
    "tests/capture/intervening/test_value_zeroing.py",
)
EVERY = tuple((name, threads) for threads in THREADS for name in SETTINGS)
# files, and the settings with how many threads
PARTS: dict[str, tuple[tuple[str, ...], tuple[tuple[str, int], ...]]] = {
    "arithmetic": (ARITHMETIC, EVERY),
    "whole": (("tests",), EVERY),
    "fragile": (FRAGILE, EVERY),
    "gate": (
        FRAGILE,
        (
            ("as it is", 2),
            ("MKL without its kernels for this processor", 1),
            ("torch without vector instructions", 1),
        ),
    ),
}


@dataclass(frozen=True)
class Row:
    """What came of the tests under one setting with so many threads."""

    setting: str
    threads: int
    passed: int
    skipped: int
    failed: tuple[str, ...]

    def __str__(self) -> str:
        switches = " ".join(f"`{name}={value}`" for name, value in SETTINGS[self.setting].items())
        told = f"{self.setting} {switches}".rstrip()
        return f"| {told} | {self.threads} | {self.passed:,} | {self.skipped} | {len(self.failed)} |"


def main(arguments: list[str] | None = None) -> int:
    """0 where every test passes under every setting, else 1 with their names."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.processors", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--part", choices=PARTS, default="arithmetic", help="which tests, which settings")
    parser.add_argument("--setting", choices=SETTINGS, action="append", help="only this one; several times")
    parser.add_argument("--threads", type=int, choices=THREADS, help="only with so many")
    parser.add_argument("--table", type=Path, help="a file with a table of them, which is written anew")
    told = parser.parse_args(arguments)
    files, settings = PARTS[told.part]
    wanted = [each for each in settings if each[0] in (told.setting or SETTINGS)]
    wanted = [each for each in wanted if each[1] == (told.threads or each[1])]
    if not wanted:
        parser.error(f"the part {told.part} has no such setting")
    rows: list[Row] = []
    for setting, threads in wanted:
        rows.append(row_of(setting, threads, files))
        print(rows[-1], *rows[-1].failed, sep="\n", flush=True)
        if told.table is not None:  # after each, for they take their time
            made = with_table(told.table.read_text("utf-8"), told.part, table(rows))
            told.table.write_text(made, "utf-8")
    return int(any(row.failed or not row.passed for row in rows))


def row_of(setting: str, threads: int, files: Iterable[str]) -> Row:
    """Runs these tests in a process with this setting."""
    surroundings = {name: value for name, value in os.environ.items() if name not in _switches()}
    surroundings |= SETTINGS[setting]
    surroundings |= {"OMP_NUM_THREADS": str(threads), "ATTNSCOPE_TEST_THREADS": str(threads)}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junit-xml={report}", *files]
        done = subprocess.run(pytest, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False)
        if not report.exists() or done.returncode not in (0, 1):
            raise SystemExit(f"{setting}: pytest ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return counted(setting, threads, report.read_text("utf-8"))


def counted(setting: str, threads: int, report: str) -> Row:
    """What pytest's report says."""
    ended: dict[str, set[str]] = {}  # a test that fails may fail again when it is cleaned up
    for case in ElementTree.fromstring(report).iter("testcase"):
        ended.setdefault(_name(case), set()).update(part.tag for part in case)
    failed = tuple(sorted(name for name, how in ended.items() if how & {"failure", "error"}))
    skipped = sum("skipped" in how for name, how in ended.items() if name not in failed)
    return Row(setting, threads, len(ended) - skipped - len(failed), skipped, failed)


def table(rows: Iterable[Row]) -> str:
    """The rows as Markdown, with the day, the libraries and the processor."""
    return "\n".join(
        [
            f"{date.today().isoformat()}; {machine()}.",
            "",
            "| setting | threads | passed | skipped | failed |",
            "|---|---|---|---|---|",
            *map(str, rows),
            "",
        ]
    )


def machine() -> str:
    """Torch, transformers and the processor, in words."""
    import torch
    import transformers

    described = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", described.read_text("utf-8")) if described.exists() else None
    capability = torch.backends.cpu.get_cpu_capability()
    processor = f"{found[1] if found else 'an unnamed processor'} ({capability})"
    return f"torch {torch.__version__}, transformers {transformers.__version__}, {processor}"


def with_table(text: str, part: str, made: str) -> str:
    """The text with this table in the place of the one that it has of the same part."""
    place = re.compile(rf"(<!-- processors: {part} -->\n).*?(<!-- end of table -->)", re.DOTALL)
    assert place.search(text), "the file has no place for the table"
    return place.sub(lambda found: f"{found[1]}{made}{found[2]}", text)


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def _switches() -> Iterator[str]:
    return (name for each in SETTINGS.values() for name in each)


if __name__ == "__main__":
    raise SystemExit(main())
