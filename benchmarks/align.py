"""`attnscope align` against scripts that find the same by hand with transformers alone.

    python benchmarks/align.py

Words: the mean of all cross-attention heads and the largest of each row. Times: what is heard as the model
writes it, the cross-attention of all heads, z-scores, a median, dynamic time warping as the book has it in
NumPy. The third is the recogniser alone, which only writes. Ours certifies what it uses and shuffles heads 99
times. All are processes from start to end.
"""

import sys
import tempfile
from pathlib import Path

from pairs import ATTNSCOPE, compare

from attnscope.demo import folder
from attnscope.demo.train.evaluation import gold

OPEN = """
import sys, torch, numpy as np
from transformers import {model}, AutoTokenizer
folder, file = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = {model}.from_pretrained(folder, attn_implementation="eager").eval()
"""
WORDS = (
    OPEN.format(model="BartForConditionalGeneration")
    + """
right = links = 0
for line in open(file, encoding="utf-8"):
    source, target, gold = line.split(" ||| ")
    read = tokenizer(source, return_offsets_mapping=True)
    write = tokenizer(text_target=target, return_offsets_mapping=True)
    ids = torch.tensor([[2, *write["input_ids"][:-1]]])
    with torch.no_grad():
        made = model(torch.tensor([read["input_ids"]]), decoder_input_ids=ids, output_attentions=True)
    mean = torch.cat(made.cross_attentions).mean((0, 1)).numpy()[:, :-1]
    place = lambda text, offsets: [text[:start].count(" ") for start, _ in offsets[:-1]]
    columns, rows = place(source, read["offset_mapping"]), place(target, write["offset_mapping"])
    words = np.zeros((max(rows) + 1, max(columns) + 1))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            words[row, column] += mean[i, j] / rows.count(row)
    answered = {f"{j}-{i}" for i, j in enumerate(words.argmax(1))}
    right, links = right + len(answered & set(gold.split())), links + len(answered)
print(right / links)
"""
)
HEARD = (
    OPEN.format(model="WhisperForConditionalGeneration")
    + """
import soundfile
from transformers import AutoFeatureExtractor
wave, rate = soundfile.read(file, dtype="float32")
extractor = AutoFeatureExtractor.from_pretrained(folder)
heard = extractor(wave, sampling_rate=rate, return_tensors="pt")["input_features"]
ids = model.generate(input_features=heard)
print(tokenizer.decode(ids[0], skip_special_tokens=True))
"""
)
TIMED = (
    HEARD
    + """
from scipy.ndimage import median_filter
with torch.no_grad():
    made = model(input_features=heard, decoder_input_ids=ids[:, :-1], output_attentions=True)
weights = torch.cat(made.cross_attentions).flatten(0, 1).numpy()[..., : -(-len(wave) // 640)]
scaled = (weights - weights.mean(1, keepdims=True)) / (weights.std(1, keepdims=True) + 1e-6)
cost = -median_filter(scaled, size=(1, 1, 3)).mean(0)
best = np.full((cost.shape[0] + 1, cost.shape[1] + 1), np.inf)
best[0, 0] = 0
for i in range(1, best.shape[0]):
    for j in range(1, best.shape[1]):
        best[i, j] = cost[i - 1, j - 1] + min(best[i - 1, j - 1], best[i - 1, j], best[i, j - 1])
i, j, path = best.shape[0] - 1, best.shape[1] - 1, []
while i and j:
    path.append((i - 1, j - 1))
    i, j = min((i - 1, j - 1), (i - 1, j), (i, j - 1), key=lambda at: best[at])
print([min(frame for row, frame in path if row == each) * 0.04 for each in range(cost.shape[0])])
"""
)
RUNS, PAIRS = 3, 200


def main() -> None:
    """Links of one pair and of gold, times of the example."""
    with tempfile.TemporaryDirectory() as name:
        one, many = Path(name) / "one.txt", Path(name) / "many.txt"
        for file, count in ((one, 1), (many, PAIRS)):
            file.write_text("\n".join(gold.links(count, "judge")) + "\n", "utf-8", newline="\n")
        translator, speech = folder("demo-translate"), folder("demo-speech")
        source, target, _ = one.read_text("utf-8").split(" ||| ")
        ours = [ATTNSCOPE, "align", source, "--target", target, "-m", "demo-translate"]
        peer = [sys.executable, "-c", WORDS, str(translator)]
        compare("one pair", ours, [*peer, str(one)], runs=RUNS)
        compare(f"{PAIRS} pairs of gold", [*ours, "--gold", str(many)], [*peer, str(many)], runs=RUNS)
        sound = str(speech / "example.wav")
        ours = [ATTNSCOPE, "align", "--audio", sound, "-m", "demo-speech"]
        for what, script in (("times, by hand", TIMED), ("the recogniser alone", HEARD)):
            compare(what, ours, [sys.executable, "-c", script, str(speech), sound], runs=RUNS)


if __name__ == "__main__":
    main()
