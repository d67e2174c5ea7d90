"""The stream of synthetic speech: the same for the same seed, its times true, its held-out words kept out."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
import torch

from attnscope.demo.train import speech
from attnscope.demo.train.evaluation.speech import EVALUATED, evaluated
from attnscope.demo.train.sound import spelling, voice
from attnscope.demo.train.sound.clips import (
    HELD_OUT_SHARE,
    MOST,
    SECONDS,
    Clip,
    Kind,
    clip,
    digest,
    held_out,
)
from attnscope.demo.train.sound.voice import RATE, SYLLABLES, Manner, speak
from attnscope.demo.train.speech import LESSONS, Settings, batches, lesson, rate, shorten

QUIET = Kind(noise=(60, 60))


def told(kind: Kind, count: int, seed: int = 0, part: str = "training") -> list[Clip]:
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


def test_the_same_seed_gives_the_same_clips_and_another_seed_part_or_number_gives_others() -> None:
    kind = Kind(2, 5)
    one, same = clip(3, "training", 8, kind), clip(3, "training", 8, kind)
    assert np.array_equal(one.sound, same.sound)
    assert (one.text, one.times) == (same.text, same.times)
    for other in (clip(4, "training", 8, kind), clip(3, "reported", 8, kind), clip(3, "training", 9, kind)):
        assert not np.array_equal(one.sound[:2000], other.sound[:2000])


def test_the_stream_is_the_one_that_the_bundled_model_learnt_from() -> None:
    assert digest(told(Kind(), 40)) == "0732d108b88dd305ade1e5f45b66054b7d747abcb6c2f8c102201ad939c140af"


def test_a_clip_is_the_same_alone_and_in_a_batch_of_the_program() -> None:
    settings = Settings(batch=6, steps=10)
    features, labels = next(batches(settings))
    kind = LESSONS[0][1]
    alone = [clip(settings.seed, "training", number, kind) for number in range(3)]
    heard = spelling.features(alone, spelling.extractor())
    assert torch.equal(features[:3], heard[:, :, : features.shape[-1]])
    assert torch.equal(labels[:3], spelling.labels(alone))
    assert features.shape == (6, spelling.BANDS, 2 * 25)


def test_short_clips_come_first_and_every_lesson_is_taught() -> None:
    assert [lesson(share) for share in (0.0, 0.2, 0.4, 0.9, 1.0)] == [
        LESSONS[0][1], LESSONS[1][1], LESSONS[2][1], LESSONS[3][1], LESSONS[3][1],
    ]  # fmt: skip
    settings = Settings(batch=2, steps=20)
    widths = [features.shape[-1] for features, _ in islice(batches(settings), 20)]
    assert widths == sorted(widths)
    assert set(widths) == {50, 80, 150}


def test_words_have_one_to_three_syllables_and_clips_as_many_as_are_asked_for() -> None:
    for kind in (Kind(1, 2, seconds=1.0), Kind(3, 3), Kind(MOST, MOST)):
        for one in told(kind, 12):
            assert kind.least <= len(one.times) <= kind.most
            assert one.seconds <= kind.seconds <= SECONDS
            assert [len(word) in (1, 2, 3) for word in one.words] == [True] * len(one.words)
            assert sum(map(len, one.words)) == len(one.times)
            assert all(begins < ends for begins, ends in one.times)
            flat = [moment for time in one.times for moment in time]
            assert flat == sorted(flat)
            assert flat[0] > 0
            assert flat[-1] < one.seconds


def test_words_that_are_kept_out_are_in_no_training_clip_and_in_every_clip_that_asks_for_them() -> None:
    seen = {word for one in told(Kind(), 150) for word in one.words}
    assert len([word for word in seen if len(word) > 1]) > 200
    assert not any(held_out(word) for word in seen)
    new = {word for one in told(Kind(new=True), 30, EVALUATED, "reported") for word in one.words}
    assert all(held_out(word) for word in new if len(word) > 1)
    assert not {word for word in new if len(word) > 1} & seen
    pairs = [(a, b) for a in SYLLABLES for b in SYLLABLES]
    assert sum(map(held_out, pairs)) / len(pairs) == pytest.approx(1 / HELD_OUT_SHARE, abs=0.03)


def test_no_clip_that_is_measured_on_is_one_of_training_and_selection_and_report_share_none() -> None:
    measured = {part: {one.text for one in evaluated(part, 60)} for part in ("selection", "reported")}
    assert not measured["selection"] & measured["reported"]
    assert not (measured["selection"] | measured["reported"]) & {one.text for one in told(Kind(), 150)}


def test_the_sound_is_loud_in_the_words_and_silent_between_them() -> None:
    """Read off the samples: as many stretches of sound as words, each as long as its syllables say."""
    for one in told(QUIET, 25):
        spoken = list(stretches(power(one) > -40, bridged=13))  # closures before a burst are up to 50 ms long
        assert len(spoken) == len(one.words)
        first = 0
        for word, (start, end) in zip(one.words, spoken, strict=True):
            last = first + len(word) - 1
            assert 0.005 * start == pytest.approx(one.times[first][0], abs=0.015)
            assert 0.005 * end == pytest.approx(one.times[last][1], abs=0.025)
            first = last + 1


def test_a_hissing_syllable_begins_where_the_high_frequencies_do() -> None:
    """The s of each "s." syllable lies above 3.5 kHz, where no vowel has as much: seen in the spectrum."""
    size = 160
    for one in told(QUIET, 25):
        windows = one.sound[: len(one.sound) // size * size].reshape(-1, size) * np.hanning(size)
        spectrum = abs(np.fft.rfft(windows, axis=1)) ** 2
        high = spectrum[:, 45:].sum(1) / (spectrum.sum(1) + 1e-9)
        loud = spectrum.sum(1) > 1e-3 * spectrum.sum(1).max()
        hissing = (high > 0.5) & loud
        for place, (piece, (begins, _)) in enumerate(zip(spelling.pieces(one), one.times, strict=True)):
            window = round(begins * RATE / size)
            if "s" in piece:
                assert hissing[window + 1 : window + 3].all(), (one.text, place)
            elif "t" not in piece:
                assert not hissing[window + 1 : window + 3].any(), (one.text, place)


def test_a_louder_noise_is_louder_by_as_much_as_is_asked_for() -> None:
    def floor(loud: float) -> float:
        """Power in the pause before the first word, against that of the words."""
        values = []
        for one in told(Kind(noise=(loud, loud)), 30):
            before, said = (one.sound[slice(*(int(RATE * at) for at in times))] for times in (
                (0.0, one.times[0][0] - 0.03), one.times[0],
            ))  # fmt: skip
            if len(before) > 1000:
                values.append(10 * np.log10(np.mean(said**2) / np.mean(before**2)))
        return float(np.mean(values))

    assert floor(20) - floor(10) == pytest.approx(10, abs=1.5)


@pytest.mark.parametrize(("vowel", "rises"), [("ai", True), ("au", False), ("a", False)])
def test_the_formants_glide_within_a_vowel_of_two(vowel: str, rises: bool) -> None:
    rng = np.random.default_rng(4)
    samples = speak(rng, f"s{vowel}", Manner(0.8, 120, 1.0)).samples
    held = samples[-int(0.15 * RATE) :]

    def share(part: np.ndarray, low: int, high: int) -> float:
        """Of the power, what lies between two frequencies."""
        spectrum = abs(np.fft.rfft(part * np.hanning(len(part)))) ** 2
        hertz = np.fft.rfftfreq(len(part), 1 / RATE)
        return float(spectrum[(hertz > low) & (hertz < high)].sum() / spectrum.sum())

    early, late = held[: len(held) // 4], held[-len(held) // 4 :]
    assert (share(late, 550, 1000) < 0.5 * share(early, 550, 1000)) == (vowel != "a")  # the first one falls
    assert (share(late, 1750, 2400) > 2 * share(early, 1750, 2400)) == rises


def test_the_pitch_is_the_one_that_is_asked_for() -> None:
    rng = np.random.default_rng(5)
    for pitch in (100.0, 220.0):
        steady = voice.voiced(rng, [0, 8000], [np.array([700.0, 1200.0, 2600.0])] * 2, [1.0, 1.0], pitch)
        lags = np.correlate(steady[2000:6000], steady[2000:6000], "full")[4000:]
        lag = 40 + int(lags[40:300].argmax())
        assert RATE / lag == pytest.approx(pitch, rel=0.08)


def test_text_is_cut_into_its_syllables_and_comes_back() -> None:
    cut = spelling.tokenizer()
    assert cut.tokenize("kaisisau ma") == ["kai", "##si", "##sau", "ma"]
    for one in told(Kind(), 20):
        assert cut.tokenize(one.text) == spelling.pieces(one)
        ids = cut(one.text)["input_ids"]
        assert ids[-1] == spelling.IDS["[EOS]"]
        assert cut.decode(ids, skip_special_tokens=True) == one.text


def test_the_decoder_reads_what_it_has_written_one_place_later_and_padding_is_never_scored() -> None:
    short, long = told(Kind(1, 1, seconds=1.0), 1)[0], told(Kind(4, 4), 1)[0]
    labels = spelling.labels([short, long])
    assert labels.shape == (2, MOST + 1)
    assert (labels[0, 2:] == spelling.NOTHING).all()
    read = spelling.read(labels)
    start, end = spelling.IDS["[BOS]"], spelling.IDS["[EOS]"]
    assert read[0, :3].tolist() == [start, labels[0, 0].item(), end]
    assert read[1, :5].tolist() == [start, *labels[1, :4].tolist()]
    assert (read >= 0).all()


def test_an_encoder_that_reads_less_knows_the_same_positions_by_the_same_sines() -> None:
    model = speech.build(Settings(hidden=24, inner=16, encoder_layers=1, decoder_layers=1, heads=2))
    whole = model.model.encoder.embed_positions.weight.clone()
    shorten(model, 25)
    assert torch.allclose(model.model.encoder.embed_positions.weight, whole[:25], atol=1e-6)
    shorten(model, spelling.POSITIONS)
    assert torch.allclose(model.model.encoder.embed_positions.weight, whole, atol=1e-6)
    assert not any(
        part is model.model.encoder.embed_positions.weight
        for part in model.parameters()
        if part.requires_grad
    )


def test_the_rate_warms_up_stays_and_falls_to_nothing() -> None:
    settings = Settings(steps=1000, warm_up=100, flat=0.5, peak_rate=2e-3)
    assert rate(0, settings) == pytest.approx(2e-5)
    assert rate(99, settings) == rate(499, settings) == 2e-3
    assert rate(750, settings) == pytest.approx(1e-3)
    assert rate(1000, settings) == pytest.approx(0, abs=1e-12)
