"""`attnscope corpus` and its workers, killed again and again: the same command goes on to the same bytes."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import made_corpus
from typer.testing import CliRunner

from attnscope.cli.app import app
from attnscope.cli.commands.corpus import CorpusRead
from attnscope.session.corpus.engine.ray.cluster import descendants
from attnscope.session.corpus.tree import FAN

TEXTS = (
    "The door opened.", "A dog barks, and the old dog sleeps.", "She was watching the boat.", "It is late.",
    "the river and the bank", "Maria sat on the table and she slept.", "caf\udce9", "very " * 90, " " * 3000,
)  # fmt: skip
KILLS = 6
WORKER = b"attnscope.session.corpus.engine.worker"


def corpus(
    folder: Path, run: str, workers: int, narration: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    command = [
        sys.executable, "-m", "attnscope", "corpus", "texts.txt", "-m", "demo", "-l", "0,3", "--run", run,
        "--workers", str(workers), "-q", "-o", f"{run}.npz", "-o", f"{run}.png",
    ]  # fmt: skip
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=narration,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # off in a background
    )


def left(run: Path) -> dict[str, bytes]:
    names = (each for each in sorted(run.rglob("*")) if each.is_file())
    return {
        str(each.relative_to(run)): each.read_bytes()
        for each in names
        if each.name not in ("manifest.json", "lock")
    }


def done(folder: Path) -> int:
    """How many splits are measured."""
    names = [each.name for each in (folder / "cut" / "parts").glob("[0-9]*.parquet")]
    return sum(FAN ** int(name[0]) for name in names)


def kill_a_worker(process: int) -> bool:
    """Kill one of those that measure for this process, if there is any."""
    for each in descendants(process):
        with suppress(OSError):
            if WORKER in Path(f"/proc/{each}/cmdline").read_bytes():
                os.kill(each, signal.SIGKILL)
                return True
    return False


def test_a_corpus_that_is_killed_at_random_moments_ends_in_the_same_bytes(tmp_path: Path) -> None:
    lines = [TEXTS[i % len(TEXTS)] for i in range(1100)]
    (tmp_path / "texts.txt").write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    started = time.monotonic()
    assert corpus(tmp_path, "whole", 1).wait() == 0
    whole = time.monotonic() - started
    draw, killed, workers, grown = random.Random(4), 0, 0, set()
    for turn in range(KILLS):
        before = done(tmp_path)
        process = corpus(tmp_path, "cut", 2)
        if turn % 2:
            time.sleep(draw.uniform(0.1, 0.9) * whole)
        else:  # in the middle, however long a start takes here
            while done(tmp_path) == before and process.poll() is None:
                time.sleep(0.01)
            workers += kill_a_worker(process.pid)
            time.sleep(draw.uniform(0, 0.05) * whole)
        if process.poll() is None:
            killed += 1
            process.send_signal((signal.SIGKILL, signal.SIGINT, signal.SIGTERM)[turn % 3])
        process.wait()
        grown.add(done(tmp_path))
        if len(left(tmp_path / "cut")) == len(left(tmp_path / "whole")):
            break
    assert killed >= 2
    assert workers >= 1
    assert len(grown) > 1, "it was never cut off in the middle"
    assert corpus(tmp_path, "cut", 2).wait() == 0
    assert left(tmp_path / "cut") == left(tmp_path / "whole")
    for suffix in (".npz", ".png"):
        assert (tmp_path / f"cut{suffix}").read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()


def test_ctrl_c_says_where_what_is_measured_is_kept_and_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("The old dog barks.\n" * 12_000)
    process = corpus(tmp_path, "cut", 1, subprocess.PIPE)
    while not done(tmp_path):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, narrated = process.communicate()
    how = "what is measured is kept in cut, the same command goes on from there"
    assert (process.returncode, narrated.decode()) == (130, f"attnscope: interrupted: {how}\n")


def test_only_what_departs_from_the_usual_is_said_again(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("One.\n")
    assert list(CorpusRead([str(file)]).departures) == []
    every = CorpusRead([str(file)], form="jsonl", field="my text", limit=8, longest=64, truncate=True)
    assert list(every.departures) == [
        "--format jsonl",
        "--field 'my text'",
        "--limit 8",
        "--longest 64",
        "--truncate",
    ]


def test_two_stored_corpora_are_a_page_and_a_table_too(tmp_path: Path) -> None:
    for name, result in (("a.npz", made_corpus.corpus()), ("b.npz", made_corpus.corpus("other.txt", 30, 1))):
        result.save(tmp_path / name)
    files = [str(tmp_path / name) for name in ("a.npz", "b.npz", "ab.html", "ab.csv")]
    done = CliRunner().invoke(app, ["compare", *files[:2], "-q", "-o", files[2], "-o", files[3]])
    assert done.exit_code == 0, done.output
    assert '<table class="heads' in (tmp_path / "ab.html").read_text()
    assert "length_alone" in (tmp_path / "ab.csv").read_text()
