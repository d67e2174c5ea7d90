"""All measures of all heads over a corpus beside the two scripts of corpus_scripts.py; numbers are the same.

    python benchmarks/corpus.py [TEXTS] [MODEL [FILE]] [--device cpu] [--batch 32] [--rounds 3]

`obvious` reads one text at a time and measures in NumPy; `batched`, the stronger on short texts, reads many
and measures in torch. `attnscope corpus` takes the same fourteen measures, and all that there are, with
certificate, files and quantiles.

Whole processes from start to end with one thread each, in turn, so that other work on the machine counts
little: seconds of the processor (user and system), medians over the rounds, and ratios to both scripts within
a round. Memory is the peak beyond a script that has the model open and reads one text. Without a model one of
the shape of MiniLM (6 layers of 12 heads, 384 wide) with random weights is made on the spot, without a file
texts of 5 to 60 tokens. `--batch` of the batched script is of texts of 512 tokens better 4. On an accelerator
all sides use it.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
from corpus_scripts import MEASURES
from pairs import ATTNSCOPE, Cost, cost

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
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
OURS = {"attnscope, 14 measures": MEASURES, "attnscope, all measures": "all"}
PEERS = {"one text at a time, NumPy": "obvious", "batched, torch": "batched"}


def texts(count: int) -> list[str]:
    """Lines of 3 to 40 words, half of them short; none is longer than the tokenizer takes."""
    draw = random.Random(0)
    lengths = [min(3 + int(draw.expovariate(1 / 15)), 40) for _ in range(count)]
    return [" ".join(draw.choice(WORDS) for _ in range(length)) for length in lengths]


def unlike(mine: Path, script: Path) -> float:
    """The largest difference of any head's mean by any measure from a script's; `offset` jumps, left out."""
    theirs = np.array(json.loads(script.read_text("utf-8"))["mean"])
    ours = json.loads(mine.read_text("utf-8"))["measures"]
    names = MEASURES.split(",")
    values = np.array([ours[name]["values"] for name in names], float)
    return float(np.abs(values - theirs)[[name not in ("fixed", "offset") for name in names]].max())


def costs(asked: argparse.Namespace, folder: Path, model: str, number: int) -> tuple[dict[str, Cost], float]:
    """One round: what each side costs, and how far our means are off the scripts' at most."""
    found, off = {}, 0.0
    for name, kind in {"a model that is open": "bare", **PEERS}.items():
        given = [str(SCRIPTS), kind, model, "texts.txt", f"{kind}.json", asked.device, str(asked.batch)]
        found[name] = cost([sys.executable, *given], folder, **ONE_THREAD)
    for name, measures in OURS.items():
        run = f"run-{number}-{len(found)}"
        given = ["texts.txt", "-m", model, "--measure", measures, "-q", "-o", f"{run}.json"]
        where = ["--workers", "0", "--run", run, "--device", asked.device]
        found[name] = cost([ATTNSCOPE, "corpus", *given, *where], folder, **ONE_THREAD)
        if measures == MEASURES:
            off = max(
                off, *(unlike(folder / f"{run}.json", folder / f"{each}.json") for each in PEERS.values())
            )
    return found, off


def main() -> None:
    """The table."""
    asked = _asked()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        model = asked.model or str(folder / "model")
        if asked.model is None:
            subprocess.run([sys.executable, "-c", MAKE_CHECKPOINT, model], check=True, capture_output=True)
        lines = asked.file.read_text("utf-8").splitlines() if asked.file else texts(asked.texts)
        lines = [line for line in lines if line.strip()][: asked.texts]
        (folder / "texts.txt").write_text("\n".join(lines) + "\n", "utf-8", newline="\n")
        rounds = [costs(asked, folder, model, number) for number in range(asked.rounds)]
    off = max(off for _, off in rounds)
    assert off < 1e-4, f"the numbers are not those of the scripts: off by {off:.1g}"
    told([found for found, _ in rounds], len(lines), off)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("texts", type=int, nargs="?", default=1000)
    parser.add_argument("model", nargs="?")
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=32, help="of the batched script")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def told(rounds: list[dict[str, Cost]], count: int, off: float) -> None:
    """Each side: seconds of the processor, how many times faster than either script, and its memory."""
    print(f"{count} texts, {len(rounds)} rounds, the same means within {off:.1g}; processes of one thread")
    print("".join([" " * 29, f"{'CPU s':>8}", *(f"{f'x {peer}':>29}" for peer in PEERS), "     MiB"]))
    bare = median(each["a model that is open"].memory for each in rounds)
    for name in rounds[0]:
        cpu = median(each[name].cpu for each in rounds)
        ratios = (median(each[peer].cpu / each[name].cpu for each in rounds) for peer in PEERS)
        beside = "".join(f"{ratio:29.2f}" for ratio in ratios)
        memory = median(each[name].memory for each in rounds) - bare
        print(f"  {name:<27}{cpu:8.1f}{beside}{memory:+8.0f}")


if __name__ == "__main__":
    main()
