"""A fixed part of `benchmarks/calibration.py`: where there is only chance, claims are as rare as promised."""

import importlib.util
import random
import sys
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scipy.stats import binom

QUESTIONS = 40
FILE = Path(__file__).parents[2] / "benchmarks" / "calibration.py"


@pytest.fixture(scope="module")
def calibration() -> ModuleType:
    made = importlib.util.spec_from_file_location("calibration", FILE)
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    sys.modules["calibration"] = module
    made.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("kind", "count"), [("pair", QUESTIONS), ("links", QUESTIONS), ("align", QUESTIONS), ("second sink", 20)]
)
def test_what_random_weights_show_in_random_texts_is_claimed_no_more_often_than_promised(
    calibration: ModuleType, kind: str, count: int
) -> None:
    lines = list(calibration.questions(kind, count, 1, ()))
    told = [each["claims"][""] for each in lines if "claims" in each]
    assert len(told) == count
    assert sum(told) <= calibration.most_by_luck(count)


def test_the_bound_fails_a_rate_as_promised_in_fewer_than_one_of_a_thousand_runs(
    calibration: ModuleType,
) -> None:
    most = calibration.most_by_luck(QUESTIONS)
    assert binom.sf(most, QUESTIONS, 0.05) < 0.001 <= binom.sf(most - 1, QUESTIONS, 0.05)
    assert binom.sf(most, QUESTIONS, 0.3) > 0.9  # a rule that claims in three of ten is caught


def test_a_run_that_was_cut_off_goes_on_where_it_was(
    calibration: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(draw: random.Random) -> Any:
        return calibration.Told({"": draw.random() < 0.5}, draw.random())

    monkeypatch.setitem(calibration.KINDS, "pair", drawn)

    def plain(lines: Any) -> list[dict[str, Any]]:
        return [{name: value for name, value in each.items() if name != "seconds"} for each in lines]

    whole = plain(calibration.questions("pair", 9, 3, ()))
    begun = plain(islice(calibration.questions("pair", 9, 3, ()), 4))
    assert begun + plain(calibration.questions("pair", 9, 3, begun)) == whole
    assert plain(calibration.questions("pair", 9, 4, whole)) != whole
    hits = sum(each["claims"][""] for each in whole)
    (row,) = [each for each in calibration.table(whole) if each.startswith("| pair")]
    low, high = calibration.interval(hits, 9)
    assert f"| 9 | {hits} | {hits / 9:.3f} | {low:.3f} to {high:.3f} |" in row
    assert binom.sf(hits - 1, 9, low) == pytest.approx(0.025)
    assert binom.cdf(hits, 9, high) == pytest.approx(0.025)
