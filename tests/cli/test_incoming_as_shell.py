"""What a user names or pipes in, as the shell sees it: pipes are read once, endless ones are one line."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from attnscope import incoming
from attnscope.errors import DoesNotFitError
from attnscope.results import load
from attnscope.session.corpus.engine.interface import SetAside, Span, Text
from attnscope.session.corpus.source import Form, Source
from attnscope.session.corpus.store import Place
from attnscope.session.corpus.texts import items as read

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
    "arguments",
    [
        ["heads", "-m", "demo", "--texts"],
        ["heads", "-m", "demo", "--ids", "1,2", "--vocab"],
        ["compare", "-m", "demo", "--word", "x", "--texts"],
        ["dependencies", "-m", "demo"],
        ["corpus", "-m", "demo"],
        ["corpus", "-m", "demo", "--format", "file"],
        ["corpus", "-m", "demo", "--format", "conllu"],
        ["show"],
        ["check"],
        ["heads", "x", "-m", "demo", "--device-map"],
    ],
)
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_what_never_ends_is_one_line_that_names_the_option(
    attnscope, tmp_path: Path, monkeypatch, arguments: list[str], device: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(incoming.LIMIT, "2MB")
    refused = attnscope(*arguments, device)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.count("\n") == 1
    assert f"'{device}' gives more than 2,000,000 bytes: --input-limit, or ATTNSCOPE" in refused.stderr
    assert not list(tmp_path.iterdir())
    limited = attnscope(*arguments, device, "--input-limit", "3MB")
    if "--device-map" not in arguments:  # which is read before any other option
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
    assert "--vocab your-vocabulary.txt" in leads[0], "the pipe is gone when it is pasted"
    assert str(tmp_path / "vocab.txt") in leads[1]
    assert [document.pop("digests").pop("next") for document in told]
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
    items = [item for _, item in read(Span(0, Source(Place.of(place), "sparse", form)))]
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
    ((_, long),) = read(Span(0, Source(Place.of(place), "long", Form.FILE)))
    assert isinstance(long, SetAside)
    place.write_text(SENTENCE + SENTENCE.rstrip("\n").replace("door", "d" * 30) + "\n\n" + SENTENCE)
    first, aside, last = (item for _, item in read(Span(0, Source(Place.of(place), "long", Form.CONLLU))))
    assert isinstance(first, Text)
    assert isinstance(last, Text)
    assert isinstance(aside, SetAside)
    assert (aside.line, aside.why) == (4, "it is longer than 60 bytes")


def test_an_archive_is_refused_by_what_its_headers_say_before_any_array_is_read(
    attnscope, tmp_path: Path, monkeypatch
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
        refused = attnscope(command, str(bomb))
        assert (refused.exit_code, refused.stderr.count("\n")) == (4, 1), refused.stderr


def test_a_model_in_a_folder_whose_name_is_half_a_character_is_one_line(
    attnscope, bert: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts").write_text("the door\n")
    shutil.copytree(bert, name := os.fsdecode(b"half\xed\xa0\x80"))
    refused = attnscope("corpus", "texts", "-m", name, "--workers", "0")
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert refused.stderr.count("\n") == 1
    assert refused.stderr.startswith(r"attnscope: half\udced\udca0\udc80: ")
    assert "\udced" not in refused.stderr
