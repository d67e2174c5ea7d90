"""What stands below `Next:` runs when it is pasted, and reads and runs what the command before it did."""

import os
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from pasted import following

Run = Callable[..., Any]
TEXT = "The door opened and then it closed."
TWICE = "the door and the door opened"
PICTURE, SOUND = (
    str(files("attnscope") / "demo" / name) for name in ("caption/example.png", "speech/example.wav")
)
SEEN, HEARD = ("--image", PICTURE, "-m", "demo-caption"), ("--audio", SOUND, "-m", "demo-speech")


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (("heads", TEXT, "-m", "demo"), ()),
        (("heads", TEXT, "-m", "demo", "--words", "--attn", "sdpa"), ("--attn sdpa", "--by word")),
        (("heads", TEXT, "--pair", "It was red.", "-m", "demo", "--device", "cpu"), ("--device cpu",)),
        (("heads", "river king river", "-m", "demo-causal", "--generate", "3"), ("--generate 3",)),
        (("heads", "The door opened.", "-m", "demo-translate", "--kind", "decoder"), ("--kind decoder",)),
        (("predict", "The door opened.", "-m", "demo-translate"), ("--kind cross",)),
        (("tsne", TEXT, "-m", "demo", "--json"), ()),
        (("flow", TWICE, "-m", "demo", "--from", "1-2", "--by", "word"), ("the door@1", "--by word")),
        (("flow", "--ids", "2,45,46,47,48,49", "-m", "demo", "--from", "1-2"), ("pos:1-2", "--ids 2,45")),
        (("compare", TWICE, "A door.", "--word", "and the door", "--word-b", "door", "-m", "demo"), ()),
        (("verify", TEXT, "-m", "demo"), ()),
        (("heads", *SEEN), (f"--image {PICTURE}",)),
        (("ablate", *SEEN, "--kind", "decoder"), (f"--image {PICTURE}", "--kind decoder")),
        (("predict", *HEARD), (f"--audio {SOUND}",)),
        (("align", "The red door opened.", "-m", "demo-translate"), ("--kind cross",)),
        (("ablate", "The [MASK] opened.", "-m", "demo", "--at", "opened"), ()),
        (("explain", TEXT, "-m", "demo", "--from", "it", "--to", "door", "--controls", "19"), ()),
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
def test_the_name_of_a_file_is_no_text(
    refused: Callable[..., None], tmp_path: Path, name: str, how: str
) -> None:
    (tmp_path / name).write_text("The door opened.", "utf-8")
    refused(f"attnscope: '{name}' is a file, and no text: {how}", "heads", name, "-m", "demo")


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
        assert f"made by: attnscope heads '{TEXT}' -m demo" in plain
        command = following(shown.stdout)
        assert command == ["attnscope", "check", "my run.npz"]
        assert attnscope(*command[1:]).exit_code == 0
