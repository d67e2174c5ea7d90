"""The training program, end to end on a tiny shape, and the parts of it that could go wrong silently."""

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BertForPreTraining

from attnscope.demo import folder
from attnscope.demo.train import causal as train_causal
from attnscope.demo.train import loop
from attnscope.demo.train.command import arguments
from attnscope.demo.train.corpora import corpus
from attnscope.demo.train.corpora.next_word import Passage
from attnscope.demo.train.corruption import PRONOUNS, Corruption
from attnscope.demo.train.encoder import encode
from attnscope.demo.train.loop import Settings, rate
from attnscope.demo.train.tokenizer import build_causal

TINY = ["--steps=20", "--documents=2000", "--hidden=24", "--layers=1", "--heads=2", "--threads=1"]
MORE = {  # what a tiny model of the kind needs besides
    "causal": ["--key-heads=1", "--head-size=4"],
    "reader": ["--key-heads=1", "--head-size=4", "--inner=16"],
}
AUTO = dict.fromkeys(MORE, AutoModelForCausalLM)
VOCABULARY = {"[MASK]": 0, "[CLS]": 1, "[SEP]": 2, "the": 3, "door": 4, "box": 5} | {
    word: 6 + index for index, word in enumerate(PRONOUNS)
}


def run(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "attnscope.demo.train", *more, "--out", str(out), *TINY],
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


@pytest.mark.parametrize("kind", sorted(MORE))
def test_a_tiny_model_of_every_other_kind_trains_for_a_few_steps(kind: str, tmp_path: Path) -> None:
    run(tmp_path, kind, *MORE[kind])
    model, loading = AUTO[kind].from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    told = json.loads((tmp_path / "training.json").read_text())
    assert told["record"]["steps"] == 20
    assert told["model"]["parameters"] == model.num_parameters()
    losses = [value for name, value in told["record"].items() if name.endswith("_loss")]
    assert losses
    assert all(0 < loss < math.log(told["model"]["vocabulary"]) + 1 for loss in losses)


def test_the_encoder_is_meant_where_no_kind_is_named_and_a_wrong_kind_is_refused(capsys) -> None:
    program, settings, out = arguments(["--seed", "3"])
    assert (program.model, settings.seed, out) == ("demo", 3, folder())
    program, settings, out = arguments(["causal", "--share=0.5"])
    assert (program.model, settings.share, out) == ("demo-causal", 0.5, folder("demo-causal"))
    with pytest.raises(SystemExit):
        arguments(["painter"])
    assert "causal" in capsys.readouterr().err


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


def test_the_next_word_loss_is_the_mean_over_what_is_asked_for_in_each_kind_of_text() -> None:
    spelling = build_causal(["cat", "box", "red", "pen"], 64)
    settings = train_causal.Settings(
        hidden=12, layers=2, heads=3, key_heads=1, head_size=4, inner=8, spread=0.5
    )
    model = train_causal.new_model(settings, spelling)
    running = Passage(("red", "cat", "red", "pen", "box"))
    random = Passage(("cat", "box", "red", "cat", "box"), is_random=True)
    (group,) = train_causal.encode([running, random], spelling.get_vocab())
    found = train_causal.NextWord(model)(group.take(torch.tensor([0, 1])))
    rows = group.fields["ids"].long()
    surprise = -model(rows).logits.log_softmax(-1)
    each = [[surprise[row, at, rows[row, at + 1]].item() for at in range(6)] for row in (0, 1)]
    assert found["running"].item() == pytest.approx(sum(each[0]) / 6, abs=1e-5)
    assert found["random"].item() == pytest.approx(each[1][4], abs=1e-5)


def test_batches_hold_every_document_once_and_no_more_tokens_than_asked_for() -> None:
    groups = loop.group(({"ids": [1] * length} for length in [3] * 10 + [5] * 7), counted=("ids",))
    plan = loop.batches(groups, 12, random.Random(0))
    seen = {
        number: sorted(row for at, rows in plan if at == number for row in rows.tolist()) for number in (0, 1)
    }
    assert seen == {0: list(range(10)), 1: list(range(7))}
    assert max(len(rows) * groups[number].tokens for number, rows in plan) == 12
    assert [number for number, _ in plan] != sorted(number for number, _ in plan)


def test_documents_are_grouped_by_the_shape_of_all_counted_fields() -> None:
    rows = [{"ids": [1, 2], "labels": [5]}, {"ids": [3], "labels": [6, 7]}, {"ids": [4, 5], "labels": [8]}]
    groups = loop.group(rows, counted=("ids", "labels"))
    assert [group.fields["labels"].tolist() for group in groups] == [[[6, 7]], [[5], [8]]]
    assert [group.tokens for group in groups] == [3, 3]


def test_a_run_ends_with_its_steps_its_processor_time_or_its_patience() -> None:
    record = loop.Record(steps=5, cpu_seconds=60.0, seconds=90.0)
    assert record.spent(Settings(steps=10)) == 0.5
    assert record.spent(Settings(minutes=2, threads=1, patience=60)) == 0.5
    assert record.spent(Settings(minutes=60, patience=2)) == 0.75
