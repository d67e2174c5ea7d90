"""Which background colours are chosen for: said by option, variable, COLORFGBG, or by a terminal asked."""

import os
import pty
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from attnscope.cli import asked_terminal as module
from attnscope.cli.background import background
from attnscope.errors import InputError

ATTRIBUTES = b"\x1b[?62;22c"  # what xterm answers to the question that every terminal knows


@pytest.mark.parametrize(
    ("wanted", "environment", "found"),
    [
        ("light", {}, "light"),
        ("DARK", {"ATTNSCOPE_THEME": "light"}, "dark"),
        (None, {"ATTNSCOPE_THEME": "light", "COLORFGBG": "15;0"}, "light"),
        ("auto", {"ATTNSCOPE_THEME": "light", "COLORFGBG": "15;0"}, "dark"),
        (None, {"COLORFGBG": "15;0"}, "dark"),
        (None, {"COLORFGBG": "0;default;15"}, "light"),
        (None, {"COLORFGBG": "0;7"}, "light"),
        (None, {"COLORFGBG": "15;8"}, "dark"),
        (None, {"COLORFGBG": "default;default"}, "unknown"),
        (None, {"ATTNSCOPE_THEME": "", "COLORFGBG": ""}, "unknown"),
    ],
)
def test_what_is_said_first_counts(wanted: str | None, environment: dict[str, str], found: str) -> None:
    assert background(wanted, environment, terminal=False) == found


@pytest.mark.parametrize(
    ("wanted", "environment", "where"),
    [("blue", {}, "--theme"), (None, {"ATTNSCOPE_THEME": "\x1b[31m"}, "ATTNSCOPE_THEME")],
)
def test_a_theme_that_there_is_not_is_refused(
    wanted: str | None, environment: dict[str, str], where: str
) -> None:
    with pytest.raises(InputError, match=f"^{where}: no theme '.*': auto, light, dark$") as refused:
        background(wanted, environment, terminal=False)
    assert "\x1b" not in str(refused.value)


def test_nothing_is_asked_where_nobody_looks_or_everything_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "asked", lambda: pytest.fail("asked"))
    assert background(None, {}, terminal=False) == "unknown"
    assert background("dark", {}, terminal=True) == "dark"
    assert background(None, {"COLORFGBG": "0;15"}, terminal=True) == "light"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], tuple[int, int, list[bytes]]]]:
    """A terminal of its own, which answers any question with the bytes that it is given."""
    opened: list[int] = []
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp())  # it is no controlling terminal of ours
    monkeypatch.setattr(module, "_PATIENCE", 0.2)

    def answering(answer: bytes) -> tuple[int, int, list[bytes]]:
        ours, theirs = pty.openpty()
        opened.extend((ours, theirs))
        asked: list[bytes] = []

        def emulate() -> None:
            with suppress(OSError):
                asked.append(os.read(ours, 100))
                os.write(ours, answer)

        if answer:
            threading.Thread(target=emulate, daemon=True).start()
        return ours, theirs, asked

    yield answering
    for each in opened:
        os.close(each)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\" + ATTRIBUTES, "light"),
        (b"\x1b]11;rgb:1e1e/1e1e/2e2e\x07" + ATTRIBUTES, "dark"),
        (b"\x1b]11;rgb:00/2b/36\x1b\\" + ATTRIBUTES, "dark"),
        (b"\x1b]11;rgba:fdfd/f6f6/e3e3/ffff\x1b\\" + ATTRIBUTES, "light"),
        (ATTRIBUTES, "unknown"),
        (b"what?", "unknown"),
    ],
)
def test_a_terminal_is_asked_once_and_left_as_it_was(terminal: Any, answer: bytes, found: str) -> None:
    _, theirs, asked = terminal(answer)
    before = termios.tcgetattr(theirs)
    assert module._told_by(theirs) == found
    assert termios.tcgetattr(theirs) == before
    assert asked == [b"\x1b]11;?\x1b\\\x1b[c"]


def test_what_was_typed_ahead_is_left_for_the_shell_and_nothing_is_asked(terminal: Any) -> None:
    ours, theirs, asked = terminal(b"")
    os.write(ours, b"ls\n")
    before = termios.tcgetattr(theirs)
    assert module._told_by(theirs) == "unknown"
    assert termios.tcgetattr(theirs) == before
    assert os.read(theirs, 10) == b"ls\n"
    assert asked == []


def test_a_program_in_the_background_asks_nothing(terminal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, theirs, asked = terminal(ATTRIBUTES)
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + 1)
    assert module._told_by(theirs) == "unknown"
    assert asked == []


def test_without_a_terminal_to_ask_the_background_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> int:
        raise OSError("no such device")

    monkeypatch.setattr(os, "open", none)
    assert background(None, {}, terminal=True) == "unknown"
