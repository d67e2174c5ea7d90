"""The very same question is answered with what was printed, before anything heavy is imported."""

import json
import os
import pty
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from checkpoints import tiny_bert

import attnscope
from attnscope.cli import repeated

TEXT = "to be or not"
HEAVY = {"torch", "transformers", "numpy", "typer", "rich", "pydantic", "attnscope.cli.app"}
PROGRAM = f"""
import atexit, os, sys
def tell():
    with open(os.environ["SEEN"], "w") as file:
        file.write(" ".join(sorted({HEAVY!r} & sys.modules.keys())))
atexit.register(tell)
from attnscope.__main__ import main
main()
"""


@dataclass(frozen=True)
class Said:
    """What one run wrote, its exit code, and what heavy it had imported."""

    out: bytes
    err: str
    code: int
    imported: str

    @property
    def again(self) -> bool:
        """Whether it was printed again."""
        return not self.imported


Ask = Callable[..., Said]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, an empty cache and a program that tells what it imported."""
    folder = tmp_path_factory.mktemp("printed")
    tiny_bert(folder / "bert")
    (folder / "work").mkdir()
    (folder / "work" / "here.txt").write_text("to be\n")
    (folder / "bin").mkdir()  # where nothing else appears: it is where modules are looked for first
    (folder / "bin" / "program.py").write_text(PROGRAM)
    time.sleep(2.1)  # what was just written is not yet believed
    return folder


@pytest.fixture
def ask(room: Path, tmp_path: Path) -> Ask:
    """`ask(*words, cwd=, stdout=, NAME=VALUE...)`: the program as a process of its own."""

    def run(*words: str, cwd: Path = room / "work", home: Path | None = None, **changes: Any) -> Said:
        own = {
            "PATH": os.environ["PATH"],
            "HOME": str(room),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LANG": "C.UTF-8",
        }
        own |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "COLUMNS": "80", "SEEN": str(room / "seen")}
        own |= {"ATTNSCOPE_CACHE": str(room / "kept"), "PYTHONPATH": str(home or _package().parent)}
        command = [sys.executable, str(room / "bin" / "program.py"), *words]
        done = subprocess.run(
            command, cwd=cwd, env=own | changes, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        return Said(done.stdout, done.stderr.decode(), done.returncode, (room / "seen").read_text())

    return run


def _package() -> Path:
    return Path(attnscope.__file__).parent


def soon(ask: Ask, *words: str) -> Said:
    """The answer that is printed again; another test that just compiled a module may put that off."""
    said = [ask(*words)]
    while not said[-1].again and len(said) < 4:
        said.append(ask(*words))
    assert said[-1].again, said[-1]
    return said[-1]


def of(model: Path, *more: str) -> list[str]:
    return ["heads", TEXT, "-m", str(model), "-l", "1", "--head", "0", *more]


@pytest.fixture
def kept(ask: Ask, room: Path) -> Said:
    """The question was asked often enough that its answer is there to be printed."""
    return soon(ask, *of(room / "bert"))


def test_it_is_printed_to_the_byte_without_anything_heavy_and_the_cache_counts_it(
    ask: Ask, room: Path, kept: Said
) -> None:
    anew = ask(*of(room / "bert"), "--no-cache")
    assert "torch" in anew.imported
    assert (anew.out, anew.code) == (kept.out, kept.code) == (kept.out, 0)
    told = [line for line in kept.err.splitlines() if not line.startswith("note: from the cache: ")]
    assert told == anew.err.splitlines()
    assert len(kept.err.splitlines()) == len(told) + 1
    entries = json.loads(ask("cache", "--json").out)["entries"]
    files = len(list((room / "kept" / "captures").glob("*/*.capture")))
    assert entries == files > 1


def test_any_question_about_one_text_says_at_once_what_it_said_and_where_that_is_from(
    ask: Ask, room: Path
) -> None:
    words = ["find", TEXT, "--from", "be", "--to", "or", "-m", str(room / "bert")]
    first, second = ask(*words), soon(ask, *words)
    assert not first.again
    assert (first.out, first.code) == (second.out, second.code)
    assert second.err.startswith(first.err)
    assert second.err.removeprefix(first.err).startswith("note: from the cache: printed on ")
    quiet = ask(*of(room / "bert"), "-q"), soon(ask, *of(room / "bert"), "-q")
    assert quiet[0].err == quiet[1].err == ""


def replaced(file: Path, old: bytes, new: bytes) -> None:
    content = file.read_bytes()
    assert old in content
    file.write_bytes(content.replace(old, new))


ELSEWHERE: dict[str, dict[str, Any]] = {
    "narrower": {"COLUMNS": "70"},
    "without colour": {"NO_COLOR": "1"},
    "another language": {"LANG": "C"},
    "a dark terminal": {"ATTNSCOPE_THEME": "dark"},
    "another setting of torch": {"ATEN_CPU_CAPABILITY": "default"},
    "switched off": {"ATTNSCOPE_CACHE": "off"},
}


@pytest.mark.parametrize("what", ELSEWHERE)
def test_another_environment_goes_the_ordinary_way(what: str, ask: Ask, room: Path, kept: Said) -> None:
    assert not ask(*of(room / "bert"), **ELSEWHERE[what]).again
    soon(ask, *of(room / "bert"))


def test_what_a_shell_counts_is_no_other_environment(ask: Ask, room: Path, kept: Said) -> None:
    for level in "789":  # each another one
        soon(ask, *of(room / "bert"))
        if ask(*of(room / "bert"), SHLVL=level, OLDPWD=f"/{level}").again:
            return
    pytest.fail("it counts")


def test_another_folder_order_or_word_goes_the_ordinary_way(ask: Ask, room: Path, kept: Said) -> None:
    assert not ask(*of(room / "bert"), cwd=room).again
    assert not ask(*of(room / "bert", "-v")).again
    assert not ask(*of(room / "bert", "--no-cache")).again


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("config.json", b"1e-12", b"1e-03"),
        ("tokenizer.json", b'"to"', b'"tu"'),
        ("model.safetensors", b"\x3f", b"\x3e"),
    ],
)
def test_a_changed_file_of_the_model_under_its_old_date_goes_the_ordinary_way(
    file: str, old: bytes, new: bytes, ask: Ask, room: Path, kept: Said
) -> None:
    path = room / "bert" / file
    content, status = path.read_bytes(), path.stat()
    replaced(path, old, new)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    try:
        assert not ask(*of(room / "bert")).again
    finally:
        path.write_bytes(content)
    assert ask(*of(room / "bert")).out == kept.out
    soon(ask, *of(room / "bert"))


def test_a_file_that_comes_to_be_called_as_the_text_goes_the_ordinary_way(
    ask: Ask, room: Path, kept: Said
) -> None:
    file = room / "work" / TEXT
    file.write_text("another\n")
    try:
        assert not ask(*of(room / "bert")).again
    finally:
        file.unlink()


def test_what_a_question_is_found_by_holds_the_files_that_its_words_name(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (facts := tmp_path / "facts.jsonl").write_text("one\n")
    os.mkfifo(tmp_path / "pipe")
    ways = [["find", "--facts", facts.name], ["find", f"--facts={facts.name}"], ["find", f"-f{facts.name}"]]
    now = time.time_ns()
    assert [repeated.found_by(words, now) for words in ways] == [None] * 3  # it was just written
    later = now + 3 * 10**9
    before = [repeated.found_by(words, later) for words in ways]
    assert len(set(before)) == 3
    assert None not in before
    facts.write_text("two\n")  # as long as it was
    after = [repeated.found_by(words, later + 10**9) for words in ways]
    assert None not in after
    assert set(after).isdisjoint(before)
    for never in (["find", "--facts", "pipe"], ["find", "-"], ["find", "--timings"], []):
        assert repeated.found_by(never, later) is None


def test_what_writes_a_file_fails_or_asks_no_model_is_never_printed_again(ask: Ask, room: Path) -> None:
    picture = room / "work" / "x.png"
    for _ in range(2):
        picture.unlink(missing_ok=True)
        assert not ask(*of(room / "bert", "-o", "x.png")).again
        assert picture.is_file()
    for words in (of(room / "bert", "--query", "nowhere"), ["--help"]):
        assert not any(ask(*words).again for _ in range(2)), words


def test_a_cleared_cache_goes_the_ordinary_way(ask: Ask, room: Path, kept: Said) -> None:
    ask("cache", "clear")
    assert "torch" in ask(*of(room / "bert")).imported


def test_a_damaged_entry_goes_the_ordinary_way_and_is_made_anew(ask: Ask, room: Path, kept: Said) -> None:
    entries = {path for path in (room / "kept").rglob("*.capture") if b'"printed"' in path.read_bytes()}
    assert entries
    for entry in entries:
        content = bytearray(entry.read_bytes())
        content[-5] ^= 1
        entry.write_bytes(content)
    damaged = ask(*of(room / "bert"))
    assert (damaged.again, damaged.out, damaged.code) == (False, kept.out, 0)
    soon(ask, *of(room / "bert"))


def test_many_at_once_all_print_the_same(ask: Ask, room: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    words = of(room / "bert", "--query", "be")
    expected = ask(*words).out
    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(lambda _: ask(*words), range(8)))
    assert {each.out for each in said} == {expected}
    soon(ask, *words)


def test_an_edited_program_goes_the_ordinary_way(ask: Ask, room: Path, tmp_path: Path) -> None:
    copied = tmp_path / "house"
    shutil.copytree(
        _package(), copied / "attnscope", ignore=shutil.ignore_patterns("__pycache__", "*.safetensors")
    )
    time.sleep(2.1)
    asked = [ask(*of(room / "bert"), home=copied) for _ in range(3)]
    assert asked[-1].again
    with (copied / "attnscope" / "render" / "screen.py").open("a") as module:
        module.write("# edited\n")
    assert not ask(*of(room / "bert"), home=copied).again


def on_a_terminal(room: Path, words: list[str]) -> bytes:
    """All that one run writes to a terminal of 90 columns."""
    child, here = pty.fork()
    if not child:
        os.chdir(room / "work")
        own = {"PATH": os.environ["PATH"], "HOME": str(room), "TERM": "xterm-256color", "COLORFGBG": "0;15"}
        own |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "SEEN": str(room / "seen"), "COLUMNS": "90"}
        own |= {"ATTNSCOPE_CACHE": str(room / "kept"), "PYTHONPATH": str(_package().parent)}
        own |= {"PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
        os.execve(sys.executable, [sys.executable, str(room / "bin" / "program.py"), *words], own)
    said = b""
    try:
        while more := os.read(here, 4096):
            said += more
    except OSError:
        pass  # it has ended
    os.close(here)
    os.waitpid(child, 0)
    return said


def test_on_a_terminal_it_is_printed_in_its_colours_without_the_spinner(room: Path) -> None:
    quiet = of(room / "bert", "-q")
    first, second = [on_a_terminal(room, quiet) for _ in range(3)][1:]
    assert b"\x1b[" in first
    assert second == first
    assert not (room / "seen").read_text()
    loud = ["find", TEXT, "--from", "not", "--to", "or", "-m", str(room / "bert")]
    on_a_terminal(room, loud)
    again = on_a_terminal(room, loud)
    assert not (room / "seen").read_text()
    assert again.startswith(b"\x1b[2mnote: ") or b"note: " in again
    assert b"\x1b[?25l" not in again  # no cursor is hidden: nothing turns
