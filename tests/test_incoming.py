"""The one reader: what has a size is read by it, all else once and up to a limit."""

import hashlib
import io
import os
import socket
import sys
import threading
from pathlib import Path

import pytest

from attnscope import incoming
from attnscope.errors import AttnscopeError, DoesNotFitError, InputError
from attnscope.process import machine

GIVEN = b"\xef\xbb\xbfthe door\r\n\n\xff opened"


@pytest.fixture(autouse=True)
def usual(monkeypatch: pytest.MonkeyPatch) -> None:
    incoming.limit_to(None)
    monkeypatch.delenv(incoming.LIMIT, raising=False)


def room(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(incoming, "left", lambda: size)


def written(place: Path, content: bytes) -> threading.Thread:
    """Somebody who writes into a pipe, once it is opened, and then closes it."""
    writer = threading.Thread(target=place.write_bytes, args=(content,), daemon=True)
    writer.start()
    return writer


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    place = tmp_path / "pipe"
    os.mkfifo(place)
    return place


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "given.txt"
    place.write_bytes(GIVEN)
    return place


def test_a_file_is_read_whole_in_part_in_lines_and_by_its_hash(file: Path) -> None:
    assert incoming.content(file) == GIVEN
    assert incoming.content(file, most=5) == GIVEN[:5]
    assert list(incoming.lines(file)) == [b"the door", b"", b"\xff opened"]
    assert list(incoming.whole_lines(file)) == [(1, b"the door"), (2, b""), (3, b"\xff opened")]
    assert incoming.sha256(file) == hashlib.sha256(GIVEN).hexdigest()
    empty = file.with_name("empty")
    empty.touch()
    assert incoming.content(empty) == b""
    assert list(incoming.lines(empty)) == []


def test_a_pipe_is_read_once_and_is_the_same_for_whoever_reads_it_again(fifo: Path, tmp_path: Path) -> None:
    writer = written(fifo, GIVEN)
    assert list(incoming.lines(fifo)) == [b"the door", b"", b"\xff opened"]
    writer.join()
    assert incoming.content(fifo) == GIVEN  # nobody writes any more: to open it would wait for ever
    assert incoming.sha256(fifo) == hashlib.sha256(GIVEN).hexdigest()


def test_a_pipe_that_was_written_to_again_is_read_again(fifo: Path) -> None:
    written(fifo, b"first")
    assert incoming.content(fifo) == b"first"
    opened = os.open(fifo, os.O_RDWR)
    os.write(opened, b"and then")
    os.utime(fifo, ns=(0, 7))  # some systems only tell the time by the hundredth
    closing = threading.Timer(0.2, os.close, [opened])
    closing.start()
    assert incoming.content(fifo) == b"and then"
    closing.join()


def test_a_pipe_that_is_open_already_and_standard_input_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    out, into = os.pipe()
    os.write(into, GIVEN)
    os.close(into)
    name = f"/dev/fd/{out}"
    assert incoming.content(name) == incoming.content(name) == GIVEN
    os.close(out)
    for text in (b"a text", b"another"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert incoming.content("-") == incoming.content(incoming.STANDARD_INPUT) == text
        assert list(incoming.lines("-")) == [text]
    monkeypatch.setattr(sys, "stdin", None)
    assert incoming.content("-") == b""


def test_what_a_pipe_gives_stands_in_a_file_where_it_is_walked_through(fifo: Path, file: Path) -> None:
    folder = fifo.with_name("copies")
    folder.mkdir()
    written(fifo, GIVEN)
    copy = incoming.as_file(fifo, folder)
    assert copy.parent == folder
    assert copy.read_bytes() == GIVEN
    assert incoming.as_file(file, folder) == file
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(("limit", "passes"), [("5B", False), ("25B", True), ("0.03k", True), ("24", False)])
@pytest.mark.parametrize("by", ["option", "environment"])
def test_the_limit_is_of_what_has_no_size(
    fifo: Path, file: Path, monkeypatch: pytest.MonkeyPatch, limit: str, passes: bool, by: str
) -> None:
    given = GIVEN.ljust(25)
    monkeypatch.setenv(incoming.LIMIT, limit if by == "environment" else "1")
    incoming.limit_to(limit if by == "option" else None)
    assert incoming.content(file) == GIVEN  # which has one
    for read in (incoming.content, lambda place: incoming.as_file(place, file.parent).read_bytes()):
        fifo.unlink()
        os.mkfifo(fifo)
        written(fifo, given)
        if passes:
            assert read(fifo) == given
            continue
        most = {"5B": "5", "24": "24"}[limit]
        with pytest.raises(InputError) as refused:
            read(fifo)
        assert str(refused.value) == (
            f"'{fifo}' gives more than {most} bytes: --input-limit, or ATTNSCOPE_INPUT_LIMIT, sets how much "
            "is read"
        )


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/full"])
def test_a_device_that_never_ends_is_refused_in_a_moment(device: str) -> None:
    incoming.limit_to("3MB")
    for read in (incoming.content, incoming.sha256, lambda place: list(incoming.lines(place))):
        with pytest.raises(InputError, match=f"^'{device}' gives more than 3,000,000 bytes"):
            read(device)


def test_sizes_are_read_as_people_write_them_and_limits_that_are_none_or_names_too_long_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InputError, match=r"^--input-limit is no size: 'much': such as 500MB or 2GB$"):
        incoming.limit_to("much")
    incoming._limit.set(None)
    monkeypatch.setenv(incoming.LIMIT, "-1")
    with pytest.raises(InputError, match=f"^{incoming.LIMIT} is no size: '-1'"):
        incoming.limit()
    monkeypatch.setenv(incoming.LIMIT, " ")
    assert incoming.limit() == incoming.USUAL_LIMIT
    for spelled, size in {
        "500MB": 5 * 10**8,
        "2 gb": 2 * 10**9,
        "1.5k": 1500,
        "7": 7,
        "-1": None,
        "": None,
    }.items():
        assert machine.bytes_of(spelled) == size
    incoming.check_name("x" * incoming.LONGEST_NAME, "dims")
    with pytest.raises(AttnscopeError, match=r"^dims: 'x{30}…' has 1,001 characters, a name has 1000$"):
        incoming.check_name("x" * (incoming.LONGEST_NAME + 1), "dims")


def test_what_has_no_room_in_memory_is_refused_before_it_is_read(
    file: Path, fifo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sparse = file.with_name("sparse")
    with sparse.open("wb") as made:
        made.truncate(20 * 10**9)
    room(monkeypatch, 30 * 10**9)
    with pytest.raises(
        DoesNotFitError, match=r"^reading sound '.*sparse' takes 40.0 GB, and memory has 30.0"
    ):
        incoming.content(sparse, "sound")
    with pytest.raises(DoesNotFitError, match=r"takes 40\.0 GB"):
        next(incoming.lines(sparse))
    assert incoming.content(sparse, most=7) == bytes(7)
    room(monkeypatch, len(GIVEN) * 2 - 1)
    written(fifo, GIVEN)
    with pytest.raises(DoesNotFitError, match=r"^'.*pipe' gives more than fits"):
        incoming.content(fifo)
    room(monkeypatch, len(GIVEN) * 2)
    assert incoming.content(file) == GIVEN


def test_a_line_has_its_bound_and_what_comes_behind_it_is_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming, "LONGEST_LINE", 8)
    place = tmp_path / "lines"
    for ends in (b"\n", b"\r\n"):
        rows = [b"a" * size for size in (8, 9, 10, 11, 0, 30, 3)]
        place.write_bytes(ends.join(rows))
        assert list(incoming.lines(place)) == [row[:9] for row in rows]
        with pytest.raises(
            InputError, match=r"lines': line 2 is longer than 8 bytes: it takes lines of text$"
        ):
            list(incoming.whole_lines(place))
    place.write_bytes(b"a" * 8 + b"\r\n" + b"b" * 8)
    assert [line for _, line in incoming.whole_lines(place)] == [b"a" * 8, b"b" * 8]


def test_lines_that_are_kept_leave_room_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "_OFTEN", 3)
    place = tmp_path / "lines"
    place.write_bytes(b"a\n" * 7)
    sizes = iter([10**9, 10**9, 10**6])
    monkeypatch.setattr(incoming, "left", lambda: next(sizes))
    with pytest.raises(
        DoesNotFitError, match=r"^the rest of '.*lines' takes 0.3 GB, and memory has 1.0 MB free"
    ):
        list(incoming.whole_lines(place))


def test_what_cannot_be_read_is_one_line_that_says_why(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        (tmp_path / "loop").symlink_to("loop")
        for name, why in (
            ("none", "no such file"),
            (".", "it is a folder, name a file"),
            ("socket", "it is a socket, name a file or a pipe"),
            ("loop", "Too many levels of symbolic links"),
            ("a\0b", "no file can be called that"),
            ("\ud800", "no file can be called that"),
            ("x" * 300, "File name too long"),
        ):
            for read in (
                incoming.content,
                incoming.sha256,
                lambda path: incoming.as_file(Path(path), tmp_path),
            ):
                with pytest.raises(InputError) as refused:
                    read(name)
                assert str(refused.value) == f"cannot read {incoming.named(name)}: {why}"
                assert "\0" not in str(refused.value)


def test_what_this_user_may_not_read_says_so(file: Path) -> None:
    file.chmod(0)
    root = os.geteuid() == 0  # who may read everything
    if root:
        os.seteuid(65534)
    try:
        with pytest.raises(InputError, match=r"^cannot read '.*given.txt': Permission denied$"):
            incoming.content(file)
    finally:
        if root:
            os.seteuid(0)


def test_json_is_read_where_its_objects_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    assert incoming.parsed(b'\xef\xbb\xbf{"a": [1, 2.5]}', "it") == {"a": [1, 2.5]}
    for raw, message in (
        (b"[" * 100_000, "it is no JSON"),
        (b"{", "it is no JSON"),
        (b"9" * 5000, "it is no JSON"),  # a number has its bound as well
        (b"\xff", "it is not valid UTF-8"),
    ):
        with pytest.raises(InputError, match=f"^{message}"):
            incoming.parsed(raw, "it")
    room(monkeypatch, 1000)
    assert incoming.parsed("[1,2,3]", "it") == [1, 2, 3]
    for many in ("[" + "{}," * 9 + "{}]", "[" + "1," * 12 + "1]", "[" * 9 + "]" * 9 + "," * 9):
        with pytest.raises(DoesNotFitError, match=r"^it as JSON takes "):
            incoming.parsed(many, "it")


@pytest.mark.parametrize(
    "written", ["[" + "{}," * 60_000 + "{}]", "[" + "[]," * 60_000 + "0]", "[" + "0.25," * 60_000 + "0]"]
)
def test_the_room_that_is_asked_for_json_is_what_python_takes_or_more(written: str, monkeypatch) -> None:
    import tracemalloc

    tracemalloc.start()
    held = incoming.parsed(written, "it")
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(held) > 60_000
    room(monkeypatch, taken)
    with pytest.raises(DoesNotFitError):
        incoming.parsed(written, "it")


def test_settings_of_a_model_are_read_where_they_have_room(tmp_path: Path, monkeypatch) -> None:
    config = tmp_path / "config.json"
    with pytest.raises(FileNotFoundError):
        incoming.settings(config)
    config.write_text("{")
    with pytest.raises(ValueError, match="Expecting property name"):
        incoming.settings(config)
    config.write_text('{"layers": 3}')
    assert incoming.settings(config) == {"layers": 3}
    with config.open("ab") as made:
        made.truncate(20 * 10**9)
    room(monkeypatch, 30 * 10**9)
    with pytest.raises(
        DoesNotFitError, match=r"^reading 'config\.json' takes 200\.0 GB, and memory has 30\.0"
    ):
        incoming.settings(config)


def test_what_is_not_there_is_said_without_opening_what_is(
    file: Path, fifo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for there in (file, fifo, incoming.STANDARD_INPUT, Path("/dev/zero"), None):
        incoming.check_there(there)  # a pipe that nobody writes to would be waited for if it were opened
    for missing, why in ((tmp_path / "none", "no such file"), (tmp_path, "it is a folder, name a file")):
        with pytest.raises(InputError) as refused:
            incoming.check_there(missing, "picture")
        assert str(refused.value) == f"cannot read picture '{missing}': {why}"
        with pytest.raises(InputError) as read:
            incoming.content(missing, "picture")
        assert str(read.value) == str(refused.value)
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (file, os.R_OK))
    incoming.check_there(fifo)
    with pytest.raises(InputError, match=r"cannot read '.*': Permission denied$"):
        incoming.check_there(file)
