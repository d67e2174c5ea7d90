"""`attnscope compare --texts`: one word in the lines of a file, with labels and without."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from pasted import following

from attnscope.results import Senses, load

LINES = [
    "river\tthe river bank was steep",
    "river\tthe boat is at the bank",
    "money\tthe bank has the money",
    "money\the went to the bank today",
    "money\tthe bank is new",
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bank.txt"
    path.write_text("\n".join(LINES) + "\n\n")
    return path


def ask(attnscope, file: Path, *more: str, **how):
    return attnscope("compare", "--word", "bank", "--texts", str(file), "-m", "demo", *more, **how)


def test_labelled_lines_are_groups_and_every_file_holds_the_same(
    attnscope, file: Path, tmp_path: Path
) -> None:
    targets = [tmp_path / f"bank.{suffix}" for suffix in ("json", "npz", "csv", "png")]
    outs = [part for target in targets for part in ("-o", str(target))]
    result = ask(attnscope, file, "--json", "--controls", "50", *outs)
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["schema"] == "attnscope.senses/2"
    assert [usage["label"] for usage in told["usages"]] == ["river", "river", "money", "money", "money"]
    cosines = np.array(told["cosines"])
    assert cosines.shape == (len(told["layers"]), 5, 5)
    within = np.mean([cosines[1, i, j] for i, j in [(0, 1), (2, 3), (2, 4), (3, 4)]])
    assert told["separation"]["within"][1] == pytest.approx(within)
    assert told["verdict"] == "certified"
    assert told["case"] == "few texts"
    assert (told["separation"]["splits"], told["separation"]["least_p"]) == (10, 0.1)
    assert told["answer"].startswith("5 texts are too few to tell")
    for path in targets[:2]:
        again = load(path)
        assert isinstance(again, Senses)
        assert again.cosines == pytest.approx(cosines)
        assert again.separation.below.tolist() == told["separation"]["below"]
        assert again.separation.p == told["separation"]["p"]
        assert attnscope("show", str(path)).stdout == attnscope("show", str(targets[0])).stdout
    rows = [line for line in targets[2].read_text("utf-8").splitlines() if line.startswith("cosine,")]
    assert len(rows) == len(told["layers"]) * 10
    assert targets[3].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("width", [80, 140])
def test_the_screen_has_groups_chance_and_every_text_within_its_width(
    attnscope, file: Path, width: int
) -> None:
    result = ask(attnscope, file, "--controls", "20", width=width)
    assert max(map(len, result.stdout.splitlines())) <= width
    for told in (
        "one head: L",
        "above control",
        "5 texts are too few to tell (2 and 3; ",
        "4 money “he went to the «bank» today”",
        "✓ certified",
    ):
        assert told in " ".join(result.stdout.split()), told


def test_lines_without_labels_are_compared_in_pairs(attnscope, tmp_path: Path) -> None:
    result = attnscope(
        "compare", "--word", "bank", "--texts", "-", "-m", "demo", "-l", "2", "--words",
        stdin="the river bank was steep\nthe bank has the money\nthe boat is at the banks\n",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "most alike" in result.stdout
    assert "control: none without labels" in result.stdout
    assert "by words" in result.stdout
    assert "within" not in result.stdout
    assert "standard input:3: no 'bank', but another form of it: 'banks'" in result.stderr


@pytest.mark.parametrize(
    ("content", "more", "message"),
    [
        ("a\tthe bank\nthe bank is new\n", (), "bank.txt:2 has no label, others have"),
        ("the bank\n", (), "one text is not enough"),
        ("a\tthe bank\na\tthe bank is new\n", (), "two groups are needed"),
        ("a\tthe bank\nb\tthe bank is new\n", (), "no two texts have the same label"),
        ("the bank\nthe money\n", (), "bank.txt:2: "),
        ("the bank\nthe bank\n", ("--layer-b", "1"), "--texts is all that is read: leave --layer-b out"),
        ("the bank\nthe bank\n", ("--controls", "0"), "--controls 0: give 1 to"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    attnscope, file: Path, content: str, more: tuple[str, ...], message: str
) -> None:
    file.write_text(content)
    result = ask(attnscope, file, *more)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert len([line for line in result.stderr.splitlines() if line.startswith("attnscope: ")]) == 1


def test_the_next_command_compares_the_two_texts_that_are_least_alike(attnscope, file: Path) -> None:
    told = ask(attnscope, file).stdout
    command = told.partition("Next: ")[2].partition("\n")[2].replace("\\\n", " ")
    argv = shlex.split(command)
    assert argv[:2] == ["attnscope", "compare"]
    result = attnscope(*argv[1:])
    assert result.exit_code == 0, result.stderr
    assert "«bank»" in result.stdout


def test_a_word_is_found_by_its_form_in_two_texts_too(attnscope) -> None:
    result = attnscope(
        "compare", "the river bank was steep", "the banks of the river", "--word", "bank", "-m", "demo",
        "-l", "1", "--head", "2", "--words",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "the second text: no 'bank', but another form of it: 'banks'" in result.stderr
    several = attnscope("compare", "the bank", "banks and banking", "--word", "bank", "-m", "demo", "--words")
    assert several.exit_code == 2
    assert "the second text: 'bank' has several forms there: banks, banking: name one" in several.stderr


def test_by_sentences_a_usage_is_the_sentence_that_has_the_word(attnscope, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("It rained. The bank is new.\nThe bank lent. He paid.\n", "utf-8")
    asked = ("compare", "--word", "bank", "--texts", str(tmp_path / "t"), "-m", "demo", "--by", "sentence")
    told = json.loads(attnscope(*asked, "--json").stdout)
    assert told["by"] == "sentence"
    assert [each["word"] for each in told["usages"]] == ["The bank is new.", "The bank lent."]
    shown = attnscope(*asked).stdout
    assert "another form" not in shown
    assert "by sentences" in shown


def test_a_line_of_json_has_its_label_and_names_its_spans(attnscope, tmp_path: Path) -> None:
    records = [
        {"text": "the river bank was steep", "label": "river", "spans": {"w": "river bank"}},
        {"text": "he slept at a muddy bank", "label": "river", "spans": {"w": [14, 24]}},
        {"text": "the bank lent her money", "label": "money", "spans": {"w": "bank"}},
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, records)), "utf-8")
    asked = ("compare", "--texts", str(tmp_path / "t.jsonl"), "-m", "demo", "--word")
    result = attnscope(*asked, "field:w", "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert [each["label"] for each in told["usages"]] == ["river", "river", "money"]
    assert [each["word"] for each in told["usages"]] == ["river bank", "muddy bank", "bank"]
    assert [each["pieces"] for each in told["usages"]] == [[2, 3], [5, 6], [2]]
    texts = [each["text"] for each in records[:2]]
    sides = ("--word", "2-3", "--word-b", "5-6", "-m", "demo")
    alone = json.loads(attnscope("compare", *texts, *sides, "--json").stdout)
    command = following(attnscope(*asked, "field:w").stdout)
    assert attnscope(*command[1:]).exit_code == 0, "fields are not those of a text alone"
    for layer, cosines in enumerate(told["cosines"]):
        assert cosines[0][1] == pytest.approx(alone["cosine"]["output"]["together"][layer], abs=1e-6)
    refused = attnscope(*asked, "field:v")
    assert (
        "t.jsonl:1: no field 'field:v' in the input: there are field:label (2), field:w (2-3)"
        in refused.stderr
    )
    (tmp_path / "t.jsonl").write_text("{}\n{}\n", "utf-8")
    assert "t.jsonl:1: it has no text under 'text'" in attnscope(*asked, "bank").stderr
