"""`attnscope why --answer`: what each part of the model brings to an answer, and what is no such question."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from typer.testing import Result

import attnscope as library
from attnscope.errors import InputError

Run = Callable[..., Result]
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
