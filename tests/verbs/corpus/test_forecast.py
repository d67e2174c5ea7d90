"""What a corpus will take, how far it is, and a call that goes on."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import corpus_of_demo as demo
import numpy as np
import pytest

import attnscope as at
from attnscope.results.stored.document import as_npz
from attnscope.session.listener import Listener
from attnscope.verbs.corpus import answer as running
from attnscope.verbs.corpus import library as several
from attnscope.verbs.corpus import merging
from attnscope.verbs.corpus import splits as planning
from attnscope.verbs.corpus.engine import Finished, Forecast, Progress, Split
from attnscope.verbs.corpus.moments import Sketch

LINE = "the dog barks.\n"


def of_three(recipe: Any, splits: Iterable[Split], listener: Listener) -> Iterator[Finished]:
    """Splits that take 5 seconds each, and two more where a text is certified, by three processes."""
    for finished in demo.once_open(recipe, splits, listener):
        certifying = 2.0 if finished.number % 16 < 2 else 0.0
        times = {"seconds": 5 + certifying, "certifying": certifying}
        yield replace(finished, memory=700_000_000, at_once=3, **times)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty texts, each a split of its own, of which the first is there when 20 seconds have passed."""
    monkeypatch.setattr(planning, "LEAST", len(LINE))
    clock = chain([100.0], repeat(120.0))
    monkeypatch.setattr(running, "monotonic", lambda: next(clock))
    file = tmp_path / "texts.txt"
    file.write_text(LINE * 40, newline="\n")
    return file


def foretold(hearing: demo.Hearing) -> list[str]:
    return [each for each in hearing.told if "in all" in each]


def test_seconds_are_a_sum_by_hand_and_said_once(file: Path, tmp_path: Path) -> None:
    hearing = demo.Hearing()
    demo.measure(file, tmp_path / "run", hearing, of_three, measures="entropy")
    (said,) = foretold(hearing)
    start, rounds, certified = 20 - 7, 14, 2  # of 40 splits, and of 6 that are sampled, by three
    assert said.startswith(f"about {(start + 5 * rounds + 2 * certified):.1f} s in all, ")
    assert said.endswith(", 0.7 GB of memory in each of 3 processes; Ctrl-C keeps what is measured")


def test_of_a_run_that_goes_on_it_is_what_is_left(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(recipe: Any, splits: Iterable[Split], listener: Listener) -> Iterator[Finished]:
        for finished in of_three(recipe, splits, listener):
            yield finished
            if finished.number == 29:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        demo.measure(file, tmp_path / "run", engine=stopping, measures="entropy")
    clock = chain([200.0], repeat(210.0))
    monkeypatch.setattr(running, "monotonic", lambda: next(clock))
    hearing = demo.Hearing()
    demo.measure(file, tmp_path / "run", hearing, of_three, measures="entropy")
    (said,) = foretold(hearing)
    assert said.startswith(f"about {10 - 5 + 5 * 4:.1f} s in all, "), "ten splits by three"


def test_a_part_tells_its_seconds_its_memory_and_what_certifying_took(file: Path, tmp_path: Path) -> None:
    seen: list[Finished] = []

    def watched(recipe: Any, splits: Iterable[Split], listener: Listener) -> Iterator[Finished]:
        for finished in demo.once_open(recipe, splits, listener):
            seen.append(finished)
            yield finished

    demo.measure(file, tmp_path / "run", engine=watched, measures="entropy")
    assert [each.number for each in seen if each.certifying > 0] == [0, 1, 16, 17, 32, 33]
    for each in seen:
        assert 0 <= each.certifying < each.seconds
        assert each.memory is None or each.memory > 50_000_000, "torch alone takes more"


def test_what_a_run_keeps_is_what_was_foretold_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LEAST", 300)
    monkeypatch.setattr(merging, "FAN", 4)
    draw, file = np.random.default_rng(5), tmp_path / "texts.txt"
    words = np.array(["the", "dog", "barks", "boat", "old", "on", "it", "."])
    lines = [" ".join(draw.choice(words, draw.integers(2, 18))) for _ in range(300)]
    file.write_text("\n".join(lines) + "\n", newline="\n")
    measures = "entropy,same,previous,offset,pattern"  # of both signs, or 0 in many texts
    sizes: list[float] = []
    size_of_parts = merging.size_of_parts

    def noted(first: Any, splits: int) -> float:
        sizes.append(size_of_parts(first, splits))
        return sizes[-1]

    monkeypatch.setattr(running, "size_of_parts", noted)
    demo.measure(file, tmp_path / "run", measures=measures)
    files = list((tmp_path / "run" / "parts").iterdir())
    assert {each.name[0] for each in files} == {"0", "1", "2"}
    (size,) = sizes
    assert 2 / 3 < size / sum(each.stat().st_size for each in files) < 1.5


def test_rounded_values_of_both_signs_and_zeros_are_counted_on_either_side_of_zero() -> None:
    draw = np.random.default_rng(3)
    signs = draw.choice([-1, 0, 1], (20_000, 2), p=[0.2, 0.3, 0.5])
    values = np.stack([signs[:, 0] * draw.normal(3, 0.2, 20_000), signs[:, 1]], axis=1)
    values[::9, 0] = np.nan
    few, all_ = Sketch.of(values[:200]), Sketch.of(values)
    assert 2 / 3 < few.growth(100) * len(few.entry) / len(all_.entry) < 1.5
    assert few.growth(1) == 1
    assert Sketch.of(values[:0]).growth(100) == 1


def shown(capsys: pytest.CaptureFixture[str], *steps: Progress) -> list[str]:
    """What the bar was, one step after the other, as a terminal gets it."""
    with several.bar(True) as done:
        assert done is not None
        for step in steps:
            done(step)
    return [each for each in capsys.readouterr().err.replace("\n", "\r").split("\r") if each.strip()]


def test_a_bar_tells_texts_tokens_a_second_and_how_much_is_through(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = chain([100.0], repeat(110.0))
    monkeypatch.setattr(several, "monotonic", lambda: next(now))
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
        with several.bar(None) as done:
            return done is not None

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert not is_there()
    notebook = SimpleNamespace(kernel=object(), config={})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: notebook))
    assert is_there()
    with several.bar(False) as done:
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
