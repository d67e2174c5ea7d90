"""A corpus whose command and workers are killed at random moments, so many times: the same bytes?

    python benchmarks/corpus_killed.py [KILLS [SEED]]

It is measured once without any harm and once with it; the parts, what was set aside and the result must then
be the same to the last bit; as often as it takes to come to so many. How many were killed, of which kind, is
told.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from attnscope.session.corpus.engine.ray.cluster import descendants
from attnscope.session.corpus.tree import FAN

TEXTS = (
    "The door opened.", "A dog barks, and the old dog sleeps.", "She was watching the boat.", "It is late.",
    "the river and the bank", "Maria sat on the table and she slept.", "caf\udce9", "very " * 90, "",
)  # fmt: skip
LINES = 12_000
WORKER = b"attnscope.session.corpus.engine.worker"
DRIVERS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


def started(folder: Path, run: str) -> subprocess.Popen[bytes]:
    """The command, with two workers."""
    asked = ["texts.txt", "-m", "demo", "-l", "0", "--measure", "entropy,previous", "--run", run]
    command = [
        sys.executable,
        "-m",
        "attnscope",
        "corpus",
        *asked,
        "--workers",
        "2",
        "-q",
        "-o",
        f"{run}.npz",
    ]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def left(run: Path) -> dict[str, bytes]:
    """All that a run has left but when it began."""
    files = (each for each in sorted(run.rglob("*")) if each.is_file())
    but = ("manifest.json", "lock")
    return {str(each.relative_to(run)): each.read_bytes() for each in files if each.name not in but}


def splits(run: Path) -> int:
    """How many are measured."""
    named = [each.name.split("-") for each in (run / "parts").glob("[0-9]*.parquet")]
    held: set[int] = set()  # while they are merged a part and those in it are both there
    for level, number, _ in named:
        fan = FAN ** int(level)
        held.update(range(int(number) * fan, (int(number) + 1) * fan))
    return len(held)


def workers(process: int) -> list[int]:
    """The processes that measure for this one."""
    found = []
    for each in descendants(process):
        try:
            if WORKER in Path(f"/proc/{each}/cmdline").read_bytes():
                found.append(each)
        except OSError:
            continue
    return found


def harmed(folder: Path, kills: int, draw: random.Random) -> Counter[str]:
    """The run `cut`, killed so often; it is then let be."""
    killed: Counter[str] = Counter()
    process = started(folder, "cut")
    while killed.total() < kills:
        before = splits(folder / "cut")
        until = time.monotonic() + 120
        while splits(folder / "cut") <= before and process.poll() is None and time.monotonic() < until:
            if draw.random() < 0.001:
                break  # also before anything was measured
            time.sleep(0.02)
        time.sleep(draw.uniform(0, 1.0))
        if process.poll() == 0:
            break
        if process.poll() is not None:  # its workers were killed while they opened the model, twice
            process = started(folder, "cut")
            continue
        there = workers(process.pid)
        if there and draw.random() < 0.6:
            os.kill(draw.choice(there), signal.SIGKILL)
            killed["worker, SIGKILL"] += 1
            continue
        with_what = draw.choice(DRIVERS)
        process.send_signal(with_what)
        process.wait()
        killed[f"command, {with_what.name}"] += 1
        process = started(folder, "cut")
    while process.wait():
        process = started(folder, "cut")
    return killed


def main() -> None:
    """The harm, and what came of it."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [TEXTS[i % len(TEXTS)] for i in range(LINES)]
        (folder / "texts.txt").write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
        began = time.monotonic()
        assert started(folder, "whole").wait() == 0
        whole = time.monotonic() - began
        print(f"{LINES:,} lines, {splits(folder / 'whole')} splits, {whole:.0f} s without harm", flush=True)
        total: Counter[str] = Counter()
        while total.total() < kills:
            killed = harmed(folder, kills - total.total(), draw)
            total += killed
            print(f"{killed.total()} killed in a run: {dict(killed)}", flush=True)
            assert left(folder / "cut") == left(folder / "whole"), "not the same parts"
            assert (folder / "cut.npz").read_bytes() == (folder / "whole.npz").read_bytes(), (
                "not the same result"
            )
            shutil.rmtree(folder / "cut")
        print(f"{total.total()} killed: {dict(total)}; the same bytes after each run")


if __name__ == "__main__":
    main()
