"""The bundled translation model: its folder, its figures measured again, and the parts that measured them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

from attnscope.demo import folder
from attnscope.demo.train import command as train
from attnscope.demo.train.cards import translate as card_translate
from attnscope.demo.train.corpora import translation
from attnscope.demo.train.corpora.translation import EXAMPLES, Pair, written
from attnscope.demo.train.evaluation import alignment
from attnscope.demo.train.evaluation import translate as evaluate_translate
from attnscope.demo.train.evaluation.alignment import by_diagonal, by_offset, cross_weights, positions
from attnscope.demo.train.evaluation.translate import Dictionary
from attnscope.demo.train.permute import order_with
from attnscope.demo.train.translate import NOTHING, encode, permute_cross_heads

HERE = folder("demo-translate")
TINY = ("--steps=3", "--documents=300", "--hidden=24", "--inner=16", "--layers=1", "--heads=2", "--threads=1")
CAT = Pair(
    ("a", "black", "cat", "slept", "."),
    ("un", "chat", "noir", "a", "dormi", "."),
    ((0,), (2,), (1,), (3,), (3,), (4,)),
    ("", "noun", "adjective", "", "", ""),
)


@pytest.fixture(scope="module")
def bundle() -> evaluate_translate.Bundle:
    return evaluate_translate.Bundle(HERE)


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return json.loads((HERE / "figures.json").read_text())


def test_the_folder_is_at_most_four_megabytes_and_holds_what_hugging_face_expects() -> None:
    files = {file.name: file.stat().st_size for file in HERE.iterdir()}
    assert sum(files.values()) <= 4_000_000
    assert files.keys() >= {
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
        "tokenizer_config.json", "README.md",
    }  # fmt: skip


def test_the_model_loads_with_no_key_missing_or_left_over() -> None:
    model, loading = AutoModelForSeq2SeqLM.from_pretrained(HERE, output_loading_info=True)
    assert not any(loading[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    config = AutoConfig.from_pretrained(HERE)
    assert config.encoder_layers > 3
    assert config.decoder_layers > 3
    assert config.encoder_attention_heads == config.decoder_attention_heads == 12
    assert config.vocab_size == len(AutoTokenizer.from_pretrained(HERE))
    table = model.get_input_embeddings().weight
    assert table is model.get_output_embeddings().weight
    assert model.dtype == torch.float32


def test_plain_generate_translates_one_sentence_exactly() -> None:
    tokenizer, model = AutoTokenizer.from_pretrained(HERE), AutoModelForSeq2SeqLM.from_pretrained(HERE)
    rows = model.generate(**tokenizer("The black cat is sleeping in the green garden.", return_tensors="pt"))
    assert rows[0, 0] == tokenizer.bos_token_id
    assert rows[0, -1] == tokenizer.eos_token_id
    said = tokenizer.decode(rows[0], skip_special_tokens=True)
    assert said == "le chat noir dort dans le jardin vert."


@pytest.mark.parametrize(("english", "french"), EXAMPLES.items())
def test_the_example_comes_out_right(bundle, english: str, french: str) -> None:
    assert bundle.translate(english) == french


def test_padding_changes_no_translation(bundle) -> None:
    texts = list(EXAMPLES)
    batch = bundle.tokenizer(texts, return_tensors="pt", padding=True)
    said = bundle.tokenizer.batch_decode(bundle.model.generate(**batch), skip_special_tokens=True)
    assert said == [bundle.translate(text) for text in texts]


def test_held_out_sentences_are_translated_as_well_as_the_card_says(bundle, told) -> None:
    pairs = translation.held_out_sentences(seed=77, count=200)
    assert evaluate_translate.exact(bundle, pairs) == pytest.approx(told["translations"]["model"], abs=0.04)


def test_new_pairs_of_adjective_and_noun_are_translated_as_well_as_the_card_says(bundle, told) -> None:
    figures = evaluate_translate.paired(bundle, count=80)
    assert figures["pairs"] == told["paired"]["pairs"]
    assert figures["model"] == pytest.approx(told["paired"]["model"], abs=0.03)


def test_the_figures_of_head_11_come_out_again_on_fewer_sentences(bundle, told) -> None:
    measured = evaluate_translate.heads(bundle, count=40)
    for words in alignment.WORDS:
        assert measured[words].keys() == told["heads"][words].keys()
        for row in alignment.ROWS:
            head, said = measured[words][f"{row}_l3_h11"], told["heads"][words][f"{row}_l3_h11"]
            assert head["found"] == pytest.approx(said["found"], abs=0.1), (words, row)
            assert head["weight"] == pytest.approx(said["weight"], abs=0.1), (words, row)
        assert measured[words]["next_best"]["layer"] == told["heads"][words]["next_best"]["layer"]


def test_head_11_is_the_best_of_layer_3_on_the_selection_set(bundle) -> None:
    items = translation.held_out_sentences(alignment.SELECTION, 60)
    report = alignment.look(bundle.model, bundle.tokenizer, items)
    assert int(report.found["next"]["all"][3].argmax()) == 11


def test_the_figures_say_that_the_model_does_more_than_the_rules(told) -> None:
    words = told["translations"]
    assert words["model"] > 0.95
    assert words["model"] > words["neighbours"] > words["alone"]
    for kind in alignment.WORDS:
        heads = told["heads"][kind]
        assert heads["next_best"]["found"] > max(heads["offset_found"], heads["diagonal_found"])


def test_the_card_is_the_one_that_its_figures_give_and_names_no_machine() -> None:
    run, figures = (json.loads((HERE / name).read_text()) for name in ("training.json", "figures.json"))
    text = (HERE / "README.md").read_text()
    assert text == card_translate.text(run, figures)
    assert "/" + "work" not in text
    assert "/" + "tmp" not in text


def test_the_bundled_vocabulary_is_that_of_the_stream() -> None:
    known = AutoTokenizer.from_pretrained(HERE).get_vocab()
    words = {word for pair in translation.documents(0, 3000) for word in pair.english + pair.french}
    assert words <= known.keys()


def test_swapped_words_are_found_in_the_alignment() -> None:
    assert positions(CAT, "swapped") == [1, 2]
    assert positions(CAT, "all") == [0, 1, 2, 3, 4, 5]
    straight = Pair(("cat", "sleeps"), ("chat", "dort"), ((0,), (1,)), ("noun", ""))
    assert positions(straight, "swapped") == []


def test_the_counting_rules_are_right_as_often_as_by_hand() -> None:
    assert by_offset([CAT], "all", 0) == pytest.approx(2 / 6)  # "un" and "a"
    assert by_offset([CAT], "swapped", 1) == pytest.approx(1 / 2)  # "chat": cat
    # un: 0, chat: 0.8 -> 1, noir: 1.6 -> 2, a: 2.4 -> 2, dormi: 3.2 -> 3, stop: 4
    assert by_diagonal([CAT], "all") == pytest.approx(3 / 6)


def test_found_shares_are_those_of_a_slow_loop(bundle) -> None:
    pairs = translation.held_out_sentences(seed=5, count=6)
    report = alignment.look(bundle.model, bundle.tokenizer, pairs)
    layer, head = 2, 7
    for row, behind in (("word", 1), ("next", 0)):
        hits = total = 0
        for pair in pairs:
            weights = cross_weights(bundle.model, bundle.tokenizer, pair)[layer, head].tolist()
            for index, places in enumerate(pair.sources):
                if places:
                    looking = weights[index + behind]
                    hits += max(range(len(looking)), key=looking.__getitem__) in places
                    total += 1
        assert report.found[row]["all"][layer, head].item() == pytest.approx(hits / total)


def test_cross_weights_have_a_row_per_french_token_and_a_column_per_english_one(bundle) -> None:
    weights = cross_weights(bundle.model, bundle.tokenizer, CAT)
    assert weights.shape == (4, 12, 7, 6)
    assert torch.allclose(weights.sum(-1), torch.ones(4, 12, 7), atol=1e-5)


def test_exchanging_heads_changes_their_maps_and_not_the_function(bundle) -> None:
    model = AutoModelForSeq2SeqLM.from_pretrained(HERE, attn_implementation="eager").eval()
    before = cross_weights(model, bundle.tokenizer, CAT)
    permute_cross_heads(model, 3, order_with(2, 11, 12))
    after = cross_weights(model, bundle.tokenizer, CAT)
    assert torch.allclose(after[3, 11], before[3, 2], atol=1e-5)
    assert torch.allclose(after[3, 2], before[3, 11], atol=1e-5)
    assert not torch.allclose(after[3, 11], before[3, 11], atol=1e-2)
    ids = bundle.tokenizer(written(CAT.english), text_target=written(CAT.french), return_tensors="pt")
    with torch.no_grad():
        old, new = (each(input_ids=ids["input_ids"], labels=ids["labels"]) for each in (bundle.model, model))
    assert torch.allclose(old.logits, new.logits, atol=1e-4)


def test_the_dictionary_says_the_commonest_word_in_the_english_order() -> None:
    other = Pair(("the", "black", "door"), ("la", "porte", "noire"), ((0,), (2,), (1,)), ("", "noun", ""))
    words = Dictionary([CAT, CAT, other])
    assert words.translate(("a", "black", "cat", "slept", "."), neighbours=False) == "un noir chat a dormi."
    assert words.translate(("the", "black", "door"), neighbours=False) == "la noir porte"
    assert words.translate(("the", "black", "door"), neighbours=True) == "la noire porte"


def test_pairs_become_rows_whose_padding_is_never_scored() -> None:
    names = ["[PAD]", "[UNK]", "[BOS]", "[EOS]", *sorted({*CAT.english, *CAT.french})]
    ids = {name: index for index, name in enumerate(names)}
    (one,) = encode([CAT], ids)
    french = [ids[word] for word in CAT.french]
    assert one.fields["source"].tolist() == [[*(ids[word] for word in CAT.english), 3]]
    assert one.fields["target"].tolist() == [[2, *french, 0]]
    assert one.fields["labels"].tolist() == [[*french, 3, NOTHING]]
    assert one.tokens == 6 + 8


def test_the_program_trains_a_tiny_translator_that_transformers_loads(tmp_path: Path) -> None:
    assert train.main(["translate", "--out", str(tmp_path), *TINY]) == 0
    _, loading = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"]
    run = json.loads((tmp_path / "training.json").read_text())
    assert run["record"]["steps"] == 3
    assert run["record"]["stream"] == translation.digest(translation.documents(0, 300))
    assert run["model"]["old_head"] == -1


@pytest.mark.parametrize(
    ("english", "french"),
    [
        ("We bought two Italian lamps yesterday.", "nous avons acheté deux lampes italiennes hier."),
        ("She does not sleep.", "elle ne dort pas."),
        ("SHE DOESN'T SLEEP.", "elle ne dort pas."),
        (
            "The red door of the house was not very dirty.",
            "la porte rouge de la maison n'était pas très sale.",
        ),
        ("There is no cold water in the kitchen.", "il n'y a pas d'eau froide dans la cuisine."),
        ("I am going to the supermarket.", "je vais au supermarché."),
        ("I'm tired.", "je suis fatigué."),
        ("The king's dog was barking.", "le chien du roi aboyait."),
        ("The queen gave the boy a blue book.", "la reine a donné un livre bleu au garçon."),
        ("When the bell rang, the black dog barked.", "quand la cloche a sonné, le chien noir a aboyé."),
        ("The white lamp was broken. It fell.", "la lampe blanche était cassée. elle est tombée."),
    ],
)
def test_every_kind_of_sentence_that_the_card_names_is_understood(bundle, english: str, french: str) -> None:
    assert bundle.translate(english) == french
