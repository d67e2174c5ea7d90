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


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny BERT: 5 layers, 4 heads, 32 positions."""
    return tiny_bert(tmp_path_factory.mktemp("models") / "tiny-bert")
