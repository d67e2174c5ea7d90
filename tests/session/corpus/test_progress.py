"""How far a corpus is, told to Python: rate and time left, what was there before, and a call that goes on."""

import sys
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import corpus_of_demo as demo
import pytest

import attnscope as at
from attnscope.results.stored.document import as_npz
from attnscope.session.corpus import splits as planning
from attnscope.session.corpus.engine.interface import Forecast, Progress
from attnscope.session.library import progress


def shown(capsys: pytest.CaptureFixture[str], *steps: Progress) -> list[str]:
    """What the bar was, one step after the other, as a terminal gets it."""
    with progress.bar(True) as done:
        assert done is not None
        for step in steps:
            done(step)
    return [each for each in capsys.readouterr().err.replace("\n", "\r").split("\r") if each.strip()]


def test_a_bar_tells_texts_tokens_a_second_and_how_much_is_through(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = chain([100.0], repeat(110.0))
    monkeypatch.setattr(progress, "monotonic", lambda: next(now))
    last = shown(
        capsys, Progress(0, 0, 0, 2000), Progress(1200, 35000, 500, 2000), Progress(3000, 80000, 2000, 2000)
    )[-1]
    assert "100%" in last
    assert "3,000 texts, 8,000 tokens a second" in last


def test_what_all_will_take_stands_above_the_bar(capsys: pytest.CaptureFixture[str]) -> None:
    forecast = Forecast(5000, 4, 600_000_000, 9e6)
    lines = shown(capsys, Progress(0, 0, 0, 2000), Progress(1200, 35000, 500, 2000, forecast))
    above = lines.index("about 83 min in all, 0.6 GB of memory in each of 4 processes, 9.0 MB on the disk")
    assert "1,200 texts" in lines[-1]
    assert above < len(lines) - 1


def test_what_was_measured_before_is_through_and_does_not_count_for_the_time_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = shown(capsys, Progress(0, 0, 900, 1000))
    assert "90%" in lines[-1]
    assert "? left" in lines[-1], "no rate of what was there"


def test_without_a_wish_there_is_a_bar_in_a_notebook_and_at_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_there() -> bool:
        with progress.bar(None) as done:
            return done is not None

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert not is_there()
    notebook = SimpleNamespace(kernel=object(), config={})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: notebook))
    assert is_there()
    with progress.bar(False) as done:
        assert done is None


def test_a_call_that_was_interrupted_goes_on_with_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "LEAST", 60)
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(demo.REAL) + "\n")
    asked = {"model": "demo", "measures": "entropy,previous", "layers": 0, "heads": "1,4", "workers": 0}

    def stopping(now: Progress) -> None:
        if now.texts > 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        at.corpus(file, run=tmp_path / "run", done=stopping, **asked)
    kept = {each.name for each in (tmp_path / "run" / "parts").iterdir()}
    assert kept, "what was measured is there"
    told: list[Progress] = []
    hearing = demo.Hearing()
    found = at.corpus(file, run=tmp_path / "run", done=told.append, listener=hearing, **asked)
    assert [each.forecast is not None for each in told].count(True) == 1, "it is said once"
    assert not any("in all" in each for each in hearing.told), "and by whoever shows how far it is"
    assert found.read.texts == 12
    assert 0 < told[-1].texts < 12, "what was measured is not measured again"
    assert told[-1].through == told[-1].whole
    once = at.corpus(file, run=tmp_path / "once", progress=False, **asked)
    assert as_npz(once) == as_npz(found)
