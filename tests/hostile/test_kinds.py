"""Invocation N of a seed is always the same, and every kind makes what it says."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

import numpy as np
import pytest

from .campaign import Record, table, told
from .invocation import Invocation, Outcome
from .kinds import KINDS, kind_of
from .material import Material
from .oracle import Finding
from .place import Place, paths_in


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    """With one stored result, so that no model is made here."""
    root = tmp_path_factory.mktemp("material")
    stored = root / "stored"
    stored.mkdir()
    record = {"schema": "attnscope.head/2", "layer": 3, "tokens": ["a", "b", {"text": "c"}]}
    (stored / "00.json").write_text(json.dumps(record))
    np.savez(stored / "00.npz", meta=np.array(json.dumps(record)), weights=np.eye(3))
    return Material(root)


def contents(folder: Path) -> dict[str, bytes]:
    files = [name for name in paths_in(folder) if (folder / name).is_file()]
    read = [name for name in files if name != "sparse" and "/dev/" not in str((folder / name).resolve())]
    return {name: (folder / name).read_bytes() for name in read}


@pytest.mark.parametrize(
    "kind", [name for name in KINDS if name not in ("texts", "media", "folders", "outgoing")]
)
def test_the_same_number_makes_the_same_invocation_and_files(
    kind: str, material: Material, tmp_path: Path
) -> None:
    place, made = Place(tmp_path), []
    for _ in range(2):
        each = []
        for number in range(25):
            place.clear()
            invocation = KINDS[kind][0](Random(f"1/{number}"), place.current, material)
            each.append((invocation, contents(place.current)))
        made.append(each)
    assert made[0] == made[1]
    assert len({str(invocation) for invocation, _ in made[0]}) > 10


def test_every_kind_has_its_share() -> None:
    drawn = [kind_of(Random(f"1/{number}")) for number in range(3000)]
    assert sum(share for _, share in KINDS.values()) == 100
    for name, (_, share) in KINDS.items():
        assert abs(drawn.count(name) / 30 - share) < 3, name


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs another user's folders"
)
@pytest.mark.parametrize("lost", ["-fowner", "-fowner,-dac_override,-dac_read_search"])
def test_what_another_user_left_is_cleared_by_an_administrator_who_may_not_change_it(
    lost: str,
) -> None:
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


def test_logs_of_slices_tell_together_what_was_found(tmp_path: Path) -> None:
    whole, logs = Record(), [tmp_path / f"{seed}.log" for seed in (1, 2)]
    for seed, log in enumerate(logs, start=1):
        for number, kind, code in ((0, "options", 2), (20, "kills", -9), (21, "options", 1)):
            found = [Finding("exit code", "1", "all of it")] if code == 1 else []
            outcome = Outcome(code=code, stdout=b"", stderr=b"", seconds=0.5)
            line = told(seed, number, kind, Invocation(("x",)), outcome, found, number == 0)
            with log.open("a") as file:
                file.write(line + "\n")
            whole.add(number, kind, code, 0.5, [(each.sort, each.cause) for each in found])
            whole.repeats += number == 0
    together = Record.logged(*logs)
    assert together == whole
    assert together.whole() == "6 runs, 2 of them twice, 3 s, 2.00 a second"
    assert list(table(together)) == [("`kills`", 2, "-9: 2", 0), ("`options`", 4, "2: 2, 1: 2", 2)]
    assert together.found == {("exit code", "1"): [21, 21]}
