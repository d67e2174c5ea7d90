"""`attnscope flow` as it is typed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import resealed
from typer.testing import Result

from attnscope.results import Flow, load

Run = Callable[..., Result]
TEXT = "I was watching the door when [MASK] opened."
WAYS = ["gradient x input", "integrated gradients", "attention x gradient"]
ASKED = ("flow", TEXT, "-m", "demo", "--from", "[MASK]")


def test_the_screen_has_a_row_per_token_and_says_how_far_to_trust_it(attnscope: Run) -> None:
    shown = attnscope(*ASKED)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    heading = next(i for i, line in enumerate(lines) if line.startswith("token "))
    headed = " ".join(" ".join(lines[heading - 1 : heading + 1]).split())
    assert headed.startswith("answer loses last layer's integrated token (nats) attention gradients")
    assert all(len(line) <= 80 for line in lines)
    door = next(line.split() for line in lines if line.startswith("5 door"))
    assert door[2] == "+.13"
    assert "distance alone" in shown.stdout
    assert lines[0].startswith("“it” at [MASK] depends most on ")
    assert lines[-2].startswith("  attnscope find ")


def test_json_and_files_hold_the_same(attnscope: Run, tmp_path: Path) -> None:
    files = [tmp_path / f"flow{suffix}" for suffix in (".png", ".csv", ".npz")]
    told = attnscope(*ASKED, "--json", "-q", *(part for each in files for part in ("-o", str(each))))
    found = json.loads(told.stdout)
    assert found["schema"] == "attnscope.flow/2"
    assert found["inputs"][5]["token"] == "door"
    assert found["inputs"][5]["effect"] > 0.1
    assert len(found["rollout"]) == 4
    assert [each["method"] for each in found["attributed"]] == WAYS
    assert found["inputs"][5]["integrated_gradients"] == found["attributed"][1]["values"][5] > 0.1
    assert {each["method"] for each in found["ablated"]["trust"]} >= {"rollout", "flow", "distance alone"}
    assert all(each.stat().st_size > 1000 for each in files)
    again = json.loads(attnscope("show", str(files[2]), "--json").stdout)
    assert resealed.but_proofs(again) == resealed.but_proofs(found)
    assert again["certified"] == {"stored": 48}


def test_what_has_no_meaning_is_one_line(attnscope: Run) -> None:
    translate = ("flow", "I saw the door.", "-m", "demo-translate", "--target", "j'ai vu la porte.")
    refused = attnscope(*translate, "--from", "porte", "-q")
    assert refused.exit_code == 2
    assert "cross-attention leads to another text" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    other = attnscope("flow", TEXT, "-m", "demo", "--from", "door", "--layer", "2")
    assert other.exit_code == 2
    assert "choose the first layers, --layer 0-2" in other.stderr


def test_the_screen_says_how_it_was_pooled_and_a_script_is_refused(
    attnscope: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ("flow", "The dog saw the door when it opened.", "--from", "pooled", "-m", "demo")
    told = attnscope(*asked, "-o", "f.json", "-o", "f.png", "-o", "f.html")
    assert told.exit_code == 0
    assert told.stdout.startswith("The pooled vector turns most where “")
    again = load("f.json")
    assert isinstance(again, Flow)
    assert (again.query, again.pooled.how) == (None, "pooler")  # type: ignore[union-attr]
    refused = attnscope(*asked, "-o", "f.py")
    assert refused.exit_code == 2
    assert "none computes a pooled vector again" in refused.stderr
