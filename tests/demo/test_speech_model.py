"""The bundled speech model, its figures measured again, what measured them, and the clips it learnt from."""

import json
import wave
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSpeechSeq2Seq, AutoProcessor

from attnscope import demo
from attnscope.demo import folder
from attnscope.demo.train import command as train
from attnscope.demo.train import speech
from attnscope.demo.train.cards.card import Card
from attnscope.demo.train.evaluation import speech as evaluate
from attnscope.demo.train.evaluation import timing
from attnscope.demo.train.evaluation.speech import EVALUATED, distance, evaluated
from attnscope.demo.train.sound import spelling
from attnscope.demo.train.sound.clips import HELD_OUT_SHARE, MOST, Clip, Kind, clip, digest, held_out
from attnscope.demo.train.sound.voice import RATE, SYLLABLES
from attnscope.demo.train.speech import LESSONS, Settings, batches

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


def test_the_guide_says_the_same_as_the_card(told) -> None:
    found = told["alignment"]
    guide = (Path(demo.__file__).parents[2] / "docs" / "guide" / "kinds.md").read_text("utf-8")
    said = " ".join(guide.split())
    assert f"Over {found['clips']} other clips this head looks {found['writes']['peak_ms']} ms from" in said
    assert f"the mean of all heads {found['writes']['mean_peak_ms']} ms" in said
    assert f"equal part of the clip is {found['diagonal_ms']} ms off" in said
    place = f"--layer {found['writes']['layer']} --head {found['writes']['head']}"
    assert f"-m demo-speech --kind cross {place}\n" in guide


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
    monkeypatch.setitem(train.PROGRAMS, "speech", replace(speech.PROGRAM, figures=lambda path: few))
    monkeypatch.setattr(Card, "text", lambda *given: "")
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


QUIET = Kind(noise=(60, 60))


def clips_of(kind: Kind, count: int, seed: int = 0, part: str = "training") -> list[Clip]:
    return [clip(seed, part, number, kind) for number in range(count)]


def power(one: Clip, width: float = 0.005) -> np.ndarray:
    """Mean square of the samples in windows of so many seconds, in decibels below the loudest."""
    size = int(width * RATE)
    windows = one.sound[: len(one.sound) // size * size].reshape(-1, size).astype(np.float64)
    level = (windows**2).mean(1)
    return 10 * np.log10(level / level.max() + 1e-12)


def stretches(loud: np.ndarray, bridged: int) -> Iterator[tuple[int, int]]:
    """Where windows are loud, without a break longer than `bridged` of them: first, and one past the last."""
    places = np.flatnonzero(loud)
    breaks = np.flatnonzero(np.diff(places) > bridged)
    starts, ends = [places[0], *places[breaks + 1]], [*places[breaks], places[-1]]
    return ((int(a), int(b) + 1) for a, b in zip(starts, ends, strict=True))


def test_the_stream_is_the_one_that_the_bundled_model_learnt_from() -> None:
    assert digest(clips_of(Kind(), 40)) == "0732d108b88dd305ade1e5f45b66054b7d747abcb6c2f8c102201ad939c140af"


def test_a_clip_is_the_same_alone_and_in_a_batch_of_the_program() -> None:
    settings = Settings(batch=6, steps=10)
    features, labels = next(batches(settings))
    kind = LESSONS[0][1]
    alone = [clip(settings.seed, "training", number, kind) for number in range(3)]
    heard = spelling.features(alone, spelling.extractor())
    assert torch.equal(features[:3], heard[:, :, : features.shape[-1]])
    assert torch.equal(labels[:3], spelling.labels(alone))
    assert features.shape == (6, spelling.BANDS, 2 * 25)


def test_words_that_are_kept_out_are_in_no_training_clip_and_in_every_clip_that_asks_for_them() -> None:
    seen = {word for one in clips_of(Kind(), 150) for word in one.words}
    assert len([word for word in seen if len(word) > 1]) > 200
    assert not any(held_out(word) for word in seen)
    new = {word for one in clips_of(Kind(new=True), 30, EVALUATED, "reported") for word in one.words}
    assert all(held_out(word) for word in new if len(word) > 1)
    assert not {word for word in new if len(word) > 1} & seen
    pairs = [(a, b) for a in SYLLABLES for b in SYLLABLES]
    assert sum(map(held_out, pairs)) / len(pairs) == pytest.approx(1 / HELD_OUT_SHARE, abs=0.03)


def test_no_clip_that_is_measured_on_is_one_of_training_and_selection_and_report_share_none() -> None:
    measured = {part: {one.text for one in evaluated(part, 60)} for part in ("selection", "reported")}
    assert not measured["selection"] & measured["reported"]
    assert not (measured["selection"] | measured["reported"]) & {one.text for one in clips_of(Kind(), 150)}


def test_the_sound_is_loud_in_the_words_and_silent_between_them() -> None:
    """Read off the samples: as many stretches of sound as words, each as long as its syllables say."""
    for one in clips_of(QUIET, 25):
        spoken = list(stretches(power(one) > -40, bridged=13))  # closures before a burst are up to 50 ms long
        assert len(spoken) == len(one.words)
        first = 0
        for word, (start, end) in zip(one.words, spoken, strict=True):
            last = first + len(word) - 1
            assert 0.005 * start == pytest.approx(one.times[first][0], abs=0.015)
            assert 0.005 * end == pytest.approx(one.times[last][1], abs=0.025)
            first = last + 1


def test_text_is_cut_into_its_syllables_and_comes_back() -> None:
    cut = spelling.tokenizer()
    assert cut.tokenize("kaisisau ma") == ["kai", "##si", "##sau", "ma"]
    for one in clips_of(Kind(), 20):
        assert cut.tokenize(one.text) == spelling.pieces(one)
        ids = cut(one.text)["input_ids"]
        assert ids[-1] == spelling.IDS["[EOS]"]
        assert cut.decode(ids, skip_special_tokens=True) == one.text


def test_the_decoder_reads_what_it_has_written_one_place_later_and_padding_is_never_scored() -> None:
    short, long = clips_of(Kind(1, 1, seconds=1.0), 1)[0], clips_of(Kind(4, 4), 1)[0]
    labels = spelling.labels([short, long])
    assert labels.shape == (2, MOST + 1)
    assert (labels[0, 2:] == spelling.NOTHING).all()
    read = spelling.read(labels)
    start, end = spelling.IDS["[BOS]"], spelling.IDS["[EOS]"]
    assert read[0, :3].tolist() == [start, labels[0, 0].item(), end]
    assert read[1, :5].tolist() == [start, *labels[1, :4].tolist()]
    assert (read >= 0).all()
