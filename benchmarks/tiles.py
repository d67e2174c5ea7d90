"""Statistics of one layer at growing lengths, each way in a process of its own: time and peak memory.

    python benchmarks/tiles.py [--lengths 512 2048 8192 32768] [--heads 12] [--rounds 3] [--seconds 400]
                               [--device cpu] [--plot FILE.png]

Queries and keys of a causal layer are given (random, head dimension 64, float32). The ways:

    fused   torch's fused kernel alone, no statistics: the floor
    tiled   attnscope's two passes over tiles
    rows    a block of rows at a time, all keys at once, the same measures
    dense   all queries by all keys at once, the same measures

Statistics are entropy, confidence, distance, self, previous, next, first and the strongest key of a query.
Rounds alternate between the ways; time of the processor and wall-clock are the least of the rounds, peak
memory is that of the process above what it has before the work. On an accelerator the time is on the clock,
until the device is through, and memory is the device's own. A way that would not fit, or another than
ours that would take over `--seconds`, is left out, and that is printed; 32,768 tokens have one round.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import torch

WAYS = ("fused", "tiled", "rows", "dense")
NAMES = ("entropy", "confidence", "distance", "self", "previous", "next", "first", "fixed")
DIM = 64
_MOST = 10e9  # bytes that a way may take
_LONG = 20_000  # tokens from which on one round is enough
Found = dict[tuple[int, str], list[dict[str, float]]]


def main() -> int:
    """Print a line a length and way; with `--one` the measurement itself, as one line of JSON."""
    asked = _asked()
    if asked.one:
        print(json.dumps(_measured(asked.one, asked.lengths[0], asked.heads, torch.device(asked.device))))
        return 0
    found: Found = {}
    for length in asked.lengths:
        out = {way: why for way in WAYS if (why := _left_out(way, length, asked.heads, found, asked.seconds))}
        ways = [way for way in WAYS if way not in out]
        for turn in range(asked.rounds if length < _LONG else 1):
            for way in ways if turn % 2 == 0 else ways[::-1]:
                found.setdefault((length, way), []).append(in_process(way, length, asked.heads, asked.device))
        _print(length, asked.heads, found, out)
    if asked.plot:
        _plot(found, asked.plot)
    return 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 2048, 8192, 32768])
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--plot")
    parser.add_argument("--one", choices=WAYS)
    return parser.parse_args()


def _left_out(way: str, length: int, heads: int, found: Found, most: float) -> str:
    """Why a way is not tried at this length, if it is not: its memory, or its time by the last one's."""
    if way == "dense" and 4 * 6 * length * length * heads > _MOST:
        return f"over {_MOST / 1e9:.0f} GB"
    before = max((other for other, name in found if name == way), default=None)
    if before is None:
        return ""
    seconds = min(run["processor"] for run in found[before, way]) * (length / before) ** 2
    return f"about {seconds:,.0f} s of the processor" if seconds > most and way != "tiled" else ""


def in_process(way: str, length: int, heads: int, device: str) -> dict[str, float]:
    """Seconds and bytes of one way, in a process of its own."""
    command = [sys.executable, __file__, "--one", way, "--lengths", str(length), "--heads", str(heads)]
    command += ["--device", device]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def _measured(way: str, length: int, heads: int, device: torch.device) -> dict[str, float]:
    torch.manual_seed(0)
    q, k, v = (torch.randn(heads, length, DIM).to(device) for _ in range(3))
    work = {"fused": _fused, "tiled": _tiled, "rows": _rows, "dense": _dense}[way]
    work(q[:, :64], k[:, :64], v[:, :64])  # what is loaded and set up once
    if device.type != "cpu":
        return cost_on(device, lambda: work(q, k, v))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, processor = time.perf_counter(), time.process_time()
    work(q, k, v)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"wall": wall, "processor": processor, "above": (peak - before) * 1024, "peak": peak * 1024}


def cost_on(device: torch.device, work: Callable[[], object]) -> dict[str, float]:
    """Seconds on the clock until an accelerator is through, and its memory; NaN where it does not tell."""
    told = torch.accelerator
    try:
        told.reset_peak_memory_stats(device)
        before = told.memory_allocated(device)
    except (RuntimeError, AttributeError, NotImplementedError):
        before = None
    told.synchronize(device)
    started = time.perf_counter()
    work()
    told.synchronize(device)
    wall = time.perf_counter() - started
    peak = float("nan") if before is None else told.max_memory_allocated(device)
    return {"wall": wall, "processor": wall, "above": peak - (before or 0), "peak": peak}


def _fused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)


def _tiled(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    from attnscope.measures import MEASURES
    from attnscope.results import Kind
    from attnscope.tiles.collectors import Halt, collect, collector_of, side_by_side
    from attnscope.tiles.softmax import Heads
    from attnscope.tiles.stream import Stream
    from attnscope.tiles.tiling import LongCall, Symbolic, sizes_for
    from attnscope.tokens import Tokens

    none = Tokens((), ())
    call = LongCall(
        module="", call=0, layer=0, kind=Kind.DECODER, query_tokens=none, key_tokens=none, q=q, k=k, v=v,
        scale=DIM**-0.5, softcap=None, terms=(), allowed=None, sinks=None, window=None, output=q,
        weights={}, epsilon=1e-7, precision="", rule=Symbolic(lambda _, i, j: j[None, :] <= i[:, None]),
    )  # fmt: skip
    heads = Heads(call, sizes_for(q.device), torch.float32)

    def look(head: int, halt: Halt) -> list[float]:
        one = heads.head(head)
        measured = [collector_of(MEASURES[name], *one.shape) for name in NAMES]
        collect(Stream(one), [*measured, halt])
        return [each.value for each in measured]

    for values in side_by_side(look, range(len(q)), q.device):
        assert all(value == value for value in values), "every measure is a number"


def _rows(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    for head in range(len(q)):
        for start in range(0, q.shape[1], 256):
            _statistics(q[head], k[head], v[head], start, min(start + 256, q.shape[1]))


def _dense(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    scores = q @ k.transpose(1, 2) * DIM**-0.5
    scores = scores.masked_fill(~scores.new_ones(scores.shape[1:], dtype=torch.bool).tril(), -torch.inf)
    weights = torch.softmax(scores, -1)
    weights @ v
    _of(weights, 0)


def _statistics(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, start: int, end: int) -> None:
    rows, keys = torch.arange(start, end, device=q.device), torch.arange(end, device=q.device)
    scores = q[start:end] @ k[:end].T * DIM**-0.5
    weights = torch.softmax(scores.masked_fill(keys[None, :] > rows[:, None], -torch.inf), -1)
    weights @ v[:end]
    _of(weights[None], start)


def _of(weights: torch.Tensor, start: int) -> None:
    """The measures as anybody would write them."""
    queries, keys = weights.shape[1:]
    there = weights.device
    offsets = torch.arange(keys, device=there) - torch.arange(start, start + queries, device=there)[:, None]
    -(weights * weights.clamp_min(1e-38).log()).sum(-1)
    weights.max(-1)
    (weights * offsets.abs()).sum(-1)
    for offset in (0, -1, 1):
        (weights * (offsets == offset)).sum(-1)
    weights[..., 0].mean(-1)


def _print(length: int, heads: int, found: Found, left_out: dict[str, str]) -> None:
    floor = min(each["processor"] for each in found[length, "fused"])
    for way in WAYS:
        if way in left_out:
            print(f"{length:>7} tokens x {heads} heads  {way:<6} left out: {left_out[way]}")
            continue
        runs = found[length, way]
        processor, wall = (min(each[name] for each in runs) for name in ("processor", "wall"))
        above, peak = (min(each[name] for each in runs) / 1e6 for name in ("above", "peak"))
        print(
            f"{length:>7} tokens x {heads} heads  {way:<6} {processor:9.2f} s of the processor "
            f"({processor / floor:5.1f} x fused), {wall:9.2f} s, {above:8.0f} MB above, {peak:8.0f} MB peak",
            flush=True,
        )


def _plot(found: Found, place: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    sides = ("processor", "processor, s", 1.0), ("above", "memory above what was there before, MB", 1e6)
    for axes, (name, label, unit) in zip(figure.subplots(1, 2), sides, strict=True):
        for way, marker in zip(WAYS, "os^D", strict=True):
            lengths = [length for length, other in found if other == way]
            values = [min(each[name] for each in found[length, way]) / unit for length in lengths]
            axes.loglog(lengths, values, f"{marker}-", label=way)
        axes.set_xlabel("tokens")
        axes.set_ylabel(label)
        axes.set_xticks(sorted({length for length, _ in found}))
        axes.set_xticklabels([f"{length:,}" for length in sorted({length for length, _ in found})])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.savefig(place, dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    sys.exit(main())
