"""`attnscope heads` on a long text: in tiles, a window, blocks; against the same text held whole."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import TOKENIZER_FILES, vocabulary_size
from pasted import following
from transformers import LlamaConfig, LlamaModel

from attnscope import demo

TEXT = "the dog saw the door and it was in the house while a cat sat on the mat ."
COUNT = 271  # tokens: more than there are blocks in a picture
HEAD = ("--layer", "1", "--head", "2")
LONG = " ".join(TEXT.split()[i * i % 18] for i in range(COUNT - 2))


@pytest.fixture(scope="module")
def long_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A seeded decoder of 2 layers of 3 heads that reads 300 tokens, far from uniform."""
    folder = tmp_path_factory.mktemp("long") / "tiny-llama"
    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=vocabulary_size(), hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
        num_key_value_heads=3, head_dim=8, intermediate_size=16, max_position_embeddings=300,
        initializer_range=0.5,
    )  # fmt: skip
    LlamaModel(config).save_pretrained(folder)
    for name in TOKENIZER_FILES:
        settings = (demo.folder() / name).read_text(encoding="utf-8")
        if name == "tokenizer_config.json":
            settings = json.dumps({**json.loads(settings), "model_max_length": 300})
        (folder / name).write_text(settings, encoding="utf-8")
    return folder


@pytest.fixture
def heads(attnscope, long_model: Path):
    """`attnscope heads` on the long text."""
    return lambda *arguments, **how: attnscope("heads", LONG, "-m", str(long_model), *arguments, **how)


@pytest.fixture(scope="module")
def whole(long_model: Path) -> np.ndarray:
    """The model's own weights, layer head query key, masked pairs NaN, from a run without attnscope."""
    from transformers import AutoTokenizer

    model = LlamaModel.from_pretrained(long_model, attn_implementation="eager")
    ids = AutoTokenizer.from_pretrained(long_model)(LONG, return_tensors="pt")["input_ids"]
    attentions = model(ids, output_attentions=True).attentions
    found = np.stack([layer[0].detach().numpy() for layer in attentions])
    assert found.shape[-1] == COUNT
    return np.where(np.tril(np.ones((COUNT, COUNT), bool)), found.astype(float), np.nan)


def of_json(result) -> dict:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def blocks(weights: np.ndarray, step: int, combine) -> np.ndarray:
    """Every block of `step` by `step` pairs by a plain loop, NaN where no pair is allowed."""
    starts = range(0, COUNT, step)
    found = np.full((len(starts), len(starts)), np.nan)
    for i, row in enumerate(starts):
        for j, column in enumerate(starts):
            there = weights[row : row + step, column : column + step]
            if not np.isnan(there).all():
                found[i, j] = combine(there)
    return found


def test_the_same_table_in_tiles_and_held_whole(heads) -> None:
    names = ("--measure", "entropy,distance,previous", "--json")
    tiled, dense = (of_json(heads(way, *names)) for way in ("--tiled", "--dense"))
    assert tiled["layers"] == dense["layers"] == [0, 1]
    every_head = [(layer, head) for layer in (0, 1) for head in (0, 1, 2)]
    assert [(each["layer"], each["head"]) for each in dense["results"]] == every_head
    assert [(each["layer"], each["head"]) for each in tiled["results"]] == every_head
    for name in ("entropy", "distance", "previous"):
        in_tiles, whole = ([each[name] for each in told["results"]] for told in (tiled, dense))
        assert in_tiles == pytest.approx(whole, rel=1e-4)
    assert any("in tiles: held against" in note for note in tiled["notes"])
    assert not any("in tiles" in note for note in dense["notes"])


def test_the_screen_shows_the_same_numbers_whichever_way(heads) -> None:
    rows = [
        [line.split() for line in heads(way).stdout.splitlines() if line.startswith(("L0 ", "L1 "))]
        for way in ("--tiled", "--dense")
    ]
    assert len(rows[0]) >= 2
    assert rows[0] == rows[1]


def test_the_line_that_opens_one_head_opens_it(heads, attnscope, long_model: Path) -> None:
    """The kernel of a text in tiles has a name that is no choice of --attn; a long text comes from a file."""
    short = ("heads", "the dog saw the door .", "-m", str(long_model), "--tiled")
    command = following(attnscope(*short).stdout)
    assert command[1:6] == list(short)
    assert "--attn" not in command
    opened = attnscope(*command[1:])
    assert opened.exit_code == 0, opened.stderr
    assert "in tiles: held against" in opened.stdout
    assert "attnscope heads - < your-text.txt" in heads("--tiled").stdout


def test_a_window_is_the_model_s_own_weights_pair_by_pair(heads, whole) -> None:
    found = of_json(heads(*HEAD, "--zoom", "200-206:190-203", "--json"))
    assert (found["first"], found["size"], found["steps"]) == ([200, 190], [7, 14], [1, 1])
    mine = np.array(found["mean"], float)
    assert mine == pytest.approx(whole[1, 2, 200:207, 190:204], abs=1e-5, nan_ok=True)
    assert np.isnan(mine).sum() == 6  # keys 201-203 of query 200, 202-203 of 201, 203 of 202
    row = next(
        line for line in heads(*HEAD, "--zoom", "200-206:190-203", width=140).stdout.splitlines()
        if line.startswith("203 ")
    )  # fmt: skip
    assert [float(cell) for cell in row.split()[2:]] == pytest.approx(whole[1, 2, 203, 190:204], abs=0.0051)


@pytest.mark.parametrize(("pool", "combine"), [("mean", np.nanmean), ("max", np.nanmax)])
def test_blocks_hold_what_pool_says(heads, whole, pool, combine) -> None:
    found = of_json(heads(*HEAD, "--pool", pool, "--json"))
    shown = {"mean": "mean", "max": "largest"}[pool]
    assert (found["pool"], found["steps"]) == (pool, [2, 2])
    mine = np.array(found[shown], float)
    assert mine.shape == (136, 136)
    assert mine == pytest.approx(blocks(whole[1, 2], 2, combine), abs=1e-5, nan_ok=True)


def test_one_query_of_a_long_head_is_its_row(heads, whole) -> None:
    found = of_json(heads(*HEAD, "--tiled", "--query", "150", "--json"))
    assert found["row"] == pytest.approx(np.nan_to_num(whole[1, 2, 150]).tolist(), abs=1e-5)
    best = int(np.nanargmax(whole[1, 2, 150]))
    lines = heads(*HEAD, "--tiled", "--query", "150").stdout.splitlines()
    first = lines[next(i for i, line in enumerate(lines) if line.startswith("key ")) + 1]
    assert first.split()[0] == str(best)
    assert f"{whole[1, 2, 150, best]:.3f}".lstrip("0") in first


def test_files_of_a_long_head_are_drawn_again_as_they_were(
    heads, attnscope, tmp_path: Path, whole, request: pytest.FixtureRequest
) -> None:
    targets = {suffix: tmp_path / f"long.{suffix}" for suffix in ("png", "csv", "json", "npz")}
    made = heads(*HEAD, "--pool", "max", *(part for each in targets.values() for part in ("-o", str(each))))
    assert made.exit_code == 0, made.stderr
    assert targets["png"].read_bytes().startswith(b"\x89PNG")
    shown = [attnscope("show", str(targets[suffix])) for suffix in ("npz", "json")]
    assert shown[0].stdout == shown[1].stdout
    claimed, told = (
        "✓ certified: recomputed, equal to the model's",
        "○ certified when stored, not computed",
    )
    answers = [" ".join(each.partition("\n\n")[0].split()) for each in (made.stdout, shown[0].stdout)]
    assert answers[1].replace(" (stored)", "", 1) == answers[0]
    assert claimed in made.stdout
    assert told in shown[0].stdout
    request.getfixturevalue("believing")
    again = tmp_path / "again.png"
    assert attnscope("show", str(targets["npz"]), "-o", str(again)).exit_code == 0
    assert again.read_bytes() == targets["png"].read_bytes()
    lines = [line for line in targets["csv"].read_text().splitlines() if not line.startswith("#")]
    rows = [row for row in csv.DictReader(lines) if row["query"] == "150"]
    best = np.argsort(-np.nan_to_num(whole[1, 2, 150]), kind="stable")[:5]
    assert [int(row["key"]) for row in rows] == best.tolist()
    assert [float(row["weight"]) for row in rows] == pytest.approx(whole[1, 2, 150, best], abs=1e-5)


def test_the_whole_text_is_never_printed_and_no_line_is_too_wide(heads) -> None:
    for width in (80, 140):
        for arguments in ((*HEAD, "--tiled"), ("--tiled",)):
            lines = heads(*arguments, width=width).stdout.splitlines()
            assert max(map(len, lines)) <= width
            assert sum(line.startswith("“") for line in lines) == 1
            assert len(lines) < 90


REFUSED = {
    "a zoom that is none": ([*HEAD, "--zoom", "5:x"], ["--zoom '5:x' is no window"]),
    "a zoom behind the text": ([*HEAD, "--zoom", "5:271"], ["no keys 271, there are 0-270"]),
    "a zoom backwards": ([*HEAD, "--zoom", "9-5"], ["no queries 9-5"]),
    "a zoom of several heads": (["--zoom", "5:6"], ["give one --layer and one --head"]),
    "a zoom of all pairs": ([*HEAD, "--zoom", "5:6", "--dense"], ["leave --dense out"]),
    "a pool of several heads": (["--pool", "max"], ["give one --layer and one --head"]),
    "a pool that is none": ([*HEAD, "--pool", "min"], ["--pool"]),
    "terms": ([*HEAD, "--tiled", "--terms"], ["--tiled: --terms needs all queries by all keys"]),
    "dims": ([*HEAD, "--tiled", "--dims"], ["--tiled: --dims needs"]),
    "a grid": (["--tiled", "--grid"], ["--tiled: --grid needs"]),
    "scores": ([*HEAD, "--tiled", "--show", "scores"], ["--tiled: --show scores lists every pair"]),
    "words": ([*HEAD, "--tiled", "--words"], ["--tiled: --by, --words and --special needs"]),
    "a query of several heads": (["--tiled", "--query", "5"], ["--tiled: --query of several heads"]),
    "a key": ([*HEAD, "--tiled", "--query", "5", "--key", "3"], ["--tiled: --key needs"]),
    "a measure of one head": ([*HEAD, "--tiled", "--measure", "entropy"], ["--measure"]),
    "a page": ([*HEAD, "--tiled", "-o", "x.html"], ["--tiled: a page needs"]),
    "a file of each head": (["--tiled", "-o", "{layer}-{head}.png"], ["--tiled: a file of each head needs"]),
    "a route": ([*HEAD, "--tiled", "--route", "returned"], ["--tiled: --route returned"]),
    "a measure that no tile has": (["--tiled", "--measure", "near"], ["near"]),
    "a query that is none": ([*HEAD, "--tiled", "--query", "271"], ["no token 271"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_tiles_do_not_have_is_one_line(heads, what: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, parts = REFUSED[what]
    result = heads(*arguments)
    assert result.exit_code == 2, result.stdout
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, result.stderr
    for part in parts:
        assert part in lines[0]
    assert not list(tmp_path.iterdir())
