"""How long the explorer takes from a key to the screen, and from a changed sentence to its head.

    python benchmarks/explorer.py [--tokens 30] [--layers 12] [--heads 12] [--size 140x40]

A random model of the size of bert-base, under a pilot: the time is from the key to the moment when the pane
of the head holds the new head and the screen has been composed. Wall-clock, and CPU of the whole process.
"""

import argparse
import asyncio
import statistics
import time

import torch
from transformers import BertConfig, BertForMaskedLM

from attnscope.explore.app import Explorer, Notices
from attnscope.explore.drawing.surface import Surface
from attnscope.explore.source import Source
from attnscope.model.loaded import Model
from attnscope.model.loading.answering import task_of
from attnscope.session.opening import Opened
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted


def source(tokens: int, layers: int, heads: int, notices: Notices) -> Source:
    """The explorer's own source over a random model, which reads so many numbered tokens."""
    torch.manual_seed(0)
    config = BertConfig(num_hidden_layers=layers, num_attention_heads=heads, hidden_size=64 * heads)
    module = BertForMaskedLM(config).eval()
    made = Source(ModelRequest(), Inputs(ids=list(range(1000, 1000 + tokens))), Wanted(), notices)
    made._opened = Opened(Model(None, module, None, None), task_of(module))
    return made


LONGEST = 3.0  # seconds: a key that leads nowhere, at an end, is not counted


async def shown(app: Explorer, what: str) -> None:
    """Until the head's own line holds `what`."""
    while not app.pane("head").text.startswith(what):
        await asyncio.sleep(0.001)


async def measured(app: Explorer, size: tuple[int, int]) -> None:
    started = time.perf_counter()
    async with app.run_test(size=size) as pilot:
        await shown(app, "L0 H0")
        print(f"first head {time.perf_counter() - started:.2f} s")
        while not app.settled:
            await asyncio.sleep(0.01)
        print(f"all heads of the grid {time.perf_counter() - started:.2f} s")
        for name, keys in {
            "head": ["full_stop", "comma"],
            "layer": ["right_square_bracket", "left_square_bracket"],
        }.items():
            await _timed(app, pilot, name, keys)
        await pilot.press("tab")
        await _timed(app, pilot, "query", ["down", "up"])
        await _timed(app, pilot, "key", ["right", "left"])


async def _timed(app: Explorer, pilot, name: str, keys: list[str], times: int = 40) -> None:
    """Ten times the one key, ten times the other, which leads back."""
    walls, cpus = [], []
    for i in range(times):
        key = keys[(i // 10) % 2]
        before = app.pane("head").drawn, app.pane("main").drawn
        wall, cpu = time.perf_counter(), time.process_time()
        app.simulate_key(key)
        head, main = app.pane("head"), app.pane("main")
        while head.drawn is before[0] and main.drawn is before[1] and time.perf_counter() - wall < LONGEST:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        app.screen._compositor.render_update(full=False)
        if time.perf_counter() - wall < LONGEST:
            walls.append(1000 * (time.perf_counter() - wall))
            cpus.append(1000 * (time.process_time() - cpu))
    walls.sort()
    late = walls[int(0.95 * (len(walls) - 1))]
    print(
        f"{name:6} median {statistics.median(walls):5.1f} ms, 95 % {late:5.1f} ms, "
        f"CPU {statistics.median(cpus):5.1f} ms, {len(walls)} keys"
    )


def changed(model: Source, layers: int) -> None:
    """Another text of the same length, from the tokens to the head that is looked at, certified."""
    for layer in (0, layers - 1):
        wall, cpu = time.perf_counter(), time.process_time()
        model._kept.clear()
        model.scene(layer=layer)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        started = time.process_time()
        with torch.no_grad():
            model._opened.model.module(torch.tensor([list(model.inputs.ids)]))
        alone = time.process_time() - started
        told = f"{wall:.2f} s, CPU {cpu:.2f} s; the model alone CPU {alone:.2f} s"
        print(f"changed text, at layer {layer}: {told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("tokens", 30), ("layers", 12), ("heads", 12)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--size", default="140x40")
    given = parser.parse_args()
    width, height = map(int, given.size.split("x"))
    notices = Notices()
    model = source(given.tokens, given.layers, given.heads, notices)
    print(
        f"{given.tokens} tokens, {given.layers} x {given.heads} heads, {given.size}, "
        f"{torch.get_num_threads()} threads"
    )
    for _ in range(2):
        changed(model, given.layers)
    model._kept.clear()
    asyncio.run(measured(Explorer(model, notices, Surface("truecolor", "dark")), (width, height)))


if __name__ == "__main__":
    main()
