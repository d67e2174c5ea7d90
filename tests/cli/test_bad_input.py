"""Places that cannot be written, and how a run ends: nothing half-written, each end has its exit code."""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from attnscope.errors import DoesNotFitError, InputError, lacking
from attnscope.render.saving import write

TEXT = "I was watching the [MASK] when it opened."
ONE = ("heads", TEXT, "--layer", "3", "--head", "2")


@pytest.mark.parametrize(
    "name",
    ["picture.bmp", "picture", "folder.png", "file.txt/picture.png", "/proc/picture.png", "a" * 300 + ".png"],
)
def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    refused, name: str, tmp_path: Path
) -> None:
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file.txt").write_text("here first")
    refused("cannot write", *ONE, "-m", "no/model", "-o", str(tmp_path / name))


def _full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_write_that_fails_half_way_leaves_what_was_there_and_nothing_else(
    refused, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "here").mkdir()
    target = tmp_path / "head.json"
    target.write_text("the old content")
    monkeypatch.setattr("os.replace", _full)
    refused("No space left", *ONE, "-m", "demo", "-o", str(target))
    assert target.read_text() == "the old content"
    with pytest.raises(InputError, match="No space left"):
        write(tmp_path / "here" / "new" / "a.json", b"x")
    assert list(tmp_path.rglob("here/*")) == []


@pytest.mark.parametrize("command", ["tsne", "report"])
def test_a_folder_of_its_own_that_cannot_be_is_refused_before_any_work(refused, command: str) -> None:
    Path("outputs").write_text("a file")
    refused("cannot write 'outputs/", command, TEXT, "-m", "no/model")
    refused("no/model", command, TEXT, "-m", "no/model", "--json", code=3)
    Path("outputs").unlink()
    refused("no/model", command, TEXT, "-m", "no/model", code=3)


def test_a_folder_that_takes_no_file_is_refused_before_any_work() -> None:
    """As somebody who has no right to write there, which whoever runs the tests may well have."""
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "from attnscope.errors import InputError\n"
        "from attnscope.render.saving import check_targets\n"
        "from attnscope.results import HeadWeights as kind\n"
        "check_targets([], kind)\n"  # before the folders of Python itself are closed
        "if os.getuid() == 0: os.setuid(65534)\n"
        "for target in map(Path, sys.argv[1:]):\n"
        "    try: check_targets([target], kind)\n"
        "    except InputError as error: print(error)\n"
    )
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o711)
        closed, opened = place / "closed", place / "opened"
        for folder, mode in ((closed, 0o555), (opened, 0o777)):
            folder.mkdir()
            folder.chmod(mode)
        targets = [folder / file for folder in (closed, opened) for file in ("a.png", "sub/a.png")]
        done = subprocess.run(
            [sys.executable, "-c", code, *targets], capture_output=True, text=True, check=True, cwd="/"
        )
        assert done.stdout == "".join(f"cannot write '{each}': Permission denied\n" for each in targets[:2])
        assert [*closed.iterdir(), *opened.iterdir()] == []


def test_a_file_beyond_the_limit_leaves_the_old_one_and_no_folder(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "sub" / "dir" / "new.json"
    old.write_text("the old content")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        for target in (old, new):
            with pytest.raises(InputError, match=r"cannot write .*: File too large"):
                write(target, b"x" * 1001)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.rglob("*")) == [old]
    assert old.read_text() == "the old content"
    write(new, b"x" * 1001)
    assert new.stat().st_size == 1001


def test_numbers_only_go_into_number_formats_for_an_outline(attnscope, refused, tmp_path: Path) -> None:
    stored = tmp_path / "outline.json"
    stored.write_text(attnscope("model", "demo", "--json").stdout)
    refused(".npz, .csv, .json", "show", str(stored), "-o", str(tmp_path / "a.png"))


def test_without_a_command_the_help_stands_on_standard_error(attnscope) -> None:
    result = attnscope()
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == attnscope("--help").stdout


def _raising(error: BaseException | None):
    def fail(*_: object, **__: object) -> None:
        if error is None:
            torch.empty(2**48)
        raise error

    return fail


@pytest.mark.parametrize(
    "error",
    [
        None,
        MemoryError(),
        OSError(12, "Cannot allocate memory"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    ],
)
def test_what_fails_for_lack_of_memory_is_exit_code_4(error: Exception | None, refused, monkeypatch) -> None:
    monkeypatch.setattr("attnscope.session.opening.open_model", _raising(error))
    refused("does not fit in memory", "verify", "-m", "demo", code=4)


def test_other_errors_are_bugs_and_a_cause_is_looked_for() -> None:
    for error in (ImportError("no module named x"), OSError(2, "no such file"), RuntimeError("shape")):
        assert lacking(error) is None
    outer = RuntimeError("cannot import")
    outer.__cause__ = MemoryError()
    assert isinstance(lacking(outer), DoesNotFitError)


def test_a_certificate_that_fails_is_exit_code_5_with_everything_shown_and_written(
    attnscope, tmp_path, monkeypatch
) -> None:
    from attnscope.arithmetic import logits_over

    monkeypatch.setattr(
        "attnscope.verify.together.logits_over",
        lambda scores, scale, *others, **to: logits_over(scores, scale * 1.1, *others, **to),
    )
    target = tmp_path / "head.json"
    result = attnscope(*ONE, "-m", "demo", "-o", str(target))
    assert result.exit_code == 5
    assert "FAILED" in result.stdout.upper()
    assert "do not trust" in result.stderr
    assert json.loads(target.read_text())["certificate"]["verdict"] == "failed"


def test_an_interrupted_run_is_exit_code_130_and_a_bug_keeps_its_traceback(
    attnscope, refused, monkeypatch
) -> None:
    place = "attnscope.session.reading.Reading.attention"
    monkeypatch.setattr(place, _raising(KeyboardInterrupt()))
    refused("interrupted", *ONE, "-m", "demo", code=130)
    monkeypatch.setattr(place, _raising(ZeroDivisionError("a bug")))
    with pytest.raises(ZeroDivisionError):
        attnscope(*ONE, "-m", "demo")
