"""Pictures that look as they did when someone last looked at them, and changes that cannot pass unseen."""

import hashlib
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cases_ablate
import cases_find
import made_reports
import made_reports as reports
import made_results as made
import numpy as np
import pytest
from golden_text import GOLDEN
from PIL import Image

from attnscope.render.figure import FORMATS, figure_bytes, figure_of
from attnscope.render.look import Look
from attnscope.render.saving import content
from attnscope.render.sheets import WHOLE, Focus
from attnscope.results import Report, Result
from attnscope.verbs.report.drawing.page import figure as report_figure
from attnscope.verbs.report.drawing.page import pages as report_pages
from attnscope.vocabulary import Scaling

DPI, BLOCK = 60, 12  # dots of an inch, and of a side of a block
# of 255, by how much the blocks of pictures alike differ, all together and one alone: matplotlib 3.10.0 and
# 3.11.2 by up to 2.8 and 30, a swapped row or another scale by 11 or more and 90 or more
RMS, WORST = 4.0, 45.0


def drawn(result: Result, focus: Focus = WHOLE) -> Image.Image:
    with Image.open(io.BytesIO(content(result, ".png", focus, Look(dpi=DPI)))) as picture:
        return picture.convert("RGB")


def apart(first: Image.Image, second: Image.Image) -> tuple[float, float]:
    """The RMS over all blocks of how far two pictures are apart, and the most of any; 255 of other sizes."""
    if max(abs(a - b) for a, b in zip(first.size, second.size, strict=True)) > 2:
        return 255.0, 255.0
    sides = tuple(side // BLOCK for side in second.size)
    both = (each.resize(sides, Image.Resampling.BOX) for each in (first, second))
    difference = np.subtract(*(np.asarray(each, float) for each in both))
    return float(np.sqrt((difference**2).mean())), float(np.abs(difference).max())


def alike(first: Image.Image, second: Image.Image) -> bool:
    whole, one = apart(first, second)
    return whole <= RMS and one <= WORST


def golden(name: str, result: Result, focus: Focus = WHOLE) -> Image.Image:
    """The picture of that name, after it was written anew where that was asked for."""
    path = GOLDEN / f"{name}.png"
    if os.environ.get("ATTNSCOPE_REGENERATE"):
        few = drawn(result, focus).quantize(
            128, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE
        )
        few.save(path, optimize=True)
    with Image.open(path) as picture:
        return picture.convert("RGB")


NAMES = ["[CLS]", "I", "was", "watching", "the", "[MASK]", "when", "it", "opened", ".", "[SEP]"]
HEAD = made.head(NAMES)
PICTURES: dict[str, Result] = {
    "picture_head": HEAD,
    "picture_overview": made.overview(4, 12, NAMES),
    "picture_find": cases_find.finding(),
    "picture_ablate": cases_ablate.ablation(),
    "picture_tsne": made.projection(HEAD),
    "picture_report": made_reports.report(HEAD),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_looks_as_it_did(name: str) -> None:
    shown = drawn(PICTURES[name])
    kept = golden(name, PICTURES[name])
    assert alike(shown, kept), "RMS {:.1f}, most {:.0f}".format(*apart(shown, kept))


def test_another_scale_of_colours_is_seen() -> None:
    kept = golden("picture_head", HEAD)
    assert alike(drawn(HEAD), kept)
    assert not alike(drawn(HEAD, Focus(scale=Scaling.ONE)), kept)
    assert not alike(drawn(HEAD, Focus(scale=Scaling.MAX)), kept)


def test_two_swapped_rows_are_seen() -> None:
    order = np.arange(len(NAMES))
    order[[5, 6]] = 6, 5
    swapped = replace(HEAD, weights=HEAD.weights[order])
    assert not alike(drawn(swapped), golden("picture_head", HEAD))


def test_the_pictures_are_small() -> None:
    assert sum((GOLDEN / f"{name}.png").stat().st_size for name in PICTURES) < 300_000


HOSTILE = "font.size: 20\nlines.linewidth: 9\naxes.facecolor: red\nsavefig.dpi: 50\n"
SPECIMENS = Path(__file__).parents[1] / "specimens"


def report() -> Report:
    head = reports.with_sink(reports.causal(9))
    return reports.report(head, 4, reports.following(head))


def checksums() -> dict[str, str]:
    """Of a head, a map and a report in every format; of a report's PDF with a panel a page."""
    drawn = {}
    for format in FORMATS:
        drawn[f"head.{format}"] = figure_bytes(figure_of(made.head()), format, 72)
        drawn[f"map.{format}"] = figure_bytes(
            figure_of(made.projection(), Focus(queries=(2, 7), key=4)), format, 72
        )
        page = report_pages(report()) if format == "pdf" else report_figure(report())
        drawn[f"report.{format}"] = figure_bytes(page, format, 72)
    return {name: hashlib.sha256(data).hexdigest() for name, data in drawn.items()}


def started(seed: str, folder: Path) -> "subprocess.Popen[str]":
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(SPECIMENS)}
    command = [sys.executable, __file__]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def test_another_process_with_other_settings_makes_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text(HOSTILE)
    other = started("1", tmp_path)
    here = checksums()
    assert len(set(here.values())) == 3 * len(FORMATS)
    told = json.loads(other.communicate()[0])
    assert told == {"pyplot": False, "font size": 20, "checksums": here}


if __name__ == "__main__":
    import matplotlib

    told = {"font size": matplotlib.rcParams["font.size"], "checksums": checksums()}
    print(json.dumps({**told, "pyplot": "matplotlib.pyplot" in sys.modules}))
