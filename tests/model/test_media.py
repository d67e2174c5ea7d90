"""Pictures and sounds as models read them: every name of a position against what really changes it."""

import copy
import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import media_models as media
import numpy as np
import pytest
import soundfile
import torch
import transformers as hf
from PIL import Image
from torch import Tensor, nn

from attnscope.errors import DoesNotFitError, InputError, ModelUnavailableError
from attnscope.model.anatomy.sites import find_sites
from attnscope.model.loaded import Model
from attnscope.model.media.files import open_sound
from attnscope.model.media.patches import Grid
from attnscope.model.media.perceive import Perceived, read_media, rows_and_columns, window_names
from attnscope.model.source.checkpoint import open_checkpoint
from attnscope.model.source.find import find
from attnscope.results import Picture, Sound
from attnscope.tokens import Frames, Patches

PLAIN = ("vit", "deit", "dinov2", "dinov3", "beit", "yolos", "clip", "siglip")
SPLICING = ("llava", "paligemma", "gemma3", "qwen2_vl")
QUESTION = ("what is in the picture ?",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("media")


@pytest.fixture(scope="module")
def models(folder: Path) -> Any:
    """`models(name)`, each made once."""

    @cache
    def made(name: str) -> Model:
        hf.logging.set_verbosity_error()
        return opened(media.save(name, folder / name))

    return made


def opened(path: Path) -> Model:
    config = hf.AutoConfig.from_pretrained(path)
    made = getattr(hf, config.architectures[0]).from_pretrained(path, attn_implementation="eager").eval()
    has_tokenizer = (path / "tokenizer.json").is_file()
    tokenizer = hf.AutoTokenizer.from_pretrained(path) if has_tokenizer else None
    return Model(open_checkpoint(find(str(path))), made, tokenizer, None)


@pytest.fixture(scope="module")
def square(folder: Path) -> Path:
    return media.picture_file(folder)


def read(models: Any, name: str, square: Path) -> Perceived:
    return read_media(models(name), image=square, texts=QUESTION if name in SPLICING else ())


def without_mixing(module: nn.Module) -> nn.Module:
    """A copy whose attention answers nothing: what comes out of its last projection is zero."""
    still = copy.deepcopy(module)
    outs = ("o_proj", "out_proj", "attention.output.dense", "projection_layer", "attn.proj")
    for path, part in still.named_modules():
        if isinstance(part, nn.Linear) and path.endswith(outs):
            nn.init.zeros_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    return still


def states(module: nn.Module, inputs: dict[str, Any], *, vision: bool) -> Tensor:
    """What the model itself calls its first hidden states: of its vision part, or of the text."""
    part = getattr(module, "vision_model", None) if vision else None
    with torch.no_grad():
        if part is not None:
            return part(inputs["pixel_values"], output_hidden_states=True).hidden_states[0][0]
        return module(**inputs, output_hidden_states=True).hidden_states[0][0]


def changed_by_block(
    model: Model,
    perceived: Perceived,
    place: tuple[int, int],
    cell: tuple[int, int],
    folder: Path,
    *,
    vision: bool,
) -> set[int]:
    """The positions whose first hidden state is another when one block of the picture is."""
    picture, still = perceived.medium, without_mixing(model.module)
    assert isinstance(picture, Picture)
    pixels = (picture.pixels * 255).round().astype(np.uint8)
    texts = QUESTION if perceived.tokens.texts else ()
    row, column = (start * side for start, side in zip(place, cell, strict=True))
    other = pixels.copy()
    other[row : row + cell[0], column : column + cell[1]] = (
        255 - other[row : row + cell[0], column : column + cell[1]]
    )
    found = []
    for i, version in enumerate((pixels, other)):
        Image.fromarray(version).save(folder / f"version{i}.png")
        again = read_media(model, image=folder / f"version{i}.png", texts=texts)
        found.append(states(still, again.inputs, vision=vision))
    return set((found[0] - found[1]).abs().amax(-1).gt(1e-6).nonzero()[:, 0].tolist())


@pytest.mark.parametrize("name", PLAIN)
def test_a_block_of_pixels_changes_the_position_that_is_called_after_it_and_no_other(
    name: str, models: Any, square: Path, folder: Path
) -> None:
    model, perceived = models(name), read(models, name, square)
    (patches,) = perceived.positions.stretches
    assert isinstance(patches, Patches)
    for place in ((0, 0), (1, patches.columns - 1), (patches.rows - 1, 2)):
        changed = changed_by_block(model, perceived, place, (10, 10), folder, vision=True)
        assert [perceived.positions.names[i] for i in changed] == [f"r{place[0]}c{place[1]}"]


@pytest.mark.parametrize("name", SPLICING)
def test_a_block_of_pixels_changes_the_token_of_the_text_that_is_called_after_it(
    name: str, models: Any, square: Path, folder: Path
) -> None:
    model, perceived = models(name), read(models, name, square)
    (patches,) = perceived.tokens.stretches
    assert isinstance(patches, Patches)
    assert isinstance(perceived.medium, Picture)
    cell = (perceived.medium.covered[0] // patches.rows, perceived.medium.covered[1] // patches.columns)
    for place in ((0, 1), (patches.rows - 1, 0), (1, patches.columns - 1)):
        changed = changed_by_block(model, perceived, place, cell, folder, vision=False)
        assert [perceived.tokens.names[i] for i in changed] == [f"r{place[0]}c{place[1]}"]


def test_positions_that_are_no_patch_are_called_after_what_stands_there(models: Any, square: Path) -> None:
    def others(name: str) -> list[str]:
        names = read(models, name, square).positions.names
        return [each for each in names if not each.startswith("r")]

    assert others("vit") == others("clip") == others("beit") == ["[CLS]"]
    assert others("deit") == ["[CLS]", "[DIST]"]
    assert others("dinov2") == ["[CLS]", "[REG0]", "[REG1]", "[REG2]"]
    assert others("dinov3") == ["[CLS]", "[REG0]", "[REG1]"]
    assert others("yolos") == ["[CLS]", *(f"[DET{i}]" for i in range(5))]
    assert others("siglip") == []


def test_patches_in_another_order_are_found_in_that_order(models: Any, square: Path) -> None:
    module = copy.deepcopy(models("vit").module)
    turned = torch.arange(24).reshape(4, 6).T.flatten()
    module.embeddings.patch_embeddings.register_forward_hook(lambda _m, _g, out: out[:, turned])
    source = models("vit")
    model = Model(source.checkpoint, module, None, None)
    perceived = read_media(model, image=square)
    assert perceived.positions.names[1:6] == ("r0c0", "r1c0", "r2c0", "r3c0", "r0c1")
    (patches,) = perceived.positions.stretches
    assert [perceived.positions.names[i] for i in patches.positions[:7]] == [
        *(f"r0c{i}" for i in range(6)),
        "r1c0",
    ]


def test_positions_that_read_two_patches_are_numbered_and_that_is_said(models: Any, square: Path) -> None:
    module = copy.deepcopy(models("vit").module)
    module.embeddings.patch_embeddings.register_forward_hook(lambda _m, _g, out: out + out.roll(1, 1))
    model = Model(models("vit").checkpoint, module, None, None)
    perceived = read_media(model, image=square)
    assert perceived.positions.names[:3] == ("#0", "#1", "#2")
    assert perceived.positions.stretches == ()
    assert any("cannot be told" in notice for notice in perceived.notices)


def test_a_wrong_patch_size_gives_numbers_and_not_wrong_places(models: Any, square: Path) -> None:
    module = copy.deepcopy(models("vit").module)
    for size in (5, 20, (20, 5)):
        module.config.patch_size = size
        perceived = read_media(Model(models("vit").checkpoint, module, None, None), image=square)
        assert perceived.positions.stretches == ()
        assert len(perceived.positions) == 25


@pytest.mark.parametrize("name", [*PLAIN, "llava", "qwen2_vl"])
def test_the_picture_is_as_the_model_sees_it(name: str, models: Any, square: Path, folder: Path) -> None:
    """What is shown, given to the processor again, makes the very inputs that the model was given."""
    perceived = read(models, name, square)
    assert isinstance(perceived.medium, Picture)
    Image.fromarray((perceived.medium.pixels * 255).round().astype(np.uint8)).save(folder / "again.png")
    again = read(models, name, folder / "again.png")
    torch.testing.assert_close(
        again.inputs["pixel_values"], perceived.inputs["pixel_values"], atol=0.02, rtol=0
    )


def test_reading_a_picture_leaves_the_model_as_it_was(models: Any, square: Path) -> None:
    model = models("dinov2")
    before = {name: weight.clone() for name, weight in model.module.state_dict().items()}
    read_media(model, image=square)
    assert all(torch.equal(weight, before[name]) for name, weight in model.module.state_dict().items())
    assert not any(part._forward_pre_hooks or part._forward_hooks for part in model.module.modules())


def by_hand(shift: int, side: int, window: int) -> list[list[tuple[int, int]]]:
    """The patches of each window of Swin, as its paper moves and cuts them."""
    grid = [[(row, column) for column in range(side)] for row in range(side)]
    moved = [
        [grid[(row + shift) % side][(column + shift) % side] for column in range(side)] for row in range(side)
    ]
    return [
        [moved[top + i][left + j] for i in range(window) for j in range(window)]
        for top in range(0, side, window)
        for left in range(0, side, window)
    ]


@pytest.mark.parametrize(("layer", "shift", "side"), [(0, 0, 8), (1, 2, 8), (2, 0, 4)])
def test_windows_are_called_after_their_patches_also_when_they_moved_or_merged(
    layer: int, shift: int, side: int, models: Any, square: Path
) -> None:
    model, perceived = models("swin"), read(models, "swin", square)
    site = next(each for each in find_sites(model.module) if layer in each.layers)
    windows = window_names(model, perceived, site, 16)
    assert windows is not None
    expected = [[f"r{row}c{column}" for row, column in window] for window in by_hand(shift, side, 4)]
    assert [list(window.names) for window in windows] == expected
    (patches,) = windows[-1].stretches
    assert isinstance(patches, Patches)
    row, column = by_hand(shift, side, 4)[-1][5]
    assert patches.positions[row * side + column] == 5
    assert patches.positions.count(-1) == side * side - 16


def test_blocks_of_qwen_are_named_in_the_order_of_its_blocks(models: Any, square: Path) -> None:
    positions = read(models, "qwen2_vl", square).positions
    assert positions.names[:6] == ("r0c0", "r0c1", "r1c0", "r1c1", "r0c2", "r0c3")
    (patches,) = positions.stretches
    assert [positions.names[i] for i in patches.positions[:8]] == [
        *(f"r0c{i}" for i in range(6)),
        "r1c0",
        "r1c1",
    ]


# ---- text beside a picture


def test_a_picture_stands_where_the_marker_does(models: Any, square: Path) -> None:
    perceived = read_media(models("llava"), image=square, texts=("what is <image> in",))
    assert perceived.tokens.names[:3] == ("what", "is", "r0c0")
    assert perceived.tokens.names[-1] == "in"
    assert perceived.tokens.items[-1].span == (16, 18)
    assert perceived.notices == ()


def test_a_chat_template_places_the_picture(models: Any, square: Path) -> None:
    tokenizer = copy.deepcopy(models("qwen2_vl").tokenizer)
    tokenizer.chat_template = (
        "{% for m in messages %}{% for c in m.content %}{% if c.type == 'image' %}the "
        "<|vision_start|><|image_pad|><|vision_end|>{% else %} {{ c.text }}{% endif %}"
        "{% endfor %}{% endfor %}"
    )
    source = models("qwen2_vl")
    perceived = read_media(
        Model(source.checkpoint, source.module, tokenizer, None), image=square, texts=("what",)
    )
    assert perceived.tokens.names[:3] == ("the", "<|vision_start|>", "r0c0")
    assert perceived.tokens.names[-2:] == ("<|vision_end|>", "what")
    assert any("message of a chat" in notice for notice in perceived.notices)


def test_a_marker_that_stands_twice_is_refused(models: Any, square: Path) -> None:
    with pytest.raises(InputError, match=r"<image> stands 2 times in the text: once is needed"):
        read_media(models("llava"), image=square, texts=("<image> is <image>",))


def test_the_processor_and_the_hand_agree_on_the_inputs(models: Any, square: Path, monkeypatch: Any) -> None:
    """Qwen2-VL's processor cannot be made here; on what it would make the model runs with its positions."""
    perceived = read(models, "qwen2_vl", square)
    ids = perceived.inputs["input_ids"][0].tolist()
    image = models("qwen2_vl").module.config.image_token_id
    assert ids.count(image) == 6
    assert perceived.inputs["mm_token_type_ids"][0].tolist() == [int(each == image) for each in ids]
    positions, _ = models("qwen2_vl").module.model.get_rope_index(
        perceived.inputs["input_ids"],
        mm_token_type_ids=perceived.inputs["mm_token_type_ids"],
        image_grid_thw=perceived.inputs["image_grid_thw"],
    )
    assert positions[1, 0, 1:7].tolist() == [1, 1, 1, 2, 2, 2]
    assert positions[2, 0, 1:7].tolist() == [1, 2, 3, 1, 2, 3]


def test_rows_of_a_picture_may_have_something_between_them() -> None:
    grid = Grid(4, 6, 10, 10)
    run = list(range(3, 27))
    with_breaks = [3 + 7 * row + column for row in range(4) for column in range(6)]
    assert rows_and_columns(run, grid) == rows_and_columns(with_breaks, grid) == (4, 6)
    assert rows_and_columns([1, 2, 3, 5, 6, 7], grid) == (2, 3)
    assert rows_and_columns([1, 2, 4, 5, 6, 7], grid) is None
    assert rows_and_columns(run[:-1], grid) is None
    assert rows_and_columns(list(range(8)), grid) is None
    assert rows_and_columns(run, None) is None


# ---- sounds


def test_a_sample_changes_the_frames_that_lie_over_it(models: Any, folder: Path) -> None:
    model = models("wav2vec2")
    sound = media.sound_file(folder, 0.4)
    perceived = read_media(model, audio=sound)
    (frames,) = perceived.positions.stretches
    assert frames == Frames(0, 19, 0.02)
    assert perceived.positions.names[:3] == ("0.00s", "0.02s", "0.04s")
    values = perceived.inputs["input_values"]
    for sample in (100, 330, 3210):
        other = values.clone()
        other[0, sample] += 3.0
        with torch.no_grad():
            change = (model.module.feature_extractor(values) - model.module.feature_extractor(other)).abs()
        moved = change[0].amax(0).gt(1e-6).nonzero()[:, 0].tolist()
        assert moved
        for frame in moved:
            start = float(perceived.positions.names[frame].rstrip("s"))
            assert start * 16000 <= sample < start * 16000 + 400


def test_a_column_of_mel_changes_the_position_of_its_time(models: Any, folder: Path) -> None:
    model = models("whisper")
    perceived = read_media(model, audio=media.sound_file(folder, 0.4))
    values, encoder = perceived.inputs["input_features"], model.module.model.encoder
    for column in (6, 31, 98):
        other = values.clone()
        other[0, :, column] += 3.0
        with torch.no_grad():
            states = [
                encoder(each, output_hidden_states=True).hidden_states[0][0] for each in (values, other)
            ]
        change = (states[0] - states[1]).abs().amax(-1)
        moved = change.gt(1e-6).nonzero()[:, 0].tolist()
        assert f"{0.01 * (column - column % 2):.2f}s" in [perceived.positions.names[i] for i in moved]
        assert max(moved) - min(moved) <= 2


def test_channels_are_mixed_and_other_rates_resampled_and_both_are_said(models: Any, folder: Path) -> None:
    time = np.arange(4410) / 44100
    left, right = np.sin(2 * np.pi * 1000 * time), np.sin(2 * np.pi * 3000 * time)
    soundfile.write(folder / "stereo.wav", np.stack([left, right], 1) * 0.5, 44100)
    perceived = read_media(models("wav2vec2"), audio=folder / "stereo.wav")
    sound = perceived.medium
    assert isinstance(sound, Sound)
    assert len(sound.samples) == 1600
    strength = np.abs(np.fft.rfft(sound.samples * np.hanning(1600)))
    loudest = np.sort(np.argsort(strength)[-2:] * 10)
    assert loudest.tolist() == [1000, 3000]
    assert [notice.split("'")[2].strip() for notice in perceived.notices] == [
        "has 2 channels: their mean is read",
        "has 44100 samples a second: resampled to 16000",
    ]


def test_a_sound_that_is_too_long_is_cut_and_that_is_said(models: Any, folder: Path) -> None:
    perceived = read_media(models("whisper"), audio=media.sound_file(folder, 1.3, name="long.wav"))
    assert isinstance(perceived.medium, Sound)
    assert perceived.medium.seconds == 1.0
    assert "reads 1 s: the rest of the sound is left out" in perceived.notices[0]


def test_a_count_that_does_not_fit_the_time_gives_numbers(models: Any, folder: Path) -> None:
    module = copy.deepcopy(models("wav2vec2").module)
    module.feature_extractor.register_forward_hook(lambda _m, _g, out: out[..., ::2])
    perceived = read_media(
        Model(models("wav2vec2").checkpoint, module, None, None), audio=media.sound_file(folder)
    )
    assert perceived.positions.names[:2] == ("#0", "#1")
    assert perceived.positions.stretches == ()
    assert "cannot be told" in perceived.notices[-1]


# ---- what cannot be read


def refusal(model: Model, **given: Any) -> str:
    with pytest.raises((InputError, ModelUnavailableError)) as caught:
        read_media(model, **given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_no_picture_is_refused_in_one_line(models: Any, folder: Path, square: Path) -> None:
    (folder / "text.png").write_text("no picture")
    (folder / "cut.png").write_bytes(square.read_bytes()[:900])
    assert refusal(models("vit"), image=folder / "none.png").endswith("none.png': no such file")
    assert refusal(models("vit"), image=folder / "text.png").endswith("text.png': no format that is known")
    assert "cannot read picture" in refusal(models("vit"), image=folder / "cut.png")
    assert "cannot read picture" in refusal(models("vit"), image=folder)


def test_what_is_no_sound_is_refused_in_one_line(models: Any, folder: Path, square: Path) -> None:
    (folder / "text.wav").write_text("no sound")
    soundfile.write(folder / "empty.wav", np.zeros(0), 16000)
    soundfile.write(folder / "short.wav", np.zeros(50), 16000)
    soundfile.write(folder / "nan.wav", np.full(900, np.nan), 16000, subtype="FLOAT")
    hears = models("wav2vec2")
    assert "no such file" in refusal(hears, audio=folder / "none.wav")
    assert refusal(hears, audio=folder / "text.wav").startswith("cannot read sound")
    assert refusal(hears, audio=square).startswith("cannot read sound")
    assert refusal(hears, audio=folder / "empty.wav").endswith("is empty")
    assert refusal(hears, audio=folder / "short.wav") == "the sound is too short for this model: 0.00313 s"
    assert refusal(hears, audio=folder / "nan.wav").endswith("has samples that are no numbers")


@pytest.mark.parametrize(
    ("name", "file"), [("vit", "preprocessor_config.json"), ("llava", "processor_config.json")]
)
def test_settings_nested_without_end_are_refused_in_one_line(
    models: Any, tmp_path: Path, square: Path, name: str, file: str
) -> None:
    whole = models(name)
    shutil.copytree(whole.folder, tmp_path / name)
    (tmp_path / name / file).write_text("[" * 100_000)
    damaged = opened(tmp_path / name)
    texts = QUESTION if name in SPLICING else ()
    assert refusal(damaged, image=square, texts=texts)
    assert read_media(whole, image=square, texts=texts)


def test_a_processor_whose_text_has_no_room_is_refused_before_it_is_made(
    models: Any, tmp_path: Path, square: Path
) -> None:
    shutil.copytree(models("llava").folder, tmp_path / "llava")
    told = tmp_path / "llava" / "processor_config.json"
    told.write_text(json.dumps({**json.loads(told.read_text()), "image_seq_length": 2**31 * 64}))
    with pytest.raises(DoesNotFitError, match="a picture of 137,438,953,472 tokens"):
        read_media(opened(tmp_path / "llava"), image=square, texts=QUESTION)


def test_a_tokenizer_that_fails_inside_a_processor_is_refused_in_one_line(models: Any, square: Path) -> None:
    class Failing:
        image_processor, image_token = None, "<image>"

        def __call__(self, **given: Any) -> dict[str, Any]:
            raise Exception("Missing [UNK] token from the vocabulary")  # as the library's own raise it

    model = replace(models("llava"), processor=Failing())
    assert "Missing [UNK] token" in refusal(model, image=square, texts=("<image> what ?",))


def test_what_a_library_says_of_a_damaged_sound_stays_off_standard_error(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole, damaged = folder / "whole.mp3", folder / "damaged.mp3"
    soundfile.write(whole, np.sin(np.linspace(0, 2000, 16000)), 16000)
    content = bytearray(whole.read_bytes())
    content[len(content) // 2 :: 40] = bytes(len(content[len(content) // 2 :: 40]))
    damaged.write_bytes(content)
    with soundfile.SoundFile(damaged) as file:
        file.read()
    assert "Illegal" in capfd.readouterr().err, "this damage is one that the library speaks of"
    open_sound(damaged, 16000)
    assert capfd.readouterr().err == ""


def test_a_model_gets_what_it_reads_and_nothing_else(models: Any, folder: Path, square: Path) -> None:
    sound = media.sound_file(folder)
    assert "reads no pictures" in refusal(models("wav2vec2"), image=square)
    assert "reads no sounds" in refusal(models("vit"), audio=sound)
    assert "reads pictures and no text" in refusal(models("vit"), image=square, texts=("what",))
    assert "reads sounds and no text" in refusal(models("whisper"), audio=sound, texts=("what",))
    assert refusal(models("vit"), image=square, audio=sound) == "give a picture or a sound, one of the two"
    with pytest.raises(InputError, match=r"reads no text: give it a file with --image"):
        models("vit").encode(("what",))
    with pytest.raises(InputError, match=r"reads no text: give it a file with --audio"):
        models("whisper").encode(("what",))


def test_a_checkpoint_that_does_not_say_how_it_reads_is_refused(folder: Path, square: Path) -> None:
    for name, given in (("vit", {"image": square}), ("hubert", {"audio": media.sound_file(folder)})):
        path = media.save(name, folder / f"mute-{name}")
        (path / "preprocessor_config.json").unlink()
        assert refusal(opened(path), **given).endswith("there is no preprocessor_config.json")
        (path / "preprocessor_config.json").write_text("{")
        assert "cannot tell how it wants its" in refusal(opened(path), **given)


def test_a_processor_that_needs_torchvision_is_stood_in_for_and_that_is_said(
    models: Any, square: Path
) -> None:
    perceived = read(models, "dinov3", square)
    assert perceived.notices[0].startswith("DINOv3ViTImageProcessorFast needs torchvision")
    pixels = np.asarray(Image.open(square)) / 255
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    expected = ((pixels - mean) / deviation).transpose(2, 0, 1)
    np.testing.assert_allclose(perceived.inputs["pixel_values"][0].numpy(), expected, atol=1e-5)


def test_unusual_pictures_are_read_and_said(models: Any, folder: Path) -> None:
    grey = Image.fromarray(np.full((40, 60), 51, np.uint8))
    grey.save(folder / "grey.png")
    clear = Image.new("RGBA", (60, 40), (255, 0, 0, 0))
    clear.save(folder / "clear.png")
    grey.save(folder / "film.gif", save_all=True, append_images=[Image.new("L", (60, 40), 200)])
    Image.fromarray(np.full((40, 60), 51 * 257, np.uint16)).save(folder / "deep.png")
    turned = Image.fromarray(np.full((60, 40, 3), 51, np.uint8))
    turned.putpixel((0, 59), (255, 255, 255))
    exif = Image.Exif()
    exif[0x0112] = 6  # lies on its side
    turned.save(folder / "turned.png", exif=exif)

    def pixels(name: str) -> tuple[np.ndarray, tuple[str, ...]]:
        perceived = read_media(models("vit"), image=folder / name)
        assert isinstance(perceived.medium, Picture)
        return perceived.medium.pixels, perceived.notices

    for name in ("grey.png", "deep.png", "film.gif"):
        np.testing.assert_allclose(pixels(name)[0], 0.2, atol=0.01)
    assert "has 2 pictures in it: the first is read" in pixels("film.gif")[1][0]
    assert pixels("clear.png")[0].min() == 1.0
    assert "is read as white" in pixels("clear.png")[1][0]
    assert pixels("turned.png")[0][0, 0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("size", [(2, 2500), (2500, 2)])
def test_a_picture_that_the_processor_does_not_take_is_one_line(
    models: Any, folder: Path, size: tuple[int, int]
) -> None:
    narrow = folder / "narrow.png"
    Image.new("RGB", size).save(narrow)
    with pytest.raises(InputError, match=r"takes no picture like 'narrow\.png': .*aspect ratio") as raised:
        read_media(models("qwen2_vl"), image=narrow, texts=QUESTION)
    assert "\n" not in str(raised.value)
    assert read_media(models("vit"), image=narrow).medium is not None
