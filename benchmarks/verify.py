"""`verify` and the overview of a model of bert-base size, 144 heads, in forward passes of the same model.

    python benchmarks/verify.py [TOKENS ...]

The model has the shape of bert-base-uncased and random weights, made on the spot. One pass is a plain one
with eager attentions (`output_attentions=True`). Everything is measured in turns as time of the processor
on one thread, the model being loaded, so that other work on the machine does not count: medians of these.
`verify` runs the model untouched and watched, tries where the tokens stand and whether answers act, and
certifies every head with every fault that applies; the overview tries the same, and adds measures and
strongest links. Two lines below say how much of it is the certificates, and how much the trial of positions.
The peak of memory is that of a process of its own, above that of the loaded model, at 12 layers and at 24:
nothing queries by keys may be kept of all layers by `verify`, but what each of them answers and returns is.
"""

import ctypes
import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

LIMIT = 8.0
ROUNDS = 9
LAYERS = 12, 24
GROWTH = 60  # MiB that twice the layers may take more: what each answers and returns, nothing n by n
Work = Callable[[], object]


def main() -> int:
    """Print ratios and memory at every length; the exit code says whether the first are above the limit."""
    if sys.argv[1:2] == ["--peak"]:
        print(peak(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
        return 0
    lengths = [int(length) for length in sys.argv[1:]] or [128]
    peaks = {
        length: {
            name: [_peak(name, length, layers) for layers in LAYERS]
            for name in ("one pass", "verify", "overview")
        }
        for length in lengths
    }
    ratios = [compare(length, peaks[length]) for length in lengths]
    shallow, deep = peaks[lengths[0]]["verify"]
    return int(max(ratios[0]) > LIMIT or deep - shallow > GROWTH)


def compare(length: int, peaks: dict[str, list[int]]) -> tuple[float, float]:
    """Print the figures of one length; what verify and the overview cost in passes."""
    every = works(length)
    for work in every.values():
        work()
    seconds: dict[str, list[float]] = {name: [] for name in every}
    for _ in range(ROUNDS):
        for name, work in every.items():
            seconds[name].append(_seconds(work))
    middle = {name: statistics.median(each) for name, each in seconds.items()}
    print(f"{length} tokens, one pass {middle['one pass']:.3f} s")
    for name, each in middle.items():
        memory = ", {} and {} MiB above the model".format(*peaks[name]) if name in peaks else ""
        print(f"  {name:14} {each:6.3f} s, {each / middle['one pass']:5.2f} passes{memory}")
    return middle["verify"] / middle["one pass"], middle["overview"] / middle["one pass"]


def works(length: int, layers: int = LAYERS[0]) -> dict[str, Work]:
    """What is measured, by its name, on one model and one text."""
    import torch
    from transformers import BertConfig, BertModel

    from attnscope.analysis.heads.overview import measure_heads
    from attnscope.capture import Selection, provenance_of, record
    from attnscope.capture.cause.standing import standings_of
    from attnscope.capture.following.describe import sides_of, tokens_of
    from attnscope.capture.run import rungs
    from attnscope.verbs.verify.answer import verify_model
    from attnscope.verify import certify_heads

    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = BertConfig(num_hidden_layers=layers)
    model = BertModel._from_config(config, attn_implementation="eager").eval()
    ids = torch.randint(1000, 20000, (1, length))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    tokens = tokens_of(inputs)
    assert tokens is not None
    provenance, rung = provenance_of(model, tokens), next(iter(rungs(model, Selection())))
    kept = record(model, inputs, Selection(layers=[3])).calls[0]

    def one_pass() -> None:
        with torch.no_grad():
            model(**inputs, output_attentions=True)

    return {
        "one pass": one_pass,
        "verify": lambda: verify_model(model, inputs, tokens, provenance),
        "overview": lambda: measure_heads(record(model, inputs)),
        "certificates": lambda: [certify_heads(kept) for _ in range(layers)],
        "positions": lambda: standings_of(
            model, inputs, rung.watched, None, sides_of(model, inputs, tokens, None)
        ),
    }


def peak(name: str, length: int, layers: int) -> int:
    """MiB that the work takes at its peak above what the loaded model takes."""
    work = works(length, layers)[name]
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # memory that was let go of would be taken again, uncounted
    Path("/proc/self/clear_refs").write_text(
        "5", "ascii", newline="\n"
    )  # what loading took at its peak does not count
    before = _memory("VmRSS")
    work()
    return (_memory("VmHWM") - before) // 1024


def _memory(field: str) -> int:
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def _peak(name: str, length: int, layers: int) -> int:
    command = [sys.executable, __file__, "--peak", name, str(length), str(layers)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _seconds(work: Work) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())
