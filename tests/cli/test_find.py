"""`attnscope find` as it is typed: the ranking on the screen, in JSON and in files, and what it refuses."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import resealed
from pasted import following
from typer.testing import Result

from attnscope import demo

Run = Callable[..., Result]
PICTURE = str(demo.example("demo-caption"))
TEXT = "I was watching the door when [MASK] opened."
PAIR = ("find", TEXT, "-m", "demo", "--from", "[MASK]", "--to", "door", "--controls", "12")


def test_the_next_command_opens_the_head_that_the_first_line_names_though_another_leads_the_table(
    attnscope: Run,
) -> None:
    asked = ("find", "I was watching the door when it opened.", "-m", "demo", "--pattern", "previous")
    shown = attnscope(*asked, "--controls", "30").stdout
    lines = shown.splitlines()
    heading = next(i for i, line in enumerate(lines) if line.startswith("head"))
    assert next(line for line in lines[heading:] if line.startswith("L")).startswith("L0 H6"), (
        "what stands above its own controls leads the table"
    )
    assert shown.startswith("L0 H3 looks at the token before")
    assert following(shown)[-4:] == ["--layer", "0", "--head", "3"]


def test_the_screen_ranks_heads_beside_their_controls_and_opens_the_best(attnscope: Run) -> None:
    shown = attnscope(*PAIR)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    told = " ".join(lines[:3])
    assert [each for each in ("12 shuffled", "19", "L3 H11: .98", ".07") if each not in told] == []
    assert "in 12 shuffled texts" in shown.stdout
    heading = next(i for i, line in enumerate(lines) if line.startswith("head"))
    assert " ".join(lines[heading].split()) == "head weight mean 90 % between below depends on"
    best = next(i for i, line in enumerate(lines) if line.endswith("(44, 5 shown)")) + 1
    assert lines[best].startswith("L3 H11")
    assert lines[best].endswith("12  context")
    same = lines.index("because of the place (3)") + 1
    assert best < same, "the largest weight of all comes last, since its controls have it as well"
    assert lines[same].split()[:4] == ["L0", "H11", "1.0", ".98"]
    assert lines[same].endswith("place")
    assert "control: your words in random order; special tokens, masks" in " ".join(lines)
    assert following(shown.stdout) == ["attnscope", "heads", TEXT, "-m", "demo", "--query", "[MASK]"]
    narrow = attnscope(*PAIR, width=40).stdout
    assert "mean" in narrow
    assert "depends" not in narrow.splitlines()[lines.index(lines[heading])]
    assert "left out here: depends on" in " ".join(narrow.split())


def test_enough_controls_tell_which_heads_stand_out_and_the_link_is_what_to_try_next(attnscope: Run) -> None:
    text = "I was watching the [MASK] when it opened."
    pair = ("find", text, "-m", "demo", "--from", "[MASK]", "--to", "opened")
    shown = attnscope(*pair)
    found = json.loads(attnscope(*pair, "--json").stdout)
    clear = [f"L{each['layer']} H{each['head']}" for each in found["heads"] if each["stands_out"]]
    assert "L3 H11" in clear
    assert 1 < len(clear) <= 8, "all are shown"
    lines = shown.stdout.splitlines()
    assert lines[0].startswith(f"{len(clear)} of 48 heads clearly look from [MASK] at “opened”")
    first = lines.index("clearly") + 1
    assert [line[:6].strip() for line in lines[first : first + len(clear)]] == clear
    assert lines[first + len(clear)].startswith("perhaps: ")
    command = following(shown.stdout)
    assert command[:5] == ["attnscope", "ablate", text, "-m", "demo"]
    assert command[5:] == ["--layer", clear[0][1], "--link", "[MASK]->opened"]
    quiet = attnscope(*pair, "-q").stdout.splitlines()
    proof = next(i for i, line in enumerate(quiet) if line.startswith("✓"))
    assert quiet[:proof] == lines[:proof], "the answer"
    assert " ".join(quiet[proof:]).startswith("✓ certified: 48 of 48 heads recomputed, equal to the model's")
    assert len(quiet) == proof + 2, "the proof is one sentence"


def test_json_has_the_ranking_best_first_and_files_are_written_beside(attnscope: Run, tmp_path: Path) -> None:
    files = [tmp_path / f"found{suffix}" for suffix in (".png", ".csv", ".npz")]
    told = attnscope(*PAIR, "--json", "-q", *(part for each in files for part in ("-o", str(each))))
    found = json.loads(told.stdout)
    assert found["schema"] == "attnscope.finding/2"
    assert found["looked_at"] == 48
    heads = found["heads"]
    assert (heads[0]["layer"], heads[0]["head"]) == (3, 11)
    explained = [each["depends_on"] in ("position", "key") for each in heads]
    assert explained == sorted(explained), "they come last"
    others = [each["weight"] for each in heads if each["depends_on"] not in ("position", "key")]
    assert others == sorted(others, reverse=True)
    assert heads[0]["rank"] == 1
    assert heads[0]["norm"] > 0
    parts = {"mean", "low", "high", "spread", "below", "above_control", "excess", "stayed", "elsewhere"}
    parts |= {"followed"}
    assert parts == set(heads[0]["control"])
    above = heads[0]["weight"] - heads[0]["control"]["mean"]
    assert heads[0]["control"]["above_control"] == pytest.approx(above)
    assert heads[0]["depends_on"] == "context"
    same = next(each for each in heads if (each["layer"], each["head"]) == (0, 11))
    assert same["weight"] > heads[0]["weight"]
    assert same["control"]["mean"] > 0.9
    assert not any(each["stands_out"] for each in heads)
    assert all(each.stat().st_size > 1000 for each in files)
    again = attnscope("show", str(files[2]), "--json")
    assert resealed.but_proofs(json.loads(again.stdout)) == resealed.but_proofs(found)
    shown, asked = (attnscope(*each).stdout for each in (("show", str(files[2])), PAIR))
    table, same_table = (each.partition("\n\n")[2].partition("\ncontrol:")[0] for each in (shown, asked))
    assert table.startswith("  ")
    assert table == same_table
    assert "✓ certified: 48 of 48 heads" in asked
    assert "○ certified when stored, not computed again: 48 of 48 heads" in shown


def test_seeds_change_controls_and_repeat_them(attnscope: Run) -> None:
    first, again, other = (attnscope(*PAIR, "--json", "--seed", seed).stdout for seed in ("3", "3", "4"))
    assert first == again
    means = [[head["control"]["mean"] for head in json.loads(each)["heads"]] for each in (first, other)]
    assert means[0] != means[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--from", "[MASK]"), "--from and --to go together: which token looks, and at which"),
        (("--pattern", "diagonal"), "no pattern 'diagonal': previous, next, self"),
        (("--like", "11"), "--like '11' names no head: write it as L3H11"),
        (("--from", "the", "--to", "window"), "no token 'window' in the input"),
        (("--pattern", "next", "--image", PICTURE), "reads no pictures: leave --image out"),
        (("--pattern", "next", "-o", "x.txt"), "cannot write 'x.txt'"),
    ],
)
def test_bad_input_is_one_line(attnscope: Run, options: tuple[str, ...], said: str) -> None:
    refused = attnscope("find", TEXT, "-m", "demo", *options)
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not refused.stdout


def test_without_a_target_the_links_of_the_text_are_ranked(attnscope: Run) -> None:
    shown = attnscope("find", TEXT, "-m", "demo", "--controls", "20")
    assert shown.exit_code == 0
    found = json.loads(attnscope("find", TEXT, "-m", "demo", "--controls", "20", "--json").stdout)
    assert found["schema"] == "attnscope.links/2"
    assert found["controls"] == 20 == len(found["ids"])
    first = found["links"][0]
    key = found["key_tokens"][first["key"]]["text"]
    told = " ".join(shown.stdout.split())
    assert f"L{first['layer']} H{first['head']} looks from [MASK] at “{key}”: " in told
    known = [first[each] for each in ("controls", "distance", "others", "even") if first[each] is not None]
    assert first["evidence"] == pytest.approx(first["weight"] - max(known))
    head = json.loads(
        attnscope(
            "heads", TEXT, "-m", "demo", "-l", str(first["layer"]), "--head", str(first["head"]), "--json"
        ).stdout
    )
    assert head["weights"][first["query"]][first["key"]] == pytest.approx(first["weight"], abs=1e-6)
    assert following(shown.stdout)[:2] == ["attnscope", "find"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--words",), "leave --by, --words and --special out"),
        (("--pattern", "previous", "--like", "L0H1"), "say what to find"),
    ],
)
def test_links_are_sought_between_tokens_and_alone(
    attnscope: Run, arguments: tuple[str, ...], said: str
) -> None:
    refused = attnscope("find", TEXT, "-m", "demo", *arguments)
    assert refused.exit_code == 2
    assert said in refused.stderr


def test_of_one_head_that_was_asked_no_count_of_heads_is_told(attnscope: Run) -> None:
    asked = ("I was watching the [MASK] when it opened.", "-m", "demo", "--layer", "3", "--head", "11")
    link = "--from", "[MASK]", "--to", "opened"
    for command in ("find", "explain"):
        told = " ".join(attnscope(command, *asked, *link).stdout.split())
        assert not re.search(r"\d+ heads?\b", told.partition(". ")[0])
        assert "L3 H11" in told


ASKED = ("find", "--pattern", "retrieval", "-q")
READER = ("-m", "demo-reader", "--lengths", "70", "--needles", "10")


def test_the_first_line_names_heads_and_what_is_left_without_them(attnscope: Run, tmp_path: Path) -> None:
    place = tmp_path / "found.json"
    said = " ".join(attnscope(*ASKED, *READER, "-o", str(tmp_path / "x.png")).stdout.split())
    assert (tmp_path / "x.png").stat().st_size > 10_000
    shown = attnscope("find", "--pattern", "retrieval", *READER, "-o", str(place))
    assert "chat template" not in shown.stderr, "no text of the user's is read"
    said = " ".join(shown.stdout.split())
    found = json.loads(place.read_text())
    assert found["schema"] == "attnscope.retrieval/2"
    assert f"({len(found['named'])} of 24 heads)" in said
    assert said.startswith("L1 H")
    assert "removal confirms them." in said
    assert "✓ certified" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--lengths", "70,5000", "-m", "demo-reader"), "--lengths 5000: demo-reader reads at most 2,048"),
        (("--lengths", "30", "-m", "demo-reader"), "--lengths 30: no room for the facts"),
        (("--lengths", "many", "-m", "demo-reader"), "--lengths 'many': numbers of tokens, 512,2048"),
        (("--needles", "1", "-m", "demo-reader"), "--needles 1: give 2 to 500"),
        (("-m", "demo"), "--pattern retrieval looks where a model writes an answer"),
        (("--from", "a", "-m", "demo-reader"), "leave --from out"),
        (("--ids", "3,4", "-m", "demo-reader"), "leave --ids out"),
        (("--facts", "nowhere.jsonl", "-m", "demo-reader"), "nowhere.jsonl"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(attnscope: Run, arguments: Sequence[str], says: str) -> None:
    shown = attnscope(*ASKED, *arguments)
    assert shown.exit_code == 2
    assert says in shown.stderr
    assert shown.stderr.count("\n") == 1


def test_its_options_go_with_no_other_pattern(attnscope: Run) -> None:
    shown = attnscope("find", "The door opened.", "--pattern", "same", "--needles", "5", "-m", "demo")
    assert shown.exit_code == 2
    assert "--needles goes with --pattern retrieval" in shown.stderr
