"""`attnscope find` as it is typed: the ranking on the screen, in JSON and in files, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import resealed
from typer.testing import Result

from attnscope import demo

Run = Callable[..., Result]
PICTURE = str(demo.example("demo-caption"))
TEXT = "I was watching the door when [MASK] opened."
PAIR = ("find", TEXT, "-m", "demo", "--from", "[MASK]", "--to", "door", "--controls", "12")


def test_the_screen_ranks_heads_beside_their_controls_and_opens_the_best(attnscope: Run) -> None:
    shown = attnscope(*PAIR)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    heading = next(i for i, line in enumerate(lines) if line.startswith("head"))
    words = ["head", "weight", "rank", "norm", "control", "90", "%", "beats", "diff", "follows", "by"]
    assert lines[heading].split() == words
    assert lines[heading + 1].startswith("L0 H11")
    assert lines[heading + 1].endswith("place")
    assert lines[heading + 2].startswith("L3 H11")
    assert lines[heading + 2].endswith("text")
    assert "L0 H11 gives the most weight of 48 heads" in shown.stdout
    told = "12 texts of the same shape, seed 0: beginnings of words change places"
    assert told in " ".join(shown.stdout.split())
    assert lines[-1] == (
        f"Open it: attnscope heads '{TEXT}' -m demo --layer 0 --head 11 --query '[MASK]' --key door"
    )
    narrow = attnscope(*PAIR, width=40).stdout
    assert "diff" in narrow
    assert "follows" not in narrow.splitlines()[heading]


def test_json_has_the_ranking_best_first_and_files_are_written_beside(attnscope: Run, tmp_path: Path) -> None:
    files = [tmp_path / f"found{suffix}" for suffix in (".png", ".csv", ".npz")]
    told = attnscope(*PAIR, "--json", "-q", *(part for each in files for part in ("-o", str(each))))
    found = json.loads(told.stdout)
    assert found["schema"] == "attnscope.finding/2"
    assert found["looked_at"] == 48
    heads = found["heads"]
    assert [(head["layer"], head["head"]) for head in heads[:2]] == [(0, 11), (3, 11)]
    assert [head["weight"] for head in heads] == sorted((head["weight"] for head in heads), reverse=True)
    assert heads[0]["rank"] == 1
    assert heads[0]["norm"] > 0
    assert {"mean", "low", "high", "percentile", "difference", "followed"} == set(heads[0]["control"])
    assert heads[0]["control"]["mean"] > 0.9
    assert heads[1]["account"] == "text"
    assert all(each.stat().st_size > 1000 for each in files)
    again = attnscope("show", str(files[2]), "--json")
    assert resealed.but_proofs(json.loads(again.stdout)) == resealed.but_proofs(found)
    shown, asked = (attnscope(*each).stdout for each in (("show", str(files[2])), PAIR))
    assert resealed.lines_but_proofs(shown) == resealed.lines_but_proofs(asked)
    assert "✓ certified: 48 of 48 heads" in asked
    assert "○ as stored, not checked here: 48 of 48 heads" in shown


def test_seeds_change_controls_and_repeat_them(attnscope: Run) -> None:
    first, again, other = (attnscope(*PAIR, "--json", "--seed", seed).stdout for seed in ("3", "3", "4"))
    assert first == again
    means = [[head["control"]["mean"] for head in json.loads(each)["heads"]] for each in (first, other)]
    assert means[0] != means[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--from", "[MASK]"), "--from and --to go together: which token looks, and at which"),
        (("--pattern", "diagonal"), "no pattern 'diagonal': previous, next, self"),
        (("--like", "11"), "--like '11' names no head: write it as L3H11"),
        (("--from", "the", "--to", "window"), "no token 'window' in the input"),
        (("--pattern", "next", "--image", PICTURE), "reads no pictures: leave --image out"),
        (("--pattern", "next", "-o", "x.txt"), "cannot write 'x.txt'"),
    ],
)
def test_bad_input_is_one_line(attnscope: Run, options: tuple[str, ...], said: str) -> None:
    refused = attnscope("find", TEXT, "-m", "demo", *options)
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not refused.stdout
