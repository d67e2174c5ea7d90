"""A whole `heads` process on a model of bert-base size against a plain transformers script for the same head.

    python benchmarks/heads.py [TOKENS]

The checkpoint has random weights and is made on the spot; the peer loads it with eager attention and asks
for `output_attentions=True`, as the documentation of transformers shows.
"""

import sys
import tempfile
from pathlib import Path

from pairs import compare

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


def make_checkpoint(folder: Path) -> None:
    """A BERT with the shape of bert-base-uncased, random weights, and the demo model's tokenizer."""
    import shutil

    from transformers import BertConfig, BertModel

    from attnscope import demo

    BertModel(BertConfig()).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(demo.folder() / name, folder)


def main() -> None:
    """Compare at a sentence's length and at the length given."""
    lengths = [int(length) for length in sys.argv[1:]] or [11, 40]
    with tempfile.TemporaryDirectory() as folder:
        make_checkpoint(Path(folder))
        for length in lengths:
            text = " ".join(["door"] * (length - 2))
            ours = [
                sys.executable,
                "-m",
                "attnscope",
                "heads",
                text,
                "-m",
                folder,
                "--layer",
                "3",
                "--head",
                "11",
            ]
            compare(f"heads at {length} tokens", ours, [sys.executable, "-c", PEER, folder, text])


if __name__ == "__main__":
    main()
