"""All measures of all heads over a corpus beside the two scripts of corpus_scripts.py; numbers are the same.

    python benchmarks/corpus.py [TEXTS] [MODEL [FILE]] [--device cpu] [--batch 32]

`obvious` reads one text at a time and measures in NumPy; `batched`, the stronger on short texts, reads many
and measures in torch. `attnscope corpus` takes the same fourteen measures, and all that there are, with
certificate, files and quantiles, by one worker and by as many as there are cores.

Without a model one of the shape of MiniLM (6 layers of 12 heads, 384 wide) with random weights is made on the
spot, without a file texts of 5 to 60 tokens. Each is run on a quarter of the texts and on all of them: the
difference is what texts cost once a process stands. Seconds of CPU are those of a process and its children;
seconds on the clock say how workers share the cores, and are worth something on a quiet machine alone. On an
accelerator all sides use it, and one worker has it. `--batch` is of texts of 512 tokens better 4.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from corpus_scripts import MEASURES
from pairs import ATTNSCOPE

SCRIPTS = Path(__file__).parent / "corpus_scripts.py"
MAKE_CHECKPOINT = """
import shutil, sys
from transformers import BertConfig, BertModel
from attnscope import demo
BertModel(BertConfig(
    hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
)).save_pretrained(sys.argv[1])
for name in ("tokenizer.json", "tokenizer_config.json"):
    shutil.copy(demo.folder() / name, sys.argv[1])
"""
WORDS = ("the", "a", "door", "dog", "boat", "was", "is", "opened", "barks", "old", "on", "it", "she")


@dataclass(frozen=True)
class Cost:
    """Seconds of CPU, of a process and its children, and on the clock."""

    cpu: float
    clock: float

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.cpu - other.cpu, self.clock - other.clock)


def cost(command: list[str], folder: Path) -> Cost:
    """Of one run."""
    started, before = time.perf_counter(), os.times()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command} failed:\n{done.stderr}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(cpu, time.perf_counter() - started)


def texts(count: int) -> list[str]:
    """Lines of 3 to 40 words, half of them short; none is longer than the tokenizer takes."""
    draw = random.Random(0)
    lengths = [min(3 + int(draw.expovariate(1 / 15)), 40) for _ in range(count)]
    return [" ".join(draw.choice(WORDS) for _ in range(length)) for length in lengths]


def unlike(mine: Path, script: Path) -> float:
    """The largest difference of any head's mean by any measure from a script's."""
    theirs = json.loads(script.read_text("utf-8"))["mean"]
    ours = json.loads(mine.read_text("utf-8"))["measures"]
    values = np.array([ours[name]["values"] for name in MEASURES.split(",")], float)
    return float(np.abs(values - np.array(theirs)).max())


def main() -> None:
    """Cost by text of the two scripts, of one worker and of as many as there are cores."""
    asked = _asked()
    count, cores = asked.texts, os.cpu_count() or 1 if asked.device == "cpu" else 1
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        model = asked.model or str(folder / "model")
        if asked.model is None:
            subprocess.run([sys.executable, "-c", MAKE_CHECKPOINT, model], check=True, capture_output=True)
        lines = asked.file.read_text("utf-8").splitlines() if asked.file else texts(count)
        lines = [line for line in lines if line.strip()][:count]
        costs: dict[str, Cost] = {}
        sides = [
            ("one", MEASURES, 1),
            ("all", "all", 1),
            *([("every", MEASURES, cores)] if cores > 1 else []),
        ]
        for part, some in (("quarter", lines[: len(lines) // 4]), ("whole", lines)):
            (folder / f"{part}.txt").write_text("\n".join(some) + "\n", "utf-8", newline="\n")
            for kind in ("obvious", "batched"):
                given = [kind, model, f"{part}.txt", f"{part}-{kind}.json", asked.device, str(asked.batch)]
                costs[f"{kind} {part}"] = cost([sys.executable, str(SCRIPTS), *given], folder)
            for name, measures, workers in sides:
                out = f"{part}-{name}.json"
                ours = [
                    ATTNSCOPE, "corpus", f"{part}.txt", "-m", model, "--measure", measures, "-q", "-o", out,
                    "--workers", str(workers), "--run", f"{part}-{name}", "--device", asked.device,
                ]  # fmt: skip
                costs[f"{name} {part}"] = cost(ours, folder)
                if measures == MEASURES:
                    for kind in ("obvious", "batched"):
                        off = unlike(folder / out, folder / f"{part}-{kind}.json")
                        assert off < 1e-4, f"the numbers are not those of {kind}: off by {off:.1g}"
        if cores > 1:
            one, many = ((folder / f"whole-{workers}.json").read_bytes() for workers in ("one", "every"))
            assert one == many, "the bytes of one worker are not those of several"
        told(costs, len(lines) - len(lines) // 4, off)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("texts", type=int, nargs="?", default=1000)
    parser.add_argument("model", nargs="?")
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=32, help="of the batched script")
    return parser.parse_args()


CALLED = {
    "obvious": "one text at a time, NumPy",
    "batched": "batched, torch",
    "one": "attnscope, 14 measures",
    "all": "attnscope, all measures",
    "every": "attnscope, 14, all cores",
}


def told(costs: dict[str, Cost], texts: int, off: float) -> None:
    """The table: each text once a process stands, beside the batched script."""
    print(f"{texts} texts more, numbers the same within {off:.1g}, one worker and several to the last bit")
    peer = costs["batched whole"] - costs["batched quarter"]
    for name in [name for name in CALLED if f"{name} whole" in costs]:
        mine = costs[f"{name} whole"] - costs[f"{name} quarter"]
        cpu, clock = (f"{1e3 * each / texts:7.1f} ms" for each in (mine.cpu, mine.clock))
        print(
            f"  {CALLED[name]:<26} {cpu} of CPU a text (x{peer.cpu / mine.cpu:.2f}), "
            f"{clock} on the clock (x{peer.clock / mine.clock:.2f}), "
            f"in all {costs[f'{name} whole'].clock:.0f} s"
        )


if __name__ == "__main__":
    main()
