"""Every contract on imports in pyproject.toml notices when it is broken: one bad line for each, in a copy.

That the package itself keeps them all is tested beside this (`test_structure`).
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# by contract: a module, what is written into it, and what the report of that contract must then say
BROKEN = {
    "imports point one way": (
        "verify/certificate",
        "from attnscope.capture import run",
        "attnscope.verify.certificate -> attnscope.capture.run",
    ),
    "a model is found, taken apart, given its inputs, loaded": (
        "model/source/find",
        "from attnscope.model.loading import load",
        "attnscope.model.source.find -> attnscope.model.loading.load",
    ),
    "commands and the explorer reach model, capture and analysis only through the session": (
        "cli/app",
        "from attnscope.analysis import head",
        "attnscope.cli.app -> attnscope.analysis.head",
    ),
    "the session shows nothing": ("session/listener", "import rich", "attnscope.session.listener -> rich"),
    "rendering needs results and nothing that computes": (
        "render/kit/palette",
        "import torch",
        "attnscope.render.kit.palette -> torch",
    ),
    "results are read again without torch": (
        "results/measure",
        "import transformers",
        "attnscope.results.measure -> transformers",
    ),
    "the readers of attention are independent of one another": (
        "capture/trace/memory",
        "from attnscope.capture.following import takeover",
        "attnscope.capture.trace.memory -> attnscope.capture.following.takeover",
    ),
    "no cycles between siblings": (
        "worked/cells",
        "from attnscope.worked import attention",
        "No cycles are allowed in attnscope.worked.",
    ),
    "transformers, safetensors and the hub are used in model, capture and demo only": (
        "analysis/head",
        "import safetensors",
        "attnscope.analysis.head -> safetensors",
    ),
    "matplotlib is used in render only": (
        "analysis/terms",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from matplotlib.axes import Axes",
        "attnscope.analysis.terms -> matplotlib",
    ),
    "scikit-learn and scipy are used in analysis only": (
        "render/kit/numbers",
        "import scipy",
        "attnscope.render.kit.numbers -> scipy",
    ),
    "files of pictures and sounds are read in model only": (
        "cli/output",
        "import PIL",
        "attnscope.cli.output -> PIL",
    ),
    "typer is used in cli only": ("session/request", "import typer", "attnscope.session.request -> typer"),
    "rich is used in cli, explore and render, and by the programs that train": (
        "worked/roles",
        "import rich",
        "attnscope.worked.roles -> rich",
    ),
    "textual is used in explore only": (
        "session/ablating",
        "import textual",
        "attnscope.session.ablating -> textual",
    ),
    "Ray is used in its engine only": (
        "session/corpus/engine/local",
        "import ray",
        "attnscope.session.corpus.engine.local -> ray",
    ),
}


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> dict[str, str]:
    """What import-linter says of a copy of the package with all the bad lines in it, by broken contract."""
    copy = tmp_path_factory.mktemp("broken")
    only_code = shutil.ignore_patterns("*.safetensors", "*.json", "*.md", "*.toml", "__pycache__")
    shutil.copytree(ROOT / "attnscope", copy / "attnscope", ignore=only_code)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for module, line, _ in BROKEN.values():
        with (copy / "attnscope" / f"{module}.py").open("a") as file:
            file.write(f"\n{line}\n")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=copy, env={**os.environ, "COLUMNS": "300", "PYTHONPATH": str(copy)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    parts = re.split(r"^(.+)\n-{3,}\n", done.stdout.partition("Broken contracts\n")[2], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_contract_is_broken_once_here() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert [contract["name"] for contract in settings["contracts"]] == list(BROKEN)
    assert not settings["exclude_type_checking_imports"]


@pytest.mark.parametrize("contract", BROKEN)
def test_a_contract_notices_the_line_that_breaks_it(contract: str, report: dict[str, str]) -> None:
    module, line, said = BROKEN[contract]
    before = (ROOT / "attnscope" / f"{module}.py").read_text()
    assert line not in before
    assert said in report[contract]
