"""What an answer was made with is known again by its content, and any change of it is seen."""

import importlib
import os
import py_compile
import sys
import time
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from attnscope.session.cache import witnesses
from attnscope.session.cache.witnesses import Witnesses, code_in_use

LATER = time.time_ns() + 10**12


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of three modules, two of which were imported."""
    home = tmp_path / "first" / "ofmodels"
    (home / "inner").mkdir(parents=True)
    (tmp_path / "first" / "ofmodels-1.0.dist-info").mkdir()
    for name, text in (("__init__", ""), ("inner/__init__", ""), ("inner/scale", "A = 2\n"), ("other", "")):
        (home / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "first"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    importlib.invalidate_caches()
    importlib.import_module("ofmodels.inner.scale")
    yield home
    for name in [each for each in sys.modules if each.partition(".")[0] == "ofmodels"]:
        del sys.modules[name]


def names() -> tuple[str, ...]:
    found = code_in_use({"ofmodels"}, LATER)
    assert found is not None
    return tuple(each for each in found if "attnscope" not in each)


def seen(tmp_path: Path, what: tuple[str, ...]) -> str:
    return Witnesses(tmp_path).together(what)


def test_the_code_in_use_are_the_modules_that_were_imported_their_folders_and_where_the_package_is(
    package,
) -> None:
    assert set(names()) == {
        *(f"code {package / each}" for each in ("__init__.py", "inner/__init__.py", "inner/scale.py")),
        *(f"modules {each}" for each in (package, package / "inner")),
        "package ofmodels",
    }


def edited_under_the_same_size_and_time(package: Path) -> None:
    module = package / "inner" / "scale.py"
    before = module.stat()
    module.write_text("A = 3\n")
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (module.stat().st_size, module.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def other_byte_code_under_the_same_size_and_time(package: Path) -> None:
    """What Python runs is the byte code, as long as it names the size and time of the text."""
    module = package / "inner" / "scale.py"
    text, before = module.read_text(), module.stat()
    edited_under_the_same_size_and_time(package)
    py_compile.compile(str(module), cache_from_source(str(module)))
    module.write_text(text)
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))


def of_another_time(package: Path) -> None:
    """Then the byte code does not count any more, which may have been of another text."""
    os.utime(package / "inner" / "scale.py", (1, 1))


def gone(package: Path) -> None:
    (package / "inner" / "scale.py").unlink()


def before_it_in_its_folder(package: Path) -> None:
    (package / "inner" / "scale").mkdir()


def before_it_on_the_path(package: Path) -> None:
    other = package.parents[1] / "second" / "ofmodels"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    sys.path.insert(0, str(other.parent))
    del sys.modules["ofmodels"]


def of_another_version(package: Path) -> None:
    (package.parent / "ofmodels-1.0.dist-info").rename(package.parent / "ofmodels-1.1.dist-info")


@pytest.mark.parametrize(
    "change",
    [
        edited_under_the_same_size_and_time, other_byte_code_under_the_same_size_and_time, of_another_time,
        gone, before_it_in_its_folder, before_it_on_the_path, of_another_version,
    ],
)  # fmt: skip
def test_any_change_of_the_code_is_seen(change, package: Path, tmp_path: Path) -> None:
    what = names()
    before = seen(tmp_path, what)
    assert seen(tmp_path, what) == before
    change(package)
    assert seen(tmp_path, what) != before


def test_what_is_no_code_in_use_may_change(package: Path, tmp_path: Path) -> None:
    what = names()
    before = seen(tmp_path, what)
    (package / "other.py").write_text("B = 1\n")  # there, and not imported
    (package / "inner" / "notes.txt").write_text("of the package")
    (tmp_path / "first" / "elsewhere.py").write_text("")
    assert seen(tmp_path, what) == before


def test_code_that_was_written_just_before_the_question_or_after_is_not_believed(package: Path) -> None:
    written = max(
        (package / "inner" / "scale.py").stat().st_ctime_ns, (package / "__init__.py").stat().st_ctime_ns
    )
    assert code_in_use({"ofmodels"}, written + witnesses._LATEST // 2) is None
    assert code_in_use({"ofmodels"}, written - 1) is None
    assert code_in_use({"ofmodels"}, LATER) is not None


def test_of_this_program_what_computes_counts_and_what_draws_does_not() -> None:
    import attnscope.render.sheets.head
    import attnscope.sdpa

    found = code_in_use((), LATER)
    assert found is not None
    assert f"code {attnscope.sdpa.__file__}" in found
    assert f"code {witnesses.__file__}" in found
    assert not [each for each in found if "/attnscope/render/" in each]


def test_a_witness_of_no_known_kind_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="hearsay"):
        seen(tmp_path, ("hearsay x",))
