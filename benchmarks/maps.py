"""Whole processes on the bundled models against plain scripts of transformers, scikit-learn and matplotlib.

    python benchmarks/maps.py

`predict` against the fill-mask pipeline, `tsne` against the lines that an article would show: queries and
keys out of a hook, one call of TSNE, one scatter plot, unchecked.
"""

import sys
import tempfile
from pathlib import Path

from pairs import ATTNSCOPE, compare

from attnscope import demo

TEXT = "I was watching the door when [MASK] opened."
PREDICT = """
import sys
from transformers import pipeline
for guess in pipeline("fill-mask", model=sys.argv[1])(sys.argv[2]):
    print(f"{guess['token_str']} {guess['score']:.3f}")
"""
TSNE = """
import sys
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
import torch
from sklearn.manifold import TSNE
from transformers import AutoModel, AutoTokenizer
folder, text, out = sys.argv[1:]
tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
seen = {}
layer = model.encoder.layer[3].attention.self
layer.query.register_forward_hook(lambda module, given, made: seen.update(q=made))
layer.key.register_forward_hook(lambda module, given, made: seen.update(k=made))
with torch.no_grad():
    model(**tokenizer(text, return_tensors="pt"))
points = torch.cat([seen[name][0, :, 11 * 8 : 12 * 8] for name in "qk"]).numpy()
places = TSNE(metric="cosine", perplexity=5, random_state=0, max_iter=100_000_000).fit_transform(points)
plt.scatter(*places.T)
plt.savefig(out, dpi=200)
"""


def main() -> None:
    """Compare both commands."""
    folder = str(demo.folder())
    compare(
        "predict against the fill-mask pipeline",
        [ATTNSCOPE, "predict", TEXT, "-m", "demo"],
        [sys.executable, "-c", PREDICT, folder, TEXT],
    )
    with tempfile.TemporaryDirectory() as work:
        ours, theirs = (str(Path(work) / name) for name in ("ours.png", "theirs.png"))
        compare(
            "tsne with its picture against a plain script",
            [ATTNSCOPE, "tsne", TEXT, "-m", "demo", "-o", ours],
            [sys.executable, "-c", TSNE, folder, TEXT, theirs],
        )


if __name__ == "__main__":
    main()
