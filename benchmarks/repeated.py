"""A second question about the same text against a plain transformers script for the same head: CPU seconds.

    python benchmarks/repeated.py [RUNS]

Another head of a layer that was asked about once, on the terminal and as a picture, from what is kept of it;
the very same question, whose printed answer is kept; beside them the first question, which fills the cache.
Whole processes in turn, user and system time, so that what else the machine does counts little; of the same
question also the clock, which has a limit. The checkpoint is bert-base-uncased in shape, random in weights.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pairs import ATTNSCOPE, MAKE_CHECKPOINT, PEER
from startup import settings

WALL = 0.15  # seconds that the same question may take on the clock
TEXT = " ".join(["door"] * 9)
Cost = tuple[float, float, float, str]


def spent(command: list[str], environment: dict[str, str]) -> Cost:
    """CPU seconds, peak MiB and seconds on the clock of one run of `command`, and what it said."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command} failed:\n{said}")
    kibibytes = usage.ru_maxrss / 1024 if sys.platform == "darwin" else usage.ru_maxrss
    return usage.ru_utime + usage.ru_stime, kibibytes / 1024, time.perf_counter() - began, said


def main() -> None:
    """First, again and as a picture, each against the plain script of the same round."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as made:
        folder, cache = Path(made, "model"), Path(made, "cache")
        subprocess.run([sys.executable, "-c", MAKE_CHECKPOINT, folder], check=True, capture_output=True)
        environment = settings(made) | {"ATTNSCOPE_CACHE": str(cache)}
        ask = [ATTNSCOPE, "heads", TEXT, "-m", str(folder), "--layer", "3", "--head"]
        commands = {
            "plain": [sys.executable, "-c", PEER, str(folder), TEXT],
            "first": [*ask, "11", "--no-cache"],
            "again": [*ask, "4"],
            "same": [*ask, "6"],
            "picture": [*ask, "5", "-o", str(Path(made, "head.png"))],
        }
        time.sleep(2.1)  # what was just written is not yet believed
        for head in ("11", "6", "6"):
            spent([*ask, head], environment)  # fills the cache
        costs: dict[str, list[Cost]] = {name: [] for name in commands}
        for turn in range(runs):
            for name, command in commands.items():
                more = ["--rows", str(turn % 9)] if name == "again" else []  # each time another question
                costs[name].append(spent([*command, *more], environment))
        from_cache = [said for name in ("again", "picture", "same") for *_, said in costs[name]]
        assert all("from the cache" in said for said in from_cache), (
            "computed: was the program edited meanwhile?"
        )
    print(
        f"medians of {runs} rounds, CPU seconds and peak memory; ratios to the plain script of the same round"
    )
    for name, each in costs.items():
        seconds, memory = (statistics.median(cost[i] for cost in each) for i in (0, 1))
        ratios = [cost[0] / plain[0] for cost, plain in zip(each, costs["plain"], strict=True)]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
        print(f"  {name:<8} {seconds:6.2f} s  {memory:5.0f} MiB  ratio {spread}")
    wall = [cost[2] for cost in costs["same"]]
    print(f"the same on the clock: {statistics.median(wall):.2f} s (least {min(wall):.2f}), at most {WALL}")


if __name__ == "__main__":
    main()
