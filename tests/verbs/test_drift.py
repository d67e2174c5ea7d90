"""What a tuning changed: each figure beside a plain script's, planted heads found first, refusals."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import bert_config, save
from planted import tuned
from transformers import AutoTokenizer, BertForMaskedLM, BertModel, LlamaConfig, LlamaForCausalLM

import attnscope as at
from attnscope import demo
from attnscope.errors import CertificateError
from attnscope.verbs.compare.texts_result import Drift
from attnscope.verbs.compare.texts_result import DriftCase as Case

TEXTS = ("The door was open.", "She gave the boy a book in the garden.", "I was watching it when it ran.")
LAYER, HEAD, SIZE = 2, 1, 6


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(demo.folder())


@pytest.fixture(scope="module")
def model() -> BertForMaskedLM:
    torch.manual_seed(3)
    return BertForMaskedLM(bert_config(initializer_range=0.3, attn_implementation="eager")).eval()


@pytest.fixture(scope="module")
def other(model: BertForMaskedLM) -> BertForMaskedLM:
    return tuned(model, LAYER, HEAD, 0.8)


@pytest.fixture(scope="module")
def drift(model, other, tokenizer) -> Drift:
    return at.wrap(model, tokenizer).compare(at.wrap(other, tokenizer), TEXTS)


def seen(module, ids):
    """All that a BERT returns, and by layer what its heads hand to the output projection."""
    outputs = []
    hooks = [
        layer.attention.output.dense.register_forward_pre_hook(lambda _, args: outputs.append(args[0][0]))
        for layer in module.bert.encoder.layer
    ]
    with torch.no_grad():
        made = module(**ids, output_attentions=True, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    return made, outputs


def apart(a: torch.Tensor, b: torch.Tensor) -> np.ndarray:
    return ((a.double() - b.double()).abs().sum(-1) / 2).mean(-1)[0].numpy()


def test_a_head_moves_by_the_weight_that_goes_to_other_keys(drift, model, other, tokenizer) -> None:
    for number, text in enumerate(TEXTS):
        ids = tokenizer(text, return_tensors="pt")
        old, new = seen(model, ids)[0].attentions, seen(other, ids)[0].attentions
        plain = np.stack([apart(a, b) for a, b in zip(old, new, strict=True)])
        assert drift.moved[number] == pytest.approx(plain, abs=1e-6)
    assert drift.mean == pytest.approx(drift.moved.mean(0))
    assert drift.names == ("BertForMaskedLM",) * 2
    assert (drift.layers, drift.heads) == ((0, 1, 2, 3, 4), (0, 1, 2, 3))


def test_what_a_head_does_by_itself_is_its_layer_on_what_the_old_one_read(
    drift, model, other, tokenizer
) -> None:
    ids = tokenizer(TEXTS[1], return_tensors="pt")
    made, outputs = seen(model, ids)
    layer, rows = other.bert.encoder.layer[LAYER], slice(HEAD * SIZE, HEAD * SIZE + SIZE)
    kept, weights = [], []
    first = layer.attention.output.dense.register_forward_pre_hook(lambda _, args: kept.append(args[0][0]))
    second = layer.attention.self.register_forward_hook(lambda _m, _i, out: weights.append(out[1]))
    with torch.no_grad():
        layer(made.hidden_states[LAYER])
    first.remove(), second.remove()
    own = apart(made.attentions[LAYER], weights[0])
    assert drift.own[1, LAYER] == pytest.approx(own, abs=1e-6)
    dense = layer.attention.output.dense.weight[:, rows].double()
    change = (kept[0][:, rows] - outputs[LAYER][:, rows]).double() @ dense.T
    before = outputs[LAYER][:, rows].double() @ dense.T
    share = float((change.norm() / before.norm()).detach())
    assert drift.written[1, LAYER, HEAD] == pytest.approx(share, rel=1e-4)


def test_heads_that_only_hear_of_a_change_do_nothing_by_themselves(drift) -> None:
    others = [(i, j) for i, j in np.ndindex(5, 4) if (i, j) != (LAYER, HEAD)]
    assert drift.moved[:, LAYER + 1 :].min() > 0
    every = [each[(slice(None), *place)] for each in (drift.own, drift.written) for place in others]
    assert not np.any(every)
    assert (drift.touched, drift.ranking[0]) == (((LAYER, HEAD),), (LAYER, HEAD))
    assert not drift.moved[:, :LAYER].any()


def test_a_head_that_writes_otherwise_and_looks_alike_is_named(model, tokenizer) -> None:
    other = tuned(model, LAYER, HEAD, 0.8, parts=("value",))
    drift = at.wrap(model, tokenizer).compare(at.wrap(other, tokenizer), TEXTS)
    assert not drift.moved[:, LAYER].any() | drift.own.any()
    assert drift.touched == ((LAYER, HEAD),)
    assert drift.means["written"][LAYER, HEAD] > 0.2
    assert f"L{LAYER} H{HEAD} looks at the same tokens" in " ".join(str(drift).split())


def test_the_floor_is_the_old_model_in_another_precision(drift, model, tokenizer) -> None:
    rounded = copy.deepcopy(model).to(torch.bfloat16)
    ids = tokenizer(TEXTS[0], return_tensors="pt")
    pairs = zip(seen(model, ids)[0].attentions, seen(rounded, ids)[0].attentions, strict=True)
    plain = np.stack([apart(a, b) for a, b in pairs])
    assert (drift.floor_by, drift.floor.min() > 0) == ("bfloat16", True)
    assert drift.floor[0] == pytest.approx(plain, abs=1e-3)
    assert (LAYER, HEAD) in drift.beyond
    loudest = plain.max()
    assert drift.louder[0].tolist() == [0] * 4
    assert drift.loudest[0] == pytest.approx(loudest, abs=1e-3)


def test_the_old_model_in_that_precision_is_within_the_floor(model, tokenizer) -> None:
    rounded = copy.deepcopy(model).to(torch.bfloat16)
    drift = at.wrap(model, tokenizer).compare(at.wrap(rounded, tokenizer), TEXTS)
    assert (drift.case, len(drift.beyond)) == (Case.WITHIN, 0)


def test_nothing_changed_is_said_so(model, tokenizer) -> None:
    drift = at.wrap(model, tokenizer).compare(at.wrap(model, tokenizer), TEXTS, fail_above=0.0)
    assert (drift.case, drift.exceeding, drift.put_back) == (Case.SAME, (), None)
    assert (drift.answers.tolist(), drift.answers_differ) == ([0.0] * 3, False)
    assert str(drift).startswith("Nothing changed: each of 20 heads")


def test_answers_that_differ_are_said_first_where_no_head_changed(model, tokenizer) -> None:
    other = copy.deepcopy(model)
    for weight in other.bert.encoder.layer[4].output.dense.parameters():
        weight.data *= -3
    drift = at.wrap(model, tokenizer).compare(at.wrap(other, tokenizer), TEXTS, fail_above=0.01)
    assert (drift.case, drift.exceeding, drift.put_back) == (Case.SAME, (), None)
    ids = tokenizer(TEXTS[2], return_tensors="pt")
    with torch.no_grad():
        old, new = (each(**ids).logits[0].double().log_softmax(-1) for each in (model, other))
    assert drift.answers[2] == pytest.approx(float((old.exp() * (old - new)).sum(-1).mean()), rel=1e-4)
    assert drift.answers_differ
    told = " ".join(str(drift).split())
    assert told.startswith("A and B ")
    assert "each of 20 heads looks the same" in told
    assert "Nothing changed" not in told


@pytest.mark.parametrize("sides", ["new", "old"])
def test_a_model_that_gives_no_numbers_on_one_text_fails_the_gate_with_its_name(
    model, tokenizer, sides: str
) -> None:
    bad = copy.deepcopy(model)  # where only a text of at least eight tokens comes
    bad.bert.embeddings.position_embeddings.weight.data[7] = float("nan")
    first, second = (model if sides == "new" else bad), (model if sides == "old" else bad)
    with pytest.raises(CertificateError, match=r"text 2: model [AB] .* gives no numbers in L0 H0"):
        at.wrap(first, tokenizer).compare(at.wrap(second, tokenizer), TEXTS, fail_above=0.01)
    short = TEXTS[:1]
    assert at.wrap(first, tokenizer).compare(at.wrap(second, tokenizer), short).case is Case.SAME


def test_numbers_that_are_none_behind_the_last_attention_fail_the_gate(model, tokenizer) -> None:
    bad = copy.deepcopy(model)
    bad.cls.predictions.transform.dense.weight.data[0, 0] = float("nan")
    with pytest.raises(CertificateError, match=r"text 1: model B .* gives no numbers as its answer"):
        at.wrap(model, tokenizer).compare(at.wrap(bad, tokenizer), TEXTS, fail_above=0.01)


def test_a_head_that_wrote_nothing_and_writes_something_has_changed(model, tokenizer) -> None:
    silent = copy.deepcopy(model)
    values, rows = (
        silent.bert.encoder.layer[LAYER].attention.self.value,
        slice(HEAD * SIZE, HEAD * SIZE + SIZE),
    )
    values.weight.data[rows], values.bias.data[rows] = 0, 0
    drift = at.wrap(silent, tokenizer).compare(at.wrap(model, tokenizer), TEXTS[:1])
    assert np.isinf(drift.means["written"][LAYER, HEAD])
    assert drift.touched == ((LAYER, HEAD),)
    alike = at.wrap(silent, tokenizer).compare(at.wrap(silent, tokenizer), TEXTS[:1])
    assert (alike.case, alike.means["written"][LAYER, HEAD]) == (Case.SAME, 0)


def test_models_that_choose_among_other_answers_say_so(model, tokenizer) -> None:
    other = copy.deepcopy(model)
    other.resize_token_embeddings(len(tokenizer) + 3, mean_resizing=False)
    drift = at.wrap(model, tokenizer).compare(at.wrap(other, tokenizer), TEXTS[:1])
    assert (drift.answers_differ, drift.answers_by) == (None, "")
    told = " ".join(str(drift).split())
    assert "the models choose their answers" in told
    assert "Nothing changed" not in told


def test_putting_the_old_head_back_is_done_as_by_hand(drift, model, other, tokenizer) -> None:
    back = drift.put_back
    assert back is not None
    assert back.heads[0] == (LAYER, HEAD)
    place = back.texts.index(1)
    ids = tokenizer(TEXTS[1], return_tensors="pt")
    old, outputs = seen(model, ids)
    rows = slice(HEAD * SIZE, HEAD * SIZE + SIZE)

    def put(_, args):
        new = args[0].clone()
        new[0, :, rows] = outputs[LAYER][:, rows]
        return (new,)

    def far(logits: torch.Tensor) -> float:
        before, after = (each[0].double().log_softmax(-1) for each in (old.logits, logits))
        return float((before.exp() * (before - after)).sum(-1).mean())

    dense = other.bert.encoder.layer[LAYER].attention.output.dense
    with torch.no_grad():
        untouched = other(**ids).logits
        hook = dense.register_forward_pre_hook(put)
        changed = other(**ids).logits
        hook.remove()
    assert back.tuned[place] == pytest.approx(far(untouched), rel=1e-3)
    assert back.alone[0, place] == pytest.approx(far(changed), abs=1e-6)
    assert back.restored[0] == pytest.approx(1, abs=1e-3)  # nothing else was changed
    assert abs(back.restored_by_others[0]) < 0.5
    rounded = copy.deepcopy(model).to(torch.bfloat16)
    with torch.no_grad():
        assert drift.answers_floor[1] == pytest.approx(far(rounded(**ids).logits), rel=0.05)
    assert drift.answers[1] == pytest.approx(far(untouched), rel=1e-3)
    assert drift.answers_differ


def test_a_model_without_a_head_is_asked_for_its_vector(model, other, tokenizer) -> None:
    bodies = []
    for each in (model, other):
        body = BertModel(each.config, add_pooling_layer=False).eval()
        body.load_state_dict(each.bert.state_dict())
        bodies.append(body)
    drift = at.wrap(bodies[0], tokenizer).compare(at.wrap(bodies[1], tokenizer), TEXTS[:1])
    assert drift.put_back is not None
    assert drift.answers_by == "1 less the cosine of both vectors"
    ids = tokenizer(TEXTS[0], return_tensors="pt")
    with torch.no_grad():
        a, b = (each(**ids).last_hidden_state[0].double().mean(0) for each in bodies)
    assert drift.put_back.tuned[0] == pytest.approx(1 - float(torch.cosine_similarity(a, b, dim=0)), rel=1e-3)
    assert np.isnan(drift.low).all()


def test_a_translator_is_compared_over_the_target_of_the_old_model() -> None:
    model, other = at.load("demo-translate"), at.load("demo-translate")
    site = other.module.get_decoder().layers[1].encoder_attn.q_proj
    size = site.out_features // other.module.config.decoder_attention_heads
    site.weight.data[2 * size : 3 * size] *= -1
    drift = model.compare(other, ["the man sees the dog"], kind="cross")
    assert (drift.ranking[0], drift.touched, drift.kind) == ((1, 2), ((1, 2),), "cross")


def test_grouped_keys_of_a_causal_model_move_the_heads_that_share_them(tokenizer) -> None:
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=48, initializer_range=0.3,
    )  # fmt: skip
    first, second = LlamaForCausalLM(config).eval(), LlamaForCausalLM(config).eval()
    second.load_state_dict(first.state_dict())
    second.model.layers[1].self_attn.k_proj.weight.data[8:] *= 1.5
    drift = at.wrap(first, tokenizer).compare(at.wrap(second, tokenizer), TEXTS)
    assert {*(drift.touched or ())} == {(1, 2), (1, 3)}
    assert drift.put_back is not None
    assert drift.moved[:, 0].max() == 0


def test_models_of_two_shapes_are_refused_in_one_line(model, tokenizer) -> None:
    for changes, told in (
        (
            {"num_hidden_layers": 4},
            "encoder layers 0-4 and heads 0-3, BertForMaskedLM encoder layers 0-3 and",
        ),
        ({"num_attention_heads": 8}, "heads 0-7: what a tuning changed is asked of models of one shape"),
    ):
        other = BertForMaskedLM(bert_config(**changes))
        with pytest.raises(at.AttnscopeError, match=told):
            at.wrap(model, tokenizer).compare(at.wrap(other, tokenizer), TEXTS)


def test_models_that_read_other_tokens_are_refused_by_the_line(model, tokenizer, tmp_path: Path) -> None:
    folder = save(model, tmp_path / "other")
    file = folder / "tokenizer.json"
    file.write_text(file.read_text().replace('"door"', '"doorx"'))
    with pytest.raises(at.AttnscopeError, match=r"text 1: the models (read other tokens|cut it into)"):
        at.wrap(model, tokenizer).compare(folder, TEXTS)


def test_a_limit_lies_between_0_and_1_and_there_is_a_text(model, tokenizer) -> None:
    wrapped = at.wrap(model, tokenizer)
    for texts, limit in ((TEXTS, -0.1), (TEXTS, 1.5), (TEXTS, float("nan")), ([], None)):
        with pytest.raises(at.AttnscopeError, match=r"no text|how far a head moves lies between 0 and 1"):
            wrapped.compare(wrapped, texts, fail_above=limit)
