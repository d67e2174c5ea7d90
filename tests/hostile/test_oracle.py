"""The campaign finds what it is for: a program that misbehaves on purpose, and what is said of it."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import attnscope.__main__ as program

from . import process
from .invocation import Invocation, Outcome, Stream
from .kinds import planted
from .oracle import differences, findings
from .place import Place

Run = Callable[..., tuple[Invocation, Outcome, list[str]]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run(program, *argv, **surroundings)`: what comes of that in place of the program, and the findings."""
    place = Place(tmp_path / "work")
    place.root.mkdir()
    place.clear()

    def run(body: Callable[[], object] | None, *argv: str, **surroundings: object) -> object:
        place.clear()
        if body is not None:
            monkeypatch.setattr(program, "main", body)
        invocation = Invocation(argv or ("x",), **surroundings)
        outcome = process.run(invocation, place)
        return invocation, outcome, [finding.sort for finding in findings(invocation, outcome)]

    return run


def refuse(code: int = 2, line: str = "attnscope: no", out: str = "") -> Callable[[], None]:
    def body() -> None:
        sys.stdout.write(out)
        print(line, file=sys.stderr)
        sys.exit(code)

    return body


def write(name: str, content: bytes = b"", code: int = 0) -> Callable[[], None]:
    def body() -> None:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)
        if code:
            refuse(code)()

    return body


def fail() -> None:
    raise LookupError("nothing")


def plant(name: str) -> Callable[[], None]:
    return lambda: planted.canary(Path.cwd(), name).write_text("")


def test_a_program_that_does_well_has_no_findings(run: Run) -> None:
    for body, argv in (
        (lambda: print("fine"), ("x",)),
        (lambda: print("{}\n{}"), ("predict", "--texts", "a", "--json")),
        (lambda: print('{"a": [1.5, null]}'), ("x", "--json")),
        (lambda: print("note: showing [MASK]", file=sys.stderr), ("x",)),
        (refuse(3), ("x",)),
        (write("a/b.json", b"{}\n"), ("x", "-o", "a/b.json")),
        (write("a.csv", b"name,n\n'=1+2,-3.5\n-,+2e-3\n"), ("x", "-o", "a.csv")),
        (write("a.py", b'SHOWN = "\\u202e"\n'), ("x", "-o", "a.py")),
        (write("run/a.json", b"{}"), ("corpus", "--run", "run")),
        (refuse(2, "attnscope: a:1: no\nattnscope: a:7: no", "first"), ("x", "--texts", "a")),
    ):
        assert run(body, *argv)[2] == [], argv


@pytest.mark.parametrize(
    ("body", "argv", "sort"),
    [
        (fail, ("x",), "traceback"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), ("x",), "signal"),
        (lambda: sys.exit(1), ("x",), "exit code"),
        (refuse(2, ""), ("x",), "not one line of error"),
        (refuse(2, "attnscope: a\nattnscope: b"), ("x",), "not one line of error"),
        (refuse(3, "[transformers] odd\nattnscope: no"), ("x",), "stray line on stderr"),
        (lambda: print("imports    1.250 s", file=sys.stderr), ("x",), "stray line on stderr"),
        (lambda: print("attnscope: no", file=sys.stderr), ("x",), "error with exit 0"),
        (lambda: print("note: odd", file=sys.stderr), ("x", "-q"), "notice under --quiet"),
        (lambda: print("a\x1b[31mb"), ("x",), "raw control character"),
        (refuse(2, "attnscope: \x9b31m"), ("x",), "raw control character"),
        (lambda: print("{}\n{}"), ("x", "--json"), "not one JSON document"),
        (lambda: print("{}\n{"), ("predict", "--texts", "a", "--json"), "not one JSON document"),
        (lambda: print('{"a": NaN}'), ("x", "--json"), "not one JSON document"),
        (lambda: print("weight  nan"), ("x",), "no number printed"),
        (lambda: print("score −inf"), ("x",), "no number printed"),
        (write(".7.part"), ("x",), "stray file left"),
        (write("a.json", b'{"a": '), ("x", "-o", "a.json"), "half a file left"),
        (write("a.csv", b"name,n\n=1+2,3\n"), ("x", "-o", "a.csv"), "half a file left"),
        (write("a.py", "SHOWN = 'a\u202e'\n".encode()), ("x", "-o", "a.py"), "half a file left"),
        (refuse(2, "attnscope: a:1: x\nattnscope: b"), ("x", "--texts", "a"), "not one line of error"),
        (refuse(2, "attnscope: a:1: x\nattnscope: a:2: b"), ("x",), "not one line of error"),
        (write("a.json", b"{}", code=3), ("x", "-o", "a.json"), "refused after writing"),
        (refuse(2, out="half a table"), ("x",), "refused after printing"),
        (lambda: (os.mkdir("sub"), refuse(2)()), ("x",), "empty folder left"),
        (lambda: Path(os.environ["TMPDIR"], "x").write_text(""), ("x",), "temporary files left"),
        (plant("pickle"), ("x",), "planted code ran"),
        (plant("code"), ("x", "--allow-pickle"), "planted code ran"),
    ],
)
def test_each_misbehaviour_is_found(
    run: Run, body: Callable[[], object], argv: tuple[str, ...], sort: str
) -> None:
    assert run(body, *argv)[2] == [sort]


def test_code_that_was_allowed_to_run_is_no_finding(run: Run) -> None:
    assert run(plant("pickle"), "x", "--allow-pickle")[2] == []
    assert run(plant("code"), "x", "--trust-remote-code")[2] == []


def test_a_number_that_was_typed_may_be_printed_again(run: Run) -> None:
    assert run(lambda: print("no token nan"), "x", "nan")[2] == []


@pytest.mark.parametrize(("limit", "body"), [("SECONDS", "spin"), ("PATIENCE", "wait"), ("BYTES", "grow")])
def test_what_would_not_end_is_stopped_and_says_where(
    run: Run, monkeypatch: pytest.MonkeyPatch, limit: str, body: str
) -> None:
    def spin() -> None:
        while True:
            pass

    def wait() -> None:
        time.sleep(600)

    def grow() -> None:
        kept = bytearray(700 << 20)
        time.sleep(600)
        del kept

    here = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    # the program is forked off this process, and has its memory to begin with
    monkeypatch.setattr(process, limit, here + (600 << 20) if limit == "BYTES" else 1)
    _, outcome, found = run({"spin": spin, "wait": wait, "grow": grow}[body])
    assert found == ["stopped"]
    assert body in outcome.stack


def test_the_surroundings_are_what_the_invocation_says(run: Run) -> None:
    def tell() -> None:
        told = {
            "stdin": sys.stdin and sys.stdin.read(),
            "argv": sys.argv[1:],
            "columns": os.environ["COLUMNS"],
        }
        print(json.dumps(told))

    _, outcome, _ = run(tell, "x", "\udcff", stdin=b"typed", environment={"COLUMNS": "7"})
    assert json.loads(outcome.stdout) == {"stdin": "typed", "argv": ["x", "\udcff"], "columns": "7"}
    _, outcome, _ = run(tell, "x", stdin=Stream.CLOSED)
    assert json.loads(outcome.stdout)["stdin"] is None


def test_a_full_disk_and_a_reader_that_left_are_real(run: Run) -> None:
    def many() -> None:
        print("x" * 100000)
        sys.stdout.flush()

    for stream, error in ((Stream.FULL, "OSError"), (Stream.BROKEN, "BrokenPipeError")):
        _, outcome, found = run(many, "x", stdout=stream)
        assert found == ["traceback"]
        assert error.encode() in outcome.stderr


def test_an_interrupt_comes_when_it_should(run: Run) -> None:
    def patient() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            refuse(130, "attnscope: interrupted")()

    _, outcome, found = run(patient, "x", interrupt=0.1)
    assert (outcome.code, found) == (130, [])


def test_an_interrupt_before_the_program_stands_is_python_s_own_end_and_a_later_one_is_not(run: Run) -> None:
    invocation, outcome, _ = run(lambda: print("fine"))
    asked = replace(invocation, interrupt=0.1, cold=True)

    def sorts(code: int, where: str, asked: Invocation = asked) -> list[str]:
        errors = (
            f'Traceback (most recent call last):\n  File "{where}", line 1, in <module>\nKeyboardInterrupt\n'
        )
        ended = replace(outcome, code=code, stdout=b"", stderr=errors.encode() if where else b"")
        return [finding.sort for finding in findings(asked, ended)]

    for early in ("", "<frozen abc>", "/x/attnscope/attnscope/process/ending.py", "/x/attnscope/__main__.py"):
        assert sorts(-signal.SIGINT, early) == [], early
    assert sorts(-signal.SIGINT, "/x/attnscope/cli/app.py") == ["traceback"]
    told = replace(outcome, code=-signal.SIGINT, stdout=b"", stderr=b"attnscope: no such word\n")
    assert findings(asked, told) == []
    half = findings(asked, replace(told, stderr=b"attnscope: no suc"))
    assert [finding.sort for finding in half] == ["signal"]
    assert sorts(-signal.SIGTERM, "<frozen abc>") == ["traceback"]
    assert sorts(-signal.SIGINT, "<frozen abc>", replace(asked, cold=False)) == ["traceback"]


def test_the_real_program_runs_warm_and_cold_alike(run: Run) -> None:
    warm, cold = (run(None, "nosuch", cold=cold)[1] for cold in (False, True))
    assert differences(warm, cold, verbose=False) == []
    assert warm.code == 2


def test_what_differs_when_repeated_is_found(run: Run) -> None:
    _, one, _ = run(lambda: print("0.5"), "x")
    _, two, _ = run(lambda: print("0.6"), "x")
    assert [finding.cause for finding in differences(one, two, verbose=False)] == ["standard output"]
    assert differences(one, two, verbose=True) == []


def test_half_a_file_after_a_kill_is_found_and_what_has_no_name_yet_is_not(run: Run) -> None:
    def killed(name: str) -> Callable[[], None]:
        def body() -> None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            Path(name).write_bytes(b"{")
            time.sleep(20)

        return body

    _, outcome, found = run(killed("made.json"), "x", "-o", "made.json", kill=0.3)
    assert (outcome.code, found) == (-signal.SIGKILL, ["half a file left"])
    assert run(killed(".12.part"), "x", "-o", "made.json", kill=0.3)[2] == []
    assert run(killed("made.json"), "x", "-o", "made.json", kill=None, interrupt=0.3)[2] != []


def test_a_signal_of_its_own_is_no_kill(run: Run) -> None:
    assert "signal" in run(lambda: os.kill(os.getpid(), signal.SIGSEGV), "x", kill=30.0)[2]
