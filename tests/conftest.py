"""Typed axes are enforced while tests run; the hook must stand before the first import of attnscope."""

import os

from typed_axes import enforce

os.environ["ATTNSCOPE_CACHE"] = "off"  # nobody's own cache is read or written, by subprocesses neither

TYPED = (
    "sdpa",
    "measures",
    "attention",
    "results",
    "tiles",
    "verify",
    "capture",
    "analysis",
    "worked",
    "tokens",
    "model",
)
enforce(f"attnscope.{name}" for name in TYPED)

from collections.abc import Iterator  # noqa: E402
from functools import cache  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
import typer.testing  # noqa: E402

torch.set_num_threads(1)
# the commands with their options are made once and not at every run in this process
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]


SLOW = tuple((Path(__file__).parent / "slow.txt").read_text().split())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", default="1/1", help="of the slow tests every N-th, from the K-th: K/N")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what stands in slow.txt, of which `--part` keeps some; a line that names no test is a mistake."""
    named = {item.nodeid.partition("[")[0] for item in items}
    files = {name.partition("::")[0] for name in named}
    lost = [each for each in SLOW if each.partition("::")[0] in files and each not in named]
    whole = not any("::" in argument for argument in config.args)
    assert not (lost and whole), f"slow.txt names tests that are not there: {', '.join(lost)}"
    first, _, every = config.getoption("--part").partition("/")
    kept = set(SLOW[int(first) - 1 :: int(every)])
    for item in items:
        if (name := item.nodeid.partition("[")[0]) in SLOW:
            item.add_marker("slow" if name in kept else "slow_elsewhere")


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
