"""`attnscope why` as it is typed, on the bundled models."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import resealed
import torch
from typer.testing import Result

import attnscope as library
from attnscope.errors import InputError

Run = Callable[..., Result]
DOOR = "I was watching the door when [MASK] opened."
ENCODER = ("why", DOOR, "-m", "demo", "--from", "[MASK]", "--to", "door")
PERIOD = ("why", "river king door river king door", "-m", "demo-causal", "--layer", "1", "--head", "10")
CAUSAL = (*PERIOD, "--from", "4", "--to", "2")


def test_the_planted_circuit_comes_out_without_its_name_being_given(attnscope: Run) -> None:
    """The previous-token head at the key, the head that carries the word at the query."""
    shown = attnscope(*CAUSAL)
    assert shown.exit_code == 0
    told = " ".join(shown.stdout.split())
    assert told.startswith(
        "L1 H10 looks from “river”@4 at “king”@2 (1.0 of its attention) because of L0 H2 at “river”@4 and "
        "L0 H0 (carries “river”@1 to “king”@2). Without L0 H2 its attention there falls to <.01, without "
        "L0 H0 to .02."
    )
    assert "L0 H0 (reads river@1)" in told
    assert "attnscope heads 'river king door river king door' -m demo-causal --layer 0" in told
    assert "✓ the parts of each table sum to the score" in told


def test_a_head_for_which_no_part_alone_matters_has_no_single_reason(attnscope: Run) -> None:
    shown = attnscope(*ENCODER)
    assert shown.exit_code == 0
    told = " ".join(shown.stdout.split())
    assert told.startswith("No part alone is the reason why L3 H11 looks from [MASK] at “door” (.98 of ")
    assert "Of 10 parts taken away" in told
    assert "attnscope find" in told.partition("Next:")[2]


def test_a_head_that_does_not_look_there_has_nothing_to_give_a_reason_for(attnscope: Run) -> None:
    shown = attnscope("why", DOOR, "-m", "demo", "--from", "door", "--to", "[CLS]")
    assert shown.exit_code == 0
    assert " ".join(shown.stdout.split()).startswith(
        "There is nothing to explain: L3 H11 gives [CLS] .03 of its attention from “door” (if all "
    )


def test_json_and_files_hold_the_same(attnscope: Run, tmp_path: Path) -> None:
    files = [tmp_path / f"why{suffix}" for suffix in (".png", ".csv", ".npz", ".html")]
    told = attnscope(*CAUSAL, "--json", "-q", *(part for each in files for part in ("-o", str(each))))
    found = json.loads(told.stdout)
    assert found["schema"] == "attnscope.why/2"
    assert found["reasons"] == {"query": ["L0 H2"], "key": ["L0 H0"]}
    for side in ("query", "key"):
        parts = [part for part in found["parts"] if part["side"] == side]
        assert sum(part["score"] for part in parts) == pytest.approx(found["score"], rel=1e-5)
        assert sum(part["contrast"] for part in parts) == pytest.approx(found["contrast"], rel=1e-5)
    (reason,) = [part for part in found["parts"] if part["name"] == "L0 H0" and part["side"] == "key"]
    assert (reason["layer"], reason["head"], reason["source"]) == (0, 0, 1)
    assert reason["removed"]["weight"] < 0.05
    assert len(reason["controls"]) == 11
    assert {"query", "key", "contrast"} <= found["pairs"][0].keys()
    assert all(each.stat().st_size > 1000 for each in files)
    again = json.loads(attnscope("show", str(files[2]), "--json").stdout)
    assert resealed.but_proofs(again)["parts"] == resealed.but_proofs(found)["parts"]


def test_parts_of_another_text_take_the_place_of_means(attnscope: Run) -> None:
    same = json.loads(attnscope(*ENCODER, "--patch-from", DOOR, "--json").stdout)
    removed = [part["removed"] for part in same["parts"] if part["removed"]]
    assert len(removed) == 10
    assert all(abs(each["total"]) < 1e-4 for each in removed), "a text's own parts change nothing"
    planted = json.loads(attnscope(*CAUSAL, "--patch-from", CAUSAL[1], "--json").stdout)
    assert planted["reasons"] == {"query": [], "key": []}, "where nothing is taken away nothing is a reason"
    other = DOOR.replace("door", "king")
    king = json.loads(attnscope(*ENCODER, "--patch-from", other, "--json").stdout)
    assert min(each["removed"]["total"] for each in king["parts"] if each["removed"]) < -1
    refused = attnscope(*ENCODER, "--patch-from", "A door.")
    assert refused.exit_code == 2
    assert "the texts have" in refused.stderr


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((*ENCODER[:-1], "window"), "no token 'window'"),
        ((*PERIOD, "--from", "river", "--to", "2"), "token 'river' stands 2 times"),
        ((*PERIOD, "--from", "2", "--to", "4"), "which follows it"),
        ((*ENCODER, "--against", "door"), "name another key"),
        ((*ENCODER, "--head", "2,3"), "head"),
        ((*ENCODER, "--layer", "9"), "layers 0-3"),
    ],
)
def test_what_cannot_be_asked_is_one_line_before_weights_are_read(
    attnscope: Run, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...], said: str
) -> None:
    def read(*given: object, **named: object) -> None:
        raise AssertionError("weights are read")

    monkeypatch.setattr("attnscope.model.loading.load.read_weights", read)
    refused = attnscope(*asked)
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_notebook_asks_the_same() -> None:
    import attnscope as at

    found = at.load("demo-causal").read("river king door river king door").why(1, 10, 4, "king@2")
    assert found.case == "reasons at both ends"
    assert "because of L0 H2" in found.text(width=200)
    assert "<svg" in found._repr_html_() or "<img" in found._repr_html_()


TEXT = "The [MASK] opened."
ASKED = ("why", TEXT, "-m", "demo", "--answer", "window")


def test_parts_sum_to_the_difference_that_the_model_itself_makes(attnscope: Run, tmp_path: Path) -> None:
    place = tmp_path / "parts.json"
    done = attnscope(*ASKED, "--against", "door", "-o", str(place))
    assert done.exit_code == 0, done.stderr
    assert "left over" in done.stdout
    told = json.loads(place.read_text())
    parts = told["parts"]
    assert told["schema"].startswith("attnscope.contributions/")
    assert sum(part["direct"] for part in parts) == pytest.approx(told["summed"])
    assert told["summed"] == pytest.approx(told["logit"], abs=1e-4)
    ratio = told["target"]["probability"] / told["against"]["probability"]
    assert told["logit"] == pytest.approx(float(torch.tensor(ratio).log()), abs=1e-4)
    assert {part["name"] for part in parts} >= {
        "token",
        "position",
        "biases",
        "left over",
        "MLP L0",
        "L3 H11",
    }


def test_a_decoder_is_asked_for_the_token_that_follows(attnscope: Run) -> None:
    done = attnscope("why", "The door opened.", "-m", "demo-causal", "--answer", "the")
    assert done.exit_code == 0, done.stderr
    assert "“the” after “.”" in done.stdout
    assert "left over" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((*ASKED, "--from", "1"), "demo tags none: leave it out"),
        ((*ASKED, "--layer", "1"), "leave the head and --to out"),
        ((*ASKED, "--against", "window"), "is the answer itself"),
        (("why", TEXT, "-m", "demo", "--answer", "qwertyu"), "has no token 'qwertyu'"),
        (("why", "The door.", "-m", "demo", "--answer", "it"), "the text has no [MASK] to fill"),
        (("why", TEXT, "-m", "demo"), "no --from: why takes"),
        (("why", TEXT, "-m", "demo", "--from", "2"), "no --to: why takes"),
        (("why", "the cat", "-m", "demo-translate", "--answer", "le"), "writes a text of its own"),
        ((*ASKED, "--patch-from", "The old [MASK] opened."), "the texts have 6 and 7 tokens"),
        ((*ASKED, "--dtype", "bfloat16"), "--dtype float32"),
    ],
)
def test_what_is_no_such_question_is_one_line(attnscope: Run, arguments: tuple[str, ...], told: str) -> None:
    done = attnscope(*arguments)
    assert done.exit_code == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_the_library_answers_the_same(attnscope: Run) -> None:
    reading = library.load("demo").read(TEXT)
    result = reading.why(answer="window", against="door")
    done = attnscope(*ASKED, "--against", "door", "--json")
    told = json.loads(done.stdout)
    assert [part["name"] for part in told["parts"]] == [part.name for part in result.parts]
    assert [part["direct"] for part in told["parts"]] == pytest.approx([p.direct for p in result.parts])
    with pytest.raises(InputError, match="leave the head"):
        reading.why(3, 11, answer="window")
    with pytest.raises(InputError, match="or else an answer"):
        reading.why(3, 11)
