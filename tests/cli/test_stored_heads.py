"""Any head of a stored overview: its weights, its first line, the certificate that was stored of it."""

import json
from pathlib import Path

import made_results as made
import numpy as np
import pytest
from transformers import AutoModel, AutoTokenizer

from attnscope import demo
from attnscope.results import Verdict
from attnscope.results.stored.document import as_npz

TEXT = "I was watching the door when it opened."
SOME = ("--layer", "1-3", "--head", "2,11")
ONE = ("--layer", "3", "--head", "11")
LEFT = ("q", "k", "v", "scores", "scaled", "output", "key_head", "scale")


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def stored(attnscope) -> Path:
    assert attnscope("heads", TEXT, "-m", "demo", *SOME, "-o", "run.npz", "-q").exit_code == 0
    return Path("run.npz")


def test_a_head_of_a_stored_overview_has_the_models_own_weights_and_nothing_that_was_not_stored(
    attnscope, stored: Path
) -> None:
    model = AutoModel.from_pretrained(demo.folder(), attn_implementation="eager")
    inputs = AutoTokenizer.from_pretrained(demo.folder())(TEXT, return_tensors="pt")
    own = model(**inputs, output_attentions=True).attentions
    for layer, head in ((1, 2), (3, 11)):
        place = ("--layer", str(layer), "--head", str(head))
        told = json.loads(attnscope("show", str(stored), *place, "--json").stdout)
        assert (told["layer"], told["head"]) == (layer, head)
        np.testing.assert_allclose(told["weights"], own[layer][0, head].detach(), atol=1e-6)
        assert [told[name] for name in LEFT] == [None] * len(LEFT)


@pytest.mark.parametrize("model", ["demo", "demo-causal"])
def test_what_is_stored_of_a_head_is_what_the_command_for_that_head_tells(attnscope, model: str) -> None:
    attnscope("heads", TEXT, "-m", model, "--layer", "1,2", "-o", "run.npz", "-q")
    place = ("--layer", "2", "--head", "1")
    told, own = (
        json.loads(attnscope(*command, *place, "--json", "-q").stdout)
        for command in (("show", "run.npz"), ("heads", TEXT, "-m", model))
    )
    assert told["certificate"].pop("verdict") == "stored"
    assert own["certificate"].pop("verdict") == "certified"
    np.testing.assert_allclose(told.pop("weights"), own.pop("weights"), atol=1e-12)
    for name in ("allowed", "module", "heads", "layers", "query_tokens", "provenance", "certificate"):
        assert told[name] == own[name], name
    assert np.all(told["allowed"]) == (model == "demo")


def test_the_first_line_is_that_of_the_head_and_a_picture_of_it_is_written(attnscope, stored: Path) -> None:
    asked = (*ONE, "--query", "it")
    shown = attnscope("show", str(stored), *asked, "-o", "x.png").stdout.splitlines()
    own = attnscope("heads", TEXT, "-m", "demo", *asked).stdout.splitlines()
    assert own[0].startswith("From “it”, L3 H11 gives “door” .93")
    assert shown[0] == own[0]
    assert [line.split()[:3] for line in shown if "█" in line] == [
        line.split()[:3] for line in own if "█" in line
    ]
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")


def test_a_head_of_an_overview_by_words_is_shown_by_words(attnscope) -> None:
    text = "I was watching the unbelievable door."
    attnscope("heads", text, "-m", "demo", "--words", "-o", "run.npz", "-q")
    shown = json.loads(attnscope("show", "run.npz", *ONE, "--json").stdout)
    own = json.loads(attnscope("heads", text, "-m", "demo", "--words", *ONE, "--json").stdout)
    assert shown["schema"] == own["schema"] == "attnscope.view/2"
    assert shown["row_groups"] == own["row_groups"]
    np.testing.assert_allclose(shown["weights"], own["weights"], atol=1e-12)


def test_each_head_is_shown_with_what_was_proved_of_it_and_not_of_the_worst(attnscope) -> None:
    found = made.overview(2, 3, verdicts={(1, 2): Verdict.PARTIAL})
    Path("made.npz").write_bytes(as_npz(found))
    best, worst = (
        attnscope("show", "made.npz", "--layer", layer, "--head", head).stdout
        for layer, head in (("0", "1"), ("1", "2"))
    )
    assert "certified when stored" in best
    assert "at worst partial when stored" in worst


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (("--layer", "3"), "give both --layer and --head"),
        (("--layer", "0", "--head", "11"), "no L0 H11 here: there are layers 1-3 and heads 2, 11"),
        (("--layer", "3", "--head", "-1"), "no L3 H-1 here"),
        ((*ONE, "--query", "zebra"), "no token 'zebra' in the input"),
        ((*ONE, "--key", "door"), "a key goes with a query"),
        ((*ONE, "--show", "q"), "there are only weights of this head: leave show q out"),
    ],
)
def test_what_is_not_there_is_one_line(attnscope, stored: Path, asked: tuple[str, ...], line: str) -> None:
    refused = attnscope("show", str(stored), *asked)
    assert refused.exit_code == 2
    assert line in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_files_without_weights_and_of_one_head_have_no_head_to_choose(attnscope) -> None:
    attnscope("heads", TEXT, "-m", "demo", *SOME, "-o", "run.json", "-q")
    attnscope("heads", TEXT, "-m", "demo", *ONE, "-o", "one.npz", "-q")
    for file, line in (("run.json", "this overview holds no weights"), ("one.npz", "this file holds none")):
        refused = attnscope("show", file, *ONE)
        assert (refused.exit_code, len(refused.stderr.splitlines())) == (2, 1)
        assert line in refused.stderr
