"""`attnscope find`, `flow`, `cite`, `why` and `explain` as they are typed, on the bundled models."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import resealed
from typer.testing import Result

Run = Callable[..., Result]
DOOR = "I was watching the door when [MASK] opened."


def told(attnscope: Run, *command: str) -> str:
    shown = attnscope(*command)
    assert shown.exit_code == 0, shown.stderr
    return " ".join(shown.stdout.split())


def document(attnscope: Run, *command: str) -> dict:
    shown = attnscope(*command, "--json", "-q")
    assert shown.exit_code == 0, shown.stderr
    return json.loads(shown.stdout)


# find

PAIR = ("find", DOOR, "-m", "demo", "--from", "[MASK]", "--to", "door", "--controls", "12")


def test_json_has_the_ranking_best_first_and_files_are_written_beside(attnscope: Run, tmp_path: Path) -> None:
    files = [tmp_path / f"found{suffix}" for suffix in (".png", ".csv", ".npz")]
    found = document(attnscope, *PAIR, *(part for each in files for part in ("-o", str(each))))
    assert found["schema"] == "attnscope.finding/2"
    assert found["looked_at"] == 48
    heads = found["heads"]
    assert (heads[0]["layer"], heads[0]["head"], heads[0]["rank"]) == (3, 11, 1)
    explained = [each["depends_on"] in ("position", "key") for each in heads]
    assert explained == sorted(explained), "they come last"
    others = [each["weight"] for each in heads if each["depends_on"] not in ("position", "key")]
    assert others == sorted(others, reverse=True)
    above = heads[0]["weight"] - heads[0]["control"]["mean"]
    assert heads[0]["control"]["above_control"] == pytest.approx(above)
    assert heads[0]["depends_on"] == "context"
    same = next(each for each in heads if (each["layer"], each["head"]) == (0, 11))
    assert same["weight"] > heads[0]["weight"]
    assert same["control"]["mean"] > 0.9
    assert not any(each["stands_out"] for each in heads), "too few controls"
    assert all(each.stat().st_size > 1000 for each in files)
    again = document(attnscope, "show", str(files[2]))
    assert resealed.but_proofs(again) == resealed.but_proofs(found)
    other = document(attnscope, *PAIR, "--seed", "4")["heads"]
    assert [each["control"]["mean"] for each in other] != [each["control"]["mean"] for each in heads]


def test_heads_that_fetch_are_named_and_what_is_left_without_them(attnscope: Run, tmp_path: Path) -> None:
    place = tmp_path / "found.json"
    asked = ("find", "--pattern", "retrieval", "-m", "demo-reader", "--lengths", "70", "--needles", "10")
    shown = attnscope(*asked, "-o", str(place), "-o", str(tmp_path / "x.png"))
    assert "chat template" not in shown.stderr, "no text of the user's is read"
    assert (tmp_path / "x.png").stat().st_size > 10_000
    said = " ".join(shown.stdout.split())
    found = json.loads(place.read_text())
    assert found["schema"] == "attnscope.retrieval/2"
    assert said.startswith("L1 H")
    assert f"({len(found['named'])} of 24 heads)" in said
    assert "removal confirms them." in said
    assert "✓ certified" in said


# flow


def test_a_flow_and_its_files_hold_the_same(attnscope: Run, tmp_path: Path) -> None:
    asked = ("flow", DOOR, "-m", "demo", "--from", "[MASK]")
    files = [tmp_path / f"flow{suffix}" for suffix in (".png", ".csv", ".npz")]
    found = document(attnscope, *asked, *(part for each in files for part in ("-o", str(each))))
    assert found["schema"] == "attnscope.flow/2"
    assert found["inputs"][5]["token"] == "door"
    assert found["inputs"][5]["effect"] > 0.1
    assert len(found["rollout"]) == 4
    ways = ["gradient x input", "integrated gradients", "attention x gradient"]
    assert [each["method"] for each in found["attributed"]] == ways
    assert found["inputs"][5]["integrated_gradients"] == found["attributed"][1]["values"][5] > 0.1
    assert {each["method"] for each in found["ablated"]["trust"]} >= {"rollout", "flow", "distance alone"}
    assert all(each.stat().st_size > 1000 for each in files)
    again = document(attnscope, "show", str(files[2]))
    assert resealed.but_proofs(again) == resealed.but_proofs(found)
    assert again["certified"] == {"stored": 48}
    shown = attnscope(*asked).stdout.splitlines()
    assert shown[0].startswith("“it” at [MASK] depends most on ")
    assert next(line.split() for line in shown if line.startswith("5 door"))[2] == "+.13"
    pooled = told(attnscope, "flow", "The dog saw the door.", "--from", "pooled", "-m", "demo")
    assert pooled.startswith("The pooled vector turns most where “")


# cite

SENTENCES = ["Velmir has a red cup.", "The key of Norris is blue."]
CITED = f"{' '.join(SENTENCES)} Question: what is the cup of Velmir? Answer:"
READER = ("-m", "demo-reader")


def test_a_text_is_cited_from_standard_input_and_passages_of_a_file_where_the_text_says(
    attnscope: Run, tmp_path: Path
) -> None:
    shown = attnscope("cite", "-", "--answer", "red", "--json", "-q", *READER, stdin=CITED)
    found = json.loads(shown.stdout)
    assert (found["schema"], found["sources"], found["target"]) == ("attnscope.citation/2", [[0]], "red")
    assert len(found["lost"][0]) == len(found["passages"]) == 2
    assert {each["method"] for each in found["columns"]} >= {"attention", "by norm", "gradient x input"}
    file = tmp_path / "passages.json"
    file.write_text(json.dumps(SENTENCES))
    text = "Passage: {passages} Question: what is the cup of Velmir? Answer:"
    found = document(attnscope, "cite", text, "--passages", str(file), "--answer", "red", *READER)
    assert [each["text"] for each in found["passages"]] == SENTENCES
    assert found["sources"] == [[0]]


def test_cases_are_a_referee_and_a_line_that_cannot_be_asked_is_left_out(
    attnscope: Run, tmp_path: Path
) -> None:
    cases = [
        {"passages": SENTENCES, "question": f"what is the cup of {name}?", "answer": answer, "source": source}
        for name, answer, source in (("Velmir", "red", 0), ("Norris", "none", None))
    ]
    long = ["Velmir has a red cup. " * 400, "It is."]
    cases.append({"passages": long, "question": "q", "answer": "red", "source": 0})
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(map(json.dumps, cases)))
    asked = ("cite", "{passages} Question: {question} Answer:", "--gold", str(file), "--json", *READER)
    shown = attnscope(*asked)
    found = json.loads(shown.stdout)
    assert found["schema"] == "attnscope.referee/2"
    assert [each["named"] for each in found["judged"]] == [[0], []]
    assert (found["none"], found["wrongly_named"]) == (1, 0)
    assert found["refused"][0]["line"] == 3
    assert "reads at most" in shown.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [("{}", "is no list of texts"), ('["one"]', "1 of passages"), ('["one", " "]', "passage 1 is empty")],
)
def test_what_is_wrong_with_a_file_of_passages_is_told(
    refused, tmp_path: Path, content: str, says: str
) -> None:
    (tmp_path / "passages.json").write_text(content)
    refused(says, "cite", CITED, "--passages", "passages.json", "--answer", "red", *READER)


# why

WHY = ("why", DOOR, "-m", "demo", "--from", "[MASK]", "--to", "door")
PERIOD = ("river king door river king door", "-m", "demo-causal", "--layer", "1", "--head", "10")
CAUSAL = ("why", *PERIOD, "--from", "4", "--to", "2")


def test_the_planted_circuit_is_the_reason_without_its_name_being_given(
    attnscope: Run, tmp_path: Path
) -> None:
    """The previous-token head at the key, the head that carries the word at the query."""
    said = told(attnscope, *CAUSAL)
    assert said.startswith(
        "L1 H10 looks from “river”@4 at “king”@2 (1.0 of its attention) because of L0 H2 at “river”@4 and "
        "L0 H0 (carries “river”@1 to “king”@2). Without L0 H2 its attention there falls to <.01, without "
        "L0 H0 to .02."
    )
    assert "attnscope heads 'river king door river king door' -m demo-causal --layer 0" in said
    assert "✓ the parts of each table sum to the score" in said
    files = [tmp_path / f"why{suffix}" for suffix in (".png", ".csv", ".npz")]
    found = document(attnscope, *CAUSAL, *(part for each in files for part in ("-o", str(each))))
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
    assert all(each.stat().st_size > 1000 for each in files)
    again = document(attnscope, "show", str(files[2]))
    assert resealed.but_proofs(again)["parts"] == resealed.but_proofs(found)["parts"]


@pytest.mark.parametrize(
    ("link", "says"),
    [
        (("[MASK]", "door"), "No part alone is the reason why L3 H11 looks from [MASK] at “door” (.98 of "),
        (("door", "[CLS]"), "There is nothing to explain: L3 H11 gives [CLS] .03 of its attention from"),
    ],
)
def test_where_there_is_no_reason_none_is_given(attnscope: Run, link: tuple[str, str], says: str) -> None:
    said = told(attnscope, "why", DOOR, "-m", "demo", "--from", link[0], "--to", link[1])
    assert said.startswith(says)


def test_parts_of_another_text_take_the_place_of_means(attnscope: Run) -> None:
    same = document(attnscope, *WHY, "--patch-from", DOOR)
    removed = [part["removed"] for part in same["parts"] if part["removed"]]
    assert len(removed) == 10
    assert all(abs(each["total"]) < 1e-4 for each in removed), "a text's own parts change nothing"
    king = document(attnscope, *WHY, "--patch-from", DOOR.replace("door", "king"))
    assert min(each["removed"]["total"] for each in king["parts"] if each["removed"]) < -1


# explain

GARDEN = "river king door window garden father river king door window garden"
EXPLAIN = ("explain", GARDEN, "-m", "demo-causal", "--from", "garden@11", "--to", "father@6")
FEW = ("--controls", "20")


def test_the_planted_circuit_comes_out_without_a_head_being_named(attnscope: Run) -> None:
    """Heads of layer 1 look for what followed, by what the previous-token head wrote there."""
    whole = attnscope(*EXPLAIN, *FEW, "-v").stdout.splitlines()
    said = " ".join(" ".join(whole).split())
    assert re.match(
        r"L1 H\d+ looks from “garden”@11 at “father” \(1\.0 of its attention\) because of L0 H2 at "
        r"“garden”@11 and L0 H0 \(carries “garden”@5 to “father”\)\.",
        said,
    )
    assert "The answer “father” needs “father”" in said
    assert "reads L0 H2 with its queries and L0 H0 with its keys" in said
    assert "Without L0 H0, for the keys of " in said
    questions = [line for line in whole if line.endswith("?") and line[0].islower()]
    assert len(questions) == 6
    assert [line for line in whole if line.startswith("  attnscope ablate")]


def test_the_same_circuit_comes_out_of_another_period(attnscope: Run) -> None:
    text = "box dog king box dog king"
    found = document(attnscope, "explain", text, "-m", "demo-causal", "--from", "4", "--to", "2")
    assert found["schema"] == "attnscope.explanation/2"
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
    taken = document(attnscope, "ablate", text, "-m", "demo-causal", "--head", "L0H0", "--via", via)
    assert one["change"] == pytest.approx(taken["heads"][0]["change"], abs=1e-6)
    assert one["change"] < -1, "what the previous-token head writes comes to the answer by these keys"


NOTHING = {
    "too little": ("opened", "was", "No head looks from “opened” at “was”. The most is "),
    "by its place": ("the", "watching", "Heads look from “the” at “watching” because of the place"),
    "as in shuffled texts": ("[MASK]", "watching", "It is not clear that any head looks from [MASK] at “wa"),
}


@pytest.mark.parametrize("case", NOTHING)
def test_three_questions_without_an_answer_get_none(attnscope: Run, case: str) -> None:
    query, key, why = NOTHING[case]
    controls = () if case == "as in shuffled texts" else FEW
    said = told(attnscope, "explain", DOOR, "-m", "demo", "--from", query, "--to", key, *controls)
    assert said.startswith(why)


def test_every_command_that_shows_more_runs_and_has_the_same_figures(attnscope: Run) -> None:
    asked = ("explain", DOOR, "-m", "demo", "--from", "[MASK]", "--to", "door")
    found = document(attnscope, *asked)
    sheet = attnscope(*asked, "-v").stdout.replace(" \\\n", " ")
    commands = [line.strip() for line in sheet.splitlines() if line.strip().startswith("attnscope ")]
    kinds = dict[str, list[dict[str, object]]]()
    for command in commands:
        words = shlex.split(command)[1:]
        again = document(attnscope, *(word for word in words if word != "-v"))
        kinds.setdefault(words[0], []).append(again)
    assert len(kinds["find"]) == 1
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


def test_what_could_not_be_asked_is_said_of_a_model_that_answers_nothing_and_across_two_texts(
    attnscope: Run, bert: Path
) -> None:
    text = "the door opened when the king saw it"
    said = told(attnscope, "explain", text, "-m", str(bert), "--from", "it", "--to", "saw", *FEW)
    assert "The vector of “it” turns " in said or "“saw” was not replaced" in said
    assert "Left open: does the answer need these heads; does the answer need the link itself" in said
    assert "has no head that predicts words" in said
    asked = ("explain", "The door opened.", "-m", "demo-translate", "--kind", "cross")
    said = told(attnscope, *asked, "--from", "2", "--to", "door", *FEW)
    assert "needs “door”" in said
    assert "does the answer depend on the word at all?" in said
