"""A model folder and a text that would steer a terminal are escapes on it; the command runs when pasted."""

import os
import shlex
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from typer.testing import Result

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


def test_a_name_that_is_plain_is_quoted_as_before(attnscope, bert: Path) -> None:
    stdout = attnscope("heads", "the door", "-m", str(bert)).stdout
    assert f"-m {shlex.quote(str(bert))} --layer" in stdout


def test_an_error_and_a_notice_name_it_as_escapes(attnscope, named: Path) -> None:
    (named / "config.json").write_text("{")
    result = attnscope("heads", "the door", "-m", str(named))
    assert result.exit_code in (2, 3)
    assert not steering(result.stderr)
    assert len(result.stderr.splitlines()) == 1
