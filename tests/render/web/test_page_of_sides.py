"""A page of one word in two texts: every head of the layer on both sides, refused before the run."""

from pathlib import Path

import numpy as np
import pytest
from pages_read import codes_in, document
from typer.testing import CliRunner

import attnscope as at
from attnscope.cli.app import app
from attnscope.render.web import room
from attnscope.render.web.codes import decoded
from attnscope.session.reading import Reading

SOME = (0, 5, 11)  # heads
TEXTS = ("I opened the door.", "She saw it, and the door fell.")  # of different lengths


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments), env={"HF_HUB_OFFLINE": "1", "COLUMNS": "100"})
    return result.exit_code, result.stderr


def compared(place: Path, *more: str) -> tuple[int, str]:
    return run("compare", *TEXTS, "--word", "door", "-m", "demo", "-q", "-o", str(place), *more)


@pytest.fixture(scope="module")
def model() -> at.Model:
    return at.load("demo")


def weights(place: Path, reading: dict) -> np.ndarray:
    """Head, query, key of the only layer of a reading, as the page has them."""
    (layer,) = codes_in(place, reading)
    return decoded(layer, both=True)


def test_both_sides_hold_every_head_of_the_layer_as_the_text_alone_has_it(tmp_path, model) -> None:
    place = tmp_path / "x.html"
    code, said = compared(place, "--layer", "2")
    assert code == 0, said
    told = document(place)
    assert told["both"]["pairs"] == [[2, head, 2, head] for head in range(12)]
    for text, reading in zip(TEXTS, told["readings"], strict=True):
        assert (reading["layers"], len(reading["full"])) == ([2], 1)
        own = model.read(text)
        exact = np.array([own.head(2, head).weights for head in SOME])
        assert weights(place, reading)[list(SOME)] == pytest.approx(exact, abs=3.2e-5)
    first, second = (weights(place, each) for each in told["readings"])
    assert first.shape != second.shape


def test_two_layers_of_a_text_are_held_whole_too(tmp_path, model) -> None:
    place = tmp_path / "x.html"
    asked = ("--word", "door", "-m", "demo", "-q", "--layer", "1", "--layer-b", "3", "-o", str(place))
    code, said = run("compare", TEXTS[0], *asked)
    assert code == 0, said
    told = document(place)
    assert told["both"]["pairs"] == [[1, head, 3, head] for head in range(12)]
    own = model.read(TEXTS[0])
    for layer, reading in zip((1, 3), told["readings"], strict=True):
        exact = np.array([own.head(layer, head).weights for head in SOME])
        assert weights(place, reading)[list(SOME)] == pytest.approx(exact, abs=3.2e-5)
    assert not np.allclose(*(weights(place, each) for each in told["readings"]), atol=0.01)


def test_what_has_no_room_is_left_out_or_refused_before_the_model_runs(tmp_path, monkeypatch) -> None:
    place = tmp_path / "x.html"
    monkeypatch.setattr(room, "MOST_BYTES", 181_500)  # one head a side has 90 kB of frame and its numbers
    code, said = compared(place)
    assert code == 0, said
    assert [reading["blocks"] for reading in document(place)["readings"]] == [None, None]
    place.unlink()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the model ran")

    monkeypatch.setattr(Reading, "capture", never)
    monkeypatch.setattr(room, "MOST_BYTES", 180_100)
    code, said = compared(place)
    assert code == 2
    assert "a page of one head a side over 11 tokens would have about" in said
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(AssertionError, match="the model ran"):  # without a page it is not refused
        CliRunner().invoke(app, ["compare", *TEXTS, "--word", "door", "-m", "demo"], catch_exceptions=False)
