"""`heads --image` and `heads --audio` as a user calls them."""

import csv
import json
import os
import re
import shlex
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import media_models as media
import numpy as np
import pytest
import resealed
import soundfile
import torch
import transformers
from PIL import Image

from attnscope import incoming
from attnscope.render.kit.numbers import significant


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """`saved(name)`: the folder of a tiny checkpoint, made once."""
    folder = tmp_path_factory.mktemp("seeing")
    return cache(lambda name: str(media.save(name, folder / name)))


@pytest.fixture(scope="module")
def square(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(media.picture_file(tmp_path_factory.mktemp("picture")))


@pytest.fixture(scope="module")
def tone(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(media.sound_file(tmp_path_factory.mktemp("sound"), 0.7))


def pasted(shown: str) -> str:
    """The command that a screen leads on with, in one line."""
    return shown.partition("Next: ")[2].partition("\n")[2].replace("\\\n", "").strip().replace("     ", " ")


def document(result: Any) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_one_head_over_a_picture(attnscope: Any, saved: Any, square: str, tmp_path: Path) -> None:
    files = [str(tmp_path / f"out{suffix}") for suffix in (".png", ".svg", ".npz", ".csv", ".json")]
    wanted = [part for file in files for part in ("-o", file)]
    result = attnscope("heads", "--image", square, "-m", saved("vit"), "-l", "1", "--head", "2", *wanted)
    assert result.exit_code == 0
    assert "square.png, read as 40 x 60 pixels, 4 x 6 patches of 10 x 10\n" in result.stdout
    assert "L1 H2 looks most from [CLS] at patch r" in result.stdout
    assert "✓ certified" in result.stdout
    assert "note: showing query 0 [CLS] (--query chooses)" in result.stderr
    with Image.open(files[0]) as drawn:
        assert drawn.width > 1000
    told = json.loads(Path(files[4]).read_text())
    archive = np.load(files[2])
    np.testing.assert_array_equal(archive["over"].flatten(), archive["weights"][0, 1:])
    assert told["schema"] == "attnscope.picture/2"
    assert told["picture"]["covered"] == [40, 60]
    assert told["provenance"]["token_ids"] == []
    rows = list(csv.DictReader(line for line in Path(files[3]).read_text().splitlines() if line[0] != "#"))
    assert len(rows) == 24


def test_a_patch_as_the_query(attnscope: Any, saved: Any, square: str) -> None:
    options = ("--query", "r2c4", "-m", saved("vit"), "-l", "-1", "--head", "0")
    told = document(attnscope("heads", "--image", square, *options, "--json"))
    assert told["query"] == 1 + 2 * 6 + 4
    assert told["query_cell"] == [2, 4]
    assert "own patch is row 2, column 4" in " ".join(
        attnscope("heads", "--image", square, *options).stdout.split()
    )


def test_a_key_is_told_of_one_head_and_ranks_several(attnscope: Any, saved: Any, square: str) -> None:
    given = ("heads", "--image", square, "-m", saved("vit"), "--query", "[CLS]")
    one = attnscope(*given, "--layer", "1", "--head", "1", "--key", "r2c3")
    weights = np.array(document(attnscope(*given, "--layer", "1", "--head", "1", "--json"))["over"])
    rank = 1 + int((weights > weights[2, 3]).sum())
    said = " ".join(one.stdout.split())
    assert one.exit_code == 0, one.stderr
    assert (
        rank == 1
        or f"row 2, column 3 gets {significant(float(weights[2, 3]))}, number {rank} of {weights.size}"
        in said
    )
    every = document(attnscope(*given, "--key", "r2c3", "--json"))
    assert every["kind"] == "encoder"
    by_name = " ".join(attnscope(*given, "--key", "row 2, column 3").stdout.split())
    assert "patch row 2, column 3" in by_name
    assert by_name == " ".join(attnscope(*given, "--key", "r2c3").stdout.split())
    assert attnscope(*given, "--layer", "1", "--head", "1", "--key", "r9c9").exit_code == 2


def test_the_mean_over_the_queries_can_be_asked_for(attnscope: Any, saved: Any, square: str) -> None:
    options = ("--query", "mean", "-m", saved("vit"), "-l", "0", "--head", "0", "--json")
    told = document(attnscope("heads", "--image", square, *options))
    assert told["query"] is None
    np.testing.assert_allclose(np.array(told["over"]).flatten(), np.array(told["weights"]).mean(0)[1:])


def test_all_heads_side_by_side(attnscope: Any, saved: Any, square: str, tmp_path: Path) -> None:
    drawn = tmp_path / "grid.pdf"
    result = attnscope("heads", "--image", square, "-m", saved("dinov2"), "-o", str(drawn))
    assert result.exit_code == 0
    assert "certified: 6 of 6 heads" in result.stdout
    assert drawn.read_bytes().startswith(b"%PDF")
    told = document(attnscope("heads", "--image", square, "-m", saved("dinov2"), "--json"))
    assert np.array(told["over"]).shape == (2, 3, 4, 6)


@pytest.mark.parametrize(
    ("name", "shape"), [("llava", (4, 4)), ("paligemma", (4, 4)), ("gemma3", (2, 2)), ("qwen2_vl", (2, 3))]
)
def test_a_text_looks_at_the_picture_in_it(
    name: str, shape: tuple[int, int], attnscope: Any, saved: Any, square: str
) -> None:
    given = ("what is in the picture ?", "--image", square, "-m", saved(name), "-l", "1", "--head", "1")
    told = document(attnscope("heads", *given, "--json"))
    assert np.array(told["over"]).shape == shape
    assert told["query"] == len(told["query_tokens"]) - 1
    assert told["verdict"] == "certified"
    whole = np.array(told["over"]).sum() + sum(told["elsewhere"].values())
    assert whole == pytest.approx(1)


def test_the_tower_that_sees_can_be_chosen(attnscope: Any, saved: Any, square: str) -> None:
    given = ("what is in the picture ?", "--image", square, "-m", saved("llava"), "--kind", "encoder")
    told = document(attnscope("heads", *given, "-l", "0", "--head", "1", "--json"))
    assert np.array(told["over"]).shape == (4, 4)
    assert told["query"] == 0
    assert told["key_tokens"][0]["label"] == "[CLS]"


def test_a_model_of_two_halves_needs_no_text(attnscope: Any, saved: Any, square: str) -> None:
    result = attnscope("heads", "--image", square, "-m", saved("clip"), "-l", "1", "--head", "0")
    assert result.exit_code == 0
    assert "4 x 4 patches" in result.stdout
    assert "vision_model" in result.stderr
    text = attnscope("heads", "what is", "-m", saved("clip"), "-l", "1", "--head", "0")
    assert text.exit_code == 0
    assert "it is given a blank one" in text.stderr


def test_a_window_of_a_model_that_reads_in_windows(attnscope: Any, saved: Any, square: str) -> None:
    given = ("heads", "--image", square, "-m", saved("swin"), "-l", "1", "--head", "0", "--block", "3")
    told = document(attnscope(*given, "--json"))
    over = np.array(told["over"], float)
    assert np.isfinite(over).sum() == 16
    assert np.isfinite(over[[0, 1, 6, 7]][:, [0, 1, 6, 7]]).all()
    assert "in 4 windows: showing 3 (--block chooses)" in attnscope(*given).stderr
    several = attnscope("heads", "--image", square, "-m", saved("swin"))
    assert several.exit_code == 2
    assert "has windows of its own: name one with --layer" in several.stderr


def test_an_encoder_over_a_sound(attnscope: Any, saved: Any, tone: str, tmp_path: Path) -> None:
    given = ("heads", "--audio", tone, "-m", saved("hubert"), "-l", "1", "--head", "2", "--query", "0.20s")
    told = document(attnscope(*given, "--json", "-o", str(tmp_path / "sound.png")))
    assert told["query_cell"] == [10]
    assert len(told["over"]) == 34
    assert told["frame_seconds"] == 0.02
    assert (tmp_path / "sound.png").stat().st_size > 5000
    assert "certified: 8 of 8 heads" in attnscope("heads", "--audio", tone, "-m", saved("wav2vec2")).stdout


def test_what_is_said_over_the_time_of_the_sound(attnscope: Any, saved: Any, tone: str) -> None:
    given = ("heads", "--audio", tone, "-m", saved("whisper"), "-l", "1", "--head", "0")
    told = document(attnscope(*given, "--target", "what is in", "--json"))
    labels = [token["label"] for token in told["query_tokens"]]
    assert labels == ["<|startoftranscript|>", "what", "is", "in"]  # its settings name no language, no task
    assert np.array(told["weights"]).shape == (4, 50)
    assert len(told["over"]) == 35
    written = attnscope(*given)
    assert written.exit_code == 0
    assert "writes: " in written.stderr
    encoder = document(attnscope(*given, "--kind", "encoder", "--json"))
    assert np.array(encoder["weights"]).shape == (50, 50)


READS = {"captioner": ("--image", 4), "whisper": ("--audio", 3)}  # and the heads of its decoder


@pytest.fixture
def given(request: pytest.FixtureRequest, saved: Any, square: str, tone: str) -> tuple[str, ...]:
    """A model that writes about what it sees or hears, and what it is to see or to hear."""
    option = READS[request.param][0]
    return (option, square if option == "--image" else tone, "-m", saved(request.param))


def decoder_weights(folder: str, given: tuple[str, ...], ids: list[int], layer: int) -> np.ndarray:
    """The decoder's own weights as transformers returns them: `head query key`."""
    sees = given[0] == "--image"
    kind = transformers.VisionEncoderDecoderModel if sees else transformers.WhisperForConditionalGeneration
    model = kind.from_pretrained(folder, attn_implementation="eager").eval()
    if sees:
        reads = transformers.AutoImageProcessor.from_pretrained(folder)
        seen = reads(Image.open(given[1]).convert("RGB"), return_tensors="pt")
    else:
        wave, rate = soundfile.read(given[1], dtype="float32")
        reads = transformers.AutoFeatureExtractor.from_pretrained(folder)
        seen = reads(wave, sampling_rate=rate, return_tensors="pt")
    with torch.no_grad():
        told = model(**seen, decoder_input_ids=torch.tensor([ids]), output_attentions=True)
    return told.decoder_attentions[layer][0].numpy()


@pytest.mark.parametrize("given", READS, indirect=True)
def test_the_words_of_a_decoder_look_at_words_whatever_its_encoder_read(
    attnscope: Any, given: tuple[str, ...], tmp_path: Path
) -> None:
    asked = ("heads", *given, "--kind", "decoder", "--target", "what is in")
    file = str(tmp_path / "head.png")
    told = document(attnscope(*asked, "-l", "1", "--head", "2", "--json", "-o", file))
    labels = [token["label"] for token in told["query_tokens"]]
    assert labels[-3:] == ["what", "is", "in"]
    assert told["key_tokens"] == told["query_tokens"]
    ids = [token["id"] for token in told["query_tokens"]]
    lower = np.tril(np.ones((len(ids), len(ids)), bool))
    found = np.where(lower, np.array(told["weights"], float), 0)
    np.testing.assert_allclose(found, decoder_weights(given[3], given, ids, 1)[2], atol=1e-6)
    assert told["verdict"] == "certified"
    assert Path(file).stat().st_size > 5000
    shown = attnscope(*asked, "-l", "1", "--head", "2", "--query", "is")
    assert shown.stdout.startswith("From “is”, L1 H2 gives ")
    assert "blank: masked" not in shown.stdout
    assert "1 key masked" in attnscope(*asked, "-l", "1", "--head", "2", "--query", "is", "-v").stdout


@pytest.mark.parametrize("given", READS, indirect=True)
def test_several_heads_of_such_a_decoder_are_an_overview_of_words(
    attnscope: Any, given: tuple[str, ...]
) -> None:
    name = Path(given[3]).name
    asked = ("heads", *given, "--kind", "decoder", "--target", "what is in")
    shown = attnscope(*asked)
    assert shown.exit_code == 0, shown.stderr
    heads = 2 * READS[name][1]
    assert f"certified: {heads} of {heads} heads" in shown.stdout
    assert "\nover " in shown.stdout  # which picture or sound it was
    leads = pasted(shown.stdout)
    assert leads.startswith(f"attnscope heads --target 'what is in' {' '.join(given[:2])} -m ")
    assert attnscope(*shlex.split(leads)[1:], "-q").exit_code == 0
    aimed = document(attnscope(*asked, "--query", "is", "--json"))
    assert aimed["query_tokens"][aimed["aim"][0]]["label"] == "is"


@pytest.mark.parametrize("given", ["captioner"], indirect=True)
def test_what_a_picture_lacks_the_words_of_a_decoder_have(attnscope: Any, given: tuple[str, ...]) -> None:
    asked = ("heads", *given, "--target", "what is in", "-l", "1", "--head", "0")
    assert attnscope(*asked, "--kind", "decoder", "--terms").exit_code == 0
    assert attnscope(*asked, "--kind", "decoder", "--special", "hide").exit_code == 0
    for kind in (("--kind", "cross"), ()):
        refused = attnscope(*asked, *kind, "--special", "hide", "-q")
        assert refused.exit_code == 2
        assert "leave --by, --words and --special out" in refused.stderr


def test_a_picture_within_a_decoders_text_is_still_laid_over(attnscope: Any, saved: Any, square: str) -> None:
    given = ("what is in the picture ?", "--image", square, "-m", saved("llava"), "-l", "1", "--head", "1")
    told = document(attnscope("heads", *given, "--kind", "decoder", "--json"))
    assert told["schema"] == "attnscope.picture/2"
    refused = attnscope("heads", *given, "--kind", "decoder", "--words", "-q")
    assert refused.exit_code == 2
    assert "leave --by, --words and --special out" in refused.stderr


def test_the_text_of_a_model_of_two_halves_looks_at_its_own_words(
    attnscope: Any, saved: Any, square: str
) -> None:
    given = ("heads", "what is", "-m", saved("clip"), "--tower", "text_model", "-l", "1", "--head", "0")
    beside = document(attnscope(*given, "--image", square, "--json"))
    alone = document(attnscope(*given, "--json"))
    assert beside["weights"] == alone["weights"]
    assert [token["label"] for token in beside["key_tokens"]] == ["what", "is"]


def test_a_grid_of_a_picture_is_its_heads_in_small(
    attnscope: Any, saved: Any, square: str, tmp_path: Path
) -> None:
    files = [str(tmp_path / name) for name in ("grid.npz", "grid.png")]
    given = ("heads", "--image", square, "-m", saved("dinov2"), "--grid")
    shown = attnscope(*given, "-o", files[0], "-o", files[1])
    assert shown.exit_code == 0, shown.stderr
    assert "largest weight of 6 heads" in shown.stdout
    assert "patches row by row" in attnscope(*given, "--legend").stdout
    assert "\nover square.png, read as 40 x 60 pixels\n" in shown.stdout
    assert f"attnscope heads --image {square} -m " in pasted(shown.stdout)
    told = document(
        attnscope("heads", "--image", square, "-m", saved("dinov2"), "-l", "1", "--head", "2", "--json")
    )
    whole = np.load(files[0])["weights"]
    assert whole.shape == (2, 3, 28, 28)
    np.testing.assert_allclose(whole[1, 2], told["weights"])
    patches = document(attnscope(*given, "--special", "hide", "--json"))
    np.testing.assert_allclose(np.array(patches["weights"])[1, 2], np.array(told["weights"])[4:, 4:])
    again = " ".join(attnscope("show", files[0]).stdout.split()).replace(" (stored)", "")
    assert again[:200] == " ".join(shown.stdout.split())[:200]


@pytest.mark.parametrize("grid", [False, True])
def test_the_next_command_over_a_picture_or_a_sound_runs_when_it_is_pasted(
    attnscope: Any, saved: Any, square: str, tone: str, tmp_path: Path, grid: bool
) -> None:
    odd = tmp_path / "a picture (1).png"
    odd.write_bytes(Path(square).read_bytes())
    for option, file, model in (("--image", str(odd), "vit"), ("--audio", tone, "hubert")):
        shown = attnscope("heads", option, file, "-m", saved(model), *(["--grid"] if grid else []))
        assert shown.exit_code == 0, shown.stderr
        words = shlex.split(pasted(shown.stdout))
        assert words[:4] == ["attnscope", "heads", option, file]
        assert attnscope(*words[1:], "-q").exit_code == 0


def test_measures_over_a_picture_and_a_sound(attnscope: Any, saved: Any, square: str, tone: str) -> None:
    told = document(
        attnscope("heads", "--image", square, "-m", saved("vit"), "--measure", "self,distance", "--json")
    )
    absent = {name: each["absent"] for name, each in told["measures"].items()}
    assert told["notes"] == ["over square.png, read as 40 x 60 pixels"]
    assert not absent["self"]
    assert "patches lie in rows and columns" in absent["distance"]
    heard = ("heads", "--audio", tone, "-m", saved("hubert"), "--measure", "distance,evenness", "--json")
    measured = document(attnscope(*heard))["measures"]
    assert [name for name, each in measured.items() if not each["absent"]] == ["distance", "evenness"]


def test_a_find_over_a_picture_is_shown_and_stored(
    attnscope: Any, saved: Any, square: str, tmp_path: Path
) -> None:
    file = str(tmp_path / "found.npz")
    given = (
        "find",
        "--image",
        square,
        "-m",
        saved("vit"),
        "--from",
        "r0c1",
        "--to",
        "r2c4",
        "--controls",
        "3",
    )
    shown = attnscope(*given, "-o", file)
    assert shown.exit_code == 0, shown.stderr
    said = " ".join(shown.stdout.split())
    assert said.startswith("3 shuffled pictures are too few to tell: 19 are needed.")
    assert "in 3 shuffled pictures" in said
    assert "control: its patches in random order" in said
    leads = pasted(shown.stdout)
    assert leads.startswith(f"attnscope heads --image {square} -m ")
    assert "--key" not in leads  # over a picture every key is shown
    assert attnscope(*shlex.split(leads)[1:], "-q").exit_code == 0
    assert "Next:" not in attnscope("show", file).stdout, "a file does not say where the picture lies"
    told = document(attnscope(*given, "--json"))
    assert (told["controls"]["of"], told["by"], told["special"]) == ("picture", "token", "show")
    again = document(attnscope("show", file, "--json"))
    assert shlex.split(told.pop("next")) == shlex.split(leads)
    assert resealed.but_proofs(again) == resealed.but_proofs(told)


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        ("vit", ("--image", "nowhere.png"), "cannot read picture 'nowhere.png': no such file"),
        ("vit", ("--audio", "{tone}"), "reads no sounds: leave --audio out"),
        ("vit", ("what", "--image", "{square}"), "reads pictures and no text: leave the text out"),
        ("vit", ("what",), "reads no text: give it a file with --image"),
        ("hubert", ("--image", "{square}"), "reads no pictures: leave --image out"),
        ("hubert", ("--audio", "{square}"), "cannot read sound"),
        ("hubert", ("what",), "reads no text: give it a file with --audio"),
        ("vit", ("--image", "{square}", "--audio", "{tone}"), "--image and --audio: give one of the two"),
        (
            "vit",
            (),
            "give a text to read, token numbers with --ids, or a file with --chat, --image or --audio",
        ),
        ("vit", ("--image", "{square}", "--query", "r9c9"), "no token 'r9c9' in the input"),
        ("vit", ("--image", "{square}", "--words"), "leave --by, --words and --special out"),
        ("vit", ("--image", "{square}", "--show", "q"), "leave --show q out"),
        ("vit", ("--image", "{square}", "--measure", "self", "--words"), "a picture or a sound has none"),
        ("vit", ("--image", "{square}", "--grid", "--words"), "a picture or a sound has none"),
        ("vit", ("--image", "{square}", "--grid", "--measure", "self"), "leave --measure out"),
        ("llava", ("<image> <image>", "--image", "{square}"), "<image> stands 2 times in the text"),
    ],
)
def test_bad_input_is_one_line(
    model: str, given: tuple[str, ...], said: str, attnscope: Any, saved: Any, square: str, tone: str
) -> None:
    filled = [part.format(square=square, tone=tone) for part in given]
    result = attnscope("heads", *filled, "-m", saved(model), "-q")
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_text_model_reads_no_picture(attnscope: Any, bert: Path, square: str) -> None:
    result = attnscope("heads", "the cat", "--image", square, "-m", str(bert), "-q")
    assert result.exit_code == 2
    assert "reads no pictures" in result.stderr


def test_a_model_that_reads_pictures_and_text_goes_on_with_the_text(attnscope: Any, saved: Any) -> None:
    told = document(attnscope("predict", "what is", "-m", saved("llava"), "--json"))
    assert told["task"] == "next"
    given = ("heads", "what is", "-m", saved("llava"), "-l", "1", "--head", "1", "--generate", "3")
    written = document(attnscope(*given, "--json"))
    assert np.array(written["weights"]).shape == (4, 4)
    assert written["verdict"] == "certified"


def test_a_verification_says_which_file_was_read_and_how(attnscope: Any, saved: Any, tmp_path: Path) -> None:
    sound = str(media.sound_file(tmp_path, 0.5, rate=8000, channels=2))
    heard = attnscope("verify", "--audio", sound, "-m", saved("hubert"))
    assert "tone.wav, 0.50 s at 16000 Hz" in heard.stdout
    assert "2 channels: their mean is read" in heard.stderr
    assert "resampled to 16000" in heard.stderr


@pytest.mark.parametrize("command", ["heads", "verify"])
def test_a_second_text_without_a_first_is_refused(
    command: str, attnscope: Any, saved: Any, square: str
) -> None:
    result = attnscope(command, "--image", square, "-m", saved("vit"), "--pair", "a cat")
    assert result.exit_code == 2
    assert result.stderr == "attnscope: --pair is a second text: there is no first one, leave --pair out\n"


def test_a_window_that_is_not_there_is_not_announced(attnscope: Any, saved: Any, square: str) -> None:
    given = ("heads", "--image", square, "-m", saved("swin"), "-l", "1", "--head", "0", "--block", "9")
    assert attnscope(*given).stderr == "attnscope: no block 9 in layer 1: blocks are 0-3\n"


def test_a_time_within_a_frame_names_the_frame(attnscope: Any, saved: Any, tone: str) -> None:
    given = ("heads", "--audio", tone, "-m", saved("hubert"), "-l", "1", "--head", "2", "--json", "--query")
    assert document(attnscope(*given, "0.213s"))["query_cell"] == [10]
    assert document(attnscope(*given, "0.2s"))["query_cell"] == [10]
    assert document(attnscope(*given, "0.199s"))["query_cell"] == [9]
    beyond = attnscope(*given, "7s")
    assert beyond.exit_code == 2
    assert "no token '7s' in the input: tokens are 0 0.00s, 1 0.02s" in beyond.stderr


def test_a_message_does_not_name_all_of_many_positions(attnscope: Any, saved: Any, tone: str) -> None:
    given = ("heads", "--audio", tone, "-m", saved("whisper"), "--kind", "encoder", "-l", "1", "--head", "2")
    result = attnscope(*given, "--query", "door")
    assert "19 0.38s, ..., 47 0.94s, 48 0.96s, 49 0.98s\n" in result.stderr
    assert "30 0.60s" not in result.stderr


def test_a_second_picture_that_lacks_its_size_is_one_line(attnscope: Any, saved: Any, tmp_path: Path) -> None:
    damaged, picture = tmp_path / "a.tiff", Image.new("RGB", (40, 60))
    picture.save(damaged, save_all=True, append_images=[picture])
    content, width = damaged.read_bytes(), b"\x00\x01\x04\x00\x01\x00\x00\x00"  # its tag, type and count
    assert content.count(width) == 2
    damaged.write_bytes((b"\xfa\xff" + width[2:]).join(content.rsplit(width, 1)))
    result = attnscope("heads", "--image", str(damaged), "-m", saved("vit"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"attnscope: cannot read picture '{damaged}': ")
    assert len(result.stderr.splitlines()) == 1


def test_a_model_that_hears_and_writes_needs_its_tokenizer(
    attnscope: Any, saved: Any, tone: str, tmp_path: Path
) -> None:
    folder = tmp_path / "without"
    shutil.copytree(saved("whisper"), folder)
    for file in folder.glob("*"):
        if file.name not in (
            "config.json",
            "generation_config.json",
            "model.safetensors",
            "preprocessor_config.json",
        ):
            file.unlink()
    for arguments in (["verify"], ["predict"], ["heads", "--kind", "encoder"], ["heads", "--target", "what"]):
        result = attnscope(*arguments, "--audio", tone, "-m", str(folder))
        assert (result.exit_code, result.stdout) == (3, ""), arguments
        assert "cannot read the tokenizer" in result.stderr
        assert len([line for line in result.stderr.splitlines() if line.startswith("attnscope: ")]) == 1


def test_a_picture_from_a_pipe_is_that_of_the_file(attnscope: Any, saved: Any, square: str) -> None:
    asked = ("heads", "-m", saved("vit"), "-l", "1", "--head", "2", "--json", "--image")
    out, into = os.pipe()
    os.write(into, Path(square).read_bytes())
    os.close(into)
    piped, plain = document(attnscope(*asked, f"/dev/fd/{out}")), document(attnscope(*asked, square))
    os.close(out)
    assert piped["picture"]["digest"] == plain["picture"]["digest"]
    assert piped["weights"] == plain["weights"]


def test_a_sound_that_unpacks_to_more_than_fits_is_refused(
    attnscope: Any, saved: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence = tmp_path / "silence.flac"
    soundfile.write(silence, np.zeros(2_000_000, np.int16), 16000)
    assert silence.stat().st_size < 10**5
    monkeypatch.setattr(incoming, "left", lambda: 20 * 10**6)
    result = attnscope("heads", "-m", saved("wav2vec2"), "--audio", str(silence))
    assert result.exit_code == 4
    assert "silence.flac' unpacked takes 32.0 MB, and memory has 20.0 MB free\n" in result.stderr


@pytest.mark.parametrize("given", READS, indirect=True)
def test_the_page_of_a_report_holds_what_was_seen_or_heard(attnscope, given, tmp_path: Path) -> None:
    page, part = tmp_path / "r.html", tmp_path / "f.html"
    options = ("-l", "1", "--head", "0", "--kind", "cross")
    assert attnscope("report", *given, *options, "-o", str(page)).exit_code == 0
    text = page.read_text(encoding="utf-8")
    told = json.loads(re.search(r'<script type="application/json" id="document">(.*?)</script>', text)[1])
    medium = "picture" if given[0] == "--image" else "sound"
    assert told[medium] is not None
    assert (told["open"]["view"], told["below"]) == ("matrix", ["map", "proof"])
    assert ('id="original"' in text) == (medium == "picture")
    assert attnscope("report", *given, *options, "--fragment", "-o", str(part)).exit_code == 0
    assert part.read_text(encoding="utf-8").startswith('<div class="attnscope"')
