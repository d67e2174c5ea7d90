"""What is named or piped in: read once, bounded, told where it is none; nothing of it steers a terminal."""

import json
import os
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from attnscope import incoming
from attnscope.errors import DoesNotFitError
from attnscope.results import load
from attnscope.verbs.corpus.engine import SetAside, Span, Text
from attnscope.verbs.corpus.source import Form, Source
from attnscope.verbs.corpus.store import place_of
from attnscope.verbs.corpus.texts import items as read

HEAD = ("-m", "demo", "--layer", "1", "--head", "2")
SENTENCE = "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tdoor\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


@contextmanager
def piped(content: bytes) -> Iterator[str]:
    """The name of a pipe that holds it, as a shell's <(...) gives one."""
    out, into = os.pipe()
    os.write(into, content)
    os.close(into)
    yield f"/dev/fd/{out}"
    os.close(out)


@pytest.mark.parametrize(
    "asked",
    [
        "heads -m demo --texts",
        "heads -m demo --ids 1,2 --vocab",
        "compare -m demo --word x --texts",
        "dependencies -m demo",
        "corpus -m demo",
        "corpus -m demo --format file",
        "corpus -m demo --format conllu",
        "show",
        "check",
        "heads x -m demo --device-map",
    ],
)
def test_what_never_ends_is_one_line_that_names_the_option(
    attnscope, refused, monkeypatch, asked: str
) -> None:
    monkeypatch.setenv(incoming.LIMIT, "2MB")
    for device in ("/dev/zero", "/dev/urandom")[: 1 if asked.startswith("corpus") else 2]:
        says = f"'{device}' gives more than 2,000,000 bytes: --input-limit, or ATTNSCOPE"
        refused(says, *asked.split(), device)
    if "--device-map" not in asked:  # which is read before any other option
        limited = attnscope(*asked.split(), "/dev/zero", "--input-limit", "3MB")
        assert "gives more than 3,000,000 bytes" in limited.stderr


def test_a_text_from_standard_input_has_the_limit_too(attnscope) -> None:
    long = "the door " * 3
    assert (
        "standard input gives more than 20 bytes"
        in attnscope("heads", "-", *HEAD, "--input-limit", "20", stdin=long).stderr
    )
    assert attnscope("heads", "-", *HEAD, "--input-limit", "30", stdin=long).exit_code == 0


def test_a_vocabulary_from_a_pipe_is_that_of_the_file(attnscope, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\nthe\n\ndoor\n")
    asked = ("heads", "--ids", "1,3,1", *HEAD, "--json", "--vocab")
    with piped((tmp_path / "vocab.txt").read_bytes()) as name:
        from_pipe = attnscope(*asked, name)
    assert from_pipe.exit_code == 0, from_pipe.stderr
    told = [json.loads(from_pipe.stdout), json.loads(attnscope(*asked, str(tmp_path / "vocab.txt")).stdout)]
    leads = [document.pop("next") for document in told]
    assert "--vocab your-vocab-file" in leads[0], "the pipe is gone when it is pasted"
    assert str(tmp_path / "vocab.txt") in leads[1]
    assert [document["provenance"].pop("read")[-1] for document in told] == ["your-vocab-file", "vocab.txt"]
    assert all(document.pop("digests") and len(document["provenance"].pop("files")) < 2 for document in told)
    assert told[0] == told[1]


def test_a_corpus_from_a_pipe_is_that_of_the_file(attnscope, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = "".join(f"the door opened {number}\n" for number in range(5))
    Path("texts").write_text(content)
    asked = ("corpus", "-m", "demo", "--workers", "0", "--layer", "1", "--measure", "entropy", "--json")
    told = [json.loads(attnscope(*asked, "texts").stdout)]
    with piped(content.encode()) as name:
        told.append(json.loads(attnscope(*asked, name).stdout))
    told.append(json.loads(attnscope(*asked, "-", stdin=content).stdout))
    read = [document.pop("read") for document in told]
    assert [each.pop("files") for each in read] == [["texts"], [Path(name).name], ["standard input"]]
    assert read[0] == read[1] == read[2]
    assert read[0]["texts"] == 5
    assert [document["measures"] for document in told[1:]] == [told[0]["measures"]] * 2


@pytest.mark.parametrize("form", [Form.LINES, Form.JSONL, Form.CONLLU])
def test_a_corpus_over_a_sparse_file_streams(tmp_path: Path, form: Form, monkeypatch) -> None:
    import tracemalloc

    monkeypatch.setattr(incoming, "LONGEST_LINE", 10**6)
    monkeypatch.setattr(incoming, "left", lambda: 0)  # it is never held
    place = tmp_path / "sparse"
    texts = {Form.LINES: "the door\n", Form.JSONL: '{"text": "the door"}\n', Form.CONLLU: SENTENCE}[form]
    with place.open("wb") as made:
        made.write(texts.encode())
        made.truncate(60 * 10**6)
    with place.open("ab") as made:
        made.write(b"\n" + texts.encode())
    tracemalloc.start()
    items = [item for _, item in read(Span(0, Source(place_of(place), "sparse", form)))]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20 * 10**6
    first, aside, last = (item for item in items if item is not None)
    assert isinstance(first, Text)
    assert isinstance(last, Text)
    assert first.text == last.text == "the door"
    assert isinstance(aside, SetAside)
    assert aside.why == "it is longer than 1,000,000 bytes"
    assert aside.line == {Form.LINES: 2, Form.JSONL: 2, Form.CONLLU: 4}[form]


def test_a_sentence_and_a_text_of_a_corpus_have_their_bound(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(incoming, "LONGEST_LINE", 60)
    place = tmp_path / "long"
    place.write_text(SENTENCE.strip("\n") * 2 + "\n" + SENTENCE)
    ((_, long),) = read(Span(0, Source(place_of(place), "long", Form.FILE)))
    assert isinstance(long, SetAside)
    place.write_text(SENTENCE + SENTENCE.rstrip("\n").replace("door", "d" * 30) + "\n\n" + SENTENCE)
    first, aside, last = (item for _, item in read(Span(0, Source(place_of(place), "long", Form.CONLLU))))
    assert isinstance(first, Text)
    assert isinstance(last, Text)
    assert isinstance(aside, SetAside)
    assert (aside.line, aside.why) == (4, "it is longer than 60 bytes")


def test_an_archive_is_refused_by_what_its_headers_say_before_any_array_is_read(
    refused, tmp_path: Path, monkeypatch
) -> None:
    bomb = tmp_path / "bomb.npz"
    np.savez_compressed(bomb, meta=np.array("{}"), small=np.zeros(5), q=np.zeros((1000, 3000)))
    assert bomb.stat().st_size < 10**5

    def reads(*_: object, **__: object) -> None:
        raise AssertionError("an array was read")

    monkeypatch.setattr(np.lib.format, "read_array", reads)
    monkeypatch.setattr(incoming, "left", lambda: 20 * 10**6)
    with pytest.raises(
        DoesNotFitError, match=r"bomb.npz' unpacked takes 24\.0 MB \('q' alone 24\.0 MB\), and mem"
    ):
        load(bomb)
    for command in ("show", "check", "sdpa"):
        refused("", command, str(bomb), code=4)


def test_a_model_in_a_folder_whose_name_is_half_a_character_is_one_line(refused, bert: Path) -> None:
    Path("texts").write_text("the door\n")
    shutil.copytree(bert, name := os.fsdecode(b"half\xed\xa0\x80"))
    says = r"attnscope: half\udced\udca0\udc80: "
    refused(says, "corpus", "texts", "-m", name, "--workers", "0", code=3)


NAME = "m\x1b[31m\x07\x1b]0;t\x07\u202e\r\nq'\\"
TEXT = "the \x1b[2Jdoor\x9b1A =1+2"


def steering(shown: str) -> set[str]:
    categories = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return {each for each in shown if each != "\n" and unicodedata.category(each) in categories}


@pytest.fixture
def named(bert: Path, tmp_path: Path) -> Path:
    """A model in a folder of that name."""
    if sys.platform == "win32":
        pytest.skip("no such name on Windows")
    return Path(shutil.copytree(bert, tmp_path / NAME))


def test_nothing_of_a_models_folder_or_a_text_steers(attnscope, named: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"a\x1b[31m.{suffix}" for suffix in ("csv", "html", "json")]
    out = [each for file in files for each in ("-o", str(file))]
    result: Result = attnscope("heads", TEXT, "-m", str(named), *out)
    assert not steering(result.stdout + result.stderr)
    assert r"m\x1b[31m\x07\x1b]0;t\x07\u202e␍↵q" in result.stdout
    assert r"“the \x1b[2Jdoor\x9b1A =1+2”" in result.stdout
    assert "wrote" in result.stderr
    for file in files:
        assert not steering(file.read_text("utf-8"))


def test_the_command_that_opens_a_head_is_read_by_a_shell_as_it_was_meant(attnscope, named: Path) -> None:
    shown = attnscope("heads", "the door", "-m", str(named)).stdout
    pasted = shown.partition("\nNext: look into one\n")[2].strip()
    assert not steering(pasted)
    told = subprocess.run(["bash", "-c", f"printf '%s\\0' {pasted}"], capture_output=True, check=True).stdout
    words = told.decode().split("\0")
    assert words[words.index("-m") + 1] == os.fspath(named)
    opened = attnscope(*words[1:-1])
    assert opened.exit_code == 0
    assert opened.stdout.startswith("L")


def test_an_error_and_a_notice_name_it_as_escapes(attnscope, named: Path) -> None:
    (named / "config.json").write_text("{")
    result = attnscope("heads", "the door", "-m", str(named))
    assert result.exit_code in (2, 3)
    assert not steering(result.stderr)
    assert len(result.stderr.splitlines()) == 1


# runs each line of standard input, a list of arguments, and tells how it ended; where one imports what takes
# time, that is told instead
EACH = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
HEAVY = ("torch", "transformers", "sklearn", "scipy", "matplotlib", "pyarrow", "pandas", "PIL", "soundfile")

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in HEAVY:
            raise AssertionError(f"{name} was imported")

sys.meta_path.insert(0, Finder())
from attnscope.cli.app import app
for line in sys.stdin:
    said, printed = io.StringIO(), io.StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(printed):
            app(json.loads(line), prog_name="attnscope")
    except SystemExit as done:
        print(json.dumps([done.code, printed.getvalue(), said.getvalue()]))
    except AssertionError as imported:
        print(json.dumps([None, "", str(imported)]))
"""
TEXTS = ["heads", "predict", "ablate", "tsne", "report", "verify"]
NUMBERS = ["heads", "predict", "ablate", "tsne", "report", "verify"]
LINK = ["--from", "0", "--to", "1"]
ASKED = [  # and how its file is called in the line
    *[([command, "-m", "demo", "--texts"], "") for command in TEXTS],
    (["flow", "--from", "0", "-m", "demo", "--texts"], ""),
    (["find", *LINK, "-m", "demo", "--texts"], ""),
    (["compare", "--word", "door", "-m", "demo", "--texts"], ""),
    *[([command, "-m", "demo", "--ids", "1,2", "--vocab"], "the vocabulary ") for command in NUMBERS],
    (["flow", "--from", "0", "-m", "demo", "--ids", "1,2", "--vocab"], "the vocabulary "),
    (["find", *LINK, "-m", "demo", "--ids", "1,2", "--vocab"], "the vocabulary "),
    (["compare", "--word", "1", "--ids", "1", "--ids-b", "2", "-m", "demo", "--vocab"], "the vocabulary "),
    *[([command, "-m", "demo", "--image"], "picture ") for command in TEXTS],
    *[([command, "-m", "demo", "--audio"], "sound ") for command in TEXTS],
    (["flow", "--from", "0", "-m", "demo", "--image"], "picture "),
    (["find", *LINK, "-m", "demo", "--audio"], "sound "),
    (["compare", "a", "b", "--word", "a", "-m", "demo", "--image"], "picture "),
    (["check", "there.npz", "--image"], "picture "),
    (["check", "there.npz", "--audio"], "sound "),
    (["show"], ""),
    (["check"], ""),
    (["dependencies", "-m", "demo"], ""),
    (["corpus", "-m", "demo"], ""),
    (["corpus", "there.txt", "-m", "demo"], ""),
    *[(["corpus", "-m", "demo", "--format", form], "") for form in ("file", "jsonl", "conllu", "parquet")],
    (["heads", "the door", "-m", "demo", "--device-map"], "--device-map "),
]
BY_SUFFIX = [  # what is a file by the end of its name
    (["compare", "there.npz"], ".npz"),
    (["sdpa"], ".npz"),
    (["sdpa", "--q", "1,0", "--k", "1,0", "--v"], ".npy"),
]


def told(lines: list[list[str]], folder: Path) -> list[tuple[int | None, str, str]]:
    (folder / "there.txt").write_text("the door\n")
    (folder / "there.npz").write_bytes(b"PK")
    done = subprocess.run(
        [sys.executable, "-c", EACH],
        input="\n".join(map(json.dumps, lines)),
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert len(found) == len(lines)
    return found


def refusals(why: str, name: str, folder: Path, but: tuple[str, ...] = ()) -> None:
    named = [([*arguments, name], f"{what}'{name}'") for arguments, what in ASKED]
    named += [([*arguments, name + suffix], f"'{name}{suffix}'") for arguments, suffix in BY_SUFFIX]
    named = [each for each in named if each[0][0] not in but]
    answers = told([arguments for arguments, _ in named], folder)
    for (arguments, file), (code, printed, said) in zip(named, answers, strict=True):
        assert (code, printed) == (2, ""), (arguments, said)
        assert said.startswith(f"attnscope: cannot read {file}: {why}"), arguments
        assert said.count("\n") == 1, arguments


def test_a_file_that_is_not_there_is_said_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    refusals("no such file", "nowhere", tmp_path)


def test_so_is_a_folder(tmp_path: Path) -> None:
    for suffix in ("", ".npz", ".npy"):
        (tmp_path / f"folder{suffix}").mkdir()
    refusals(
        "it is a folder, name a file", "folder", tmp_path, but=("corpus",)
    )  # which reads what lies in it


def test_what_is_there_goes_on_and_imports(tmp_path: Path) -> None:
    """Or else nothing above would say anything."""
    lines = [["heads", "-m", "demo", "--texts", "there.txt"], ["corpus", "there.txt", "-m", "demo"]]
    for code, _, said in told(lines, tmp_path):
        assert code is None
        assert said.endswith(" was imported")


def test_in_a_process_of_its_own_it_takes_no_time(tmp_path: Path) -> None:
    arguments = ["corpus", "nowhere"]
    before = os.times().children_user
    command = [sys.executable, "-X", "importtime", "-m", "attnscope", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    used = os.times().children_user - before
    *imported, said = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert said == f"attnscope: cannot read '{arguments[1]}': no such file"
    modules = {line.rpartition("|")[2].strip() for line in imported}
    assert "attnscope.cli.app" in modules
    assert not modules & {"torch", "transformers", "pyarrow"}
    assert used < 2  # seconds of processor time; torch and transformers take more than three
    assert not list(tmp_path.iterdir())
