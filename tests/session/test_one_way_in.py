"""Every command takes every input that has a meaning for it, and refuses the others in one line."""

from functools import cache
from pathlib import Path
from typing import Any

import media_models as media
import pytest
from typer.testing import CliRunner, Result

from attnscope.cli.app import app


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("seeing")
    return cache(lambda name: str(media.save(name, folder / name)))


@pytest.fixture(scope="module")
def square(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(media.picture_file(tmp_path_factory.mktemp("picture")))


@pytest.fixture(scope="module")
def tone(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(media.sound_file(tmp_path_factory.mktemp("sound"), 0.7))


HEAD = ("--layer", "1", "--head", "2")
OVER_A_PICTURE = {
    "heads": (*HEAD,),
    "tsne": (*HEAD, "--query", "r1c2", "--max-iter", "300"),
    "report": (*HEAD, "--query", "r1c2", "--max-iter", "300"),
    "compare": ("--word", "r1c2", "--layer", "0", "--layer-b", "1"),
    "verify": (),
}


@pytest.mark.parametrize("command", OVER_A_PICTURE)
def test_a_picture_is_read_by_every_command(command: str, saved, square: str, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    result = run(command, "--image", square, "-m", saved("vit"), *OVER_A_PICTURE[command], "-o", str(file))
    assert result.exit_code == 0, result.stderr
    assert "square.png, read as 40 x 60 pix" in result.stdout
    assert "certified" in result.stdout
    assert "square.png" in file.read_text()


@pytest.mark.parametrize("command", ["heads", "tsne", "report", "verify"])
def test_a_sound_is_heard_by_every_command(command: str, saved, tone: str, tmp_path: Path) -> None:
    options = () if command == "verify" else ("--kind", "encoder", "--layer", "0", "--head", "1")
    options += ("--max-iter", "300") if command in ("tsne", "report") else ()
    file = str(tmp_path / "out.json")
    result = run(command, "--audio", tone, "-m", saved("whisper"), *options, "-o", file)
    assert result.exit_code == 0, result.stderr
    assert "0.70 s at 16000 Hz" in result.stdout


def test_a_model_that_hears_says_what_it_hears(saved, tone: str) -> None:
    result = run("predict", "--audio", tone, "-m", saved("whisper"))
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("The model wrote “")
    assert "over tone.wav, 0.70 s at 16000 Hz" in " ".join(result.stdout.split())


def test_a_word_is_compared_in_texts_that_the_model_goes_on_with(tmp_path: Path) -> None:
    texts = "the dog saw the cat", "the dog was near the"
    result = run("compare", *texts, "--word", "dog", "--generate", "3", "-m", "demo-causal")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count("goes on, greedily") == 2
    assert "certified" in result.stdout


def test_a_word_is_compared_in_pairs() -> None:
    texts = "I sat on the bank.", "I put my coins in the bank."
    result = run("compare", *texts, "--pair", "It opened.", "--word", "bank", "-m", "demo")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("“It opened.”") == 2


REFUSED = {
    "a text that goes on beside a picture": ("tsne", "--image", "x.png", "--generate", "3"),
    "two media": ("report", "--image", "x.png", "--audio", "y.wav"),
    "a pair of nothing": ("report", "--pair", "a text"),
    "no text to predict": ("predict",),
    "a grid of one head": ("heads", "a text", *HEAD, "--measure", "distance", "-m", "demo"),
    "a block of a comparison": ("compare", "a", "b", "--word", "a", "--block", "1"),
    "a prediction as plain text": ("predict", "a [MASK]", "-o", "x.txt", "-m", "demo"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_what_has_no_meaning_is_refused_in_one_line(mistake: str) -> None:
    result = run(*REFUSED[mistake])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
