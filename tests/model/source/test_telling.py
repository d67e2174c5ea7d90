"""A file's size, times and inode stand for its content only where every change moves them: tried for real."""

import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnscope.model.source import digests

MEMORY = Path("/dev/shm")
SIZE = 3 * mmap.PAGESIZE


@pytest.fixture(autouse=True)
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every file had been there for long."""
    monkeypatch.setattr(digests, "SETTLED", -60.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    monkeypatch.delenv("ATTNSCOPE_DIGESTS")


@pytest.fixture(params=["beside the tests", "in memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if request.param == "beside the tests":
        yield tmp_path
        return
    if not os.access(MEMORY, os.W_OK):
        pytest.skip("no file system in memory")
    with tempfile.TemporaryDirectory(dir=MEMORY) as made:
        yield Path(made)


def kind_of(folder: Path) -> str:
    """As `findmnt` or `stat` has it, which do not ask as we do."""
    command = ["stat", "--file-system", "--format=%T", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="only there is it known which file systems tell")
def test_the_kind_of_a_file_system_is_that_which_the_system_says(folder: Path) -> None:
    with (folder / "file").open("wb") as file:
        found = digests._kind(file.fileno())
    told = kind_of(folder)
    assert found == told or (told == "ext2/ext3" and found in ("ext2", "ext3", "ext4")) or found in told


def test_where_a_stamp_is_said_to_last_a_store_through_a_map_into_a_dirty_page_changes_it(
    folder: Path,
) -> None:
    """The page was written to before, so that without a flush nobody would be told of the second store."""
    file = folder / "weights"
    file.write_bytes(bytes(SIZE))
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), SIZE) as page:
        page[5] = 1
        time.sleep(0.02)  # more than a tick of the clock
        with file.open("rb") as other:
            found = digests.lasting_stamp(other.fileno())
            assert (found is None) == (kind_of(folder) == "tmpfs") or sys.platform != "linux"
            again = digests.stamp(other.fileno())
            assert found is None or again == found
            page[5] = 2
            moved = digests.stamp(other.fileno()) != again
    assert moved or found is None


@pytest.mark.skipif(shutil.which("unshare") is None, reason="nothing to mount a file system with")
@pytest.mark.parametrize("under", ["beside the tests", "in memory"])
def test_what_lies_over_others_tells_where_what_is_under_it_does(under: str, tmp_path: Path) -> None:
    top = tmp_path if under == "beside the tests" else Path(tempfile.mkdtemp(dir=MEMORY))
    lower, upper, work, mount = (tmp_path / "lower", top / "upper", top / "work", tmp_path / "mount")
    for each in (lower, upper, work, mount):
        each.mkdir()
    script = (
        f"mount -t overlay overlay -o lowerdir={lower},upperdir={upper},workdir={work} {mount} || exit 77\n"
        f"ATTNSCOPE_DIGESTS= XDG_CACHE_HOME={mount}/kept {sys.executable} -c '{ASK}' {mount}/file"
    )
    try:
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False
        )
    finally:
        if top != tmp_path:
            shutil.rmtree(top)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("this user cannot mount")
    tells = kind_of(tmp_path) in ("ext2/ext3", "xfs", "btrfs", "f2fs") and under == "beside the tests"
    assert done.stdout.split() == ["overlay", str(tells)], done.stderr


ASK = """
import sys
from attnscope.model.source import digests
digests.SETTLED = 0.0
with open(sys.argv[1], "w+b") as file:
    print(digests._kind(file.fileno()), digests.lasting_stamp(file.fileno()) is not None)
"""


def test_a_file_that_was_just_written_has_no_stamp_that_lasts(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_bytes(b"1")
    monkeypatch.setattr(digests, "_kind", lambda handle: "ext4")
    with (tmp_path / "file").open("rb") as file:
        assert digests.lasting_stamp(file.fileno()) == digests.stamp(file.fileno())
        monkeypatch.setattr(digests, "SETTLED", 2.0)
        assert digests.lasting_stamp(file.fileno()) is None


@pytest.mark.parametrize("kind", ["nfs4", "9p", "fuse.sshfs", "zfs", "tmpfs", None])
def test_where_it_is_not_known_that_all_is_told_no_stamp_lasts(
    kind: str | None, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(digests, "_kind", lambda handle: kind)
    with (tmp_path / "file").open("wb") as file:
        assert digests.lasting_stamp(file.fileno()) is None


def test_what_cannot_be_written_out_has_no_stamp_that_lasts(tmp_path: Path, monkeypatch) -> None:
    def refused(handle: int) -> None:
        raise OSError("it cannot be")

    monkeypatch.setattr(digests, "_kind", lambda handle: "ext4")
    monkeypatch.setattr(os, "fsync", refused)
    with (tmp_path / "file").open("wb") as file:
        assert digests.lasting_stamp(file.fileno()) is None
