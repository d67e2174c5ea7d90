"""`attnscope cite` as it is typed, and what is wrong with it in one line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]
FACTS = "Velmir has a red cup. The key of Norris is blue."
SENTENCES = ["Velmir has a red cup.", "The key of Norris is blue."]
TEXT = f"{FACTS} Question: what is the cup of Velmir? Answer:"
READER = ("-m", "demo-reader")
CASE = (
    '{"passages": ["Velmir has a red cup.", "The key of Norris is blue."], "question": "what is the cup of '
)


def test_the_first_line_names_the_passage_how_much_and_what_attention_would_have_said(attnscope: Run) -> None:
    shown = attnscope("cite", TEXT, "--generate", "1", *READER)
    said = " ".join(shown.stdout.split())
    assert said.startswith(
        "“red” comes from passage 0 (“Velmir has a red cup.”): without it its probability "
    )
    assert "Attention alone would have " in said
    assert "not taken away: “Question: what is the cup of Velmir? Answer:”" in said
    assert "✓ certified" in said


def test_json_has_everything_and_a_text_is_read_from_standard_input(attnscope: Run) -> None:
    shown = attnscope("cite", "-", "--answer", "red", "--json", "-q", *READER, stdin=TEXT)
    found = json.loads(shown.stdout)
    assert found["schema"] == "attnscope.citation/2"
    assert found["sources"] == [[0]]
    assert found["target"] == "red"
    assert len(found["lost"][0]) == len(found["passages"]) == 2
    assert {each["method"] for each in found["columns"]} >= {"attention", "by norm", "gradient x input"}


def test_passages_of_a_file_stand_where_the_text_says(attnscope: Run, tmp_path: Path) -> None:
    file = tmp_path / "passages.json"
    file.write_text(json.dumps(SENTENCES))
    text = "Passage: {passages} Question: what is the cup of Velmir? Answer:"
    shown = attnscope("cite", text, "--passages", str(file), "--answer", "red", "--json", "-q", *READER)
    found = json.loads(shown.stdout)
    assert [each["text"] for each in found["passages"]] == SENTENCES
    assert found["sources"] == [[0]]


def test_cases_are_a_referee_and_a_line_that_cannot_be_asked_is_left_out(
    attnscope: Run, tmp_path: Path
) -> None:
    file = tmp_path / "cases.jsonl"
    asked = [
        f'{CASE}Velmir?", "answer": "red", "source": 0}}',
        f'{CASE}Norris?", "answer": "none", "source": null}}',
    ]
    long = {
        "passages": ["Velmir has a red cup. " * 400, "It is."],
        "question": "q",
        "answer": "red",
        "source": 0,
    }
    file.write_text("\n".join([*asked, json.dumps(long)]))
    text = "{passages} Question: {question} Answer:"
    shown = attnscope("cite", text, "--gold", str(file), "--json", *READER)
    found = json.loads(shown.stdout)
    assert found["schema"] == "attnscope.referee/2"
    assert [each["named"] for each in found["judged"]] == [[0], []]
    assert (found["none"], found["wrongly_named"]) == (1, 0)
    assert found["refused"][0]["line"] == 3
    assert "reads at most" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TEXT, *READER), "--answer TEXT or --generate N: say whose sources are asked for"),
        ((TEXT, "--answer", " ", *READER), "the answer is empty"),
        ((TEXT, "--answer", "xylophone", *READER), "the vocabulary of demo-reader cannot spell it"),
        ((TEXT, "--answer", "red", "--generate", "1", *READER), "give one of the two"),
        (("One sentence.", "--answer", "red", *READER), "there are no two passages beside the question"),
        ((TEXT, "--answer", "red", "--by", "line", *READER), "passages are cut by word, sentence or passage"),
        ((TEXT, "--answer", "red", "--subsets", "2", *READER), "a fit takes at least 8"),
        ((TEXT, "--answer", "red", "--context", "nobody", *READER), "nobody"),
        ((TEXT + " {passages}", "--answer", "red", *READER), "--passages FILE gives them"),
        ((TEXT, "--answer", "red", "--passages", "no.json", *READER), "no.json"),
        ((TEXT, "--answer", "red", "--gold", "no.jsonl", *READER), "leave --answer out"),
        ((TEXT, "--gold", "no.jsonl", *READER), "no.jsonl"),
        ((TEXT, "--answer", "red", "-m", "demo"), "cite asks what a model wrote"),
        ((TEXT, "--answer", "red", "--target", "x", *READER), "the answer (--answer)"),
        (("Velmir has. " * 900, "--answer", "red", *READER), "reads at most 2048"),
    ],
)
def test_what_is_wrong_is_one_line(attnscope: Run, arguments: tuple[str, ...], message: str) -> None:
    shown = attnscope("cite", *arguments, "-q")
    assert shown.exit_code == 2, shown.stdout + shown.stderr
    lines = [line for line in shown.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, shown.stderr
    assert message in lines[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [("{}", "is no list of texts"), ('["one"]', "1 of passages"), ('["one", " "]', "passage 1 is empty")],
)
def test_what_is_wrong_with_a_file_of_passages_is_told(
    attnscope: Run, tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "passages.json"
    file.write_text(content)
    shown = attnscope("cite", TEXT, "--passages", str(file), "--answer", "red", "-q", *READER)
    assert shown.exit_code == 2
    assert message in shown.stderr
