"""transformers' table of its modules: what is on disk is what the library makes, or it is made anew."""

import os
from pathlib import Path
from types import ModuleType

import pytest

from attnscope.cachedir import FOLDER
from attnscope.startup import table


class Library:
    """A folder of models, and a function that reads them, which counts how often."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, 0
        (folder / "bert").mkdir(parents=True)
        (folder / "bert" / "modeling_bert.py").write_text("BertModel")
        (folder / "readme.txt").write_text("")

    def make(self, path: object, prefix: str | None = None) -> dict:
        self.asked += 1
        names = {file.stem: {*file.read_text().split()} for file in sorted(self.folder.glob("*/*.py"))}
        return {frozenset({"torch", "vision"}): names, frozenset(): {f"{prefix}.auto": set()}}

    def ask(self) -> dict:
        return table.kept(self.make, __file__)(self.folder, prefix="models")


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setenv(FOLDER, str(tmp_path / "kept"))
    return Library(tmp_path / "models")


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "kept" / "startup").glob("*"))


def test_the_second_time_it_comes_from_disk_and_is_the_same(library: Library, tmp_path: Path):
    first, second = library.ask(), library.ask()
    expected = {
        frozenset({"torch", "vision"}): {"modeling_bert": {"BertModel"}},
        frozenset(): {"models.auto": set()},
    }
    assert first == second == expected
    assert library.asked == 1
    assert len(kept(tmp_path)) == 1
    second[frozenset()].clear()
    assert library.ask() == first  # each asker has a table of his own


@pytest.mark.parametrize("change", ["content", "new file", "time", "gone"])
def test_a_library_that_changed_is_read_again(library: Library, change: str):
    file = library.folder / "bert" / "modeling_bert.py"
    library.ask()
    if change == "content":
        file.write_text("BertModel BertOther")
    elif change == "new file":
        (library.folder / "bert" / "tokenization_bert.py").write_text("BertTokenizer")
    elif change == "time":
        os.utime(file, ns=(1, 1))
    else:
        file.unlink()
    assert library.ask() == library.make(None, "models")
    assert library.asked == 3


@pytest.mark.parametrize("damage", [0, 1, 70, 90, -3])
def test_a_table_that_is_damaged_counts_for_nothing(library: Library, tmp_path: Path, damage: int):
    library.ask()
    [file] = kept(tmp_path)
    data = bytearray(file.read_bytes())
    data[damage] ^= 1
    for damaged in (bytes(data), data[:damage], b"", b"[]"):
        file.write_bytes(damaged)
        asked = library.asked
        assert library.ask() == library.make(None, "models")
        assert library.asked == asked + 2
        assert library.ask()
        assert library.asked == asked + 2


def test_where_nothing_can_be_kept_it_is_made_each_time(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "kept").write_text("a file where the folder would be")
    assert library.ask() == library.ask()
    assert library.asked == 2
    monkeypatch.setenv(FOLDER, "off")
    assert library.ask()
    assert library.asked == 3
    assert (tmp_path / "kept").is_file()


def test_what_json_would_change_is_not_kept(library: Library, tmp_path: Path):
    odd = {frozenset(): {"a": ["a list"]}}
    assert table.kept(lambda *_: odd, None)(library.folder) is odd
    assert kept(tmp_path) == []


def test_only_the_newest_tables_stay(library: Library, tmp_path: Path):
    for i in range(12):
        (library.folder / "bert" / "modeling_bert.py").write_text(f"Bert{i}" + " x" * i)
        library.ask()
    assert len(kept(tmp_path)) == 8
    assert library.ask()
    assert library.asked == 12


def test_the_library_that_is_installed_gets_its_own_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from transformers.utils import import_utils

    monkeypatch.setenv(FOLDER, str(tmp_path))
    own = import_utils.define_import_structure
    folder = Path(import_utils.__file__).parents[1] / "models" / "bert"
    copy = ModuleType("copy")
    copy.define_import_structure, copy.__file__ = own, import_utils.__file__
    table.keep_table(copy)
    for _ in range(2):
        assert copy.define_import_structure(folder, prefix="models") == own(folder, prefix="models")
    assert copy.define_import_structure(str(folder / "__init__.py")) == own(str(folder / "__init__.py"))
    assert len(list((tmp_path / "startup").iterdir())) == 1
    without = ModuleType("without")
    table.keep_table(without)
    assert not hasattr(without, table.FUNCTION)
