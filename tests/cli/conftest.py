"""Running the program in this process, as the shell would."""

from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoints import tiny_bert
from typer.testing import CliRunner, Result

from attnscope.cli.app import app

Run = Callable[..., Result]


@pytest.fixture
def attnscope(monkeypatch: pytest.MonkeyPatch) -> Run:
    """`attnscope(*arguments, width=80)`; a bug's traceback is raised, not swallowed."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def run(*arguments: str, width: int = 80, stdin: str | None = None) -> Result:
        environment = {"COLUMNS": str(width), "TERM": "dumb"}
        result = CliRunner().invoke(app, list(arguments), input=stdin, env=environment, prog_name="attnscope")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def refused(attnscope: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`refused(message, *arguments)`: one line that says so besides notes, no output and no file."""
    monkeypatch.chdir(tmp_path)

    def check(message: str, *arguments: str, code: int = 2) -> None:
        before = sorted(tmp_path.rglob("*"))
        result = attnscope(*arguments)
        assert (result.exit_code, result.stdout) == (code, ""), result.stderr
        (line,) = (each for each in result.stderr.splitlines() if not each.startswith("note: "))
        assert line.startswith("attnscope: ")
        assert line.isprintable()
        assert message in line
        assert sorted(tmp_path.rglob("*")) == before

    return check


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads weights fails."""

    def read(*_: object, **__: object) -> None:
        raise AssertionError("weights were read")

    for place in ("answering.load_answering", "load.load_model", "load.load_with_head"):
        monkeypatch.setattr(f"attnscope.model.loading.{place}", read)


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny BERT: 5 layers, 4 heads, 32 positions."""
    return tiny_bert(tmp_path_factory.mktemp("models") / "tiny-bert")
