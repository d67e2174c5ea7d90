"""Many texts and prompts as the shell sees them: lines, records, a template with a table; names of files."""

import json
from pathlib import Path

import made_results as made
import pytest

from attnscope.cli.options import numbered, of_head, own_place, slug
from attnscope.errors import InputError
from attnscope.session.prompts import read_lines

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


def test_where_no_line_has_what_is_named_no_weight_is_read(attnscope, no_weights, folder: Path) -> None:
    (folder / "s.txt").write_text("The dog slept.\n\nA cat\n")
    asked = ("find", "--from", "[MASK]", "--to", "1", "--texts", "s.txt", "-m", "demo", "--json")
    result = attnscope(*asked)
    assert result.exit_code == 2
    lines = [line.split(": ")[1] for line in result.stderr.splitlines()]
    assert lines == ["s.txt:1,3"], "one reason, told once"
    *refused, last = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["line"] for each in refused] == [1, 3]
    assert last == {"summary": {"lines": 2, "answered": 0, "failed": [1, 3], "exit_code": 2}}


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


def test_an_answer_whose_certificate_fails_counts_in_no_mean(
    attnscope, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from attnscope.results import Verdict
    from attnscope.verbs.find import answer as finding

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


ONE_HEAD = ("-m", "demo", "--layer", "1", "--head", "2")


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "s.txt"
    file.write_bytes(b"\xef\xbb\xbfthe door opened\r\n\n  \nI \xff bad\na cat sat\n")
    return file


def test_lines_keep_their_numbers_and_blank_ones_are_no_texts(lines: Path) -> None:
    read = read_lines(lines)
    assert [(line.number, line.raw) for line in read] == [
        (1, b"the door opened"),
        (4, b"I \xff bad"),
        (5, b"a cat sat"),
    ]
    with pytest.raises(InputError, match="the text is not valid UTF-8"):
        _ = read[1].text
    empty = lines.with_name("empty")
    empty.write_text("\n \n")
    with pytest.raises(InputError, match=r"no text in .*empty': it takes one a line"):
        read_lines(empty)
    with pytest.raises(InputError, match=r"cannot read '.*none': no such file"):
        read_lines(lines.with_name("none"))


def test_each_text_has_its_answer_and_a_bad_line_is_told_by_its_number(attnscope, lines: Path) -> None:
    result = attnscope("heads", "--texts", "s.txt", *ONE_HEAD, "-o", "x.json")
    assert result.exit_code == 2
    headings = [line for line in result.stdout.splitlines() if line.startswith("── s.txt:")]
    assert [line.split()[1] for line in headings] == ["s.txt:1", "s.txt:5"]
    assert result.stdout.index("“the door opened”") < result.stdout.index("“a cat sat”")
    assert "attnscope: s.txt:4: the text is not valid UTF-8\n" in result.stderr
    assert sorted(path.name for path in lines.parent.glob("x*")) == ["x-001.json", "x-005.json"]
    alone = attnscope("heads", "a cat sat", *ONE_HEAD, "--json")
    assert json.loads((lines.parent / "x-005.json").read_text()) == json.loads(alone.stdout)


def test_json_has_a_record_of_a_line_that_failed_and_ends_with_a_summary(attnscope, lines: Path) -> None:
    result = attnscope("predict", "--texts", "s.txt", "-m", "demo", "--json", "-q")
    lines.write_text("the [MASK] opened\nthe door\n")
    other = attnscope("predict", "--texts", "s.txt", "-m", "demo", "--json", "-q")
    assert (result.exit_code, other.exit_code) == (2, 2)
    *failed, last = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["line"], each["exit_code"]) for each in failed] == [(1, 2), (4, 2), (5, 2)]
    assert failed[1]["error"] == "the text is not valid UTF-8"
    assert last["summary"] == {"lines": 3, "answered": 0, "failed": [1, 4, 5], "exit_code": 2}
    answered, refused, last = [json.loads(line) for line in other.stdout.splitlines()]
    assert (answered["line"], answered["text"]) == (1, "the [MASK] opened")
    assert "error" not in answered
    assert refused.keys() == {"line", "error", "exit_code"}
    assert last["summary"] == {"lines": 2, "answered": 1, "failed": [2], "exit_code": 2}


def test_a_quiet_run_with_files_writes_these_and_nothing_else(attnscope, lines: Path) -> None:
    asked = ("heads", "the door", *ONE_HEAD, "-q")
    quiet = attnscope(*asked, "-o", "h.json")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "")
    assert json.loads((lines.parent / "h.json").read_text())["layer"] == 1
    assert attnscope(*asked).stdout != ""
    assert json.loads(attnscope(*asked, "-o", "h.json", "--json").stdout)["layer"] == 1


def test_every_head_can_have_a_file_of_its_own(attnscope, lines: Path) -> None:
    several = ("heads", "the door", "-m", "demo", "--layer", "0,2", "--head", "1,3")
    result = attnscope(*several, "-o", "h-{layer}-{head}.json", "-o", "all.json")
    assert result.exit_code == 0
    assert sorted(path.name for path in lines.parent.glob("*.json")) == [
        "all.json", "h-0-1.json", "h-0-3.json", "h-2-1.json", "h-2-3.json",
    ]  # fmt: skip
    told = json.loads((lines.parent / "h-2-3.json").read_text())
    assert (told["layer"], told["head"], told["schema"]) == (2, 3, "attnscope.head/2")
    refused = attnscope("predict", "the [MASK]", "-m", "demo", "-o", "p-{head}.json")
    assert refused.exit_code == 2
    assert "only of a text's heads has each a file" in refused.stderr


def test_a_numbered_name_has_three_digits_or_as_many_as_it_needs() -> None:
    assert numbered(Path("a/x.tar.png"), 7, 9) == Path("a/x.tar-007.png")
    assert numbered(Path("x.png"), 7, 12345) == Path("x-00007.png")
    assert numbered(Path("{line}/x-{line}-a.png"), 7, 9) == Path("{line}/x-007-a.png")
    assert of_head(Path("h{layer}.{head}.png"), 3, 11) == Path("h3.11.png")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("I was watching the door when [MASK] opened.", "i-was-watching-the-door-when"),
        ("Élan vital/../x", "elan-vital-..-x"),
        ("日本語", ""),
        ("w" * 50, "w" * 32),
        ("", ""),
    ],
)
def test_a_slug_is_made_of_letters_that_every_file_name_takes(text: str, plain: str) -> None:
    assert slug(text) == plain


def test_the_same_input_has_the_same_name_and_another_one_has_another(tmp_path: Path) -> None:
    head, media = made.head(), tmp_path / "a.png"
    media.write_bytes(b"one")
    usual = own_place("tsne", head, ("settings", None), ())
    assert own_place("tsne", made.head(), ("settings", None), ()) == usual
    others = [
        own_place("tsne", made.head(made.DOOR[:-1]), ("settings", None), ()),
        own_place("tsne", head, ("settings", 3), ()),
        own_place("tsne", head, ("settings", None), (media,)),
        own_place("report", head, ("settings", None), ()),
    ]
    media.write_bytes(b"two")
    others.append(own_place("tsne", head, ("settings", None), (media,)))
    assert len({usual, *others}) == 6
    assert usual.parent == Path("outputs")
    assert usual.name.startswith("tsne-bert-base-uncased-L3-H11-the-cat-sat-on-the-mat-because-")


def test_what_is_true_of_every_prompt_is_noted_once(attnscope, folder: Path) -> None:
    (folder / "s.txt").write_text("box dog king box dog king\ncat man girl cat man girl\n")
    asked = ("find", "--from", "4", "--to", "2", "-m", "demo-causal")
    (note,) = attnscope(*asked, "--texts", "s.txt").stderr.splitlines()
    assert note.startswith("note: there are 29 controls, not 100")
