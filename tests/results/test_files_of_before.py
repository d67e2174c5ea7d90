"""Files that the version before results could be read wrote: `before.zip`, recorded with the specimens."""

import zipfile
from pathlib import Path

import made_outlines
import made_reports
import made_results as made
import numpy as np
import pytest

from attnscope.render import files
from attnscope.render.present.written import written
from attnscope.results import Result, load

ARCHIVE = Path(__file__).parent / "before.zip"
with zipfile.ZipFile(ARCHIVE) as archive:
    NAMES = sorted(archive.namelist())
COMPLETE = {  # what was lost of these shows nowhere on a terminal
    "head": made.head,
    "prediction": lambda: made_reports.masked(made.head(), [4]),
    "verification": lambda: made.verification(2, 3),
    "outline": made_outlines.outline,
}


def read(folder: Path, name: str) -> Result:
    with zipfile.ZipFile(ARCHIVE) as archive:
        return load(archive.extract(name, folder))


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_before_is_read_shown_and_written(tmp_path: Path, name: str) -> None:
    result = read(tmp_path, name)
    assert written(result, width=100)
    assert files.as_json(result)
    assert files.as_csv(result)


@pytest.mark.parametrize("name", [name for name in NAMES if Path(name).stem in COMPLETE])
def test_a_file_of_before_shows_what_its_result_shows(tmp_path: Path, name: str) -> None:
    assert written(read(tmp_path, name), width=100) == written(COMPLETE[Path(name).stem](), width=100)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_what_a_file_of_before_lacks_is_not_made_up(tmp_path: Path, suffix: str) -> None:
    view = read(tmp_path, f"view{suffix}")
    assert np.isnan(view.head.weights).all()
    assert view.head.special_mass == made.head().special_mass
    side = read(tmp_path, f"comparison{suffix}").a
    assert np.isfinite(side.weights).all()
    assert np.isnan(np.delete(side.head.weights, side.position, axis=0)).all()
    projection = read(tmp_path, f"projection{suffix}")
    assert np.isnan(projection.head.v).all()
    np.testing.assert_array_equal(projection.head.q, made.head().q)
