"""The bundled speech model: its folder, its figures measured again on fewer clips, and what measured them."""

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForSpeechSeq2Seq, AutoProcessor, AutoTokenizer

from attnscope import demo
from attnscope.demo import folder
from attnscope.demo.train import command as train
from attnscope.demo.train import speech
from attnscope.demo.train.cards import speech as card
from attnscope.demo.train.evaluation import speech as evaluate
from attnscope.demo.train.evaluation import timing
from attnscope.demo.train.evaluation.speech import distance, evaluated
from attnscope.demo.train.sound import spelling
from attnscope.demo.train.sound.clips import Clip, Kind

HERE = folder("demo-speech")
TINY = ("--steps=5", "--batch=2", "--hidden=24", "--inner=16", "--encoder-layers=1", "--decoder-layers=1")


def samples(path: Path) -> np.ndarray:
    """The samples of a sound of one channel in 16 bits."""
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


@pytest.fixture(scope="module")
def bundle() -> evaluate.Bundle:
    return evaluate.Bundle(HERE)


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return json.loads((HERE / "figures.json").read_text())


def test_the_folder_is_at_most_1_4_megabytes_and_anybody_may_read_it() -> None:
    files = {file.name: file.stat() for file in HERE.iterdir()}
    assert sum(each.st_size for each in files.values()) <= 1_400_000
    assert all(each.st_mode & 0o444 == 0o444 for each in files.values())
    assert files.keys() >= {
        "config.json", "generation_config.json", "model.safetensors", "preprocessor_config.json",
        "tokenizer.json", "tokenizer_config.json", "README.md", "example.wav",
    }  # fmt: skip


def test_the_model_loads_as_it_is_with_no_key_missing_or_left_over() -> None:
    model, loading = AutoModelForSpeechSeq2Seq.from_pretrained(HERE, output_loading_info=True)
    assert not any(loading[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    config = AutoConfig.from_pretrained(HERE)
    assert config.vocab_size == len(AutoTokenizer.from_pretrained(HERE))
    assert config.max_source_positions == spelling.POSITIONS
    assert model.dtype == torch.float16


def test_plain_transformers_writes_what_is_spoken_in_the_example(told) -> None:
    assert demo.example("demo-speech") == HERE / "example.wav"
    sound = samples(HERE / "example.wav") / 32768
    processor = AutoProcessor.from_pretrained(HERE)
    model = AutoModelForSpeechSeq2Seq.from_pretrained(HERE, dtype=torch.float32)
    heard = processor(sound, sampling_rate=16_000, return_tensors="pt").input_features
    said = processor.batch_decode(model.generate(input_features=heard), skip_special_tokens=True)
    assert said == [told["example"]["written"]] == [told["example"]["spoken"]]


def test_held_out_clips_come_out_as_well_as_the_card_says(bundle, told) -> None:
    """Clips that no figure of the card was measured on."""
    again = evaluate.errors(bundle, evaluated("reported", 60, first=50_000))
    assert again["word_error"] == pytest.approx(told["known"]["word_error"], abs=0.04)
    new = evaluate.errors(bundle, evaluated("reported", 40, Kind(new=True), first=60_000))
    assert new["word_error"] == pytest.approx(told["new"]["word_error"], abs=0.05)


def test_the_figures_say_that_at_least_95_percent_of_words_are_right_and_that_noise_harms(told) -> None:
    assert told["known"]["word_error"] <= 0.05
    assert told["new"]["word_error"] <= 0.05
    assert told["noise"]["0"] > told["noise"]["10"] >= told["noise"]["30"]


def test_the_best_head_is_found_again_where_the_card_says_it_looks(bundle, told) -> None:
    clips, said = evaluated("reported", 30, first=70_000), told["alignment"]
    looked = timing.look(bundle.cross_weights, clips)
    for row in ("writes", "reads_next"):
        one = looked[row]
        layer, head = said[row]["layer"], said[row]["head"]
        assert 1000 * one.peak[layer, head].item() == pytest.approx(said[row]["peak_ms"], abs=10)
        assert one.share[layer, head].item() == pytest.approx(said[row]["share"], abs=0.08)
    assert 1000 * timing.by_diagonal(clips) == pytest.approx(said["diagonal_ms"], abs=25)


def test_the_row_that_writes_a_syllable_points_at_it_and_the_row_that_reads_it_at_the_next(told) -> None:
    found = told["alignment"]
    assert found["writes"]["peak_ms"] < found["position_ms"]
    assert found["reads_next"]["peak_ms"] < found["position_ms"]
    assert found["reads"]["peak_ms"] > found["diagonal_ms"] > 3 * found["writes"]["peak_ms"]
    assert found["sounded_ms"] < found["diagonal_ms"]


def test_the_card_is_the_one_that_its_figures_give_and_names_no_machine() -> None:
    run, figures = (json.loads((HERE / name).read_text()) for name in ("training.json", "figures.json"))
    text = (HERE / "README.md").read_text()
    assert text == card.text(run, figures)
    assert "/" + "work" not in text
    assert "/" + "tmp" not in text
    assert max(map(len, text.splitlines())) < 200


def test_the_guide_says_the_same_as_the_card(told) -> None:
    found = told["alignment"]
    guide = (Path(demo.__file__).parents[2] / "docs" / "guide" / "kinds.md").read_text("utf-8")
    said = " ".join(guide.split())
    assert f"Over {found['clips']} other clips this head looks {found['writes']['peak_ms']} ms from" in said
    assert f"the mean of all heads {found['writes']['mean_peak_ms']} ms" in said
    assert f"equal part of the clip is {found['diagonal_ms']} ms off" in said
    place = f"--layer {found['writes']['layer']} --head {found['writes']['head']}"
    assert f"-m demo-speech --kind cross {place}\n" in guide


def test_the_folder_is_that_of_its_settings() -> None:
    run = json.loads((HERE / "training.json").read_text())
    assert run["settings"] == json.loads(json.dumps(vars(train.PROGRAMS["speech"].settings())))
    assert run["record"]["steps"] == run["settings"]["steps"]


@pytest.mark.parametrize(
    ("said", "true", "wrong"),
    [
        ("ma ki", "ma ki", 0),
        ("ma", "ma ki", 1),
        ("ki ma", "ma ki", 2),
        ("", "ma ki su", 3),
        ("ma lu ki su", "ma ki su", 1),
        ("ma ti su", "ma ki su", 1),
    ],
)
def test_errors_are_counted_as_by_hand(said: str, true: str, wrong: int) -> None:
    assert distance(said.split(), true.split()) == wrong


def test_a_row_is_held_against_the_middle_of_its_syllable() -> None:
    weights = torch.zeros(2, spelling.POSITIONS)
    weights[0, 10] = 1.0  # the middle of 0.40 to 0.44
    weights[1, [10, 20]] = torch.tensor([0.6, 0.4])  # centre at 0.58
    found = timing.off(weights, 0.35, 0.45)
    torch.testing.assert_close(found[0], torch.tensor([0.02, 0.02]))
    torch.testing.assert_close(found[1], torch.tensor([0.02, 0.18]))
    torch.testing.assert_close(found[2], torch.tensor([1.0, 0.6]))


def test_rows_are_those_before_a_syllable_and_its_own() -> None:
    """Syllables at 0.2 and 1.0 s; the first row looks at the one, the second at the other, others at 2 s."""
    one = Clip(np.zeros(20_000, np.float32), (("ma", "ki"),), ((0.1, 0.3), (0.9, 1.1)))

    def look(clips: Any) -> torch.Tensor:
        weights = torch.zeros(1, 1, 1, 4, spelling.POSITIONS)
        for row, position in enumerate((5, 25, 50, 50)):
            weights[0, 0, 0, row, position] = 1.0
        return weights

    found = timing.look(look, [one])
    assert found["writes"].peak.item() == pytest.approx(0.02)
    assert found["writes"].share.item() == 1.0
    assert found["writes"].mean_peak == pytest.approx(0.02)
    assert found["reads"].peak.item() == pytest.approx((0.82 + 1.02) / 2)
    assert found["reads_next"].peak.item() == pytest.approx(0.02)


def test_a_diagonal_gives_every_syllable_an_equal_part() -> None:
    one = Clip(np.zeros(32_000, np.float32), (("ma", "ki"),), ((0.4, 0.6), (1.4, 1.6)))
    assert timing.by_diagonal([one]) == pytest.approx(0.0)
    other = Clip(np.zeros(32_000, np.float32), (("ma", "ki"),), ((0.0, 0.2), (0.2, 0.4)))
    assert timing.by_diagonal([other]) == pytest.approx((0.4 + 1.2) / 2)
    assert timing.by_diagonal([other], sounded=True) == pytest.approx(0.0)


def test_the_program_trains_a_tiny_listener_that_transformers_loads(tmp_path: Path, monkeypatch) -> None:
    few = {"known": {"word_error": 1.0}}
    monkeypatch.setattr(evaluate, "figures", lambda path: few)
    monkeypatch.setattr(card, "write", lambda path: None)
    monkeypatch.setattr(speech, "SAVED_EVERY", 3)
    kept: list[tuple[Path, int]] = []
    save = speech.save
    monkeypatch.setattr(
        speech, "save", lambda *given: (save(*given), kept.append((given[-1], given[2].steps)))
    )
    assert train.main(["speech", "--out", str(tmp_path), "--heads=2", *TINY]) == 0
    assert kept == [(tmp_path / "unfinished", 3), (tmp_path, 5)]
    assert not (tmp_path / "unfinished").exists()
    model, loading = AutoModelForSpeechSeq2Seq.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"]
    assert model.config.max_source_positions == spelling.POSITIONS
    run = json.loads((tmp_path / "training.json").read_text())
    assert run["record"]["steps"] == run["settings"]["steps"] == 5
    assert json.loads((tmp_path / "figures.json").read_text()) == few
    made, bundled = (samples(path / "example.wav") for path in (tmp_path, HERE))
    assert abs(made.astype(int) - bundled).max() <= 2  # of 32767: the last bits depend on the processor
