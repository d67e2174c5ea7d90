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

from .kinds import KINDS, kind_of
from .material import Material
from .place import Place, paths_in


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    """With one stored result, so that no model is made here."""
    root = tmp_path_factory.mktemp("material")
    stored = root / "stored"
    stored.mkdir()
    record = {"schema": "attnscope.head/1", "layer": 3, "tokens": ["a", "b", {"text": "c"}]}
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
