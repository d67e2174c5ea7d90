"""A whole `heads` process on a model of bert-base size against a plain transformers script for the same head.

    python benchmarks/heads.py [TOKENS]

The checkpoint has the shape of bert-base-uncased and random weights, made on the spot. The peer loads it
with eager attention and asks for `output_attentions=True`, as the documentation of transformers shows.
"""

import subprocess
import sys
import tempfile

from pairs import ATTNSCOPE, compare

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


def main() -> None:
    """Compare at a sentence's length and at the length given."""
    lengths = [int(length) for length in sys.argv[1:]] or [11, 40]
    with tempfile.TemporaryDirectory() as folder:
        # in a process of its own: a child's peak memory starts from its parent's
        subprocess.run([sys.executable, "-c", MAKE_CHECKPOINT, folder], check=True, capture_output=True)
        for length in lengths:
            text = " ".join(["door"] * (length - 2))
            ours = [ATTNSCOPE, "heads", text, "-m", folder, "--layer", "3", "--head", "11"]
            compare(f"heads at {length} tokens", ours, [sys.executable, "-c", PEER, folder, text])


if __name__ == "__main__":
    main()
