"""A hash that is remembered is that of the bytes, for as long as nobody has written to the file."""

import hashlib
import json
import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from attnscope.model.source import digests

CONTENT = bytes(range(7)) * 1000
LATER = SimpleNamespace(time_ns=lambda: 2**62)  # a clock that stands still, as the machine's own may leap
EARLIER = SimpleNamespace(time_ns=lambda: 0)


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where hashes are remembered: of every file, as if it had been there for long, where that is told."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    monkeypatch.delenv("ATTNSCOPE_DIGESTS")
    monkeypatch.setattr(digests, "LARGE", 0)
    monkeypatch.setattr(digests, "time", LATER)
    monkeypatch.setattr(digests, "_kind", lambda handle: "ext4")
    return tmp_path / "kept" / "attnscope" / "digests"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "model.safetensors"
    with made.open("wb") as opened:
        opened.write(CONTENT)
        opened.flush()
        os.fsync(opened.fileno())  # some file systems date a file when it is written out
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The files of this test that were read whole, as they are read; a model of another one may still be."""
    names: list[str] = []
    digest = hashlib.file_digest

    def noted(stream: object, name: str) -> object:
        file = Path(stream.name)  # type: ignore[attr-defined]
        names.extend([file.name] if file.is_relative_to(tmp_path) else [])
        return digest(stream, name)  # type: ignore[arg-type]

    monkeypatch.setattr(hashlib, "file_digest", noted)
    return names


def of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_file_is_read_once_and_its_hash_is_that_of_its_bytes(
    notes: Path, file: Path, read: list[str]
) -> None:
    assert [digests.sha256(file), digests.sha256(file)] == [of(CONTENT)] * 2
    assert read == [file.name]
    file.rename(file.with_name("moved"))  # its inode goes with it, and the time of its change does not
    assert digests.sha256(file.with_name("moved")) == of(CONTENT)


def _written_in_place(file: Path, other: bytes) -> None:
    with file.open("r+b") as opened:
        opened.write(other)


def _replaced(file: Path, other: bytes) -> None:
    new = file.with_name("new")
    new.write_bytes(other)
    os.replace(new, file)


@pytest.mark.parametrize("change", [_written_in_place, _replaced])
def test_a_file_that_was_written_to_is_read_again_also_where_its_time_was_put_back(
    change: Callable[[Path, bytes], None], notes: Path, file: Path
) -> None:
    assert digests.sha256(file) == of(CONTENT)
    before, other = file.stat(), CONTENT[:-1] + b"!"
    time.sleep(0.02)  # more than a tick of the clock, as for any file that is remembered
    change(file, other)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = file.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert digests.sha256(file) == of(other)


def test_nothing_is_remembered_of_a_file_just_written_or_small_or_where_changes_are_not_told_or_that_is_off(
    notes: Path, file: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, value in (
        (digests, "time", EARLIER),
        (digests, "_kind", lambda handle: "tmpfs"),
        (digests, "LARGE", len(CONTENT) + 1),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, value)
            assert digests.sha256(file) == of(CONTENT)
        assert not notes.exists(), name
    monkeypatch.setenv("ATTNSCOPE_DIGESTS", "off")
    assert digests.sha256(file) == of(CONTENT)
    assert not notes.exists()
    assert len(read) == 3  # one that is small is read as well, at one go


def test_what_stands_for_a_file_that_is_not_read_is_another_one_after_a_change(
    notes: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digests.unread(file, lasting=True)
    assert before is not None
    assert digests.unread(file) == before
    time.sleep(0.02)
    _written_in_place(file, CONTENT[:-1] + b"!")
    assert digests.unread(file) != before
    monkeypatch.setattr(digests, "_kind", lambda handle: "tmpfs")
    assert digests.unread(file, lasting=True) is None
    monkeypatch.setattr(digests, "LARGE", len(CONTENT) + 1)
    assert digests.unread(file) is None


def test_nothing_is_remembered_of_a_file_that_changes_while_it_is_read(
    notes: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = hashlib.file_digest

    def meanwhile(stream: object, name: str) -> object:
        found = digest(stream, name)  # type: ignore[arg-type]
        os.utime(file, ns=(1, 1))
        return found

    monkeypatch.setattr(hashlib, "file_digest", meanwhile)
    assert digests.sha256(file) == of(CONTENT)
    assert not notes.exists()


@pytest.mark.parametrize("spoil", ["cut", "another hash", "another form", "of another file"])
def test_a_note_that_is_not_whole_or_of_another_file_counts_for_nothing(
    spoil: str, notes: Path, file: Path, read: list[str]
) -> None:
    digests.sha256(file)
    (note,) = notes.iterdir()
    told = json.loads(note.read_bytes())
    if spoil == "cut":
        note.write_bytes(note.read_bytes()[:-9])
    elif spoil == "another hash":
        note.write_text(json.dumps(told | {"sha256": of(b"other")}))
    elif spoil == "another form":
        note.write_text("[1]")
    else:
        other = file.with_name("other")
        other.write_bytes(b"other")
        digests.sha256(other)
        (its,) = set(notes.iterdir()) - {note}
        os.replace(its, note)
    assert digests.sha256(file) == of(CONTENT)
    assert read.count(file.name) == 2


def test_a_note_of_another_user_counts_for_nothing(
    notes: Path, file: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    digests.sha256(file)
    (note,) = notes.iterdir()
    stamp = os.stat(file)
    of_file = [stamp.st_size, stamp.st_mtime_ns, stamp.st_ctime_ns, stamp.st_ino, stamp.st_dev]
    forged = "f" * 64
    note.write_text(json.dumps({"sha256": forged, "check": digests._check(of_file, forged)}))
    assert digests.sha256(file) == forged  # from who runs this it would be believed
    monkeypatch.setattr(os, "geteuid", lambda: note.stat().st_uid + 1, raising=False)
    assert digests.sha256(file) == of(CONTENT)
    assert len(read) == 2


def test_where_nothing_can_be_written_the_hash_is_the_same(tmp_path: Path, notes: Path, file: Path) -> None:
    notes.parent.parent.mkdir()
    notes.parent.write_text("no folder")
    assert [digests.sha256(file), digests.sha256(file)] == [of(CONTENT)] * 2


def test_only_so_many_are_remembered_the_newest(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[str]
) -> None:
    monkeypatch.setattr(digests, "_MOST", 2)
    files = [tmp_path / str(i) for i in range(3)]
    for i, each in enumerate(files):
        each.write_bytes(b"%d" % i)
        digests.sha256(each)
    assert len(list(notes.iterdir())) == 2
    assert digests.sha256(files[2]) == of(b"2")
    assert len(read) == 3


MEMORY = Path("/dev/shm")
SIZE = 3 * mmap.PAGESIZE


@pytest.fixture
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every file had been there for long."""
    monkeypatch.setattr(digests, "time", LATER)
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


@pytest.mark.usefixtures("settled")
@pytest.mark.skipif(sys.platform != "linux", reason="only there is it known which file systems tell")
def test_the_kind_of_a_file_system_is_that_which_the_system_says(folder: Path) -> None:
    with (folder / "file").open("wb") as file:
        found = digests._kind(file.fileno())
    told = kind_of(folder)
    assert found == told or (told == "ext2/ext3" and found in ("ext2", "ext3", "ext4")) or found in told


@pytest.mark.usefixtures("settled")
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


ASK = """
import sys
from attnscope.model.source import digests
digests.SETTLED = 0.0
with open(sys.argv[1], "w+b") as file:
    print(digests._kind(file.fileno()), digests.lasting_stamp(file.fileno()) is not None)
"""


@pytest.mark.usefixtures("settled")
def test_a_file_that_was_just_written_has_no_stamp_that_lasts(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_bytes(b"1")
    monkeypatch.setattr(digests, "_kind", lambda handle: "ext4")
    with (tmp_path / "file").open("rb") as file:
        assert digests.lasting_stamp(file.fileno()) == digests.stamp(file.fileno())
        monkeypatch.setattr(digests, "time", EARLIER)
        assert digests.lasting_stamp(file.fileno()) is None


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("kind", ["nfs4", "9p", "fuse.sshfs", "zfs", "tmpfs", None])
def test_where_it_is_not_known_that_all_is_told_no_stamp_lasts(
    kind: str | None, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(digests, "_kind", lambda handle: kind)
    with (tmp_path / "file").open("wb") as file:
        assert digests.lasting_stamp(file.fileno()) is None


@pytest.mark.usefixtures("settled")
def test_what_cannot_be_written_out_has_no_stamp_that_lasts(tmp_path: Path, monkeypatch) -> None:
    def refused(handle: int) -> None:
        raise OSError("it cannot be")

    monkeypatch.setattr(digests, "_kind", lambda handle: "ext4")
    monkeypatch.setattr(os, "fsync", refused)
    with (tmp_path / "file").open("wb") as file:
        assert digests.lasting_stamp(file.fileno()) is None
