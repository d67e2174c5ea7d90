"""The training program, end to end on a tiny shape, and the parts of it that could go wrong silently."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, BertForPreTraining

from attnscope.demo import corpus
from attnscope.demo.corruption import PRONOUNS, Corruption
from attnscope.demo.train_encoder import encode
from attnscope.demo.training import Settings, rate

TINY = ["--steps=20", "--documents=2000", "--hidden=24", "--layers=1", "--heads=2", "--threads=1"]
VOCABULARY = {"[MASK]": 0, "[CLS]": 1, "[SEP]": 2, "the": 3, "door": 4, "box": 5} | {
    word: 6 + index for index, word in enumerate(PRONOUNS)
}


def run(out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "attnscope.demo.train", "--out", str(out), *TINY],
        capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    done = run(out)
    assert done.stdout == ""
    assert "training" in done.stderr
    return out


def test_the_program_writes_a_folder_that_transformers_loads(trained: Path) -> None:
    _, loading = BertForPreTraining.from_pretrained(trained, output_loading_info=True)
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    assert AutoTokenizer.from_pretrained(trained).mask_token == "[MASK]"
    assert json.loads((trained / "training.json").read_text())["record"]["steps"] == 20


def test_the_same_seed_gives_the_same_weights_on_the_same_machine(trained: Path, tmp_path: Path) -> None:
    run(tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()


def test_the_learning_rate_rises_to_its_peak_and_falls_to_zero() -> None:
    settings = Settings(peak_rate=2.0, warm_up=0.1)
    assert rate(0.0, settings) == 0
    assert rate(0.1, settings) == pytest.approx(2.0)
    assert rate(0.55, settings) == pytest.approx(1.0)
    assert rate(1.0, settings) == pytest.approx(0.0)


def test_documents_become_ids_segments_and_labels_of_one_length_each() -> None:
    ids = {"[CLS]": 1, "[SEP]": 2, "doors": 3, "open": 4, "they": 5, ".": 6}
    documents = [
        corpus.Document("doors open ."),
        corpus.Document("doors open .", "they open .", corpus.FOREIGN, "hard"),
    ]
    short, long = encode(documents, ids)
    assert short.fields["ids"].tolist() == [[1, 3, 4, 6, 2]]
    assert short.fields["labels"].tolist() == [corpus.UNLABELLED]
    assert long.fields["ids"].tolist() == [[1, 3, 4, 6, 2, 5, 4, 6, 2]]
    assert long.fields["segments"].tolist() == [[0] * 5 + [1] * 4]
    assert long.fields["labels"].tolist() == [corpus.FOREIGN]


def test_only_chosen_positions_are_changed_and_special_ones_never() -> None:
    truth = torch.tensor([[1, 3, 4, 2, 6, 7, 2]]).repeat(4000, 1)
    ids, chosen = Corruption(VOCABULARY)(truth, torch.Generator().manual_seed(0))
    assert torch.equal(ids[~chosen], truth[~chosen])
    assert not chosen[:, [0, 3]].any()
    masked = (ids == 0)[chosen].float().mean()
    assert 0.55 < masked < 0.85


def test_a_swapped_pronoun_becomes_a_pronoun_and_pronouns_are_chosen_twice_as_often() -> None:
    corruption = Corruption(VOCABULARY)
    truth = torch.tensor([[4, 6]]).repeat(20000, 1)
    ids, chosen = corruption(truth, torch.Generator().manual_seed(1))
    swapped = ids[:, 1][(ids[:, 1] != truth[:, 1]) & (ids[:, 1] != corruption.mask)]
    assert set(swapped.tolist()) <= set(corruption.pronouns.tolist())
    shares = chosen.float().mean(0)
    assert shares[1] / shares[0] == pytest.approx(2.0, rel=0.1)
