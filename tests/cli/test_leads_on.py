"""What stands below `Next:` runs when it is pasted, and reads and runs what the command before it did."""

import os
import re
import shlex
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import cases_media
import pytest
from own_code import plain_decoder
from pasted import following

from attnscope.render.sheets import sheet_of

Run = Callable[..., Any]
TEXT = "The door opened and then it closed."
TWICE = "the door and the door opened"
LONG = f"The door opened{' ' * 300}and then it closed."
PICTURE, SOUND = (
    str(files("attnscope") / "demo" / name) for name in ("caption/example.png", "speech/example.wav")
)
SEEN, HEARD = ("--image", PICTURE, "-m", "demo-caption"), ("--audio", SOUND, "-m", "demo-speech")


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (("heads", TEXT, "-m", "demo"), ()),
        (("heads", TEXT, "-m", "demo", "--layer", "3", "--head", "11"), ()),
        (("heads", TEXT, "-m", "demo", "--words", "--attn", "sdpa"), ("--attn sdpa", "--by word")),
        (("heads", TEXT, "--pair", "It was red.", "-m", "demo", "--device", "cpu"), ("--device cpu",)),
        (("heads", "--ids", "2,45,46,47", "-m", "demo"), ("--ids 2,45,46,47",)),
        (("heads", TEXT, "--split", "-m", "demo"), ("--split",)),
        (("heads", "river king river", "-m", "demo-causal", "--generate", "3"), ("--generate 3",)),
        (("heads", "The door opened.", "-m", "demo-translate", "--kind", "decoder"), ("--kind decoder",)),
        (("find", TEXT, "-m", "demo", "--from", "it", "--to", "door"), ()),
        (("ablate", "The [MASK] opened.", "-m", "demo", "--layer", "3", "--head", "1"), ()),
        (("flow", "The door opened and the", "-m", "demo-causal", "--from", "the@5"), ()),
        (("predict", "The door opened.", "-m", "demo-translate"), ("--kind cross",)),
        (("tsne", TEXT, "-m", "demo", "--json"), ()),
        (("flow", TWICE, "-m", "demo", "--from", "1-2", "--by", "word"), ("the door@1", "--by word")),
        (("heads", TWICE, "-m", "demo", "--from", "1-2", "--to", "and", "--head", "L3H1"), ("the door@1",)),
        (("flow", "--ids", "2,45,46,47,48,49", "-m", "demo", "--from", "1-2"), ("pos:1-2", "--ids 2,45")),
        (("compare", TWICE, "A door.", "--word", "and the door", "--word-b", "door", "-m", "demo"), ()),
        (("find", TWICE, "-m", "demo", "--from", "1-2", "--to", "and", "--head", "L3H1,L2H2"), ()),
        (("verify", TEXT, "-m", "demo"), ()),
        (("compare", TEXT, "A door.", "--word", "door", "-m", "demo", "--device", "cpu"), ("--device cpu",)),
        (("heads", *SEEN), (f"--image {PICTURE}",)),
        (("heads", *SEEN, "--kind", "encoder", "--layer", "0", "--head", "1"), (f"--image {PICTURE}",)),
        (("heads", *SEEN, "--kind", "decoder"), (f"--image {PICTURE}", "--kind decoder")),
        (("heads", *SEEN, "--kind", "decoder", "--layer", "1", "--head", "0"), ("--kind decoder",)),
        (("predict", *SEEN), (f"--image {PICTURE}",)),
        (("ablate", *SEEN, "--kind", "decoder"), (f"--image {PICTURE}", "--kind decoder")),
        (("heads", *HEARD, "--kind", "decoder"), (f"--audio {SOUND}", "--kind decoder")),
        (("predict", *HEARD), (f"--audio {SOUND}",)),
        (("align", "The red door opened.", "-m", "demo-translate"), ("--kind cross",)),
        (("align", *HEARD), (f"--audio {SOUND}",)),
        (("ablate", "The [MASK] opened.", "-m", "demo", "--at", "opened"), ()),
        (("explain", TEXT, "-m", "demo", "--from", "it", "--to", "door"), ()),
        (("why", TEXT, "-m", "demo", "--layer", "3", "--head", "11", "--from", "it", "--to", "door"), ()),
    ],
)  # fmt: skip
def test_the_command_below_next_runs_as_it_stands(
    attnscope: Run, asked: tuple[str, ...], kept: tuple[str, ...], tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = (*asked[:-1], "-o", "map.png") if asked[-1] == "--json" else asked
    first = attnscope(*shown)
    assert first.exit_code == 0, first.stderr
    command = following(first.stdout)
    assert command[0] == "attnscope"
    assert all(option in " ".join(command) for option in kept)
    second = attnscope(*command[1:])
    assert second.exit_code == 0, second.stderr
    assert second.stdout != first.stdout


def test_a_piped_text_that_fits_in_a_line_is_quoted_and_a_longer_one_is_piped_again(attnscope: Run) -> None:
    options = ("heads", "-", "-m", "demo")
    assert following(attnscope(*options, stdin=TEXT).stdout)[1:3] == ["heads", TEXT]
    command = following(attnscope(*options, stdin=LONG).stdout)
    assert command[1:5] == ["heads", "-", "<", "your-text.txt"]
    assert attnscope(*command[1:3], *command[5:], stdin=LONG).exit_code == 0


def test_a_text_of_several_lines_is_piped_again(attnscope: Run) -> None:
    command = following(attnscope("heads", "-", "-m", "demo", stdin="The door\nopened.").stdout)
    assert "your-text.txt" in command


def test_each_of_many_texts_has_its_own(attnscope: Run, tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("The door opened.\nIt was red.\n", "utf-8")
    shown = attnscope("heads", "--texts", str(tmp_path / "texts"), "-m", "demo").stdout
    told = [line.strip() for line in shown.splitlines() if line.strip().startswith("attnscope heads")]
    assert [shlex.split(each.removesuffix("\\"))[2] for each in told] == ["The door opened.", "It was red."]


@pytest.mark.parametrize(
    ("asked", "kept", "told"),
    [
        (("compare", "--word", "red", "--by", "sentence"), "--by sentence", "by sentences"),
        (("compare", "--word", "red", "--words"), "--by word", "by words"),
        (("find", "--from", "2", "--to", "1", "--by", "sentence"), "--by sentence", "by sentences"),
        (
            ("find", "--from", "2", "--to", "1", "--special", "hide"),
            "--special hide",
            "special tokens hidden",
        ),
    ],
)
def test_what_is_asked_of_many_texts_by_other_units_goes_on_by_these(
    attnscope: Run, tmp_path: Path, asked: tuple[str, ...], kept: str, told: str
) -> None:
    lines = "He opened the door. It was red.\nShe saw the house. It was not red.\n"
    (tmp_path / "texts").write_text(lines, "utf-8")
    first = attnscope(*asked, "--texts", str(tmp_path / "texts"), "-m", "demo")
    assert first.exit_code == 0, first.stderr
    assert told in " ".join(first.stdout.partition("\nNext: ")[0].split())
    command = following(first.stdout)
    assert kept in " ".join(command)
    second = attnscope(*command[1:])
    assert second.exit_code == 0, second.stderr
    assert told in " ".join(second.stdout.split())


def test_code_that_was_trusted_is_trusted_by_what_comes_next(attnscope: Run, tmp_path: Path) -> None:
    asked = ("heads", "--ids", "5,7,2,7", "-m", str(plain_decoder(tmp_path / "own")), "--trust-remote-code")
    first = attnscope(*asked)
    assert first.exit_code == 0, first.stderr
    command = following(first.stdout)
    assert "--trust-remote-code" in command
    assert attnscope(*command[1:]).exit_code == 0
    refused = attnscope(*(each for each in command[1:] if each != "--trust-remote-code"))
    assert refused.exit_code == 3


def test_a_result_in_a_notebook_has_no_command_that_does_not_run() -> None:
    """Nobody typed it: a decoder beside a picture does not know what the encoder saw."""
    assert sheet_of(cases_media.picture_head()).next is None


# a text that is called like a file


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("run.npz", "attnscope show run.npz opens it"),
        ("run.json", "attnscope show run.json opens it"),
        ("prompt.txt", "- < prompt.txt reads it as one text, --texts prompt.txt each line as one"),
        ("door.PNG", "--image door.PNG reads it"),
        ("door.wav", "--audio door.wav reads it"),
        ("dev.conllu", "attnscope dependencies dev.conllu reads its sentences"),
        ("a b.md", "- < 'a b.md' reads it as one text, --texts 'a b.md' each line as one"),
    ],
)
@pytest.mark.parametrize("command", ["heads", "predict", "verify"])
def test_the_name_of_a_file_is_no_text(
    attnscope: Run, tmp_path: Path, monkeypatch, command: str, name: str, how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("The door opened.", "utf-8")
    result = attnscope(command, name, "-m", "demo")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"attnscope: '{name}' is a file, and no text: {how}\n"


def test_a_text_that_is_called_like_no_file_that_is_there_is_read(
    attnscope: Run, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "door").write_text("a file without a suffix", "utf-8")
    (tmp_path / "wall.d").mkdir()
    for text, note in (
        ("door", ""),
        ("wall.d", ""),
        ("The door opened.", ""),
        ("run.npz", "note: there is no file 'run.npz': read as a text\n"),
    ):
        result = attnscope("heads", text, "-m", "demo", "-l", "0", "--head", "1")
        assert (result.exit_code, result.stderr) == (0, note)


# what was stored


def test_what_is_shown_of_a_file_says_that_it_was_stored_and_when(
    attnscope: Run, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    head = (TEXT, "-m", "demo", "-l", "3", "--head", "11")
    for options, proof in (
        (head, "✓ weights recomputed from the stored q, k, v"),
        (head[:3], "○ certified when stored, not computed again: 48 of 48 heads"),
    ):
        made = attnscope("heads", *options, "-o", "my run.npz")
        os.utime("my run.npz", (1e9, 1e9))  # 2001-09-09, at noon in most places
        shown = attnscope("show", "my run.npz")
        assert (shown.exit_code, shown.stderr) == (0, "")
        plain = " ".join(shown.stdout.split())
        answer = " ".join(made.stdout.partition(f"\n“{TEXT[:9]}")[0].split())
        assert plain.startswith(f"{answer} (stored) “")
        assert proof in plain
        assert re.search(r"stored 2001-09-0[89]", plain)
        assert "✓ certified" not in plain
        command = following(shown.stdout)
        assert command == ["attnscope", "check", "my run.npz"]
        assert attnscope(*command[1:]).exit_code == 0


def test_a_stored_claim_is_computed_again_by_a_program(attnscope: Run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    attnscope("ablate", "The [MASK] opened.", "-m", "demo", "-l", "3", "--head", "1", "-o", "ablated.json")
    command = following(attnscope("show", "ablated.json").stdout)
    assert command == ["attnscope", "show", "ablated.json", "-o", "again.py"]
    assert attnscope(*command[1:]).exit_code == 0
    assert Path("again.py").stat().st_size
