"""Queries over pictures and sounds; patches and frames that change places: by hand and slow loops."""

from dataclasses import replace
from functools import cache
from typing import Any

import cases_media as made
import media_models as media
import numpy as np
import pytest
import torch
from transformers.audio_utils import mel_filter_bank, window_function
from transformers.audio_utils import spectrogram as other_spectrogram

import attnscope as at
from attnscope.analysis.controls import control_pieces, inputs_of
from attnscope.analysis.heads.overlay import SILENCE, compute_spectrogram, over_picture, over_sound, query_row
from attnscope.analysis.inputs.pieces import pieces_of
from attnscope.errors import InputError
from attnscope.model.media.patches import moved, reader_of
from attnscope.results import Contents, Picture, Sound
from attnscope.session.wanted import Wanted
from attnscope.tokens import Frames, Patches, Token, Tokens


def test_patches_and_frames_get_the_weights_of_their_keys_and_what_is_no_key_stays_open() -> None:
    result = made.picture_head(4)
    for key, name in enumerate(result.head.key_tokens.names):
        if name != "[CLS]":
            row, column = (int(part) for part in name[1:].split("c"))
            assert result.weights[row, column] == result.head.weights[4, key]
    assert result.gaze.cell == (0, 3)
    assert result.elsewhere == {"[CLS]": result.head.weights[4, 0]}
    result = made.window_head(1)
    assert np.isnan(result.weights).sum() == 9
    assert result.weights[2, 4] == result.head.weights[1, 0]
    assert result.weights[1, 2] == result.head.weights[1, 1]
    assert result.gaze.cell == (1, 2)
    assert np.nansum(result.weights) == pytest.approx(1)
    result = made.spoken_head(2)
    assert result.weights.shape == (25,)
    np.testing.assert_array_equal(result.weights, result.head.weights[2, :25])
    assert result.elsewhere[SILENCE] == pytest.approx(result.head.weights[2, 25:].sum())


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


def test_keys_that_are_no_picture_are_refused() -> None:
    text = made.made.tokens(["[CLS]", "a", "door"])
    with pytest.raises(InputError, match="not known to be patches of a picture"):
        over_picture(made.head(text, text), made.picture(), 0)
    with pytest.raises(InputError, match="not known to be frames of a sound"):
        over_sound(made.head(made.patch_tokens(), made.patch_tokens()), made.sound(), 0)


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


def tokens(stretch: Patches | Frames, count: int) -> Tokens:
    return Tokens((), tuple(Token(-1, f"#{i}", f"#{i}", None, None) for i in range(count)), (stretch,))


def picture_of(pixels: torch.Tensor, covered: tuple[int, int]) -> Picture:
    return Picture("a.png", "", np.zeros((*pixels.shape[-2:], 3)), covered)


def test_patches_are_their_pixels_and_what_no_patch_covers_stays() -> None:
    pixels = torch.arange(1 * 2 * 7 * 9).float().reshape(1, 2, 7, 9)
    read = tokens(Patches(1, 2, 3), 7)
    pieces = pieces_of({"pixel_values": pixels}, read, read, picture_of(pixels, (6, 9)))
    assert pieces is not None
    assert pieces.positions == (1, 2, 3, 4, 5, 6)
    sources = np.array([4, 1, 2, 3, 0, 5])
    changed = pieces.exchanged(sources)
    by_hand = pixels.clone()
    by_hand[:, :, :3, :3], by_hand[:, :, 3:6, 3:6] = pixels[:, :, 3:6, 3:6], pixels[:, :, :3, :3]
    assert torch.equal(changed, by_hand)
    assert torch.equal(changed[:, :, 6], pixels[:, :, 6])
    assert torch.equal(pieces.values, pixels)
    assert pieces.at_positions([0, 5, 2]) == [4, 1]
    pixels = torch.zeros(1, 1, 2, 6)
    pixels[..., 2:4] = 1.0
    read = tokens(Patches(0, 1, 3), 3)
    pieces = pieces_of({"pixel_values": pixels}, read, read, picture_of(pixels, (2, 6)))
    assert pieces is not None
    assert pieces.contents[0] == pieces.contents[2] != pieces.contents[1]


def test_merged_patches_of_pixels_in_patches_move_together() -> None:
    """4 x 2 patches in blocks of 2 x 2, as Qwen2-VL is given them: its text has a token a block."""
    values = torch.arange(8.0)[:, None].repeat(1, 3)
    fine = tokens(Patches(0, 4, 2, (0, 1, 2, 3, 4, 5, 6, 7)), 8)
    keys = tokens(Patches(3, 2, 1), 6)
    pieces = pieces_of({"pixel_values": values}, fine, keys, picture_of(torch.zeros(8, 4), (8, 4)))
    assert pieces is not None
    assert pieces.positions == (3, 4)
    assert pieces.exchanged(np.array([1, 0]))[:, 0].tolist() == [4, 5, 6, 7, 0, 1, 2, 3]


def test_frames_of_samples_and_of_a_spectrogram_move_along_time_alone() -> None:
    samples, frames = torch.arange(11.0)[None], tokens(Frames(0, 3, 0.3), 3)
    sound = Sound("a.wav", "", np.zeros(11), 10)
    pieces = pieces_of({"input_values": samples}, frames, frames, sound)
    assert pieces is not None
    assert pieces.exchanged(np.array([2, 1, 0])).tolist() == [[6, 7, 8, 3, 4, 5, 0, 1, 2, 9, 10]]
    spectrogram, longer = torch.arange(2 * 12.0).reshape(1, 2, 12), tokens(Frames(0, 6, 0.3), 6)
    short = replace(sound, samples=np.zeros(5))  # 0.5 s are heard: from the third frame on it is silence
    pieces = pieces_of({"input_features": spectrogram}, longer, longer, short)
    assert pieces is not None
    changed = pieces.exchanged(np.array([1, 0]))
    assert changed[0, :, :4].tolist() == [[2, 3, 0, 1], [14, 15, 12, 13]]
    assert torch.equal(changed[..., 4:], spectrogram[..., 4:])


def test_where_pieces_cannot_be_told_there_are_none() -> None:
    pixels, read = torch.zeros(1, 3, 4, 6), tokens(Patches(0, 2, 3), 6)
    assert pieces_of({"pixel_values": pixels}, read, read, picture_of(pixels, (0, 0))) is None
    assert pieces_of({"pixel_values": pixels}, read, read, None) is None
    numbered = replace(read, marked=())
    assert pieces_of({"pixel_values": pixels}, read, numbered, picture_of(pixels, (4, 6))) is None
    square = tokens(Frames(0, 6, 0.3), 6)
    both = {"input_features": torch.zeros(1, 12, 12)}  # either axis could be time
    assert pieces_of(both, square, square, Sound("a.wav", "", np.zeros(20), 10)) is None


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("seen")
    files = {"image": media.picture_file(folder), "audio": media.sound_file(folder, 0.7)}

    @cache
    def one(name: str, kind: str) -> Any:
        return at.load(str(media.save(name, folder / name))).read(**{kind: files[kind]})

    return one


@pytest.mark.parametrize(
    ("name", "kind"), [("vit", "image"), ("deit", "image"), ("dinov2", "image"), ("whisper", "audio")]
)
def test_a_piece_is_what_enters_the_first_layer_at_its_position(name: str, kind: str, read: Any) -> None:
    reading, _ = read(name, kind)._read(Wanted(layer=0, kind="encoder"))
    positions, inputs = reading.perceived.positions, reading.encoded.inputs
    pieces = pieces_of(inputs, positions, positions, reading.perceived.medium)
    assert pieces is not None
    order, first, last = np.arange(len(pieces)), 9, 17  # neither is beside the other
    order[[first, last]] = last, first
    reader = reader_of(reading.model.module, reading.model.sites, pieces.name)
    assert reader is not None
    given = {pieces.name: pieces.values}
    before = reader.entering(given)
    changed = moved(before, reader.entering({pieces.name: pieces.exchanged(order)}))
    there = set(changed.nonzero().flatten().tolist())
    mine = {pieces.positions[first], pieces.positions[last]}
    near = {place + step for place in mine for step in (-1, 0, 1)} if kind == "audio" else mine
    assert mine <= there <= near  # convolutions over a sound reach into the next frame


def test_controls_are_any_orders_of_the_contents_but_that_of_the_picture_and_keep_what_asks() -> None:
    contents = np.array([0, 1, 1, 2, 3])
    found = control_pieces(contents, Contents.PICTURE, count=30, seed=4, kept=[4])
    assert len(found) < found.wanted  # there are no more orders
    assert (found.sources[:, 4] == 4).all()
    assert {1} < set(contents[found.sources][:, 1]), "what is asked about stays in some, and moves in others"
    assert (contents[found.sources] != contents).any(axis=1).all()
    assert len({tuple(each) for each in contents[found.sources].tolist()}) == len(found)
    assert found.how == "patches of the picture change places; the one that asks stays"
    with pytest.raises(InputError, match="too few patches of the picture differ"):
        control_pieces(np.zeros(9, int), Contents.PICTURE, count=3)
    inputs = {"pixel_values": torch.zeros(1, 3, 2, 2), "input_ids": torch.tensor([[7, 8]]), "flag": True}
    made = inputs_of(inputs, "pixel_values", [torch.ones(1, 3, 2, 2), torch.zeros(1, 3, 2, 2)])
    assert made is not None
    assert made["pixel_values"][:, 0, 0, 0].tolist() == [1, 0]
    assert made["input_ids"].tolist() == [[7, 8], [7, 8]]
    assert inputs_of({"pixel_values": torch.zeros(24, 600)}, "pixel_values", [torch.zeros(24, 600)]) is None


def test_a_picture_and_what_lies_elsewhere_are_the_row_and_a_tone_stands_in_its_band() -> None:
    for query in (0, 7, None):
        result = made.picture_head(query)
        assert result.weights.sum() + sum(result.elsewhere.values()) == pytest.approx(1)
    time = np.arange(8000) / 16000
    for hertz in (440, 1500, 5000):
        shown = compute_spectrogram(Sound("a.wav", "", np.sin(2 * np.pi * hertz * time), 16000))
        band = int(shown.levels[:, 25].argmax())
        assert abs(shown.centres[band] - hertz) < shown.centres[band + 1] - shown.centres[band]
