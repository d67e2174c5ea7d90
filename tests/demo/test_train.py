"""The training program on a tiny shape, heads that are relabelled, and runs of other seeds."""

import copy
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertForPreTraining,
    LlamaConfig,
    LlamaForCausalLM,
)

from attnscope.demo import folder
from attnscope.demo.train import causal as train_causal
from attnscope.demo.train import loop
from attnscope.demo.train.cards import seeds
from attnscope.demo.train.corpora import corpus
from attnscope.demo.train.corpora.next_word import Passage
from attnscope.demo.train.corruption import PRONOUNS, Corruption
from attnscope.demo.train.encoder import encode
from attnscope.demo.train.loop import Settings, rate
from attnscope.demo.train.permute import permute_grouped_heads, permute_heads, rows
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
    model = loop.new_llama(settings, spelling, corpus.LENGTH)
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


LAYERS, HEADS, SIZE = 2, 3, 4


@pytest.fixture
def model() -> BertForPreTraining:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30, hidden_size=HEADS * SIZE, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=20, max_position_embeddings=10, initializer_range=0.5, attn_implementation="eager",
    )  # fmt: skip
    return BertForPreTraining(config).eval()


@torch.no_grad()
def answers(model: BertForPreTraining) -> tuple[torch.Tensor, list[torch.Tensor]]:
    output = model(torch.arange(1, 8)[None], output_attentions=True)
    return output.prediction_logits, [weights[0] for weights in output.attentions]


def test_permuting_heads_leaves_the_function_unchanged_and_moves_the_attention(model) -> None:
    changed, order = copy.deepcopy(model), [2, 0, 1]
    permute_heads(changed, 1, order)
    (logits, attention), (new_logits, new_attention) = answers(model), answers(changed)
    torch.testing.assert_close(new_logits, logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(new_attention[1], attention[1][order])
    torch.testing.assert_close(new_attention[0], attention[0])
    assert not torch.allclose(attention[1], attention[1][order], atol=1e-3)


def test_permuting_only_the_queries_changes_the_function(model) -> None:
    changed = copy.deepcopy(model)
    query = changed.bert.encoder.layer[1].attention.self.query
    moved = rows([2, 0, 1], SIZE)
    with torch.no_grad():
        query.weight.copy_(query.weight[moved].clone())
        query.bias.copy_(query.bias[moved].clone())
    assert (answers(changed)[0] - answers(model)[0]).abs().max() > 1e-2


def test_what_is_not_an_order_of_the_heads_is_refused(model) -> None:
    with pytest.raises(ValueError, match="not an order of heads 0-2"):
        permute_heads(model, 0, [0, 1, 1])


@pytest.fixture
def llama() -> LlamaForCausalLM:
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=30, hidden_size=24, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=3,
        head_dim=8, intermediate_size=20, max_position_embeddings=10, initializer_range=0.4,
    )  # fmt: skip
    config._attn_implementation = "eager"
    return LlamaForCausalLM(config).eval()


def test_permuting_grouped_heads_leaves_the_function_unchanged_and_moves_the_attention(llama) -> None:
    changed, order, ids = copy.deepcopy(llama), [4, 5, 3, 2, 0, 1], torch.arange(1, 9)[None]
    permute_grouped_heads(changed, 1, order)
    with torch.no_grad():
        old, new = llama(ids, output_attentions=True), changed(ids, output_attentions=True)
    torch.testing.assert_close(new.logits, old.logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(new.attentions[1], old.attentions[1][:, order])
    assert not torch.allclose(new.attentions[1], old.attentions[1], atol=1e-3)


def test_query_heads_never_leave_the_ones_they_share_a_key_head_with(llama) -> None:
    with pytest.raises(ValueError, match="in 3 groups"):
        permute_grouped_heads(llama, 0, [0, 2, 1, 3, 4, 5])
    with pytest.raises(ValueError, match="not an order"):
        permute_grouped_heads(llama, 0, [0, 1, 0, 1, 4, 5])


SEED = 41  # no run has it


def scaled(value: Any) -> Any:
    """Every share of a run's figures, made smaller by a tenth."""
    if isinstance(value, dict):
        return {name: scaled(each) for name, each in value.items()}
    if isinstance(value, list):
        return [scaled(each) for each in value]
    return round(0.9 * value, 4) if isinstance(value, float) else value


def run_of(model: str, seed: int, where: Path) -> Path:
    """A folder as the training program leaves it, of another seed and with lower figures than the bundled."""
    run, figures = seeds.read(folder(f"demo-{model}"))
    run["settings"]["seed"] = seed
    figures.pop("other_seeds", None)
    (path := where / f"{model}-{seed}").mkdir()
    (path / "training.json").write_text(json.dumps(run))
    (path / "figures.json").write_text(json.dumps(scaled(figures)))
    return path


def bundled(model: str, where: Path) -> Path:
    """A copy of the bundled model's folder without its weights."""
    (path := where / "bundled").mkdir()
    for name in ("training.json", "figures.json", "README.md"):
        shutil.copy(folder(f"demo-{model}") / name, path)
    return path


def table(card: str) -> dict[int, list[str]]:
    """The rows of a card's table of runs by their seeds."""
    rows = re.search(r"^\| seed \|.*\n\|[-|]+\n((?:\|.*\n)+)", card, re.MULTILINE)
    assert rows
    cells = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in rows[1].splitlines()]
    return {int(row[0]): row[1:] for row in cells}


def test_a_finished_run_becomes_a_row_and_all_else_of_the_card_stays(tmp_path: Path) -> None:
    model = "reader"
    here, before = bundled(model, tmp_path), table((folder(f"demo-{model}") / "README.md").read_text())
    seeds.add(model, [run_of(model, SEED, tmp_path)], here)
    after = table((here / "README.md").read_text())
    assert [*after] == [*before, SEED]
    assert {seed: after[seed] for seed in before} == before
    assert after[SEED] != next(iter(before.values()))
    assert after[SEED][0] == next(iter(before.values()))[0]  # steps
    run, figures = seeds.read(here)
    own_run, own = seeds.read(folder(f"demo-{model}"))
    assert run == own_run
    assert {**figures, "other_seeds": None} == {**own, "other_seeds": None}


def test_a_reader_is_told_by_its_worst_trained_length_and_not_by_the_longest(tmp_path: Path) -> None:
    here, path = bundled("reader", tmp_path), run_of("reader", SEED, tmp_path)
    figures = json.loads((path / "figures.json").read_text())
    for length, right in zip((64, 128, 256, 512, 1024, 2048), (0.9, 0.8, 0.91, 0.92, 0.93, 0.2), strict=True):
        figures["new_names"][str(length)]["all"] = right
    (path / "figures.json").write_text(json.dumps(figures))
    seeds.add("reader", [path], here)
    row = table((here / "README.md").read_text())[SEED]
    assert (row[1], row[3]) == ("80.0%", "20.0%")


def test_the_bundled_seed_and_other_settings_are_refused_and_change_nothing(tmp_path: Path) -> None:
    own = seeds.read(folder("demo-speech"))
    other = copy.deepcopy(own)
    other[0]["settings"] |= {"seed": SEED, "steps": 7}
    with pytest.raises(ValueError, match=rf"^seed {SEED} was run with other settings: steps$"):
        seeds.added(own, [other], "speech")
    with pytest.raises(ValueError, match=r"^seed 0 is that of the bundled run$"):
        seeds.added(own, [own], "speech")


def test_a_folder_without_figures_is_one_line_and_leaves_the_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = bundled("caption", tmp_path)
    monkeypatch.setattr(seeds, "folder", lambda name: here)
    before = (here / "README.md").read_text()
    unfinished = run_of("caption", SEED, tmp_path)
    (unfinished / "figures.json").unlink()
    assert seeds.main(["caption", str(unfinished)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert (here / "README.md").read_text() == before
    whole = run_of("caption", SEED + 1, tmp_path)
    assert seeds.main(["caption", str(whole)]) == 0
    assert SEED + 1 in table((here / "README.md").read_text())
