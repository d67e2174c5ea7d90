"""Where the time of a run went: every second belongs to one part, and the parts are all of it."""

import re
import threading
from contextlib import suppress

import pytest
from typer.testing import CliRunner

from attnscope.cli.app import app
from attnscope.process.stopwatch import REST, Stopwatch


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_part_inside_another_one_interrupts_it_and_all_add_up():
    clock = Clock()
    watch = Stopwatch(clock)
    clock.now += 1  # to none
    with watch.part("load"):
        clock.now += 2
        with watch.part("imports"):
            clock.now += 4
        clock.now += 8
    with suppress(ValueError), watch.part("forward"):
        clock.now += 16
        raise ValueError("a part that fails")
    with watch.part("imports"):
        clock.now += 32
    clock.now += 64
    parts = watch.parts()
    assert parts == {"load": 10.0, "imports": 36.0, "forward": 16.0, REST: 65.0}
    assert list(parts)[-1] == REST
    assert sum(parts.values()) == watch.total() == 127.0
    watch.restart()
    clock.now += 3
    assert watch.parts() == {REST: 3.0}


def test_what_another_thread_does_belongs_to_what_this_one_is_in():
    clock = Clock()
    watch = Stopwatch(clock)

    def elsewhere() -> None:
        with watch.part("elsewhere"):
            clock.now += 5

    with watch.part("waiting"):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert watch.parts() == {"waiting": 5.0, REST: 0.0}


def test_a_run_tells_its_times_on_standard_error_alone_and_only_when_asked():
    command = ["heads", "the dog barks", "-m", "demo", "--layer", "0", "--head", "0", "--json"]
    run = CliRunner().invoke(app, [*command, "--timings"])
    plain = CliRunner().invoke(app, command)
    assert run.exit_code == 0
    assert run.stdout == plain.stdout
    told = re.findall(r"^(\S.*?) +([0-9.]+) s$", run.stderr, re.MULTILINE)
    *parts, (last, total) = told
    assert last == "in all"
    names = {
        "imports",
        "loading the model",
        "reading the input",
        "forward pass",
        "certificate",
        "screen",
        REST,
    }
    assert names <= {name for name, _ in parts}
    assert float(total) == pytest.approx(sum(float(seconds) for _, seconds in parts), abs=0.001 * len(parts))
    assert " s\n" not in plain.stderr


def test_a_run_that_fails_tells_them_too():
    run = CliRunner().invoke(app, ["heads", "a", "-m", "demo", "--layer", "99", "--timings"])
    assert run.exit_code == 2
    assert "in all" in run.stderr
