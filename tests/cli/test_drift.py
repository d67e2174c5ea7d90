"""`attnscope compare --model-b` over texts: what is shown, the limit and its exit code, what does not go."""

import json
from pathlib import Path

import pytest
from planted import adapter
from transformers import BertForMaskedLM

from attnscope import demo
from attnscope.results import Drift, load

TEXTS = "the door opened\n\nriver\tshe opened the box \nI was watching it\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text(TEXTS)
    return path


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    pytest.importorskip("peft")
    return adapter(
        tmp_path / "tuned", str(demo.folder()), BertForMaskedLM.from_pretrained(demo.folder()), 2, 7, 0.5
    )


def test_a_head_beyond_the_limit_ends_with_exit_code_6_and_all_is_written(
    attnscope, file: Path, tuned: Path, tmp_path: Path
) -> None:
    targets = [tmp_path / f"drift.{suffix}" for suffix in ("json", "npz", "csv", "png")]
    outs = [part for target in targets for part in ("-o", str(target))]
    asked = ("compare", "-m", "demo", "--model-b", str(tuned), "--texts", str(file), "--json", *outs)
    result = attnscope(*asked, "--fail-above", "0.02")
    assert result.exit_code == 6
    assert result.stderr.splitlines()[-1].startswith("attnscope: L2 H7 moved by 0.")
    assert result.stderr.splitlines()[-1].endswith("more than --fail-above 0.02")
    told = json.loads(result.stdout)
    assert told["schema"].startswith("attnscope.drift/")
    assert (told["ranking"][0]["layer"], told["ranking"][0]["head"]) == (2, 7)
    assert (told["exceeding"], told["touched"]) == (["L2 H7"], ["L2 H7"])
    assert [text["line"] for text in told["texts"]] == [1, 3, 4]
    assert told["texts"][1]["text"] == "she opened the box "
    assert told["answer"].startswith("L2 H7 changed most: ")
    assert "1 by more than 2.0 %" in told["answer"]
    for path in targets[:2]:
        again = load(path)
        assert isinstance(again, Drift)
        assert again.name(again.ranking[0]) == "L2 H7"
        assert again.limit == 0.02
    assert sum(line.startswith("moved,") for line in targets[2].read_text().splitlines()) == 3 * 48
    assert targets[3].read_bytes().startswith(b"\x89PNG")
    assert attnscope(*asked[:-8], "--fail-above", "0.9").exit_code == 0


@pytest.mark.parametrize("width", [80, 140])
def test_the_screen_has_what_moved_beside_rounding_within_its_width(
    attnscope, file: Path, tuned: Path, width: int
) -> None:
    result = attnscope("compare", "-m", "demo", "--model-b", str(tuned), "--texts", str(file), width=width)
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.partition("Next:")[0].splitlines())) <= width
    screen = " ".join(result.stdout.split())
    for told in (
        "L2 H7 changed most",
        "only L2 H7 by its own weights",
        "(bfloat16 alone: ",
        "of A put back",
        "heads that changed by their own weights",
        "control: the same heads of A in bfloat16, over the same texts",
        "✓ certified: 96 of 96 heads",
        "Over 3 texts ",
    ):
        assert told in screen, told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--texts", "{file}", "--model-b", "demo", "--word", "box"), "leave --word out"),
        (("--texts", "{file}", "--model-b", "demo", "the door"), "leave TEXT out"),
        (("--texts", "{file}", "--model-b", "demo", "--words"), "leave --by, --words and --special out"),
        (("--texts", "{file}", "--model-b", "demo", "--fail-above", "2"), "lies between 0 and 1"),
        (("--texts", "{file}", "--fail-above", ".1", "--word", "box"), "give --model-b and --texts"),
        (("--texts", "{file}", "--model-b", "demo-causal"), "models of one shape"),
        (("--texts", "{file}.gone", "--model-b", "demo"), "no such file"),
    ],
)
def test_what_does_not_go_is_one_line(attnscope, file: Path, options, told: str) -> None:
    result = attnscope("compare", "-m", "demo", *(each.format(file=file) for each in options))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert told in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_a_text_that_is_too_long_is_told_by_its_line(attnscope, tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("the door\n" + "the door " * 400 + "\n")
    asked = ("compare", "-m", "demo", "--model-b", "demo", "--texts", str(file))
    result = attnscope(*asked)
    assert result.exit_code == 2
    assert "long.txt:2: " in result.stderr.splitlines()[-1]
    assert attnscope(*asked, "--truncate").exit_code == 0
