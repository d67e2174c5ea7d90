"""A cache of its own for every test, and the program in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from attnscope.cli.app import app
from attnscope.session.cache import keeping, witnesses

Run = Callable[..., Result]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache that is on, and empty.

    The program may be edited while its tests run, its types are checked by lot, and its files were just made.
    """
    monkeypatch.setattr(keeping, "_pythons_own", lambda: "where it was")
    monkeypatch.setenv("ATTNSCOPE_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(witnesses, "_OWN", "no package")
    monkeypatch.setattr(witnesses, "_LATEST", -(10**18))
    return tmp_path / "kept" / "captures"


@pytest.fixture
def attnscope(place: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`attnscope(*arguments)`; a bug's traceback is raised, not swallowed."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def run(*arguments: str) -> Result:
        environment = {"COLUMNS": "80", "TERM": "dumb"}
        result = CliRunner().invoke(app, list(arguments), env=environment, prog_name="attnscope")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run
