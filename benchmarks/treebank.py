"""`attnscope dependencies` on a model of bert-base size against a forward pass for each sentence, by itself.

    python benchmarks/treebank.py [SENTENCES] [SENTENCES]

Sentences have the lengths of the English Web Treebank and heads by lot: what they cost depends on lengths
alone. The peer runs the model sentence after sentence with `output_attentions=True` and does nothing with
what it gets. Given two numbers, the memory of both says whether it grows with the treebank.
"""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

from heads import MAKE_CHECKPOINT
from pairs import ATTNSCOPE, compare

PEER = """
import sys, torch
from transformers import AutoModel, AutoTokenizer
folder, file = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
for block in open(file, encoding="utf-8").read().strip().split("\\n\\n"):
    words = [line.split("\\t")[1] for line in block.splitlines()]
    with torch.no_grad():
        model(**tokenizer(" ".join(words), return_tensors="pt"), output_attentions=True)
"""
RUNS = 2
WORDS = ("the", "a", "door", "dog", "boat", "was", "is", "opened", "barks", "old", "on", "it", "she")


def treebank(path: Path, sentences: int) -> None:
    """Sentences of 2 to 60 words, 13 on average, half of them short."""
    draw = random.Random(0)
    blocks = []
    for _ in range(sentences):
        count = min(2 + int(draw.expovariate(1 / 11)), 60)
        heads = [0, *(draw.randrange(1, i) for i in range(2, count + 1))]
        rows = (
            f"{i}\t{draw.choice(WORDS)}\t_\tX\t_\t_\t{head}\t{'dep' if head else 'root'}\t_\t_"
            for i, head in enumerate(heads, start=1)
        )
        blocks.append("\n".join(rows))
    path.write_text("\n\n".join(blocks) + "\n\n", "utf-8", newline="\n")


def main() -> None:
    """Compare for each number of sentences."""
    counts = [int(count) for count in sys.argv[1:]] or [200]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", MAKE_CHECKPOINT, folder], check=True, capture_output=True)
        for count in counts:
            file = Path(folder) / f"{count}.conllu"
            treebank(file, count)
            ours = [ATTNSCOPE, "dependencies", str(file), "-m", folder]
            peer = [sys.executable, "-c", PEER, folder, str(file)]
            compare(f"{count} sentences", ours, peer, runs=RUNS)


if __name__ == "__main__":
    main()
