"""Files come to their place whole, from a name that nobody foresees and that leads nowhere else."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from attnscope.model.source import digests
from attnscope.process.ending import unfinished_name, written_whole
from attnscope.render import saving
from attnscope.verbs.corpus.store import place_of

Writer = Callable[[Path], None]


WRITERS: dict[str, Writer] = {
    "a result": lambda target: saving.write(target, b"whole"),
    "a part of a corpus": lambda target: place_of(target).write(b"whole"),
    "a note of a hash": lambda target: digests._remember(target, [1], "a" * 64),
}


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, Path]]:
    """What is moved to its place, and where that is."""
    seen: list[tuple[Path, Path]] = []
    replace = os.replace

    def noted(part: Path, target: Path) -> None:
        seen.append((Path(part), Path(target)))
        replace(part, target)

    monkeypatch.setattr(os, "replace", noted)
    return seen


@pytest.mark.parametrize("umask", [0o022, 0o077])
@pytest.mark.parametrize("writer", list(WRITERS))
def test_whoever_writes_uses_another_name_each_time_and_the_rights_of_any_new_file(
    writer: str, umask: int, tmp_path: Path, moved: list[tuple[Path, Path]]
) -> None:
    write = WRITERS[writer]
    before = os.umask(umask)
    try:
        write(tmp_path / "one")
        write(tmp_path / "one")
    finally:
        os.umask(before)
    (first, target), (second, again) = moved
    assert target == again
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask
    assert first.parent == second.parent == target.parent, "another disk could not be moved from at one step"
    assert first.name != second.name
    assert not {str(os.getpid()), target.stem} & set(first.name.split("."))
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == [target]


def test_two_threads_that_write_to_one_place_at_once_leave_what_one_of_them_wrote(tmp_path: Path) -> None:
    target, both, failed = tmp_path / "a" / "x.json", threading.Barrier(2), []
    target.parent.mkdir()

    def write(content: bytes) -> None:
        try:
            with written_whole(target) as file:
                file.write(content[:1000])
                both.wait(20)
                file.write(content[1000:])
        except BaseException as error:
            failed.append(error)
            raise

    contents = [letter * 70_000 for letter in (b"a", b"b")]
    threads = [threading.Thread(target=write, args=[each]) for each in contents]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed
    assert target.read_bytes() in contents
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_that_waits_under_the_very_name_is_not_followed(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if somebody had foreseen it, which is what `os.urandom` is for."""
    monkeypatch.setattr(os, "urandom", lambda size: b"x" * size)
    victim, planted = tmp_path / "victim", tmp_path / unfinished_name()
    if there:
        victim.write_text("kept")
    planted.symlink_to(victim)
    with pytest.raises(FileExistsError), written_whole(tmp_path / "target"):
        raise AssertionError("never open")
    assert planted.is_symlink(), "what is not ours is not cleared away"
    assert victim.exists() == there
    assert not there or victim.read_text() == "kept"
    assert not (tmp_path / "target").exists()


def test_a_name_as_long_as_names_may_be_is_written_too(tmp_path: Path) -> None:
    target = tmp_path / ("a" * 250 + ".json")
    for write in (lambda: saving.write(target, b"one"), lambda: place_of(target).write(b"two")):
        write()
    assert target.read_bytes() == b"two"


def test_what_others_left_unfinished_beside_notes_of_hashes_goes_with_the_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "_MOST", 2)
    left = tmp_path / unfinished_name()
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    for number in range(2):
        digests._remember(tmp_path / f"{number}.json", [number], "a" * 64)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["0.json", "1.json"]
