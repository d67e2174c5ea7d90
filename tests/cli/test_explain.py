"""`attnscope explain` as it is typed, on the bundled models."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]
DOOR = "I was watching the door when [MASK] opened."
PERIOD = "river king door window garden father river king door window garden"
CAUSAL = ("explain", PERIOD, "-m", "demo-causal", "--from", "garden@11", "--to", "father@6")
ENCODER = ("explain", DOOR, "-m", "demo", "--from", "[MASK]", "--to", "door")


def told(attnscope: Run, *command: str) -> str:
    shown = attnscope(*command)
    assert shown.exit_code == 0, shown.stderr
    return " ".join(shown.stdout.split())


def test_the_planted_circuit_comes_out_without_a_head_being_named(attnscope: Run) -> None:
    """Heads of layer 1 look for what followed, by what the previous-token head wrote there."""
    said = told(attnscope, *CAUSAL, "-v")
    assert re.match(
        r"L1 H\d+ looks from “garden”@11 at “father” \(1\.0 of its attention\) because of L0 H2 at "
        r"“garden”@11 and L0 H0 \(carries “garden”@5 to “father”\)\.",
        said,
    )
    assert "The answer “father” needs “father”" in said
    assert "reads L0 H2 with its queries and L0 H0 with its keys" in said
    assert "the answer without L0 H0 in the keys of the" in said


def test_every_sentence_stands_on_the_first_screen_and_its_figures_and_commands_under_v(
    attnscope: Run,
) -> None:
    brief, whole = (attnscope(*CAUSAL, *more).stdout.splitlines() for more in ((), ("-v",)))
    questions = [line for line in whole if line.endswith("?") and line[0].islower()]
    assert len(questions) == 7
    for question in questions:
        (row,) = [i for i, line in enumerate(brief) if line.startswith(f"{question} ")]
        assert row < 30, question
    assert not [line for line in brief if line.startswith("  attnscope ablate")]
    assert [line for line in whole if line.startswith("  attnscope ablate")]
    assert "-v has the figures of each sentence, and the command that shows more" in brief


@pytest.mark.parametrize(
    ("text", "query", "key"),
    [("river king door window river king door window", "5", "2"), ("box dog king box dog king", "4", "2")],
    ids=["a period of four", "a period of three"],
)
def test_the_same_circuit_comes_out_of_other_periods(attnscope: Run, text: str, query: str, key: str) -> None:
    shown = attnscope("explain", text, "-m", "demo-causal", "--from", query, "--to", key, "--json", "-q")
    found = json.loads(shown.stdout)
    assert found["case"] == "because of earlier heads"
    assert found["lead"][0] == 1
    assert found["reads_confirmed"] == ["L0 H2 by query", "L0 H0 by key"]
    by_query, by_key = found["paths"]
    assert {each["inputs"] for each in by_query["path"]["receivers"]} == {"q"}
    (one,) = by_key["heads"]
    assert (one["layer"], one["head"]) == (0, 0)
    readers = by_key["path"]["receivers"]
    assert {each["inputs"] for each in readers} == {"k"}
    assert {(each["layer"], each["head"]) for each in readers} <= {tuple(each) for each in found["heads"]}
    via = ",".join(f"L{each['layer']}H{each['head']}.k" for each in readers)
    shown = attnscope("ablate", text, "-m", "demo-causal", "--head", "L0H0", "--via", via, "--json", "-q")
    assert one["change"] == pytest.approx(json.loads(shown.stdout)["heads"][0]["change"], abs=1e-6)
    if text.startswith("box"):  # with a period of four the word comes by other ways as well
        assert one["change"] < -1, "what the previous-token head writes comes to the answer by these keys"


def test_the_planted_heads_of_the_encoder_are_found(attnscope: Run) -> None:
    text = "I was watching the [MASK] when it opened."
    asked = ("explain", text, "-m", "demo", "--from", "[MASK]", "--to", "opened")
    found = json.loads(attnscope(*asked, "--json", "-q").stdout)
    assert found["schema"] == "attnscope.explanation/2"
    assert found["case"] == "heads look there"
    assert [3, 11] in found["heads"]
    assert found["lead"][0] == 3


NOTHING = {
    "too little": ("opened", "was", "No head looks from “opened” at “was”. The most is "),
    "by its place": ("the", "watching", "Heads look from “the” at “watching” because of the place"),
    "as in shuffled texts": ("[MASK]", "watching", "It is not clear that any head looks from [MASK] at “wa"),
}


@pytest.mark.parametrize("case", NOTHING)
def test_three_questions_without_an_answer_get_none(attnscope: Run, case: str) -> None:
    query, key, why = NOTHING[case]
    command = ("explain", DOOR, "-m", "demo", "--from", query, "--to", key)
    assert told(attnscope, *command).startswith(why)
    assert json.loads(attnscope(*command, "--json", "-q").stdout)["case"] == "nothing shown"


def test_every_command_that_shows_more_runs_and_has_the_same_figures(attnscope: Run) -> None:
    found = json.loads(attnscope(*ENCODER, "--json", "-q").stdout)
    sheet = attnscope(*ENCODER, "-v").stdout.replace(" \\\n", " ")
    commands = [line.strip() for line in sheet.splitlines() if line.strip().startswith("attnscope ")]
    kinds = dict[str, list[dict[str, object]]]()
    for command in commands:
        words = shlex.split(command)[1:]
        again = attnscope(*(word for word in words if word != "-v"), "-q", "--json")
        assert again.exit_code == 0, command
        kinds.setdefault(words[0], []).append(json.loads(again.stdout))
    assert len(kinds["find"]) == 2, "of the heads, and of what draws them"
    assert kinds["find"][0]["heads"] == found["finding"]["heads"]
    assert set(kinds) == {"find", "ablate", "why", "compose", "flow", "heads"}
    for name, made in zip(("taken", "cut"), kinds["ablate"], strict=True):
        assert found[name]["heads"] == made["heads"]
        assert found[name]["group"] == made["group"]
    (why,) = (each for each in found["whys"] if [each["layer"], each["head"]] == found["lead"])
    assert why["parts"] == kinds["why"][0]["parts"]
    assert found["composition"]["strongest"] == kinds["compose"][0]["strongest"]
    effects = {each["position"]: each["effect"] for each in kinds["flow"][0]["inputs"]}
    assert found["replaced"]["parts"], "words were replaced"
    for part in found["replaced"]["parts"]:
        assert part["change"] == pytest.approx(effects[part["positions"][0]], abs=1e-12)


def test_a_model_that_answers_nothing_says_which_questions_could_not_be_asked(
    attnscope: Run, bert: Path
) -> None:
    said = told(attnscope, "explain", "the door opened when the king saw it", "-m", str(bert),
                "--from", "it", "--to", "saw", "--controls", "19")  # fmt: skip
    assert "The vector of “it” turns " in said or "“saw” was not replaced" in said
    assert "Left open: does the answer need these heads; does the answer need the link itself" in said
    assert "has no head that predicts words" in said


def test_across_two_texts_words_of_the_source_are_replaced(attnscope: Run) -> None:
    said = told(attnscope, "explain", "The door opened.", "-m", "demo-translate", "--kind", "cross", "--from",
                "2", "--to", "door")  # fmt: skip
    assert "needs “door”" in said
    assert "does the answer depend on the word at all?" in said


def test_files_of_every_kind_hold_it(attnscope: Run, tmp_path: Path) -> None:
    files = [tmp_path / f"door{suffix}" for suffix in (".html", ".png", ".csv", ".npz", ".json")]
    made = attnscope(*CAUSAL, "-q", *(part for each in files for part in ("-o", str(each))))
    assert made.exit_code == 0
    page = files[0].read_text()
    assert "heads that were asked further" in page
    assert "http://" not in re.sub(r"http://www\.w3\.org/\S+", "", page), "it needs nothing from elsewhere"
    for stored in files[3:]:
        shown = told(attnscope, "show", str(stored))
        assert shown.startswith(told(attnscope, *CAUSAL)[:120])


WRONG = {
    "a word that is not there": (("--from", "[MASK]", "--to", "window"), "no token"),
    "a word that is there twice": (("--from", "the", "--to", "door"), ""),
    "several tokens": (("--from", "[MASK]", "--to", "the door"), "explain takes one token each"),
    "no control": (("--from", "[MASK]", "--to", "door", "--controls", "0"), "--controls 0: give 1 to"),
    "no seed": (("--from", "[MASK]", "--to", "door", "--seed", "-1"), "seed"),
    "a head that is not there": (("--from", "[MASK]", "--to", "door", "--layer", "9"), "layers 0-3"),
    "no key": (
        (
            "--from",
            "[MASK]",
        ),
        "--to",
    ),
}


@pytest.mark.parametrize("case", [each for each in WRONG if WRONG[each][1]])
def test_what_is_wrong_is_one_line(attnscope: Run, case: str) -> None:
    options, said = WRONG[case]
    refused = attnscope("explain", DOOR, "-m", "demo", *options)
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    assert refused.stdout == ""


def test_a_key_behind_the_query_is_refused_in_a_decoder(attnscope: Run) -> None:
    refused = attnscope("explain", PERIOD, "-m", "demo-causal", "--from", "2", "--to", "5")
    assert refused.exit_code == 2
    assert "may not look at" in refused.stderr


def test_an_answer_that_gains_without_the_word_is_not_said_to_hardly_depend_on_it(attnscope: Run) -> None:
    text = "I was watching the [MASK] when it opened."
    said = told(attnscope, "explain", text, "-m", "demo", "--from", "it", "--to", "the", "-v")
    flow = json.loads(attnscope("flow", text, "-m", "demo", "--from", "[MASK]", "--json").stdout)
    assert float(flow["ablated"]["effects"][4]) < -0.1, "the answer gains where “the” is replaced"
    assert "its probability rises from 8.3 %" in said
    assert "nats gained; " in said
    assert "hardly depends" not in said
