"""`heads --measure all` beside the plain overview, on a checkpoint of bert-base size, 144 heads.

    python benchmarks/measures.py [TOKENS ...]

The checkpoint has the shape of bert-base-uncased and random weights, made on the spot. Both are whole
commands, measured in time of the processor, so that other work on the machine counts little. `all` are the
measures of the one run over the text, those by the norm of what is moved among them, for which the output
projections are found and read back. With `--inside` only what lies between the loaded model and the result is
measured.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from pairs import ATTNSCOPE, MAKE_CHECKPOINT

LIMIT = 1.5
ROUNDS = 5
TEXT = "the old door , the [MASK] and the garden , the king saw the door . a child was in the house , "


def main() -> int:
    """Print the ratio at every length; the exit code says whether one is above the limit."""
    inside, lengths = "--inside" in sys.argv, [int(each) for each in sys.argv[1:] if each.isdigit()]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", MAKE_CHECKPOINT, folder], check=True, capture_output=True)
        measure = _inside if inside else _outside
        ratios = [_ratio(measure(folder, length), length) for length in lengths or (24, 96)]
    return int(max(ratios) > LIMIT)


def _ratio(both: tuple[Callable[[], float], Callable[[], float]], length: int) -> float:
    times = [(both[0](), both[1]()) for _ in range(ROUNDS)]
    one, every = (statistics.median(each) for each in zip(*times, strict=True))
    print(f"{length} words: overview {one:.2f} s, every measure {every:.2f} s, ratio {every / one:.2f}")
    return every / one


def _words(length: int) -> str:
    return " ".join((TEXT.split() * length)[:length])


def _outside(folder: str, length: int) -> tuple[Callable[[], float], Callable[[], float]]:
    """The seconds of each command as a process of its own."""

    def seconds(*options: str) -> float:
        command = [ATTNSCOPE, "heads", _words(length), "-m", folder, *options]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        assert status == 0, "the command fails"
        return usage.ru_utime + usage.ru_stime

    return seconds, lambda: seconds("--measure", "all")


def _inside(folder: str, length: int) -> tuple[Callable[[], float], Callable[[], float]]:
    """The seconds from the loaded model to the result, on one thread."""
    import torch

    import attnscope as at

    torch.set_num_threads(1)
    model = at.load(folder)

    def seconds(measure: str) -> float:
        reading, began = model.read(_words(length)), time.process_time()
        found = reading.overview(measure=measure)
        assert not any(scores.absent for scores in found.scores.values()), "every one has a meaning here"
        return time.process_time() - began

    return lambda: seconds("entropy"), lambda: seconds("all")


if __name__ == "__main__":
    sys.exit(main())
