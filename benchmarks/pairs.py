"""Two commands in turn, A B A B ..., as whole processes: ratios by pair, so that drift cancels out.

The checkpoint that several of these are about has the shape of bert-base-uncased and random weights; the peer
loads it with eager attention and asks for `output_attentions=True`, as transformers' documentation shows.
"""

import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

MAKE_CHECKPOINT = """
import shutil, sys
from transformers import BertConfig, BertModel
from attnscope import demo
BertModel(BertConfig()).save_pretrained(sys.argv[1])
for name in ("tokenizer.json", "tokenizer_config.json"):
    shutil.copy(demo.folder() / name, sys.argv[1])
"""

PEER = """
import sys
from transformers import AutoModel, AutoTokenizer
folder, text = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModel.from_pretrained(folder, attn_implementation="eager")
outputs = model(**tokenizer(text, return_tensors="pt"), output_attentions=True)
for row in outputs.attentions[3][0, 11].tolist():
    print(*(f"{weight:.2f}" for weight in row))
"""


@dataclass(frozen=True)
class Cost:
    """One process and what it started: seconds on the clock, peak memory in MiB, seconds of the processor."""

    seconds: float
    memory: float
    cpu: float


# the installed command, as users start it
ATTNSCOPE = str(Path(sys.executable).with_name("attnscope"))


def cost(command: list[str], folder: Path | None = None, **environment: str) -> Cost:
    """The cost of one run of `command`; its output is read and thrown away."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status:
        sys.exit(f"{command} failed:\n{said}")
    kibibytes = usage.ru_maxrss / 1024 if sys.platform == "darwin" else usage.ru_maxrss
    return Cost(seconds, kibibytes / 1024, usage.ru_utime + usage.ru_stime)


def compare(name: str, ours: list[str], peer: list[str], *, runs: int = 7) -> None:
    """Print the median costs of both and the median, smallest and largest ratio ours / peer."""
    cost(ours), cost(peer)  # warm the page cache
    pairs = [(cost(ours), cost(peer)) for _ in range(runs)]
    print(f"{name} ({runs} pairs)")
    for what, unit in (("seconds", "s"), ("cpu", "s"), ("memory", "MiB")):
        mine, other = ([getattr(pair[i], what) for pair in pairs] for i in (0, 1))
        ratios = [a / b for a, b in zip(mine, other, strict=True)]
        medians = (
            f"{statistics.median(mine):8.2f} {unit:<3} against {statistics.median(other):8.2f} {unit:<3}"
        )
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
        print(f"  {what:<8} {medians}  ratio {spread}")
