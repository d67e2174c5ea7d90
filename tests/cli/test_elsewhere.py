"""The commands on Windows and macOS, as far as that can be seen from Linux: what those lack is taken away.

`elsewhere` reads off mypy's stubs what they lack. Beside it mypy itself, asked about those systems, finds
every call in attnscope that they do not have (`.ci/run`).
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from elsewhere import names

SPECIMENS = Path(__file__).parents[1] / "specimens"
TEXT = "The door opened & closed, café."
ANSWER = ("-m", "demo", "--layer", "3", "--head", "11")
ASKED = (
    ["heads", TEXT, "-m", "demo"],
    ["heads", TEXT, *ANSWER, "--query", "door"],
    ["heads", TEXT, *ANSWER, "--json"],
    [
        "heads",
        TEXT,
        *ANSWER,
        *(f"--out=made/head{each}" for each in (".csv", ".html", ".json", ".npz", ".svg")),
    ],
    ["heads", TEXT, "-m", "demo", "--tiled"],
    ["heads", "--texts", "texts.txt", "-m", "demo", "--json"],
    ["tsne", TEXT, *ANSWER],
    ["predict", "I was watching the", "-m", "demo-causal"],
    ["find", TEXT, "-m", "demo", "--from", "opened", "--to", "door"],
    ["flow", TEXT, "-m", "demo", "--from", "opened"],
    ["verify", TEXT, "-m", "demo"],
    ["show", "made/head.npz"],
    ["dependencies", "made.conllu", "-m", "demo", "--json"],
    ["corpus", "texts.txt", "-m", "demo", "--workers", "2", "--run", "run", "--json"],
    ["sdpa", "--example", "fruit"],
    ["heads", TEXT, "-m", "no/such-model"],
    ["explore"],
)
TREE = "1\tdoors\tdoor\tNOUN\t_\t_\t2\tnsubj\t_\t_\r\n2\topen\topen\tVERB\t_\t_\t0\troot\t_\t_\r\n\r\n"


def run(place: Path, system: str, asked: Any) -> Any:
    """What each command gave, in a process that takes itself to be on `system`, its workers too."""
    place.mkdir()
    (place / "texts.txt").write_bytes("The door opened.\r\n日本 café\r\n".encode())
    (place / "made.conllu").write_bytes(3 * TREE.encode())
    customised = f"from elsewhere import install\ninstall({system!r})\n" if system != "linux" else ""
    (place / "sitecustomize.py").write_text(customised, "ascii")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(place), str(SPECIMENS)))}
    environment |= {
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "200",
        "TERM": "dumb",
    }
    program = [sys.executable, str(SPECIMENS / "run_each.py")]
    done = subprocess.run(
        program,
        input=json.dumps(asked),
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = tmp_path_factory.mktemp("here") / "linux"
    return place, run(place, "linux", ASKED)


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_what_another_system_lacks_changes_no_number_and_no_file(
    here: Any, system: str, tmp_path: Path
) -> None:
    place, expected = here
    other = tmp_path / system
    found = run(other, system, ASKED)
    for asked, one, same in zip(ASKED, found, expected, strict=True):
        assert as_quoted_here(one, other) == as_quoted_here(same, place), asked
    files = {each.relative_to(place) for each in written(place)}
    assert {each.relative_to(other) for each in written(other)} == files
    assert len(files) == 5 + 1 + 3, "of the head, the map's own, of the run besides its manifest"
    for file in files:
        assert as_quoted_here((other / file).read_bytes(), other) == as_quoted_here(
            (place / file).read_bytes(), place
        )
        assert b"\r\n" not in (other / file).read_bytes() or file.suffix in (".png", ".npz", ".parquet"), file
    quoted = '"The door opened & closed, café."' if system == "win32" else "'The door opened & closed, café.'"
    assert quoted in found[0][1], "a command that this system's shell takes"


def written(place: Path) -> list[Path]:
    """The files of results; a manifest tells of the place and of the moment."""
    folders = (place / name for name in ("made", "outputs", "run"))
    return [
        each
        for folder in folders
        for each in folder.rglob("*")
        if each.is_file() and each.name != "manifest.json"
    ]


def as_quoted_here(told: Any, place: Path) -> str:
    """What was told, with one kind of quotes, each command in one line, and without its place.

    The hash of a command is that of its quotes too.
    """
    plain = told.decode("latin-1") if isinstance(told, bytes) else json.dumps(told, ensure_ascii=False)
    plain = plain.replace(" \\\\\\n    ", " ").replace("&#x27;", "'").replace("&quot;", "'")
    plain = re.sub(r'\\*"', "'", plain).replace(str(place), "PLACE")
    return re.sub(r"'next': '[0-9a-f]{32}'", "'next': HASH", plain)


@pytest.mark.parametrize(
    ("system", "asked", "end"),
    [
        ("win32", "import fcntl", "ModuleNotFoundError"),
        ("win32", "import os; os.sysconf('SC_PAGE_SIZE')", "AttributeError"),
        ("win32", "from signal import SIGHUP", "ImportError"),
        ("win32", "import sys; assert sys.platform == 'win32'; sys.argv = 1; assert sys.argv == 1", ""),
        ("darwin", "import os; os.sched_getaffinity(0)", "AttributeError"),
        ("darwin", "import fcntl, os; os.getuid(); fcntl.flock", ""),
        ("darwin", "open('/proc/meminfo')", "FileNotFoundError"),
        ("win32", "from pathlib import Path; assert not Path('/proc/meminfo').is_file()", ""),
    ],
)
def test_what_is_taken_away_is_gone_for_this_program_and_there_for_its_libraries(
    system: str, asked: str, end: str
) -> None:
    of = "exec({!r}, {{'__name__': 'asked', '__package__': {!r}}})"
    code = [f"from elsewhere import install; install({system!r})", of.format(asked, "attnscope.cli")]
    done = python(*code)
    assert (done.returncode == 0) == (not end), done.stderr
    assert done.stderr.strip().rpartition("\n")[2].startswith(end)
    if end and "/proc" not in asked:
        assert python(code[0], of.format(asked, "torch")).returncode == 0


def python(*lines: str) -> Any:
    environment = {**os.environ, "PYTHONPATH": str(SPECIMENS)}
    command = [sys.executable, "-c", "\n".join(lines)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_what_other_systems_lack_is_read_off_the_stubs() -> None:
    assert "replace" in names("os", "win32") & names("os", "darwin")
    assert names("resource", "linux") >= {"getrlimit", "RLIMIT_AS"}
    assert not names("resource", "win32") | names("termios", "win32") | names("no_such_module", "linux")


def test_a_system_that_is_not_utf_8_changes_the_screen_and_no_file(tmp_path: Path) -> None:
    text = "日本 café"
    files, screens = {}, {}
    for name, settings in {
        "usual": {"PYTHONUTF8": "1"},
        "Windows' own": {"PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252"},
        "none": {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"},
    }.items():
        place = tmp_path / name
        place.mkdir()
        out = [f"--out=head{suffix}" for suffix in (".csv", ".html", ".json", ".svg")]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "80", **settings}
        command = [sys.executable, "-m", "attnscope", "heads", text, *ANSWER, *out]
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, check=True)
        screens[name] = done.stdout
        files[name] = {each.name: each.read_bytes() for each in sorted(place.iterdir())}
    assert files["usual"] == files["Windows' own"] == files["none"]
    assert len(files["usual"]) == 4
    assert "日本 café" in screens["usual"].decode("utf-8")
    assert "?? café" in screens["Windows' own"].decode("cp1252"), (
        "what the screen lacks is seen to be missing"
    )
    assert "?? caf?" in screens["none"].decode("ascii")
