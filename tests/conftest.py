"""Typed axes are enforced while tests run; the hook must stand before the first import of attnscope."""

import os
import re
from pathlib import Path

from typed_axes import enforce

os.environ["ATTNSCOPE_DIGESTS"] = "off"  # nobody's own folder is read or written, by subprocesses neither

TYPED = (
    "arithmetic",
    "measures",
    "attention",
    "results",
    "tiles",
    "verify",
    "capture",
    "analysis",
    "tokens",
    "model",
)
VERBS = Path(__file__).parents[1] / "attnscope" / "verbs"  # of these what computes or holds data
texts = {file: file.read_text("utf-8") for file in VERBS.rglob("*.py")}
enforce(
    [f"attnscope.{name}" for name in TYPED]
    + [
        ".".join(("attnscope", *file.relative_to(VERBS.parent).with_suffix("").parts))
        for file, text in texts.items()
        if not re.search(r"attnscope\.(session|render|cli|library)", text) and file.name != "__init__.py"
    ]
)

from collections.abc import Iterator  # noqa: E402
from functools import cache  # noqa: E402
from typing import Any  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
import typer.testing  # noqa: E402

torch.set_num_threads(int(os.environ.get("ATTNSCOPE_TEST_THREADS", "1")))  # tests/processors.py
# the commands with their options are made once and not at every run in this process
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]


HERE = Path(__file__).parent
SLOW, QUICK = (
    [line for line in (HERE / f"{name}.txt").read_text().splitlines() if not line.startswith("#")]
    for name in ("slow", "quick")
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m quick` no other file is read: to import them all takes longer than the quick tests."""
    if config.option.markexpr != "quick" or not collection_path.is_file():
        return None
    return collection_path not in {HERE.parent / each.partition("::")[0] for each in QUICK} or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what the two lists name: tests, files, folders; a line that names nothing is a mistake.

    A test that needs the emulated accelerator is slow: the first one compiles it.
    """
    names = {}
    for item in items:
        file = item.nodeid.partition("::")[0]
        names[item] = {item.nodeid.partition("[")[0], file, file.rpartition("/")[0]}
    there = set().union(*names.values())
    lost = [each for each in (*SLOW, *QUICK) if each.partition("::")[0] in there and each not in there]
    if lost and not any("::" in argument for argument in config.args):
        raise pytest.UsageError(f"slow.txt or quick.txt names what is not there: {', '.join(lost)}")
    slow, quick = set(SLOW), set(QUICK)
    for item in items:
        if not slow.isdisjoint(names[item]) or "emulated" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
        elif not quick.isdisjoint(names[item]):
            item.add_marker("quick")


@pytest.fixture
def registries() -> Iterator[tuple[dict[str, object], dict[str, object]]]:
    """transformers' two tables of attention functions, put back afterwards whatever a test registers."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface

    tables = (AttentionInterface._global_mapping, ALL_ATTENTION_FUNCTIONS._local_mapping)
    before = [dict(table) for table in tables]
    yield tables
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


@pytest.fixture
def emulated() -> Any:
    """The module of the emulated accelerator, built where there is a compiler; no device is there yet.

    Without one the tests are skipped and say so; with ATTNSCOPE_ACCELERATOR=required they fail then.
    """
    from accelerator import backend

    try:
        backend.built()
    except backend.CannotBuildError as error:
        if os.environ.get("ATTNSCOPE_ACCELERATOR") == "required":
            pytest.fail(f"{error}, and ATTNSCOPE_ACCELERATOR=required")
        pytest.skip(f"{error}: no accelerator is emulated")
    return backend


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record runs the model to read it, and once to try whose rows these are."""
    from attnscope.capture import run
    from attnscope.capture.cause.reaching import Reaches

    monkeypatch.setattr(run, "reaches_of", lambda *_: Reaches())


@pytest.fixture
def believing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What files say of proofs is taken at its word, so that all the rest can be compared."""
    from attnscope.render import sheets
    from attnscope.results import Verdict

    monkeypatch.setattr(Verdict, "from_file", lambda verdict, follows: verdict)
    monkeypatch.setattr(sheets, "as_the_file_says", lambda sheet: sheet)
