"""`attnscope heads` on a long text: in tiles, a window, blocks; against the same text held whole."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import TOKENIZER_FILES, vocabulary_size
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


def test_one_query_of_a_long_head_is_its_row(heads, whole) -> None:
    found = of_json(heads(*HEAD, "--tiled", "--query", "150", "--json"))
    assert found["row"] == pytest.approx(np.nan_to_num(whole[1, 2, 150]).tolist(), abs=1e-5)


def test_files_of_a_long_head_are_drawn_again_as_they_were(
    heads, attnscope, tmp_path: Path, whole, request: pytest.FixtureRequest
) -> None:
    targets = {suffix: tmp_path / f"long.{suffix}" for suffix in ("png", "csv", "json", "npz")}
    made = heads(*HEAD, "--pool", "max", *(part for each in targets.values() for part in ("-o", str(each))))
    assert made.exit_code == 0, made.stderr
    assert targets["png"].read_bytes().startswith(b"\x89PNG")
    shown = [attnscope("show", str(targets[suffix])) for suffix in ("npz", "json")]
    assert shown[0].stdout == shown[1].stdout.replace("long.json", "long.npz")
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


HEAD_IN = " ".join(HEAD)
REFUSED = {
    f"{HEAD_IN} --zoom 5:x": "--zoom '5:x' is no window",
    f"{HEAD_IN} --zoom 5:271": "no keys 271, there are 0-270",
    f"{HEAD_IN} --zoom 9-5": "no queries 9-5",
    "--zoom 5:6": "give one --layer and one --head",
    f"{HEAD_IN} --zoom 5:6 --dense": "leave --dense out",
    "--pool max": "give one --layer and one --head",
    f"{HEAD_IN} --pool min": "--pool",
    f"{HEAD_IN} --tiled --terms": "--tiled: --terms needs all queries by all keys",
    f"{HEAD_IN} --tiled --dims": "--tiled: --dims needs",
    "--tiled --grid": "--tiled: --grid needs",
    f"{HEAD_IN} --tiled --show scores": "--tiled: --show scores lists every pair",
    f"{HEAD_IN} --tiled --words": "--tiled: --by, --words and --special needs",
    "--tiled --query 5": "--tiled: --query of several heads",
    f"{HEAD_IN} --tiled --query 5 --key 3": "--tiled: --key needs",
    f"{HEAD_IN} --tiled --measure entropy": "--measure",
    f"{HEAD_IN} --tiled -o x.html": "--tiled: a page needs",
    "--tiled -o {layer}-{head}.png": "--tiled: a file of each head needs",
    f"{HEAD_IN} --tiled --route returned": "--tiled: --route returned",
    "--tiled --measure near": "near",
    f"{HEAD_IN} --tiled --query 271": "no token 271",
}


@pytest.mark.parametrize("asked", REFUSED)
def test_what_tiles_do_not_have_is_one_line(refused, long_model: Path, asked: str) -> None:
    refused(REFUSED[asked], "heads", LONG, "-m", str(long_model), *asked.split())
