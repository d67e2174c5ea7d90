"""Flow over pictures, sounds and text that the model wrote, by hand on the model's own inputs."""

from pathlib import Path

import media_models as media
import numpy as np
import pytest
import soundfile
import torch
import transformers as hf
from PIL import Image

import attnscope as at
from attnscope.analysis.claims.flow import pieces as parts
from attnscope.errors import InputError
from attnscope.render.sheets.flow import sheet
from attnscope.tokens import Patches

PATCH, ROWS, COLUMNS = media.PATCH, media.ROWS, media.COLUMNS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("media")
    media.picture_file(path)
    media.sound_file(path)
    for name in ("vit", "wav2vec2", "llava", "swin"):
        media.save(name, path / name)
    return path


@pytest.fixture(scope="module")
def seen(folder: Path) -> at.Reading:
    return at.load(str(folder / "vit")).read(image=folder / "square.png")


@torch.no_grad()
def test_a_patch_is_replaced_by_the_mean_of_all_and_the_querys_vector_turns(
    folder: Path, seen: at.Reading
) -> None:
    found = seen.flow("r1c3")
    model = hf.ViTModel.from_pretrained(folder / "vit", attn_implementation="eager").eval()
    processor = hf.ViTImageProcessorPil.from_pretrained(folder / "vit")
    pixels = processor(images=Image.open(folder / "square.png").convert("RGB"), return_tensors="pt")[
        "pixel_values"
    ]
    behind: list[torch.Tensor] = []
    layers = next(each for each in model.modules() if isinstance(each, torch.nn.ModuleList))
    layers[-1].register_forward_hook(
        lambda _m, _i, made: behind.append((made if isinstance(made, torch.Tensor) else made[0])[0].double())
    )
    model(pixels)
    mean = torch.stack(
        [
            pixels[0, :, r * PATCH : (r + 1) * PATCH, c * PATCH : (c + 1) * PATCH]
            for r in range(ROWS)
            for c in range(COLUMNS)
        ]
    ).mean(0)
    query = 1 + COLUMNS + 3
    assert (found.query, found.tokens.names[found.query]) == (query, "r1c3")
    assert found.ablated is not None
    assert (found.ablated.replacement, found.ablated.answer, found.ablated.together) == (
        "the mean patch",
        "",
        1,
    )
    for row, column in ((2, 4), (0, 0), (3, 5)):
        changed = pixels.clone()
        changed[0, :, row * PATCH : (row + 1) * PATCH, column * PATCH : (column + 1) * PATCH] = mean
        model(changed)
        turned = 1 - torch.cosine_similarity(behind[0][query], behind[-1][query], dim=0)
        place = 1 + row * COLUMNS + column
        assert found.ablated.effects[place] == pytest.approx(float(turned), abs=1e-6), (row, column)
    effects = found.ablated.effects
    assert np.flatnonzero(np.isnan(effects)).tolist() == [0, query], "neither [CLS] nor the query"
    assert np.nanargmax(effects) == 1 + 2 * COLUMNS + 4, "the bright square"
    assert found.zeroed is not None
    assert "over square.png" in found.text(width=200)


def test_of_many_patches_squares_are_replaced_at_once(
    seen: at.Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = seen.flow("[CLS]")
    monkeypatch.setattr(parts, "MOST", 6)
    found = seen.flow("[CLS]")
    assert found.ablated is not None
    assert (found.ablated.count, found.ablated.together) == (6, 4)
    assert found.ablated.groups[1] == (3, 4, 9, 10)
    effects = found.ablated.effects
    assert effects[3] == effects[4] == effects[9] == effects[10]
    assert alone.ablated is not None
    assert effects[3] != alone.ablated.effects[3]
    near = found.ablated.trust[-1]
    assert near.method == "distance alone"
    assert np.isnan(near.correlation), "no patch is nearer to a token that is none"
    told = sheet(found)
    assert told.answer.endswith("Only 6 groups of patches could be replaced.")
    (says,) = [column.says for column in told.main.table.columns if column.name == "effect"]
    assert "up to 4 patches" in says


def test_squares_cover_every_patch_once_whatever_the_shape() -> None:
    for rows, columns in ((14, 14), (24, 24), (3, 200), (8, 8)):
        patches = Patches(1, rows, columns)
        groups = parts._squares(patches, set(patches.positions))
        assert len(groups) <= parts.MOST
        assert sorted(place for each in groups for place in each) == list(patches.positions)


def test_near_in_a_picture_is_near_across_its_grid(seen: at.Reading) -> None:
    from attnscope.session.questions.claims.replacing import _near

    query = 1 + COLUMNS + 3
    near = _near(seen.flow("r1c3"), (query,))
    assert near[query + COLUMNS] == near[query + 1] == -1
    assert near[query + COLUMNS + 1] == pytest.approx(-(2**0.5))


@torch.no_grad()
def test_a_frame_is_replaced_by_silence_as_the_model_is_given_it(folder: Path) -> None:
    found = at.load(str(folder / "wav2vec2")).read(audio=folder / "tone.wav").flow("0.10s")
    model = hf.Wav2Vec2Model.from_pretrained(folder / "wav2vec2", attn_implementation="eager").eval()
    samples, rate = soundfile.read(folder / "tone.wav")
    given = hf.Wav2Vec2FeatureExtractor()(samples, sampling_rate=rate, return_tensors="pt")["input_values"]
    silent = (0 - samples.mean()) / np.sqrt(samples.var() + 1e-7)
    behind: list[torch.Tensor] = []
    model.encoder.layers[-1].register_forward_hook(
        lambda _m, _i, made: behind.append((made if isinstance(made, torch.Tensor) else made[0])[0].double())
    )
    model(given)
    assert found.tokens.names[found.query] == "0.10s"
    assert found.ablated is not None
    assert found.ablated.replacement == "silence"
    for frame in (2, 7, 20):
        changed = given.clone()
        changed[0, frame * 320 : (frame + 1) * 320] = silent
        model(changed)
        turned = 1 - torch.cosine_similarity(behind[0][found.query], behind[-1][found.query], dim=0)
        assert found.ablated.effects[frame] == pytest.approx(float(turned), abs=1e-6), frame


def test_a_decoder_that_reads_a_picture_loses_its_answer_and_sees_no_later_patch(folder: Path) -> None:
    found = (
        at.load(str(folder / "llava"))
        .read("what is in the picture ?", image=folder / "square.png")
        .flow("r1c1")
    )
    assert found.ablated is not None
    assert found.ablated.answer
    assert 0 < found.ablated.probability < 1
    replaced = [found.tokens.names[i] for i in np.flatnonzero(~np.isnan(found.ablated.effects))]
    assert replaced == ["r0c0", "r0c1", "r0c2", "r0c3", "r1c0"]


def test_a_picture_that_is_read_in_windows_is_refused(folder: Path) -> None:
    reading = at.load(str(folder / "swin")).read(image=folder / "square.png")
    with pytest.raises(InputError, match="flow needs whole layers: layer 0 reads in windows"):
        reading.flow(0, heads=0)


def test_what_the_model_wrote_is_followed_as_if_it_had_been_given() -> None:
    model = at.load("demo-causal")
    wrote = model.read("I put my money", generate=5).flow(-1)
    given = model.read(ids=wrote.tokens.ids).flow(-1)
    assert wrote.tokens.written
    assert wrote.rollout == pytest.approx(given.rollout, abs=1e-6)
    assert wrote.zeroed == pytest.approx(given.zeroed, abs=1e-6)
    assert wrote.ablated is not None
    assert given.ablated is not None
    assert wrote.ablated.probability == pytest.approx(given.ablated.probability, abs=1e-6)


@pytest.mark.usefixtures("believing")
def test_what_replaced_groups_did_comes_back_from_a_file(
    seen: at.Reading, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(parts, "MOST", 6)
    found = seen.flow("r0c0")
    for suffix in (".npz", ".json"):
        again = at.open(found.save(tmp_path / f"flow{suffix}"))
        assert again.ablated.groups == found.ablated.groups  # type: ignore[union-attr]
        assert again.text() == found.text()


def test_back_by_gradients_a_patch_has_the_sum_over_its_pixels(seen: at.Reading, folder: Path) -> None:
    """Blanking all patches at once turns the vector by what integrated gradients sum to."""
    found = seen.flow("r1c3")
    told = {each.method: each for each in found.attributed}
    query, count = found.query, len(found.tokens)
    pixels = seen._whole().inputs["pixel_values"]
    numbers = torch.arange(pixels.numel()).reshape(pixels.shape)
    own = {
        1 + r * COLUMNS + c: numbers[0, :, r * PATCH : (r + 1) * PATCH, c * PATCH : (c + 1) * PATCH].reshape(
            -1
        )
        for r in range(ROWS)
        for c in range(COLUMNS)
    }
    flat = pixels.flatten()
    mean = torch.stack([flat[each] for each in own.values()]).mean(0)
    blank = flat.clone()
    for place, each in own.items():
        if place != query:
            blank[each] = mean
    model = hf.ViTModel.from_pretrained(folder / "vit", attn_implementation="eager").eval()
    layers = next(each for each in model.modules() if isinstance(each, torch.nn.ModuleList))
    behind: list[torch.Tensor] = []
    layers[-1].register_forward_hook(
        lambda _m, _i, made: behind.append((made if isinstance(made, torch.Tensor) else made[0])[0])
    )
    steps, total = 200, torch.zeros_like(flat)
    model(pixels)
    was = behind[-1][query].detach()
    for place in (torch.arange(steps) + 0.5) / steps:
        leaf = (blank + place * (flat - blank)).requires_grad_()
        model(leaf.reshape(pixels.shape))
        cosine = torch.cosine_similarity(behind[-1][query], was, dim=0)
        total += torch.autograd.grad(cosine, leaf)[0] / steps
    products = total * (flat - blank)
    values = told["integrated gradients"].values
    assert values is not None
    for place, each in own.items():
        if place != query:
            assert values[place] == pytest.approx(float(products[each].sum()), abs=2e-3)
    assert np.isnan(values[[0, query]]).all()
    assert np.nanmax(np.abs(values)) > 5e-3
    assert len(values) == count
