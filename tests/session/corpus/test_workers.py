"""The engine of this machine: every split once, whoever dies; one core's bytes are two cores' bytes."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import corpus_of_demo as demo
import fake_recipe
import letters
import pytest

from attnscope.errors import InputError
from attnscope.session.corpus import splits as planning
from attnscope.session.corpus.engine import local as engines
from attnscope.session.corpus.engine.interface import Split

LINES = ("one", "two", "dies once", "four", "five", "six", "seven", "dies", "nine", "ten", "eleven")


@pytest.fixture(autouse=True)
def reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the recipe of the tests too."""
    monkeypatch.setenv("PYTHONPATH", str(Path(fake_recipe.__file__).parent))


def splits(lines: tuple[str, ...] = LINES, size: int = 3) -> Iterator[Split]:
    return letters.splits(*(lines[start : start + size] for start in range(0, len(lines), size)))


def run(workers: int, recipe: fake_recipe.FakeRecipe, lines: tuple[str, ...] = LINES) -> dict[int, str]:
    found: dict[int, str] = {}
    for each in engines.local(workers)(recipe, splits(lines), demo.Quiet()):
        assert each.number not in found, "a split came twice"
        found[each.number] = each.name
    return found


def test_a_worker_that_dies_loses_nothing_and_a_text_that_kills_twice_is_named(tmp_path: Path) -> None:
    found = run(2, fake_recipe.FakeRecipe(tmp_path))
    assert found == {
        0: "['one', 'two', 'dies once'] []",
        1: "['four', 'five', 'six'] []",
        2: "['seven', 'nine'] [1]",
        3: "['ten', 'eleven'] []",
    }
    processes = [each for each in tmp_path.iterdir() if each.name.isdigit()]
    assert len(processes) > 2
    assert not any(_state(each.name) for each in processes)


def _state(process: str) -> str:
    return subprocess.run(["ps", "-o", "args=", "-p", process], capture_output=True, text=True).stdout


def test_what_is_no_texts_fault_ends_the_run_with_what_it_is(tmp_path: Path) -> None:
    recipe = fake_recipe.FakeRecipe(tmp_path)
    with pytest.raises(engines.WorkerBugError, match="ZeroDivisionError: a mistake of ours"):
        run(1, recipe, ("one", "bug"))
    with pytest.raises(InputError, match="the model cannot read anything"):
        run(2, recipe, ("refused",))
    with pytest.raises(InputError, match="no such model"):
        run(2, fake_recipe.FakeRecipe(tmp_path, refuses="no such model"))
    with pytest.raises(InputError, match="workers end before the model is open"):
        run(1, fake_recipe.FakeRecipe(tmp_path, breaks=True))
    with pytest.raises(InputError, match="--workers is 0"):
        engines.local(0)


def test_splits_are_taken_as_there_is_room_and_not_all_at_once(tmp_path: Path) -> None:
    taken = []

    def many() -> Iterator[Split]:
        for split in splits(("text",) * 60):
            taken.append(split.number)
            yield split

    for done, _ in enumerate(engines.local(1)(fake_recipe.FakeRecipe(tmp_path), many(), demo.Quiet()), 1):
        assert len(taken) <= done + 2
    assert len(taken) == 20


def test_workers_end_with_whoever_started_them(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; import fake_recipe, test_workers_splits as made\n"
        "from attnscope.session.corpus.engine.local import local\n"
        "from attnscope.session.listener import Quiet\n"
        "for _ in local(2)(fake_recipe.FakeRecipe(Path(sys.argv[1])), made.slow(), Quiet()): pass\n"
    )
    (tmp_path / "test_workers_splits.py").write_text(
        "import time\nfrom dataclasses import replace\nimport letters\n"
        "def slow():\n    for i in range(10_000):\n        time.sleep(0.02)\n"
        "        yield replace(next(letters.splits(('one',))), number=i)\n"
    )
    notes = tmp_path / "notes"
    notes.mkdir()
    path = f"{Path(fake_recipe.__file__).parent}:{tmp_path}"
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(notes)], env={**_environment(), "PYTHONPATH": path}
    )
    until = time.monotonic() + 60
    while len(list(notes.iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.wait()
    numbers = [each.name for each in notes.iterdir()]
    assert len(numbers) == 2
    while any(_state(each) for each in numbers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(_state(each) for each in numbers)


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)


def test_one_worker_and_two_leave_the_bytes_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "LEAST", 90)
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(demo.TEXTS))
    demo.measure(file, tmp_path / "0")
    expected = demo.everything(tmp_path / "0")
    assert len(expected) > 3, "several parts"
    for workers in (1, 2):
        demo.measure(file, tmp_path / str(workers), engine=engines.local(workers))
        assert demo.everything(tmp_path / str(workers)) == expected
