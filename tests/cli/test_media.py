"""`heads --image` and `heads --audio` as a user calls them."""

import csv
import json
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
    files = [str(tmp_path / f"out{suffix}") for suffix in (".png", ".npz", ".csv", ".json")]
    wanted = [part for file in files for part in ("-o", file)]
    result = attnscope("heads", "--image", square, "-m", saved("vit"), "-l", "1", "--head", "2", *wanted)
    assert result.exit_code == 0
    assert "square.png, read as 40 x 60 pixels, 4 x 6 patches of 10 x 10\n" in result.stdout
    assert "L1 H2 looks most from [CLS] at patch r" in result.stdout
    assert "✓ certified" in result.stdout
    assert "note: showing query 0 [CLS] (--query chooses)" in result.stderr
    with Image.open(files[0]) as drawn:
        assert drawn.width > 1000
    told = json.loads(Path(files[3]).read_text())
    archive = np.load(files[1])
    np.testing.assert_array_equal(archive["over"].flatten(), archive["weights"][0, 1:])
    assert told["schema"] == "attnscope.picture/2"
    assert told["picture"]["covered"] == [40, 60]
    assert told["provenance"]["token_ids"] == []
    rows = list(csv.DictReader(line for line in Path(files[2]).read_text().splitlines() if line[0] != "#"))
    assert len(rows) == 24


def test_a_key_is_told_of_one_head_and_ranks_several(
    attnscope: Any, refused: Any, saved: Any, square: str, tmp_path: Path
) -> None:
    given = ("heads", "--image", square, "-m", saved("vit"), "--query", "[CLS]")
    one = (*given, "--layer", "1", "--head", "1")
    weights = np.array(document(attnscope(*one, "--json"))["over"])
    rank = 1 + int((weights > weights[2, 3]).sum())
    assert rank > 1
    said = f"row 2, column 3 gets {significant(float(weights[2, 3]))}, number {rank} of {weights.size}"
    assert said in " ".join(attnscope(*one, "--key", "r2c3").stdout.split())
    drawn = ("-o", str(tmp_path / "heads.png"))
    by_name = " ".join(attnscope(*given, "--key", "row 2, column 3", *drawn).stdout.split())
    assert Path(drawn[1]).stat().st_size > 5000
    assert "patch row 2, column 3" in by_name
    refused("", *one, "--key", "r9c9")


@pytest.mark.parametrize(("name", "shape"), [("llava", (4, 4)), ("qwen2_vl", (2, 3))])
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


def test_a_model_of_two_halves_needs_no_text(attnscope: Any, saved: Any, square: str) -> None:
    result = attnscope("heads", "--image", square, "-m", saved("clip"), "-l", "1", "--head", "0")
    assert result.exit_code == 0
    assert "4 x 4 patches" in result.stdout
    assert "vision_model" in result.stderr
    text = attnscope("heads", "what is", "-m", saved("clip"), "-l", "1", "--head", "0")
    assert text.exit_code == 0
    assert "it is given a blank one" in text.stderr


def test_a_window_of_a_model_that_reads_in_windows(
    attnscope: Any, refused: Any, saved: Any, square: str
) -> None:
    given = ("heads", "--image", square, "-m", saved("swin"), "-l", "1", "--head", "0", "--block", "3")
    told = document(attnscope(*given, "--json"))
    over = np.array(told["over"], float)
    assert np.isfinite(over).sum() == 16
    assert np.isfinite(over[[0, 1, 6, 7]][:, [0, 1, 6, 7]]).all()
    assert "in 4 windows: showing 3 (--block chooses)" in attnscope(*given).stderr
    swin = ("heads", "--image", square, "-m", saved("swin"))
    refused("has windows of its own: name one with --layer", *swin)
    refused("no block 9 in layer 1: blocks are 0-3", *swin, "-l", "1", "--head", "0", "--block", "9")


def test_an_encoder_over_a_sound(attnscope: Any, refused: Any, saved: Any, tone: str, tmp_path: Path) -> None:
    given = ("heads", "--audio", tone, "-m", saved("hubert"), "-l", "1", "--head", "2", "--query")
    told = document(attnscope(*given, "0.213s", "--json", "-o", str(tmp_path / "sound.png")))
    assert told["query_cell"] == [10], "a time within a frame names the frame"
    assert len(told["over"]) == 34
    assert told["frame_seconds"] == 0.02
    assert (tmp_path / "sound.png").stat().st_size > 5000
    refused("no token '7s' in the input: tokens are 0 0.00s, 1 0.02s", *given, "7s")


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


def test_a_grid_of_a_picture_is_its_heads_in_small(
    attnscope: Any, saved: Any, square: str, tmp_path: Path
) -> None:
    files = [str(tmp_path / name) for name in ("grid.npz", "grid.png")]
    given = ("heads", "--image", square, "-m", saved("dinov2"), "--grid")
    shown = attnscope(*given, "-o", files[0], "-o", files[1])
    assert shown.exit_code == 0, shown.stderr
    assert "largest weight of 6 heads" in shown.stdout
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


def test_a_find_over_a_picture_is_shown_and_stored(
    attnscope: Any, saved: Any, square: str, tmp_path: Path
) -> None:
    file = str(tmp_path / "found.npz")
    link = ("--from", "r0c1", "--to", "r2c4", "--controls", "3")
    given = ("find", "--image", square, "-m", saved("vit"), *link)
    shown = attnscope(*given, "-o", file)
    assert shown.exit_code == 0, shown.stderr
    said = " ".join(shown.stdout.split())
    assert said.startswith("3 shuffled pictures are too few to tell: 19 are needed.")
    assert "control: its patches in random order" in said
    leads = pasted(shown.stdout)
    assert leads.startswith(f"attnscope heads --image {square} -m ")
    assert "--key" not in leads  # over a picture every key is shown
    assert pasted(attnscope("show", file).stdout) == f"attnscope check {file}"
    again = leads.replace(square, Path(square).name)  # a file does not say where the picture lies
    told = document(attnscope(*given, "--json"))
    assert (told["controls"]["of"], told["by"], told["special"]) == ("picture", "token", "show")
    again_told = document(attnscope("show", file, "--json"))
    assert shlex.split(told.pop("next")) == shlex.split(leads)
    assert shlex.split(again_told.pop("next")) == shlex.split(again)
    assert resealed.but_proofs(again_told) == resealed.but_proofs(told)


@pytest.mark.parametrize(
    ("model", "asked", "says"),
    [
        ("vit", "--image nowhere.png", "cannot read picture 'nowhere.png': no such file"),
        ("vit", "--audio TONE", "reads no sounds: leave --audio out"),
        ("vit", "what --image SQUARE", "reads pictures and no text: leave the text out"),
        ("vit", "what", "reads no text: give it a file with --image"),
        ("hubert", "--image SQUARE", "reads no pictures: leave --image out"),
        ("hubert", "--audio SQUARE", "cannot read sound"),
        ("hubert", "what", "reads no text: give it a file with --audio"),
        ("vit", "--image SQUARE --audio TONE", "--image and --audio: give one of the two"),
        ("vit", "", "give a text to read, token numbers with --ids, or a file with --chat, --image or --"),
        ("vit", "--image SQUARE --query r9c9", "no token 'r9c9' in the input"),
        ("vit", "--image SQUARE --words", "leave --by, --words and --special out"),
        ("vit", "--image SQUARE --show q", "leave --show q out"),
        ("vit", "--image SQUARE --measure self --words", "a picture or a sound has none"),
        ("vit", "--image SQUARE --grid --words", "a picture or a sound has none"),
        ("vit", "--image SQUARE --grid --measure self", "leave --measure out"),
        ("vit", "--image SQUARE --pair cat", "--pair is a second text: there is no first one, leave --pair"),
        ("whisper", "--audio TONE --kind encoder -l 1 --head 2 --query door", "19 0.38s, ..., 47 0.94s"),
        ("llava", "<image><image> --image SQUARE", "<image> stands 2 times in the text"),
        ("llava", "what --image SQUARE --kind decoder --words", "leave --by, --words and --special out"),
    ],
)
def test_bad_input_is_one_line(
    model: str, asked: str, says: str, refused: Any, saved: Any, square: str, tone: str
) -> None:
    files = {"SQUARE": square, "TONE": tone}
    refused(says, "heads", *(files.get(each, each) for each in asked.split()), "-m", saved(model))


def test_a_model_that_reads_pictures_and_text_goes_on_with_the_text(attnscope: Any, saved: Any) -> None:
    told = document(attnscope("predict", "what is", "-m", saved("llava"), "--json"))
    assert told["task"] == "next"
    given = ("heads", "what is", "-m", saved("llava"), "-l", "1", "--head", "1", "--generate", "3")
    written = document(attnscope(*given, "--json"))
    assert np.array(written["weights"]).shape == (4, 4)
    assert written["verdict"] == "certified"


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
    refused: Any, saved: Any, tone: str, tmp_path: Path
) -> None:
    folder, kept = tmp_path / "without", ("config.json", "generation_config.json", "model.safetensors")
    shutil.copytree(saved("whisper"), folder)
    for file in folder.glob("*"):
        if file.name not in (*kept, "preprocessor_config.json"):
            file.unlink()
    for asked in (["verify"], ["predict"], ["heads", "--kind", "encoder"], ["heads", "--target", "what"]):
        refused("cannot read the tokenizer", *asked, "--audio", tone, "-m", str(folder), code=3)


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


def test_the_page_of_a_report_holds_what_was_seen(attnscope: Any, saved: Any, square: str, tmp_path) -> None:
    page, options = tmp_path / "r.html", ("-l", "1", "--head", "0", "--query", "mean")
    made = attnscope("report", "--image", square, "-m", saved("vit"), *options[:4], "-o", str(page))
    assert made.exit_code == 0, made.stderr
    text = page.read_text(encoding="utf-8")
    told = json.loads(re.search(r'<script type="application/json" id="document">(.*?)</script>', text)[1])
    assert told["picture"] is not None
    assert (told["open"]["view"], told["below"]) == ("matrix", ["map", "proof"])
    assert 'id="original"' in text
    mean = document(attnscope("heads", "--image", square, "-m", saved("vit"), *options, "--json"))
    np.testing.assert_allclose(np.array(mean["over"]).flatten(), np.array(mean["weights"]).mean(0)[1:])


def test_a_verification_says_which_file_was_read_and_how(attnscope: Any, saved: Any, tmp_path: Path) -> None:
    sound = str(media.sound_file(tmp_path, 0.5, rate=8000, channels=2))
    heard = attnscope("verify", "--audio", sound, "-m", saved("hubert"))
    assert "tone.wav, 0.50 s at 16000 Hz" in heard.stdout
    assert "2 channels: their mean is read" in heard.stderr
    assert "resampled to 16000" in heard.stderr
