"""Texts from a file, one a line, as the shell sees it; and what files are called that nobody named."""

import json
from pathlib import Path

import made_results as made
import pytest

from attnscope.cli.lines import read_lines
from attnscope.cli.naming import numbered, of_head, own_place, slug
from attnscope.errors import InputError

HEAD = ("-m", "demo", "--layer", "1", "--head", "2")


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
    result = attnscope("heads", "--texts", "s.txt", *HEAD, "-o", "x.json")
    assert result.exit_code == 2
    headings = [line for line in result.stdout.splitlines() if line.startswith("── s.txt:")]
    assert [line.split()[1] for line in headings] == ["s.txt:1", "s.txt:5"]
    assert result.stdout.index("“the door opened”") < result.stdout.index("“a cat sat”")
    assert "attnscope: s.txt:4: the text is not valid UTF-8\n" in result.stderr
    assert sorted(path.name for path in lines.parent.glob("x*")) == ["x-001.json", "x-005.json"]
    alone = attnscope("heads", "a cat sat", *HEAD, "--json")
    assert json.loads((lines.parent / "x-005.json").read_text()) == json.loads(alone.stdout)


def test_json_is_a_line_for_each_text_with_its_number(attnscope, lines: Path) -> None:
    result = attnscope("heads", "--texts", "-", *HEAD, "--json", "-q", stdin="the door\n\na cat sat\n")
    assert result.exit_code == 0
    *told, last = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["line"], each["text"]) for each in told] == [(1, "the door"), (3, "a cat sat")]
    assert last == {"summary": {"lines": 2, "answered": 2, "failed": [], "exit_code": 0}}
    alone = json.loads(attnscope("heads", "a cat sat", *HEAD, "--json").stdout)
    assert {key: told[1][key] for key in alone} == alone


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


def test_an_answer_whose_certificate_fails_is_one_record_and_counts_as_failed(
    attnscope, lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnscope.cli import output
    from attnscope.results import Verdict

    own = output.finish
    monkeypatch.setattr(output, "finish", lambda verdict: own(Verdict.FAILED))
    result = attnscope("predict", "--texts", "-", "-m", "demo", "--json", "-q", stdin="the [MASK] opened\n")
    record, last = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.exit_code, record["line"]) == (5, 1)
    assert "error" not in record
    assert last["summary"] == {"lines": 1, "answered": 0, "failed": [1], "exit_code": 5}


def test_a_quiet_run_with_files_writes_these_and_nothing_else(attnscope, lines: Path) -> None:
    asked = ("heads", "the door", *HEAD, "-q")
    quiet = attnscope(*asked, "-o", "h.json")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "")
    assert json.loads((lines.parent / "h.json").read_text())["layer"] == 1
    assert attnscope(*asked).stdout != ""
    assert json.loads(attnscope(*asked, "-o", "h.json", "--json").stdout)["layer"] == 1


def test_the_model_is_loaded_once(attnscope, lines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnscope.session import opening

    loaded: list[str] = []
    own = opening._loaded
    monkeypatch.setattr(opening, "_loaded", lambda *given: loaded.append("once") or own(*given))
    assert attnscope("verify", "--texts", "s.txt", "-m", "demo", "-q").exit_code == 2
    assert loaded == ["once"]


def test_a_question_that_one_line_has_no_answer_to_leaves_the_others(attnscope, lines: Path) -> None:
    lines.write_text("the door\nthe [MASK] opened\n")
    result = attnscope("predict", "--texts", "s.txt", "-m", "demo", "--top", "2")
    assert result.exit_code == 2
    assert result.stderr.startswith("attnscope: s.txt:1: the text has no [MASK] to fill")
    assert result.stdout.startswith("The likeliest answer has ")
    assert "1 line without an answer" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("heads", "the door"), "--texts is all that is read: leave TEXT out"),
        (("tsne", "the door"), "--texts is all that is read: leave TEXT out"),
        (("predict", "--ids", "1,2", "--image", "a.png"), "leave --ids and --image out"),
    ],
)
def test_many_texts_and_one_are_not_read_together(attnscope, lines: Path, arguments, why: str) -> None:
    result = attnscope(*arguments, "--texts", "s.txt", "-m", "demo")
    assert (result.exit_code, result.stdout) == (2, "")
    assert why in result.stderr
    assert result.stderr.count("\n") == 1


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


def test_a_look_without_a_picture_is_refused(attnscope, lines: Path) -> None:
    for given in (("--title", "x"), ("--bare", "-o", "x.csv"), ("--size", "3x2", "--json")):
        result = attnscope("heads", "the door", *HEAD, *given)
        assert result.exit_code == 2
        assert "are about a picture: name one with -o" in result.stderr


def test_a_fragment_without_a_page_is_refused_before_the_model_is_loaded(attnscope) -> None:
    for command, given in (("heads", ("-o", "x.png")), ("report", ()), ("find", ("--json",))):
        result = attnscope(command, "the door", "-m", "nowhere/there", "--fragment", *given)
        assert result.exit_code == 2
        assert result.stderr == "attnscope: --fragment is about a page: name one with -o (.html)\n"


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
