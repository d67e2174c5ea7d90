"""The campaign draws the same of a seed, reaches every option, and makes smaller what it finds."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis.database import InMemoryExampleDatabase

from attnscope.register import registered

from . import process
from .campaign import Campaign
from .commands import line, parameters, sound
from .found import FOUND
from .invocation import Invocation, Outcome
from .kinds import KINDS
from .material import Material
from .place import Place, paths_in


class Sketched(Material):
    """With models of no files, one stored result and media that are none: nothing is made here."""

    def _once(self, name: str, make: Callable[[Path], object]) -> Path:
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text("{}")
        if name == "stored":
            (folder / "config.json").unlink()
            record = {"schema": "attnscope.head/2", "layer": 3, "tokens": ["a", "b", {"text": "c"}]}
            (folder / "00.json").write_text(json.dumps(record))
            np.savez(folder / "00.npz", meta=np.array(json.dumps(record)), weights=np.eye(3))
        for file in ("square.png", "tone.wav") if name == "media" else ():
            (folder / file).write_bytes(file.encode())
        return folder


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    return Sketched(tmp_path_factory.mktemp("material"))


def contents(folder: Path) -> dict[str, bytes]:
    files = [name for name in paths_in(folder) if (folder / name).is_file()]
    read = [name for name in files if name != "sparse" and "/dev/" not in str((folder / name).resolve())]
    return {name: (folder / name).read_bytes() for name in read}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_number_makes_the_same_invocation_and_files(
    kind: str, material: Material, tmp_path: Path
) -> None:
    place, made = Place(tmp_path), []
    for _ in range(2):
        each = []
        for number in range(15):
            place.clear()
            invocation = KINDS[kind][0](Random(f"1/{number}"), place.current, material)
            each.append((invocation, contents(place.current)))
        made.append(each)
    assert made[0] == made[1]
    assert len({str(invocation) for invocation, _ in made[0]}) > 6


def test_every_option_of_a_command_is_drawn_and_its_sound_values_are_known(
    material: Material, tmp_path: Path
) -> None:
    assert all(sound(each) for options in parameters().values() for each in options if not each.is_flag)
    drawn = {
        word.partition("=")[0]
        for number in range(400)
        for word in line(Random(f"heads/{number}"), tmp_path, material, among=("heads",), odd=0.2)
    }
    assert [each.opts for each in parameters()["heads"] if not drawn & set(each.opts)] == []


def test_a_metavar_that_nobody_knows_is_an_error() -> None:
    option = {"opts": ["--new"], "type_descriptor": SimpleNamespace(annotation=str)}
    assert sound(SimpleNamespace(**option, metavar="one|2|N"))[:2] == ("one", "2")
    with pytest.raises(KeyError, match="NOSUCH"):
        sound(SimpleNamespace(**option, metavar="one|NOSUCH"))


def test_shares_are_of_a_hundred() -> None:
    assert sum(share for _, share in KINDS.values()) == 100


Ran = tuple[list[str], list[Invocation], Campaign]


@pytest.fixture
def campaign(material: Material, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """`campaign(code, seed, kind)`: what 60 runs of a program that ends so find, and what they ask."""
    monkeypatch.setattr(process, "warm_up", lambda *_: None)

    def campaign(code: Callable[[tuple[str, ...]], int], seed: int = 1, kind: str | None = None) -> Ran:
        ran = list[Invocation]()

        def run(invocation: Invocation, place: Place) -> Outcome:
            ran.append(invocation)
            return Outcome(code=code(invocation.argv), stdout=b"", stderr=b"attnscope: no\n", seconds=0)

        monkeypatch.setattr(process, "run", run)
        begun = Campaign(material, InMemoryExampleDatabase())
        try:
            return [f"{type(each).__name__}\n{each}" for each in begun.run(60, seed, kind)], ran, begun
        finally:
            begun.close()

    return campaign


def test_a_seed_asks_the_same_and_first_what_was_found_once(campaign: Callable[..., Ran]) -> None:
    (found, first, begun), (_, again, _) = (campaign(lambda _: 2, seed) for seed in (5, 5))
    assert found == []
    assert first == again
    assert all(each in first[: 2 * len(FOUND)] for each in FOUND)  # some of them twice
    assert begun.record.ends.total() == 60 + len(FOUND)
    rows = {row[0]: row[1:] for row in begun.record.table()}
    assert rows["`found`"] == (len(FOUND), f"2: {len(FOUND)}", 0)
    assert sum(row[0] for name, row in rows.items() if "attnscope" in name) == begun.record.ends.total()


def test_every_cause_is_told_in_an_invocation_that_has_little_else(campaign: Callable[..., Ran]) -> None:
    def code(argv: tuple[str, ...]) -> int:
        return 1 if len(argv) > 9 else 77 if argv and argv[0].startswith("c") else 2

    found, ran, begun = campaign(code, kind="lines")
    told = {each.partition("\n")[0]: each.splitlines()[1].partition(": attnscope ")[2] for each in found}
    assert set(told) == {"exit code: 1: attnscope: no", "exit code: 77: attnscope: no"}
    long, by_name = (shlex.split(told[cause]) for cause in sorted(told))
    assert 10 <= len(long) <= 12 < max(len(each.argv) for each in ran)
    assert shlex.join(("attnscope", *by_name)) in [
        shlex.join(shlex.split(each)) for each in registered()[by_name[0]].examples
    ]
    assert begun.record.found.total() >= 4


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs another user's folders"
)
@pytest.mark.parametrize("lost", ["-fowner", "-fowner,-dac_override,-dac_read_search"])
def test_what_another_user_left_is_cleared_by_an_administrator_who_may_not_change_it(lost: str) -> None:
    root = Path(tempfile.mkdtemp())  # where others may go, which pytest's own folders forbid
    root.chmod(0o755)
    inner = root / "work" / "current" / "sub" / "dir"
    inner.mkdir(parents=True)
    (inner / "made.png").write_bytes(b"x")
    for path in (inner.parent.parent, inner.parent, inner, inner / "made.png"):
        os.chown(path, 65534, 65534)
    inner.chmod(0)
    code = "import sys, pathlib, tests.hostile.place as place; place.remove(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(root / "work")]
    subprocess.run(["setpriv", f"--bounding-set={lost}", *command], check=True)
    assert list(root.iterdir()) == []
    root.rmdir()
