"""The pages of docs/ as a site: Sphinx builds it with every warning an error, links among them."""

import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import attnscope
from attnscope import results
from attnscope.errors import AttnscopeError
from attnscope.library.readings import Prompted

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def built(docs: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Sphinx over the folder `docs`."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", f"{out}-read", docs, out]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "site"
    done = built(DOCS, out)
    assert (done.returncode, done.stderr) == (0, "")
    return out


def test_the_site_is_built_without_a_warning_and_has_every_page(site: Path) -> None:
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    made = {page.relative_to(site) for page in site.rglob("*.html")}
    assert pages <= made
    home = (site / "index.html").read_text("utf-8")
    assert all(f'href="{page.as_posix()}"' in home for page in pages - {Path("index.html")})


def public(kind: type) -> Iterator[tuple[str, object]]:
    """What a class of the reference has for whoever holds one, without what every result can do."""
    protocol = {"check_parts", "derived", "npz_columns", "for_readers"}
    protocol |= set() if kind is results.Result else {*vars(results.Result)}
    for owner in kind.__mro__:
        if owner.__module__.startswith("attnscope") and (owner is not results.Result or kind is owner):
            for name, member in vars(owner).items():
                called = isinstance(member, property | cached_property | classmethod | staticmethod)
                shown = name not in protocol or name == "verdict"
                if shown and not name.startswith("_") and (called or inspect.isfunction(member)):
                    yield name, getattr(member, "func", getattr(member, "fget", member))
    yield from ((each.name, None) for each in (fields(kind) if is_dataclass(kind) else ()))
    yield from ((each.name, None) for each in (kind if issubclass(kind, Enum) else ()))


def parts_of(hint: object) -> Iterator[type]:
    """The package's own classes in a type."""
    if isinstance(hint, type) and hint.__module__.startswith("attnscope"):
        yield hint
    for each in get_args(hint):
        yield from parts_of(each)


def test_the_reference_has_every_public_name_with_what_it_says(site: Path) -> None:
    shown = "".join((site / f"{page}.html").read_text("utf-8") for page in ("api", "results"))
    places = set(re.findall(r'<dt class="sig[^"]*" id="([\w.]+)">', shown))
    door = {name: getattr(attnscope, name) for name in attnscope.__all__ if name != "__version__"}
    stored = {name: getattr(results, name) for name in results.__all__}
    kinds = {f"attnscope.{name}": each for name, each in door.items() if isinstance(each, type)}
    kinds |= {f"attnscope.results.{name}": each for name, each in stored.items() if isinstance(each, type)}
    kinds |= {f"attnscope.errors.{each.__name__}": each for each in AttnscopeError.__subclasses__()}
    kinds |= {f"{each.__module__}.{each.__name__}": each for each in (Prompted, results.Result)}
    kinds.pop("attnscope.results.Result")
    todo = [*kinds.values()]
    while todo:
        kind = todo.pop()
        for hint in get_type_hints(kind).values() if is_dataclass(kind) else ():
            further = {*parts_of(hint)} - {*kinds.values()}
            kinds |= {f"{each.__module__}.{each.__name__}": each for each in further}
            todo += further
    wanted = {f"attnscope.{name}" for name in door} | {*kinds}
    silent = {name for name, kind in kinds.items() if not kind.__doc__}
    for name, kind in kinds.items():
        for member, getter in public(kind):
            wanted.add(f"{name}.{member}")
            if getter is not None and not getattr(getter, "__doc__", None):
                silent.add(f"{name}.{member}")
    assert len(wanted) > 1000
    assert sorted(wanted - places) == []
    assert sorted(silent) == []


@pytest.mark.parametrize("owner", [attnscope, attnscope.Model, attnscope.Reading, Prompted, results.Result])
def test_every_option_of_a_call_is_named_by_what_it_says_or_by_what_its_class_says(owner: object) -> None:
    names = attnscope.__all__ if owner is attnscope else dir(owner)
    calls = {name: getattr(owner, name) for name in names if not name.startswith("_")}
    said = "" if owner is attnscope else inspect.getdoc(owner) or ""
    unnamed = [
        f"{name}({option}=)"
        for name, call in calls.items()
        if inspect.isfunction(call)
        for option in inspect.signature(call).parameters
        if option not in ("self", "look") and f"`{option}`" not in said + (inspect.getdoc(call) or "")
    ]
    assert sum(map(inspect.isfunction, calls.values())) >= 4
    assert unnamed == []


def test_links_that_lead_nowhere_and_a_page_that_none_leads_to_end_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    shutil.copy(DOCS / "conf.py", docs)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (docs / "index.md").write_text("# Site\n\n## Pages\n\n* [Home](home.md)\n", "utf-8")
    links = "[one](nowhere.md), [another](home.md#no-such-heading), ![a picture](nowhere.png)"
    (docs / "home.md").write_text(f"# Home\n\n{links}\n", "utf-8")
    (docs / "lost.md").write_text("# Lost\n", "utf-8")
    done = built(docs, tmp_path / "site")
    assert done.returncode
    told = [line.partition("WARNING: ")[::2] for line in done.stderr.splitlines()]
    for place, what in (
        ("home.md", "nowhere"),
        ("home.md", "no-such-heading"),
        ("home.md", "nowhere.png"),
        ("lost.md", ""),
    ):
        assert any(place in where and what in warning for where, warning in told), (what, done.stderr)
