"""One query over a picture or a sound: against slow loops, numbers by hand and another library."""

from dataclasses import replace

import cases_media as made
import numpy as np
import pytest
from transformers.audio_utils import mel_filter_bank, window_function
from transformers.audio_utils import spectrogram as other_spectrogram

from attnscope.analysis.heads.overlay import (
    SILENCE,
    compute_spectrogram,
    default_query,
    over_picture,
    over_sound,
    query_row,
)
from attnscope.errors import InputError
from attnscope.results import Sound


def test_every_patch_gets_the_weight_of_the_key_that_is_called_after_it() -> None:
    result = made.picture_head(4)
    for key, name in enumerate(result.head.key_tokens.names):
        if name != "[CLS]":
            row, column = (int(part) for part in name[1:].split("c"))
            assert result.weights[row, column] == result.head.weights[4, key]
    assert result.gaze.cell == (0, 3)
    assert result.elsewhere == {"[CLS]": result.head.weights[4, 0]}


def test_the_picture_and_what_lies_elsewhere_are_the_whole_row() -> None:
    for query in (0, 7, None):
        result = made.picture_head(query)
        assert result.weights.sum() + sum(result.elsewhere.values()) == pytest.approx(1)


def test_without_a_query_the_mean_of_those_that_may_look_is_shown() -> None:
    head = made.head(made.patch_tokens(), made.patch_tokens())
    weights, allowed = head.weights.copy(), head.allowed.copy()
    weights[3], allowed[3] = np.nan, False
    result = over_picture(replace(head, weights=weights, allowed=allowed), made.picture(), None)
    total = np.zeros(16)
    for query in range(16):
        if query != 3:
            total += weights[query]
    np.testing.assert_allclose(result.weights.flatten(), total[1:] / 15)
    with pytest.raises(InputError, match="no key that it may look at"):
        query_row(weights, 3)


def test_a_window_leaves_the_patches_outside_of_it_open() -> None:
    result = made.window_head(1)
    assert np.isnan(result.weights).sum() == 9
    assert result.weights[2, 4] == result.head.weights[1, 0]
    assert result.weights[1, 2] == result.head.weights[1, 1]
    assert result.gaze.cell == (1, 2)
    assert np.nansum(result.weights) == pytest.approx(1)


def test_several_heads_are_laid_over_like_each_of_them() -> None:
    result = made.picture_grid(9)
    for layer in range(2):
        for head in range(3):
            row = result.overview.weights[layer][head][9]
            np.testing.assert_array_equal(result.weights[layer, head].flatten(), row[1:])


def test_frames_after_the_end_of_the_sound_count_as_silence() -> None:
    result = made.spoken_head(2)
    assert result.weights.shape == (25,)
    np.testing.assert_array_equal(result.weights, result.head.weights[2, :25])
    assert result.elsewhere[SILENCE] == pytest.approx(result.head.weights[2, 25:].sum())


def test_a_sound_that_fills_its_frames_has_no_silence() -> None:
    result = made.sound_head(6)
    assert result.elsewhere == {}
    assert result.gaze.cell == (6,)
    assert result.weights.sum() == pytest.approx(1)


def test_keys_that_are_no_picture_are_refused() -> None:
    text = made.made.tokens(["[CLS]", "a", "door"])
    with pytest.raises(InputError, match="not known to be patches of a picture"):
        over_picture(made.head(text, text), made.picture(), 0)
    with pytest.raises(InputError, match="not known to be frames of a sound"):
        over_sound(made.head(made.patch_tokens(), made.patch_tokens()), made.sound(), 0)


def test_the_query_that_nobody_chose_is_the_class_token_or_the_last_of_a_text_or_all() -> None:
    text, frames = made.made.tokens(["a", "door"]), made.frame_tokens()
    assert default_query(made.patch_tokens(), made.patch_tokens()) == 0
    assert default_query(made.window_tokens(), made.window_tokens()) is None
    assert default_query(text, made.patch_tokens()) == 1
    assert default_query(text, frames) is None
    assert default_query(frames, frames) is None


def chirp(seconds: float, rate: int) -> np.ndarray:
    time = np.arange(int(seconds * rate)) / rate
    return np.sin(2 * np.pi * (200 * time + 900 * time**2)) + 0.01 * np.random.default_rng(1).normal(
        size=len(time)
    )


def test_the_spectrogram_is_that_of_another_library() -> None:
    samples = chirp(0.6, 16000)
    ours = compute_spectrogram(Sound("a.wav", "", samples, 16000))
    filters = mel_filter_bank(257, 64, 0.0, 8000.0, 16000, norm=None, mel_scale="htk")
    filled = filters.any(axis=0)  # bands narrower than a frequency apart are empty there
    window = window_function(400, "hann", periodic=False)
    power = other_spectrogram(
        samples, window, 400, 160, 512, power=2.0, pad_mode="constant", mel_filters=filters, mel_floor=0.0
    )
    levels = 10 * np.log10(np.maximum(power / power.max(), 1e-8))
    assert ours.levels.shape == (64, 61)
    inner = slice(3, -3)
    np.testing.assert_allclose(ours.levels[filled][:, inner], levels[filled][:, inner], atol=0.5)


def test_a_tone_stands_in_the_band_of_its_frequency() -> None:
    time = np.arange(8000) / 16000
    for hertz in (440, 1500, 5000):
        shown = compute_spectrogram(Sound("a.wav", "", np.sin(2 * np.pi * hertz * time), 16000))
        band = int(shown.levels[:, 25].argmax())
        gap = shown.centres[band + 1] - shown.centres[band]
        assert abs(shown.centres[band] - hertz) < gap
        assert shown.levels.max() == 0.0
        assert shown.seconds == 0.01


def test_silence_has_a_spectrogram_of_nothing() -> None:
    shown = compute_spectrogram(Sound("a.wav", "", np.zeros(1600), 16000))
    assert (shown.levels == -80).all()
