"""All measures of all heads over a corpus against the obvious script, with the same numbers coming out.

    python benchmarks/corpus.py [TEXTS] [MODEL [FILE]] [--device cpu]

The obvious script runs the model on one text at a time with `output_attentions=True` and measures each head
of each layer with NumPy: entropy, largest weight, distance, weight on itself, the previous, the next and the
first key, on special tokens, and the strongest key's offset. `attnscope corpus` takes the same measures, by
as many workers as there are cores and by one.

Without a model one of the shape of MiniLM (6 layers of 12 heads, 384 wide) with random weights is made on the
spot, without a file texts of 5 to 60 tokens. Each is run on a quarter of the texts and on all of them: the
difference is what texts cost once a process stands. Seconds of CPU are those of a process and its children;
seconds on the clock say how workers share the cores, and are worth something on a quiet machine alone. On an
accelerator both sides use it, and one worker has it.
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

from pairs import ATTNSCOPE

MEASURES = "entropy,confidence,distance,self,previous,next,first,special-tokens,fixed"
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
OBVIOUS = """
import json, sys
import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

folder, file, out, device = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval().to(device)

def measured(weights, special):
    n = len(weights)
    places = np.arange(n)
    offsets = weights.argmax(-1) - places
    return [
        float(-(weights * np.log(np.maximum(weights, 1e-300))).sum(-1).mean()),
        float(weights.max(-1).mean()),
        float((weights * np.abs(places[:, None] - places)).sum(-1).mean()),
        float(np.diagonal(weights).mean()),
        float(np.diagonal(weights, -1).sum() / n),
        float(np.diagonal(weights, 1).sum() / n),
        float(weights[:, 0].mean()),
        float(weights[:, special].sum(-1).mean()),
        float(np.unique(offsets, return_counts=True)[1].max() / n),
    ]

rows = []
for line in open(file, encoding="utf-8"):
    inputs = tokenizer(line.rstrip("\\n"), return_tensors="pt").to(device)
    special = np.isin(inputs["input_ids"][0].cpu().numpy(), tokenizer.all_special_ids)
    with torch.no_grad():
        attentions = model(**inputs, output_attentions=True).attentions
    attentions = [layer[0].cpu().double().numpy() for layer in attentions]
    rows.append([[measured(head, special) for head in layer] for layer in attentions])
every = np.array(rows)
told = {"mean": every.mean(0).tolist(), "sd": every.std(0, ddof=1).tolist()}
json.dump(told, open(out, "w", encoding="utf-8"))
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


def unlike(mine: Path, obvious: Path) -> float:
    """The largest difference of any head's mean by any measure from the obvious script's."""
    theirs = json.loads(obvious.read_text("utf-8"))["mean"]
    ours = json.loads(mine.read_text("utf-8"))["mean"]
    return max(
        abs(ours[m][i][j] - theirs[i][j][m])
        for m in range(len(ours))
        for i in range(len(theirs))
        for j in range(len(theirs[0]))
    )


def main() -> None:
    """Cost by text of the obvious script, of one worker and of as many as there are cores."""
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
        for part, some in (("quarter", lines[: len(lines) // 4]), ("whole", lines)):
            (folder / f"{part}.txt").write_text("\n".join(some) + "\n", "utf-8", newline="\n")
            script = [
                sys.executable,
                "-c",
                OBVIOUS,
                model,
                f"{part}.txt",
                f"{part}-obvious.json",
                asked.device,
            ]
            costs[f"obvious {part}"] = cost(script, folder)
            for workers in sorted({1, cores}):
                out = f"{part}-{workers}.json"
                ours = [
                    ATTNSCOPE, "corpus", f"{part}.txt", "-m", model, "--measure", MEASURES, "-q", "-o", out,
                    "--workers", str(workers), "--run", f"{part}-{workers}", "--device", asked.device,
                ]  # fmt: skip
                costs[f"{workers} {part}"] = cost(ours, folder)
                off = unlike(folder / out, folder / f"{part}-obvious.json")
                assert off < 1e-4, f"the numbers are not the same: off by {off:.1g}"
        one, many = ((folder / f"whole-{workers}.json").read_bytes() for workers in (1, cores))
        assert one == many, "the bytes of one worker are not those of several"
        told(costs, len(lines) - len(lines) // 4, cores, off)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("texts", type=int, nargs="?", default=1000)
    parser.add_argument("model", nargs="?")
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


def told(costs: dict[str, Cost], texts: int, cores: int, off: float) -> None:
    """The table: each text once a process stands."""
    print(f"{texts} texts more, numbers the same within {off:.1g}, one worker and {cores} to the last bit")
    obvious = costs["obvious whole"] - costs["obvious quarter"]
    for name in ("obvious", *map(str, sorted({1, cores}))):
        mine = costs[f"{name} whole"] - costs[f"{name} quarter"]
        called = "obvious script" if name == "obvious" else f"attnscope, {name} worker(s)"
        print(
            f"  {called:<24} {1e3 * mine.cpu / texts:7.1f} ms of CPU a text (x{obvious.cpu / mine.cpu:.1f}), "
            f"{1e3 * mine.clock / texts:7.1f} ms on the clock (x{obvious.clock / mine.clock:.1f}), "
            f"in all {costs[f'{name} whole'].clock:.0f} s"
        )


if __name__ == "__main__":
    main()
