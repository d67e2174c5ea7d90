"""`attnscope heads`, held against the untouched model's own weights and against what a person should see."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from pasted import following
from transformers import AutoModel, AutoTokenizer
from written_numbers import number_of

from attnscope import demo

TEXT = "I was watching the [MASK] when it opened."
ONE = ("heads", TEXT, "-m", "demo", "--layer", "3", "--head", "11")


@pytest.fixture(scope="module")
def own_weights() -> np.ndarray:
    """The demo model's own attentions, layer head query key, from a run that attnscope has no part in."""
    model = AutoModel.from_pretrained(demo.folder(), attn_implementation="eager")
    inputs = AutoTokenizer.from_pretrained(demo.folder())(TEXT, return_tensors="pt")
    attentions = model(**inputs, output_attentions=True).attentions
    return np.stack([layer[0].detach().numpy() for layer in attentions])


def test_the_table_shows_the_model_s_own_weights(attnscope, own_weights) -> None:
    result = attnscope(*ONE)
    assert result.exit_code == 0
    row = next(line for line in result.stdout.splitlines() if line.startswith(" 5 [MASK]"))
    shown = [number_of(cell) for cell in row.split()[2:]]
    assert shown == pytest.approx(own_weights[3, 11, 5], abs=0.0051)
    assert "certified" in result.stdout


def test_json_is_one_document_with_the_weights_as_rows_by_query(attnscope, own_weights) -> None:
    document = json.loads(attnscope(*ONE, "--json").stdout)
    assert document["schema"] == "attnscope.head/2"
    assert np.asarray(document["weights"]) == pytest.approx(own_weights[3, 11], abs=1e-6)
    assert document["provenance"]["requested"] == "demo"
    assert document["certificate"]["verdict"] == "certified"


def test_negative_numbers_count_from_the_end(attnscope) -> None:
    by_end = attnscope("heads", TEXT, "-m", "demo", "--layer", "-1", "--head", "-1", "--json").stdout
    assert by_end == attnscope(*ONE, "--json").stdout


def test_one_query_is_shown_as_bars_largest_first(attnscope, own_weights) -> None:
    lines = attnscope(*ONE, "--query", "[MASK]").stdout.splitlines()
    best = int(own_weights[3, 11, 5].argmax())
    first = next(line for line in lines if "█" in line)
    assert first.split()[0] == str(best)
    assert f"{own_weights[3, 11, 5, best]:.3f}".lstrip("0") in first
    assert attnscope(*ONE, "--query", "5").stdout.splitlines() == lines


@pytest.mark.parametrize("show", ["weights", "scores", "scaled", "q", "k", "v", "output"])
def test_everything_of_a_head_can_be_tabulated(attnscope, show: str) -> None:
    result = attnscope(*ONE, "--show", show)
    assert result.exit_code == 0
    document = json.loads(attnscope(*ONE, "--json").stdout)
    row = next(line for line in result.stdout.splitlines() if line.startswith(" 3 watching"))
    norm = [] if show in ("weights", "scores", "scaled") else [np.linalg.norm(document[show][3])]
    shown = [number_of(cell) for cell in row.split()[2:]]
    assert len(shown) > 5
    assert shown == pytest.approx([*norm, *document[show][3]][: len(shown)], abs=0.051)


def test_without_a_layer_or_head_every_head_is_shown(attnscope, own_weights) -> None:
    result = attnscope("heads", TEXT, "-m", "demo")
    entropy = -(own_weights * np.log(own_weights)).sum(-1).mean(-1)
    tokens = np.exp(entropy)  # looked at
    lines = result.stdout.splitlines()
    row = next(line for line in lines if line.startswith("L2 ") and " H" not in line)
    assert [float(cell) for cell in row.split()[1:]] == pytest.approx(tokens[2], abs=0.051)
    layer, head = np.unravel_index(tokens.argmin(), tokens.shape)
    assert lines[0].startswith(f"L{layer} H{head} is the most focused of 48 heads: ")
    asked = ["attnscope", "heads", TEXT, "-m", "demo", "--layer", str(layer), "--head", str(head)]
    assert following(result.stdout) == asked
    row = next(line for line in attnscope(*asked[1:-4], "--measure", "entropy").stdout.splitlines()
               if line.startswith("L2 ") and " H" not in line)  # fmt: skip
    assert [number_of(cell) for cell in row.split()[1:]] == pytest.approx(entropy[2], abs=0.0051)


def test_lists_choose_layers_and_heads(attnscope) -> None:
    result = attnscope("heads", TEXT, "-m", "demo", "--layer", "1-2", "--head", "0,5,-1", "--json")
    document = json.loads(result.stdout)
    assert document["schema"] == "attnscope.overview/2"
    assert (document["layers"], document["heads"]) == ([1, 2], [0, 5, 11])


def test_a_pair_has_both_texts(attnscope) -> None:
    result = attnscope(
        "heads", "the dog", "--pair", "it barked", "-m", "demo", "-l", "0", "--head", "0", "--json"
    )
    tokens = json.loads(result.stdout)["query_tokens"]
    assert [token["part"] for token in tokens if not token["special"]] == [0, 0, 1, 1]


def test_a_dash_reads_standard_input(attnscope) -> None:
    piped = attnscope("heads", "-", *ONE[2:], "--json", stdin=TEXT + "\n")
    assert piped.stdout == attnscope(*ONE, "--json").stdout


@pytest.mark.parametrize(
    ("end", "left", "told"),
    [("", "", None), ("\n", "", None), ("\r\n", "", None), ("\n\n", "\n", 2), ("\r\n\n\r\n", "\r\n\n", 3)],
)
def test_one_line_end_of_standard_input_is_no_text_and_the_others_are(
    attnscope, end: str, left: str, told: int | None
) -> None:
    model = ("-m", "demo-causal", "-l", "1", "--head", "2", "--json")
    piped = attnscope("heads", "-", *model, stdin=f"the door{end}")
    assert piped.stdout == attnscope("heads", f"the door{left}", *model).stdout
    assert json.loads(piped.stdout)["query_texts"] == [f"the door{left}"]
    assert (f"ends in {told} line ends" in piped.stderr, "x.jsonl" in piped.stderr) == (told is not None,) * 2


def test_what_does_not_fit_is_drawn_with_the_strongest_keys_of_telling_queries(attnscope) -> None:
    text = "the dog saw the door and the cat saw the window and the bird saw the tree ."
    result = attnscope("heads", text, "-m", "demo", "-l", "0", "--head", "0", width=60)
    assert "strongest keys →" in result.stdout
    assert re.search("[░▒▓█]{3}", result.stdout)
    shown = result.stdout.partition("\nNext: ")[0]
    assert max(map(len, shown.splitlines())) <= 60
    assert text in following(result.stdout), "which is pasted, and so has no line broken"


def test_files_hold_the_same_numbers_in_every_format(attnscope, tmp_path: Path, own_weights) -> None:
    targets = [tmp_path / "new" / "folder" / f"head.{suffix}" for suffix in ("npz", "csv", "json")]
    result = attnscope(*ONE, *(part for target in targets for part in ("-o", str(target))))
    assert result.exit_code == 0
    arrays = np.load(targets[0], allow_pickle=False)
    rows = csv.DictReader(
        io.StringIO("".join(line for line in targets[1].open() if not line.startswith("#")))
    )
    by_csv = np.array([float(row["weight"]) for row in rows]).reshape(11, 11)
    by_json = np.asarray(json.loads(targets[2].read_text())["weights"])
    assert np.array_equal(arrays["weights"], by_csv)
    assert np.array_equal(by_csv, by_json)
    assert by_json == pytest.approx(own_weights[3, 11], abs=1e-6)


def test_pictures_are_the_same_bytes_every_time(attnscope, tmp_path: Path) -> None:
    for suffix, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        first, second = tmp_path / f"first.{suffix}", tmp_path / f"second.{suffix}"
        for target in (first, second):
            assert attnscope(*ONE, "-o", str(target)).exit_code == 0
        assert first.read_bytes() == second.read_bytes()
        assert first.read_bytes().startswith(magic)


def test_standard_output_is_data_and_standard_error_is_narration(attnscope, tmp_path: Path) -> None:
    result = attnscope(*ONE, "--json", "-v", "-o", str(tmp_path / "head.png"))
    json.loads(result.stdout)
    assert "wrote" in result.stderr
    assert "loaded the first 4 of" in result.stderr or "loaded" in result.stderr
    assert attnscope(*ONE, "--json", "-q", "-o", str(tmp_path / "head.png")).stderr == ""


def test_output_is_plain_when_it_is_not_a_terminal(attnscope) -> None:
    assert "\x1b" not in attnscope(*ONE).stdout


@pytest.mark.parametrize(
    "text",
    [
        "[/b] [red]the door[/red]",
        "\x1b[31mthe door\x1b[0m \x07",
        "the 🙂 👩\u200d👩\u200d👧 door",
        "猫在门口",
        "القط",
        "e\u0301te\u0301 \u202eabc",
    ],
)
def test_any_text_is_shown_as_text(attnscope, text: str, tmp_path: Path) -> None:
    result = attnscope(
        "heads", text, "-m", "demo", "-l", "1", "--head", "2", "-o", str(tmp_path / "a.png"), width=140
    )
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout + result.stderr
    assert "\x07" not in result.stdout + result.stderr
    assert "\u202e" not in result.stdout + result.stderr
    assert attnscope("heads", text, "-m", "demo", "-l", "1", "--head", "2", "--json").exit_code == 0


def test_what_the_model_cannot_spell_is_said(attnscope) -> None:
    result = attnscope("heads", "the 猫 opened", "-m", "demo", "-l", "0", "--head", "0")
    assert "cannot spell '猫'" in result.stderr
    assert "[UNK]" in result.stdout


def test_another_arithmetic_is_asked_for_and_named(attnscope) -> None:
    result = attnscope(*ONE, "--dtype", "bfloat16", "--json")
    document = json.loads(result.stdout)
    assert document["provenance"]["dtype"] == "bfloat16"
    assert document["certificate"]["weight_tolerance"] > 1e-2
    assert document["certificate"]["verdict"] in {"certified", "inconclusive"}


def test_a_local_folder_is_a_model_too(attnscope, bert: Path) -> None:
    document = json.loads(
        attnscope("heads", TEXT, "-m", str(bert), "-l", "4", "--head", "1", "--json").stdout
    )
    assert document["provenance"]["model"] == str(bert)
    assert document["provenance"]["digest"].startswith("sha256:")
    assert document["layers"] == 5


def test_what_was_cut_off_is_not_shown_as_read(attnscope) -> None:
    result = attnscope("heads", "door " * 300, "-m", "demo", "-l", "0", "--head", "0", "--truncate", "--json")
    document = json.loads(result.stdout)
    assert document["query_texts"] == [" ".join(["door"] * 62)]
    assert len(document["query_tokens"]) == 64
    assert "cut to the 64" in result.stderr


def test_a_token_that_is_a_number_is_named_with_its_position(attnscope) -> None:
    arguments = ("heads", "it has 3 doors and 4", "-m", "demo", "-l", "0", "--head", "0", "--query")
    assert "query 6 4" in attnscope(*arguments, "4@6").stdout
    assert "query 4 doors" in attnscope(*arguments, "doors@4").stdout


@pytest.mark.parametrize("width", [0, 1, 5])
def test_a_width_that_cannot_be_used_is_not_used(attnscope, width: int) -> None:
    assert "certified" in attnscope(*ONE, width=width).stdout


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_arithmetics_never_fail_a_model_that_is_right(attnscope, dtype: str) -> None:
    document = json.loads(attnscope(*ONE, "--dtype", dtype, "--json").stdout)
    assert document["provenance"]["dtype"] == dtype
    assert document["certificate"]["verdict"] in {"certified", "inconclusive"}


def test_a_grid_holds_the_model_s_own_weights_and_is_shown_again(
    attnscope, own_weights, tmp_path: Path
) -> None:
    files = [str(tmp_path / name) for name in ("grid.npz", "grid.png")]
    shown = attnscope("heads", TEXT, "-m", "demo", "--grid", "-o", files[0], "-o", files[1])
    assert shown.exit_code == 0, shown.output
    largest = np.argwhere(own_weights > own_weights.max() - 0.0005)
    told = " ".join(shown.stdout.split()).translate({ord(quote): None for quote in "“”"})
    document = json.loads(attnscope("heads", TEXT, "-m", "demo", "--grid", "--layer", "3", "--json").stdout)
    names = [each["label"] for each in document["query_tokens"]]
    assert any(
        told.startswith(f"L{layer} H{head} looks from {names[query]} ") for layer, head, query, _ in largest
    )
    with np.load(files[0]) as stored:
        assert stored["weights"] == pytest.approx(own_weights, abs=1e-6)
    again = attnscope("show", files[0])
    assert again.stdout.replace(" (stored)", "", 1).splitlines()[:8] == shown.stdout.splitlines()[:8]
    assert document["schema"] == "attnscope.thumbnails/2"
    assert np.asarray(document["weights"])[0] == pytest.approx(own_weights[3], abs=1e-6)


@pytest.mark.parametrize(
    "other",
    [("--query", "it"), ("--measure", "all"), ("--terms",), ("--show", "q"), ("--rows", "3")],
)
def test_a_grid_is_of_whole_heads_alone(attnscope, other: tuple[str, ...]) -> None:
    refused = attnscope("heads", TEXT, "-m", "demo", "--grid", *other)
    assert refused.exit_code == 2
    (line,) = refused.stderr.splitlines()
    assert "--grid shows whole heads in small: leave --" in line


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ("induction", "no induction here: nothing stands before a token of which it could have learned"),
        ("copying", "no copying here: what it writes is not read as a token: not a decoder"),
        ("pattren", "no measure 'pattren': the nearest are "),
    ],
)
def test_a_measure_without_a_meaning_is_refused_in_one_line(attnscope, measure: str, said: str) -> None:
    refused = attnscope("heads", TEXT, "-m", "demo", "--measure", measure)
    assert refused.exit_code == 2
    (line,) = refused.stderr.splitlines()
    assert said in line


def test_what_a_model_only_returns_has_no_measures_of_more_than_weights(attnscope) -> None:
    asked = ("heads", TEXT, "-m", "demo", "--route", "returned")
    shown = attnscope(*asked, "--measure", "entropy,previous-norm,near,special-tokens", "-v")
    assert shown.stdout.startswith("As the model reports it, unchecked: ")
    assert "previous-norm, near: - (the model returns weights alone)" in " ".join(shown.stdout.split())
    refused = attnscope(*asked, "--measure", "moved")
    assert refused.exit_code == 2
    assert "no moved here: the model returns weights alone" in refused.stderr
