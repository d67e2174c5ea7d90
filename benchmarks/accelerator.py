"""What attnscope does on the accelerator of this machine: whether it is right there, and what it costs.

    python -m benchmarks.accelerator [--device auto] [--lengths 1024 4096 16384 65536 131072] [--seconds 120]
                                     [--texts 4000] [--only NAME] [--parts NAME ...] [-o accelerator.md]

For whoever has a card. Four parts, each a section of the table, which is headed by the name of the card:

    questions  every question of tests/accelerator/questions.py, there and on the processor: the same numbers
    one head   a model of two layers with 12 heads of 64 in memory there: one head of layer 1 by attnscope
               (in tiles, certified), by plain transformers with eager attentions, and the model's fused run
    all heads  statistics of 12 heads whose queries and keys are given, by benchmarks/tiles.py
    corpus     by benchmarks/corpus.py

Every measurement has a process of its own. Time is on the clock until the device is through, after a first
run that sets up what is set up once; memory is the most that the device held. What does not fit says so, and
a way whose last length foretells more than `--seconds` is left out.
"""

import argparse
import json
import math
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

import torch

from benchmarks import tiles

HERE = Path(__file__).parent
LENGTHS = (1024, 4096, 16384, 65536, 131072)
WAYS = ("attnscope", "transformers", "fused")
PARTS = ("questions", "head", "heads", "corpus")
LAYER, HEAD = 1, 5
Cost = dict[str, float]


def main() -> int:
    """Run the parts one after the other; what is known is written after each."""
    asked = _asked()
    if asked.one:
        print(json.dumps(_measured(asked.one, asked.lengths[0], torch.device(asked.device))))
        return 0
    device = _device(asked.device)
    if device is None:
        print("no accelerator on this machine: torch.accelerator finds none", file=sys.stderr)
        return 4
    told = [_heading(device)]
    parts: dict[str, Callable[[], list[str]]] = {
        "questions": lambda: _questions(device, asked.only),
        "head": lambda: _table("One head", WAYS, asked, lambda way, length: _one_head(way, length, device)),
        "heads": lambda: _table(
            "All heads", tiles.WAYS, asked, lambda way, length: _all_heads(way, length, device)
        ),
        "corpus": lambda: _corpus(asked.texts, device),
    }
    for name in asked.parts:
        told += parts[name]()
        asked.out.write_text("\n".join(told) + "\n", "utf-8", newline="\n")
    print(asked.out.read_text("utf-8"))
    return 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="auto")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--texts", type=int, default=4000)
    parser.add_argument("--only", default="", help="questions whose name has this in it")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("-o", "--out", type=Path, default=Path("accelerator.md"))
    parser.add_argument("--one", choices=WAYS)
    return parser.parse_args()


def _device(wanted: str) -> torch.device | None:
    from attnscope.model.loading.memory import torch_device

    found = torch_device(wanted)
    return None if found.type == "cpu" else found


def _heading(device: torch.device) -> str:
    module = torch.get_device_module(device)
    card = module.get_device_name(device) if hasattr(module, "get_device_name") else device.type
    import transformers

    with_ = f"torch {torch.__version__}, transformers {transformers.__version__}, {platform.platform()}"
    return f"# {card}\n\n{date.today()}, {with_}\n"


def _questions(device: torch.device, only: str) -> list[str]:
    """How many questions come to the same numbers there, and those that do not."""
    from tests.accelerator.asking import ask, faults, invoked
    from tests.accelerator.questions import EVERY, STORED, materials

    asked, wrong = [each for each in EVERY if only in each.name], []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        files = materials(folder)
        code, _, said = invoked([*STORED, "--device", "cpu", "-o", files["run"]], folder)
        assert code == 0, said
        for each in asked:
            there, here = (ask(each, name, files, folder) for name in (str(device), "cpu"))
            told = faults(there, here)
            wrong += [f"- {each.name}: {told[0]}"] if told else []
            print(f"{each.name}: {told[0] if told else 'the same'}", file=sys.stderr, flush=True)
    summary = f"{len(asked)} questions, {len(wrong)} with another answer than the processor's."
    return ["## Questions", "", summary, *wrong, ""]


def _table(
    name: str, ways: tuple[str, ...], asked: argparse.Namespace, cost: Callable[[str, int], Cost | str]
) -> list[str]:
    """A row for each length and a column for each way: seconds on the clock, and memory."""
    rows = [f"## {name}", "", f"| tokens | {' | '.join(ways)} |", "|---" * (len(ways) + 1) + "|"]
    last: dict[str, tuple[int, float]] = {}
    for length in asked.lengths:
        cells: list[str] = []
        for way in ways:
            before = last.get(way)
            foretold = 0.0 if before is None else before[1] * (length / before[0]) ** 2
            found = f"about {foretold:,.0f} s" if foretold > asked.seconds else cost(way, length)
            if not isinstance(found, str):
                last[way] = length, found["wall"]
                memory = "" if math.isnan(found["peak"]) else f", {found['peak'] / 1e6:,.0f} MB"
                found = f"{found['wall']:.3f} s{memory}"
            cells.append(found)
            print(f"{name}, {length:,} tokens, {way}: {found}", file=sys.stderr, flush=True)
        rows.append(f"| {length:,} | {' | '.join(cells)} |")
    return [*rows, ""]


def _one_head(way: str, length: int, device: torch.device) -> Cost | str:
    return _run(["-m", "benchmarks.accelerator", "--one", way], length, device)


def _all_heads(way: str, length: int, device: torch.device) -> Cost | str:
    return _run(["-m", "benchmarks.tiles", "--one", way], length, device)


def _run(program: list[str], length: int, device: torch.device) -> Cost | str:
    """What a process measured of itself; or why it did not."""
    command = [sys.executable, *program, "--lengths", str(length), "--device", str(device)]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        told: Cost = json.loads(done.stdout.splitlines()[-1])
        return told
    said = done.stderr.strip().splitlines()[-1:] or ["no word"]
    return "does not fit" if "memory" in said[0].lower() else f"failed: {said[0][:120]}"


def _corpus(texts: int, device: torch.device) -> list[str]:
    command = [sys.executable, str(HERE / "corpus.py"), str(texts), "--device", str(device)]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    return ["## Corpus", "", "```text", (done.stdout or done.stderr[-2000:]).strip(), "```", ""]


def _measured(way: str, length: int, device: torch.device) -> Cost:
    """One way at one length, in this process."""
    tiles.cost_on(device, _work(way, 64, device, length))  # what is set up once
    return tiles.cost_on(device, _work(way, length, device, length))


def _work(way: str, length: int, device: torch.device, most: int) -> Callable[[], object]:
    import attnscope

    ids = torch.randint(0, 1000, (1, length), generator=torch.Generator().manual_seed(1))
    model = _model("sdpa" if way == "fused" else "eager", device, most)
    if way == "attnscope":
        reading = attnscope.wrap(model).read(ids=ids[0].tolist())
        return lambda: reading.long_head(LAYER, HEAD)
    ids = ids.to(device)
    if way == "fused":
        return torch.no_grad()(lambda: model(ids).last_hidden_state)
    return torch.no_grad()(lambda: model(ids, output_attentions=True).attentions[LAYER][0, HEAD].cpu())


_MODELS: dict[tuple[str, str, int], torch.nn.Module] = {}


def _model(kernel: str, device: torch.device, most: int) -> torch.nn.Module:
    """Two layers of a decoder with 12 heads of 64, random weights: the same for every way."""
    from transformers import LlamaConfig, LlamaModel

    place = kernel, str(device), most
    if place not in _MODELS:
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=1000,
            hidden_size=768,
            intermediate_size=2048,
            num_hidden_layers=2,
            num_attention_heads=12,
            max_position_embeddings=most,
            attn_implementation=kernel,
        )
        _MODELS[place] = LlamaModel(config).eval().to(device)
    return _MODELS[place]


if __name__ == "__main__":
    sys.exit(main())
