"""Pictures are the same bytes in another process, whatever its hashes, its folder and its user's settings.

Run as a program this prints the checksums of the pictures: to start a process costs more than to draw all.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import made_reports as reports
import made_results as made

from attnscope.render.figure import FORMATS, figure_bytes, figure_of
from attnscope.render.focus import Focus
from attnscope.render.report.page import report_figure, report_pages
from attnscope.results import Report

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
