"""A command that is shown can be pasted: its words are quoted for the shells of the system."""

import shlex
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnscope.printable import printable, word

SHOWN = st.text(st.characters(codec="utf-8")).map(printable)


@given(SHOWN)
def test_a_shell_of_unix_reads_the_word_back(text: str) -> None:
    assert shlex.split(word(text)) == [text]


@pytest.mark.skipif(sys.platform == "win32", reason="no bash")
def test_what_steers_is_escaped_and_a_shell_reads_it_back() -> None:
    texts = ["a\x1b[31m\x07'\\c7", "x\ny\r", "\x9b2J", "caf\udce9 9", "\u202e9\u2066 $HOME `id`", "\x7f!"]
    words = [word(text) for text in texts]
    assert all(map(str.isprintable, words))
    read = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {' '.join(words)}"], capture_output=True, check=True
    )
    assert read.stdout.split(b"\0")[:-1] == [text.encode("utf-8", "surrogateescape") for text in texts]


def test_half_a_character_that_is_no_byte_of_a_name_is_escaped_too() -> None:
    assert word("a\ud83d") == r"$'a\355\240\275'"


@given(SHOWN)
def test_windows_own_parser_reads_the_word_back(text: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "platform", "win32")
        quoted = word(text)
        # Python's own words for a program on Windows, which quote only what has a blank in it
        assert word(f"{text} ") == subprocess.list2cmdline([f"{text} "])
    assert parsed(f"attnscope {quoted} -m demo") == ["attnscope", text, "-m", "demo"]


@pytest.mark.parametrize("text", ["a&b", "a|b", "a>b", "(a)", "a^b", "3,11", "@a", "", "it's", "a;b"])
def test_what_cmd_or_powershell_would_take_for_its_own_is_quoted(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert word(text) == f'"{text}"'


@pytest.mark.parametrize("text", ["door", "L3H11", "C:\\models\\bert", "models/bert", "--layer=3", "x.npz"])
def test_what_is_plain_is_left_plain(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert word(text) == text


def parsed(line: str) -> list[str]:
    """The words of a command line, as Microsoft's C runtime documents that it parts them."""
    words, word, quoted, begun, at = [], "", False, False, 0
    while at < len(line):
        run = len(line) - at - len(line[at:].lstrip("\\"))
        at += run
        here = line[at : at + 1]
        if here == '"':
            word, begun = word + "\\" * (run // 2), True
            if run % 2:
                word += '"'
            else:
                quoted = not quoted
        else:
            word, begun = word + "\\" * run, begun or run > 0
            if here in (" ", "\t") and not quoted:
                if begun:
                    words.append(word)
                word, begun = "", False
            elif here:
                word, begun = word + here, True
        at += 1
    return [*words, word] if begun else words
