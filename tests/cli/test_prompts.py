"""Many prompts as the shell sees them: texts, records, a template with a table; one bad line, all bad."""

import json
from pathlib import Path

import pytest

QUESTION = ("--from", "field:who", "--to", "field:thing", "-m", "demo", "--controls", "5")
TEMPLATE = "The {who} saw the {thing} when [MASK] {what}."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(
        b"\xef\xbb\xbfwho,thing,what\ndog,door,opened\n\nold man,red box,fell\ngirl,door\nking,,slept\n"
    )
    records = [
        {"text": "The dog saw the door.", "spans": {"who": "dog", "thing": [16, 20]}},
        {"text": "The old man saw the red box.", "spans": {"who": "old man", "thing": [20, 27]}, "n": 3},
    ]
    (tmp_path / "t.jsonl").write_text("\n".join([json.dumps(each) for each in records]) + "\nno json\n")
    return tmp_path


def test_a_template_is_filled_from_a_table_and_bad_rows_are_told_by_their_lines(attnscope, folder) -> None:
    result = attnscope("find", TEMPLATE, "--fill", "t.csv", *QUESTION, "--json", "-q")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "attnscope: t.csv:5: it has 2 cells, the table has 3 columns",
        "attnscope: t.csv:6: its cell 'thing' is empty",
    ]
    first, second, *refused, last = [json.loads(line) for line in result.stdout.splitlines()]
    assert (first["line"], first["text"]) == (2, "The dog saw the door when [MASK] opened.")
    assert (second["line"], second["text"]) == (4, "The old man saw the red box when [MASK] fell.")
    assert [each["line"] for each in refused] == [5, 6]
    assert last["summary"] == {"lines": 4, "answered": 2, "failed": [5, 6], "exit_code": 2}
    assert last["schema"] == "attnscope.prompts/2"
    both = [dict(zip(((h["layer"], h["head"]) for h in one["heads"]), one["heads"], strict=True))
            for one in (first, second)]  # fmt: skip
    for told in last["ranked"]:
        own = [each[told["layer"], told["head"]]["weight"] for each in both]
        assert told["mean"] == pytest.approx(sum(own) / 2)


def test_records_name_spans_by_words_and_by_characters(attnscope, folder) -> None:
    result = attnscope("find", "--texts", "t.jsonl", *QUESTION, "--json", "-q")
    assert result.stderr == "attnscope: t.jsonl:3: it is no JSON: Expecting value\n"
    first, second, _, last = [json.loads(line) for line in result.stdout.splitlines()]
    assert (first["question"]["query"], first["question"]["key"]) == (2, 5)
    assert (second["question"]["query_span"], second["question"]["key_span"]) == ([2, 3], [6, 7])
    assert last["summary"]["failed"] == [3]


def test_the_screen_begins_with_all_of_them_and_a_file_with_line_in_its_name_is_of_each(
    attnscope, folder
) -> None:
    result = attnscope(
        "find", TEMPLATE, "--fill", "t.csv", *QUESTION, "-o", "all.json", "-o", "one-{line}.json"
    )  # fmt: skip
    words = " ".join(result.stdout.split())
    assert "looks from field:who at field:thing" in words.split(".")[0] + words
    assert ", 2 lines without an answer" in words
    assert "line 5: it has 2 cells" in words
    assert "── t.csv" not in result.stdout
    assert sorted(path.name for path in folder.glob("*.json")) == ["all.json", "one-002.json", "one-004.json"]
    assert json.loads((folder / "one-004.json").read_text())["schema"] == "attnscope.finding/2"
    told = json.loads((folder / "all.json").read_text())
    assert (told["schema"], told["file"]) == ("attnscope.prompts/2", "t.csv")
    shown = attnscope("show", "all.json")
    assert shown.exit_code == 0
    assert "2 prompts of t.csv" in shown.stdout


def test_where_no_line_has_what_is_named_no_weight_is_read(
    attnscope, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnscope.model.loading import load

    def never(*_given: object, **_more: object) -> None:
        raise AssertionError("weights were read")

    monkeypatch.setattr(load, "load_model", never)
    (folder / "s.txt").write_text("The dog slept.\n\nA cat\n")
    for command in (
        ("find", "--from", "[MASK]", "--to", "1"),
        ("why", "--from", "[MASK]", "--to", "1", "-l", "1", "--head", "0"),
    ):  # fmt: skip
        result = attnscope(*command, "--texts", "s.txt", "-m", "demo", "--json")
        assert result.exit_code == 2
        lines = [line.split(": ")[1] for line in result.stderr.splitlines()]
        assert lines == ["s.txt:1,3"], "one reason, told once"
        *refused, last = [json.loads(line) for line in result.stdout.splitlines()]
        assert [each["line"] for each in refused] == [1, 3]
        assert last == {"summary": {"lines": 2, "answered": 0, "failed": [1, 3], "exit_code": 2}}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("{a} slept", "--fill", "none.csv"), "'none.csv': no such file"),
        (("{a} slept", "--fill", "t.csv"), "the table has no column 'a': it has who, thing, what"),
        (("{wo} slept", "--fill", "t.csv"), "did you mean {who}?"),
        (("a dog slept", "--fill", "t.csv"), "the template has no field: write one as {a}"),
        (("{who slept", "--fill", "t.csv"), "no template: expected '}' before end of string"),
        (("{} slept", "--fill", "t.csv"), "a field without a plain name: write {a}"),
        (("{who} slept", "--fill", "empty.csv"), "no row in 'empty.csv'"),
        (("{who} slept", "--fill", "twice.csv"), "names a column twice, or not at all: who, who"),
        (("--fill", "t.csv", "--texts", "t.jsonl"), "give one of the two"),
        (("--fill", "t.csv"), "--fill fills the fields of TEXT: give one"),
        (("--texts", "empty.jsonl"), "no text in 'empty.jsonl'"),
        (("{who} slept", "--fill", "t.csv", "-o", "x.py"), "cannot write 'x.py'"),
    ],
)  # fmt: skip
def test_what_makes_no_prompts_is_one_line_before_the_model_is_sought(
    attnscope, folder, arguments, why
) -> None:
    (folder / "empty.csv").write_text("who\n\n")
    (folder / "twice.csv").write_text("who,who\na,b\n")
    (folder / "empty.jsonl").write_text(" \n")
    result = attnscope("find", *arguments, "--from", "1", "--to", "2", "-m", "nowhere/there")
    assert (result.exit_code, result.stdout) == (2, "")
    assert why in result.stderr
    assert result.stderr.count("\n") == 1


def test_what_is_true_of_every_prompt_is_noted_once(attnscope, folder: Path) -> None:
    (folder / "s.txt").write_text("box dog king box dog king\ncat man girl cat man girl\n")
    asked = ("find", "--from", "4", "--to", "2", "-m", "demo-causal")
    noted = attnscope(*asked, "--texts", "s.txt").stderr
    assert noted == attnscope(*asked, "box dog king box dog king").stderr
    assert noted.startswith("note: there are 29 controls, not 100")


def test_links_ranks_and_parts_of_an_answer_are_counted_over_all_texts(attnscope, folder: Path) -> None:
    (folder / "s.txt").write_text("The dog saw the [MASK].\nThe king lost the [MASK] again.\n")
    for command, said in (
        (("find", "--controls", "3"), "in 2 prompts"),
        (("ablate", "--rank", "--top", "2", "--with", "zero"), "2 prompts are too few to tell"),
        (("why", "--answer", "it", "--against", "they"), "logits directly on average, the same sign in"),
    ):
        result = attnscope(*command, "--texts", "s.txt", "-m", "demo")
        assert result.exit_code == 0, result.stderr
        assert "── " not in result.stdout
        assert said in " ".join(result.stdout.split())
        *each, last = map(
            json.loads, attnscope(*command, "--texts", "s.txt", "-m", "demo", "--json").stdout.splitlines()
        )
        assert [one["line"] for one in each] == [1, 2]
        assert last["schema"].startswith("attnscope.prompts/")


def test_what_no_prompt_can_be_asked_is_one_line(attnscope, folder: Path) -> None:
    (folder / "s.txt").write_text("The dog saw the [MASK].\nThe king lost the [MASK] again.\n")
    asked = ("why", "--texts", "s.txt", "-m", "demo", "--answer")
    result = attnscope(*asked, "watching the door")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(
        "attnscope: s.txt:1,2: the vocabulary of demo has no token 'watching the door'"
    )
    assert result.stderr.count("\n") == 1


def test_an_answer_whose_certificate_fails_counts_in_no_mean(
    attnscope, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from attnscope.results import Verdict
    from attnscope.session.questions.claims import finding

    own, made = finding.find, list[object]()

    def failing(*given: object) -> object:
        made.append(own(*given))
        found = made[-1]
        return replace(found, verdicts=((Verdict.FAILED,) * 12,) * 4) if len(made) == 2 else found

    monkeypatch.setattr(finding, "find", failing)
    (folder / "s.txt").write_text("The dog slept.\nThe king slept.\nThe old man slept.\n")
    asked = ("--from", "slept", "--to", "The", "-m", "demo", "--controls", "3")
    result = attnscope("find", "--texts", "s.txt", *asked, "--json")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 5
    assert [each["line"] for each in records[:-1]] == [1, 2, 3]
    assert records[1]["verdict"] == "failed"
    assert records[-1]["summary"] == {"lines": 3, "answered": 2, "failed": [2], "exit_code": 5}
    assert [each["line"] for each in records[-1]["prompts"]] == [1, 3]
    assert "s.txt:2: the certificate FAILED" in result.stderr


MASKS = "The [MASK] opened when it moved.\nI was watching the [MASK] when it opened.\n"


def test_parts_and_tokens_are_answered_by_each_text_alone(attnscope, folder: Path) -> None:
    """Over prompts heads are counted: nothing is said of all where nothing was counted."""
    (folder / "m.txt").write_text(MASKS)
    for more in (("--part", "mlp"), ("--at", "it", "--head", "L3H11")):
        result = attnscope("ablate", "--texts", "m.txt", "-m", "demo", *more, "--json", "-q")
        assert result.exit_code == 0, result.stderr
        first, second, last = [json.loads(line) for line in result.stdout.splitlines()]
        assert first["places"], "its own answer stands there"
        assert second["places"], "and that of the other"
        assert set(last) == {"summary"}


def test_a_lead_over_prompts_is_told_in_logits(attnscope, folder: Path) -> None:
    (folder / "m.txt").write_text(MASKS)
    asked = ("ablate", "--texts", "m.txt", "-m", "demo", "--head", "L3H11", "--against", "safe")
    *each, last = map(json.loads, attnscope(*asked, "--json", "-q").stdout.splitlines())
    (told,) = last["ranked"]
    assert told["measured"] == "logits"
    assert told["mean"] == pytest.approx(sum(one["heads"][0]["change"] for one in each) / 2, abs=1e-6)
    shown = " ".join(attnscope(*asked).stdout.split())
    assert "likely beside the other one on average" in shown
    assert "nats" not in shown
    assert "log probability" not in shown


def test_explain_knows_the_fields_of_a_template(attnscope, folder: Path) -> None:
    asked = ("--fill", "t.csv", "-m", "demo", "--from", "field:who", "--to", "field:thing", "--json", "-q")
    (folder / "t.csv").write_text("who,thing\ndog,door\n")
    result = attnscope("explain", "The {who} saw the {thing} when [MASK] fell.", *asked)
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout.splitlines()[0])
    assert (told["finding"]["question"]["query"], told["finding"]["question"]["key"]) == (2, 5)
