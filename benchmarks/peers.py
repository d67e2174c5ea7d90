"""One head of a model of bert-base size, a whole process each, five tools in turn: seconds and peak memory.

    pip install bertviz transformer-lens nnsight; python benchmarks/peers.py [TOKENS] [RUNS]

Not part of the tests, since the peers bring a great deal with them; a peer that is not installed is left out
and named. Each does what its own documentation shows for L3 H11 of one sentence: attnscope prints the table
and its certificate, plain transformers, transformer-lens and nnsight print
the weights, bertviz writes the page of its head view for that layer. The checkpoint has random weights.
"""

import argparse
import importlib.util
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from pairs import ATTNSCOPE, MAKE_CHECKPOINT, PEER, Cost, cost

PLAIN = "plain transformers"
PRINT = """
for row in weights.tolist():
    print(*(f"{weight:.2f}" for weight in row))
"""

BERTVIZ = """
import sys
from bertviz import head_view
from transformers import AutoModel, AutoTokenizer
folder, text = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModel.from_pretrained(folder, attn_implementation="eager")
ids = tokenizer(text, return_tensors="pt")
attentions = model(**ids, output_attentions=True).attentions
tokens = tokenizer.convert_ids_to_tokens(ids["input_ids"][0])
page = head_view(attentions, tokens, include_layers=[3], html_action="return")
print(len(page.data))
"""

TRANSFORMER_LENS = (
    """
import sys
import torch
from transformer_lens.model_bridge import TransformerBridge
from transformers import AutoModelForMaskedLM, AutoTokenizer
folder, text = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager")
bridge = TransformerBridge.boot_transformers(folder, hf_model=model, tokenizer=tokenizer, device="cpu")
with torch.no_grad():
    _, cache = bridge.run_with_cache(tokenizer(text, return_tensors="pt")["input_ids"])
weights = cache["blocks.3.attn.hook_pattern"][0, 11]
"""
    + PRINT
)

NNSIGHT = (
    """
import sys
import torch
from nnsight import NNsight
from transformers import AutoModel, AutoTokenizer
folder, text = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = NNsight(AutoModel.from_pretrained(folder, attn_implementation="eager"))
with torch.no_grad(), model.trace(**tokenizer(text, return_tensors="pt")):
    read = model.encoder.layer[3].attention.self.output[1].save()
weights = read[0, 11]
"""
    + PRINT
)


def main() -> None:
    """Every tool in turn on one sentence, ratios to the plain script first."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=11)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--plot")
    asked = parser.parse_args()
    text = " ".join(["door"] * (asked.tokens - 2))
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(Path(scratch, "model"))
        # in a process of its own: a child's peak memory starts from its parent's
        subprocess.run([sys.executable, "-c", MAKE_CHECKPOINT, folder], check=True, capture_output=True)
        commands = commands_on(folder, text)
        for command in commands.values():
            cost(command)  # warms the page cache, and attnscope's own
        rounds = [{name: cost(command) for name, command in commands.items()} for _ in range(asked.rounds)]
    print(f"L3 H11 at {asked.tokens} tokens, whole process, {asked.rounds} rounds in turn; ratios to {PLAIN}")
    for name in commands:
        print(line(name, [(each[name], each[PLAIN]) for each in rounds]))
    if asked.plot:
        plot(rounds, asked.plot)


def commands_on(folder: str, text: str) -> dict[str, list[str]]:
    """What is started for each tool that is installed."""
    ours = [ATTNSCOPE, "heads", text, "-m", folder, "--layer", "3", "--head", "11"]
    commands = {
        PLAIN: [sys.executable, "-c", PEER, folder, text],
        "attnscope": ours,
    }
    peers = {"bertviz": BERTVIZ, "transformer_lens": TRANSFORMER_LENS, "nnsight": NNSIGHT}
    for name, script in peers.items():
        if importlib.util.find_spec(name):
            commands[name] = [sys.executable, "-c", script, folder, text]
        else:
            print(f"{name} is not installed and left out", file=sys.stderr)
    return commands


def line(name: str, pairs: list[tuple[Cost, Cost]]) -> str:
    """Median ratios with their spread, then medians."""
    seconds = [mine.seconds / plain.seconds for mine, plain in pairs]
    memory = [mine.memory / plain.memory for mine, plain in pairs]
    return (
        f"  {name:<20} time {statistics.median(seconds):5.2f} ({min(seconds):.2f}-{max(seconds):.2f})"
        f"  memory {statistics.median(memory):5.2f}"
        f"  {statistics.median(mine.seconds for mine, _ in pairs):6.2f} s"
        f" {statistics.median(mine.memory for mine, _ in pairs):6.0f} MiB"
    )


def plot(rounds: list[dict[str, Cost]], place: str) -> None:
    """Medians as bars, each round as a dot, in multiples of the plain script of the same round."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.8), layout="constrained")
    names = list(rounds[0])[::-1]
    for axes, of in zip(figure.subplots(1, 2, sharey=True), ("seconds", "memory"), strict=True):
        for row, name in enumerate(names):
            ratios = [getattr(each[name], of) / getattr(each[PLAIN], of) for each in rounds]
            median = statistics.median(ratios)
            ours = name.startswith("attnscope")
            axes.barh(row, median, color="tab:blue" if ours else "lightgrey")
            axes.plot(ratios, [row] * len(ratios), ".", color="black", markersize=3)
            axes.annotate(
                f"{median:.2f}", (max(ratios), row), (5, 0), textcoords="offset points", va="center"
            )
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel(
            f"{'time' if of == 'seconds' else 'peak memory'} of the process, of the plain script's"
        )
        axes.margins(x=0.12)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(place, dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    main()
