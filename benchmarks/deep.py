"""Layer 3 of a deep checkpoint: how much of its file is read, and peak memory, beside the plain script.

    python benchmarks/deep.py [ROUNDS]

Two checkpoints with random weights, made on the spot: the shape of bert-large (24 layers) and one like Llama
(32 layers), 1.3 and 1.6 GB in one file each. Every round runs in turn the plain script of transformers with
`output_attentions=True`, `attnscope heads` on a checkpoint that it has never seen, and on one that it has: of
a new file it computes the SHA-256 once, and for that reads all of it. The cache of captures is off in all.

Before each run the system forgets the file (and only that: libraries stay in memory), and after it says which
pages it then holds: what was read, whether by a call or through a mapping, with what the system read ahead.
The share of each layer comes from the table at the start of the file. So this needs Linux and a disk. Where
layer 10 stands behind layer 1 and 20 behind 2, the system reads into them as far as it reads ahead (128 KiB
on most machines, the first line says how far here); of other layers after the chosen one it reads nothing.
"""

import ctypes
import json
import mmap
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pairs import ATTNSCOPE
from pairs import cost as cost_of

LAYER, HEAD = 3, 5
MAKE_CHECKPOINT = """
import shutil, sys
import transformers
from attnscope import demo
kind, folder = sys.argv[1:]
if kind == "bert":
    shape = {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096}
    model = transformers.BertModel(transformers.BertConfig(num_attention_heads=16, **shape))
else:
    shape = {"hidden_size": 1024, "num_hidden_layers": 32, "intermediate_size": 2816}
    heads = {"num_attention_heads": 16, "num_key_value_heads": 4}
    model = transformers.LlamaModel(transformers.LlamaConfig(**shape, **heads))
model.save_pretrained(folder)
for name in ("tokenizer.json", "tokenizer_config.json"):
    shutil.copy(demo.folder() / name, folder)
"""
PEER = f"""
import sys
import torch
from transformers import AutoModel, AutoTokenizer
folder, text = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModel.from_pretrained(folder, attn_implementation="eager")
with torch.no_grad():
    outputs = model(input_ids=tokenizer(text, return_tensors="pt")["input_ids"], output_attentions=True)
for row in outputs.attentions[{LAYER}][0, {HEAD}].tolist():
    print(*(f"{{weight:.2f}}" for weight in row))
"""
PAGE = mmap.PAGESIZE
PLAIN, NEW, KNOWN = "plain script", "attnscope, new file", "attnscope, known file"


@dataclass(frozen=True)
class Cost:
    """MiB of the file that were read, peak MiB in memory, and the share of each layer that was read."""

    read: float
    peak: float
    layers: dict[int, float]


def main() -> None:
    """Both checkpoints in turn; ratios first."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 3
    print(f"the system reads {_read_ahead()} KiB ahead")
    for kind, name in (("bert", "bert-large, 24 layers"), ("llama", "like Llama, 32 layers")):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch, "model")
            made = [sys.executable, "-c", MAKE_CHECKPOINT, kind, str(folder)]
            subprocess.run(made, check=True, capture_output=True)
            file = folder / "model.safetensors"
            commands = _commands(str(folder), Path(scratch))
            for command, kept in commands.values():  # byte code is made, libraries are in memory
                measured(command, kept, file)
            costs: dict[str, list[Cost]] = {each: [] for each in commands}
            for _ in range(rounds):
                for each, (command, kept) in commands.items():
                    costs[each].append(measured(command, kept, file))
            _tell(name, file, costs, rounds)


def _commands(folder: str, scratch: Path) -> dict[str, tuple[list[str], Path]]:
    """What is run, and the folder of what attnscope knows from before; one that is not there is new."""
    text = " ".join(["door"] * 9)
    ours = [ATTNSCOPE, "heads", text, "-m", folder, "--layer", str(LAYER), "--head", str(HEAD)]
    known = scratch / "known"
    return {
        PLAIN: ([sys.executable, "-c", PEER, folder, text], known),
        NEW: (ours, scratch / "new"),
        KNOWN: (ours, known),
    }


def measured(command: list[str], kept: Path, file: Path) -> Cost:
    """One run with `file` forgotten by the system."""
    if kept.name == "new":
        shutil.rmtree(kept, ignore_errors=True)
    forget(file)
    os.environ["XDG_CACHE_HOME"] = str(kept)
    memory = cost_of(command).memory
    pages = resident(file)
    return Cost(sum(pages) * PAGE / 2**20, memory, _by_layer(file, pages))


def forget(file: Path) -> None:
    """Have the system drop every page of the file that it holds."""
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if left := sum(resident(file)):
        sys.exit(f"the system still holds {left} pages of {file}: is it on a disk?")


def resident(file: Path) -> bytes:
    """One byte for each page of the file: 1 where it is in memory (mincore)."""
    library = ctypes.CDLL(None, use_errno=True)
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        pages = (ctypes.c_ubyte * (-(-len(mapped) // PAGE)))()
        first = ctypes.c_char.from_buffer(mapped)
        place, size = ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(mapped))
        answer = library.mincore(place, size, pages)
        del first
    if answer:
        raise OSError(ctypes.get_errno(), "mincore")
    return bytes(page & 1 for page in pages)


def _by_layer(file: Path, pages: bytes) -> dict[int, float]:
    """The share of each layer's bytes that was read; its pages, whole ones alone."""
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        table = json.loads(opened.read(length))
    held: dict[int, list[int]] = {}
    for name, told in table.items():
        if layer := re.search(r"layers?\.(\d+)\.", name):
            first, last = (8 + length + offset for offset in told["data_offsets"])
            held.setdefault(int(layer[1]), []).extend(pages[-(-first // PAGE) : last // PAGE])
    return {layer: sum(each) / len(each) for layer, each in sorted(held.items())}


def _tell(name: str, file: Path, costs: dict[str, list[Cost]], rounds: int) -> None:
    size = file.stat().st_size / 2**20
    print(f"{name}, {size:,.0f} MiB, L{LAYER} H{HEAD}, {rounds} rounds in turn; ratios to the plain script")
    for each, several in costs.items():
        pairs = list(zip(several, costs[PLAIN], strict=True))
        read, peak = ([getattr(one, what) for one in several] for what in ("read", "peak"))
        ratios = [
            statistics.median(getattr(one, what) / getattr(plain, what) for one, plain in pairs)
            for what in ("read", "peak")
        ]
        needed, later = (
            [share for layer, share in several[-1].layers.items() if (layer <= LAYER) is before]
            for before in (True, False)
        )
        untouched = sum(not share for share in later)
        print(
            f"  {each:<22} read {ratios[0]:.2f}, peak {ratios[1]:.2f}"
            f"   {_spread(read)} MiB read, {_spread(peak)} MiB in memory;"
            f" of layers 0-{LAYER} {min(needed):.0%} or more, of {untouched} of {len(later)} later nothing"
        )


def _read_ahead() -> str:
    """How far the system reads ahead on the disk that temporary files are on."""
    device = os.stat(tempfile.gettempdir()).st_dev
    place = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    return place.read_text("utf-8").strip() if place.exists() else "?"


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"


if __name__ == "__main__":
    main()
