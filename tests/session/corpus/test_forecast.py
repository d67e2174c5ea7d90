"""What a corpus will take, said after its first part: sums by hand, and a run that it is held against."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import corpus_of_demo as demo
import numpy as np
import pytest

from attnscope.analysis.corpus.sketch import Sketch
from attnscope.session.corpus import run as running
from attnscope.session.corpus import splits as planning
from attnscope.session.corpus import tree
from attnscope.session.corpus.engine.interface import Finished, Split
from attnscope.session.listener import Listener

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


@pytest.mark.parametrize("lines", [1, 40])
def test_there_is_nothing_to_say_where_all_is_one_part(
    lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, hearing = tmp_path / "texts.txt", demo.Hearing()
    file.write_text(LINE * lines)
    demo.measure(file, tmp_path / "run", hearing, of_three, measures="entropy")
    assert foretold(hearing) == []


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


@pytest.mark.parametrize(("bytes_", "levels"), [(2**12, {"0"}), (300, {"0", "1", "2"})])
def test_what_a_run_keeps_is_what_was_foretold_of_it(
    bytes_: int, levels: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "LEAST", bytes_)
    monkeypatch.setattr(tree, "FAN", 4)
    draw, file = np.random.default_rng(5), tmp_path / "texts.txt"
    words = np.array(["the", "dog", "barks", "boat", "old", "on", "it", "."])
    lines = [" ".join(draw.choice(words, draw.integers(2, 18))) for _ in range(300)]
    file.write_text("\n".join(lines) + "\n", newline="\n")
    measures = "entropy,same,previous,offset,pattern"  # of both signs, or 0 in many texts
    sizes: list[float] = []
    size_of_parts = tree.size_of_parts

    def noted(first: Any, splits: int) -> float:
        sizes.append(size_of_parts(first, splits))
        return sizes[-1]

    monkeypatch.setattr(running, "size_of_parts", noted)
    demo.measure(file, tmp_path / "run", measures=measures)
    files = list((tmp_path / "run" / "parts").iterdir())
    assert {each.name[0] for each in files} == levels
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
