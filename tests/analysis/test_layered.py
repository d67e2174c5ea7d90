"""The logit lens, beside hidden states read by the parts of each model by their names."""

from collections.abc import Callable
from typing import Any

import made_results as made
import pytest
import torch
import transformers as hf
from torch import Tensor

from attnscope.analysis.layered import layered_places, probabilities_of
from attnscope.capture.intervening.changes import AnswerRows
from attnscope.capture.layer_answers import EMBEDDINGS, answers_by_layer
from attnscope.errors import InputError

_SIZES = {
    "num_hidden_layers": 3, "num_attention_heads": 2, "hidden_size": 12, "intermediate_size": 20,
    "vocab_size": 31, "max_position_embeddings": 16, "pad_token_id": 0,
}  # fmt: skip
IDS = torch.tensor([[4, 9, 17, 23, 5, 30, 11]])


def _bert() -> Any:
    return hf.BertForMaskedLM(hf.BertConfig(**_SIZES))


def _albert() -> Any:
    return hf.AlbertForMaskedLM(hf.AlbertConfig(**_SIZES, embedding_size=8))


def _gpt2() -> Any:
    return hf.GPT2LMHeadModel(hf.GPT2Config(n_layer=3, n_head=2, n_embd=12, vocab_size=31, n_positions=16))


def _llama() -> Any:
    return hf.LlamaForCausalLM(hf.LlamaConfig(**_SIZES, num_key_value_heads=1))


def _class() -> Any:
    return hf.DistilBertForSequenceClassification(
        hf.DistilBertConfig(n_layers=3, n_heads=2, dim=12, hidden_dim=20, vocab_size=31, num_labels=4)
    )


# what reads a hidden state in each: what stands behind the last layer, by its names
READ: dict[Callable[[], Any], Callable[[Any, Tensor], Tensor]] = {
    _bert: lambda model, state: model.cls(state),
    _albert: lambda model, state: model.predictions(state),
    _gpt2: lambda model, state: model.lm_head(model.transformer.ln_f(state)),
    _llama: lambda model, state: model.lm_head(model.model.norm(state)),
    _class: lambda model, state: model.classifier(torch.relu(model.pre_classifier(state[:, 0])))[:, None],
}


def _sharpened(make: Callable[[], Any]) -> Any:
    torch.manual_seed(3)
    model = make().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.4)
    return model


def _states(model: Any) -> tuple[list[Tensor], Tensor]:
    """What enters the first layer and leaves each, by transformers' own account; and the logits."""
    with torch.no_grad():
        output = model(IDS, output_hidden_states=True)
    return list(output.hidden_states), output.logits


@pytest.mark.parametrize("make", READ, ids=lambda make: make.__name__)
def test_every_layer_is_read_as_the_parts_behind_the_last_one_read_it(make: Callable[[], Any]) -> None:
    model = _sharpened(make)
    positions: list[int | None] = [None] if make is _class else [2, 5]
    states, logits = _states(model)
    places, read_back = layered_places(model, {"input_ids": IDS}, positions, made.provenance(), str)
    assert read_back < 1e-5
    with torch.no_grad():  # the last state may be normed already: it stands in `logits`
        read = [READ[make](model, state) for state in states[:-1]]
    expected = [*read, logits[:, None] if make is _class else logits]
    layers = [each.layer for each in places[0].layers]
    assert layers == [EMBEDDINGS, 0, 1, 2]
    for i, place in enumerate(places):
        at = 0 if make is _class else positions[i]
        own = torch.softmax(expected[-1][0, at].double(), -1)
        assert place.answer.id == int(own.argmax())
        for seen, state in zip(place.layers, expected, strict=True):
            chances = torch.softmax(state[0, at].double(), -1)
            assert seen.best.id == int(chances.argmax())
            assert seen.probability == pytest.approx(float(chances[own.argmax()]), abs=1e-6)
            assert seen.rank == 1 + int((chances > chances[own.argmax()]).sum())
            assert seen.apart == pytest.approx(float((chances - own).abs().sum()) / 2, abs=1e-6)
    held = probabilities_of(
        model, {"input_ids": IDS}, positions, made.provenance(), [place.answer.id for place in places]
    )
    assert held.shape == (4, len(places))
    assert float(held[1, 0]) == pytest.approx(places[0].layers[1].probability, abs=1e-9)


class _Peeks(hf.BertForMaskedLM):  # type: ignore[misc]
    """A head that reads the first layer as well as the last."""

    def forward(self, input_ids: Tensor) -> Any:
        seen = self.bert(input_ids, output_hidden_states=True)
        return {"logits": self.cls(seen.last_hidden_state + seen.hidden_states[1])}


def test_a_head_that_reads_more_than_the_last_layer_is_refused() -> None:
    model = _sharpened(lambda: _Peeks(hf.BertConfig(**_SIZES)))
    with pytest.raises(InputError, match="reads more than what its last layer leaves"):
        layered_places(model, {"input_ids": IDS}, [3], made.provenance(), str)


def test_layers_of_several_shapes_are_refused() -> None:
    config = hf.SwinConfig(
        image_size=16,
        patch_size=2,
        embed_dim=8,
        depths=[1] * 3,
        num_heads=[1] * 3,
        window_size=2,
        num_labels=3,
    )
    model = hf.SwinForImageClassification(config).eval()
    asked = AnswerRows(lambda out: out.logits[:, None], (0,), 1)
    with pytest.raises(InputError, match="several shapes"):
        answers_by_layer(model, {"pixel_values": torch.randn(1, 3, 16, 16)}, asked)


def test_the_model_is_left_as_it_was() -> None:
    model = _sharpened(_gpt2)
    before, hooks = _states(model)[1], _hooks(model)
    layered_places(model, {"input_ids": IDS}, [6], made.provenance(), str)
    assert torch.equal(_states(model)[1], before)
    assert _hooks(model) == hooks


def _hooks(model: Any) -> int:
    return sum(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules())


def test_many_layers_are_read_in_several_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    model = _sharpened(_llama)
    whole, _ = layered_places(model, {"input_ids": IDS}, [4], made.provenance(), str)
    monkeypatch.setattr("attnscope.capture.layer_answers._MOST", 31 * 2)
    parts, _ = layered_places(model, {"input_ids": IDS}, [4], made.provenance(), str)
    for one, other in zip(whole[0].layers, parts[0].layers, strict=True):
        assert one.best.id == other.best.id
        assert one.probability == pytest.approx(other.probability, abs=1e-6)
