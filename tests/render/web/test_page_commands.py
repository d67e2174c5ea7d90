"""Pages that commands write, and how large one becomes: known before the model runs."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import made_results as made
import media_models
import numpy as np
import pytest
from pages_read import block, document, weights_in
from typer.testing import CliRunner

from attnscope.cli.app import app
from attnscope.errors import InputError
from attnscope.render.saving import content
from attnscope.render.web import readings, room
from attnscope.results import Overview
from attnscope.session.reading import Reading

TEXT = "The door opened."


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments), env={"HF_HUB_OFFLINE": "1", "COLUMNS": "100"})
    return result.exit_code, result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A page of all heads, of all heads in small, and the stored run, of one text."""
    folder = tmp_path_factory.mktemp("pages")
    code, said = run("heads", TEXT, "-m", "demo", "-o", f"{folder}/all.html", "-o", f"{folder}/all.npz", "-q")
    assert code == 0, said
    code, said = run("heads", TEXT, "-m", "demo", "--grid", "-o", f"{folder}/grid.html", "-q")
    assert code == 0, said
    return folder


@pytest.mark.parametrize("name", ["all", "grid"])
def test_all_heads_are_there_and_the_strongest_with_its_queries_and_keys(folder, name) -> None:
    (reading,) = document(folder / f"{name}.html")["readings"]
    assert (len(reading["layers"]), len(reading["heads"]), len(reading["blocks"])) == (4, 12, 4)
    (full,) = reading["full"].values()
    assert full["q"]
    assert full["k"]


def test_the_command_is_the_one_that_was_typed_but_for_where_it_went(folder) -> None:
    assert (
        document(folder / "grid.html")["command"] == f"attnscope heads '{TEXT}' -m demo --grid -o page.html"
    )


def test_a_query_that_is_asked_for_is_what_opens(tmp_path) -> None:
    asked = ("--layer", "1", "--head", "9", "--query", "door", "--show", "weights")
    code, said = run("heads", TEXT, "-m", "demo", *asked, "-o", f"{tmp_path}/x.html", "-q")
    assert code == 0, said
    opening = document(tmp_path / "x.html")["open"]
    assert (opening["layer"], opening["head"], opening["query"], opening["view"]) == (1, 9, 2, "matrix")


def test_the_heads_that_find_ranks_are_in_its_page_with_the_weights_of_its_numbers(tmp_path) -> None:
    asked = ("--from", "opened", "--to", "door", "--controls", "2")
    code, said = run(
        "find", TEXT, "-m", "demo", *asked, "-o", f"{tmp_path}/x.html", "-o", f"{tmp_path}/x.npz", "-q"
    )
    assert code == 0, said
    opening = document(tmp_path / "x.html")["open"]
    with np.load(tmp_path / "x.npz") as stored:
        found = stored["weights"]
    shown = weights_in(tmp_path / "x.html")[:, :, opening["query"], opening["key"]]
    np.testing.assert_allclose(shown, found, atol=3.2e-5)
    assert np.abs(shown.T.reshape(shown.shape) - found).max() > 0.01


def test_the_heads_that_ablate_takes_away_are_in_its_page(folder, tmp_path) -> None:
    asked = ("--layer", "1", "--each", "--answer", ".")
    code, said = run("ablate", "The door [MASK].", "-m", "demo", *asked, "-o", f"{tmp_path}/x.html", "-q")
    assert code == 0, said
    code, said = run(
        "heads", "The door [MASK].", "-m", "demo", "--layer", "1", "-o", f"{tmp_path}/y.html", "-q"
    )
    assert code == 0, said
    assert document(tmp_path / "x.html")["readings"][0]["layers"] == [1]
    np.testing.assert_array_equal(weights_in(tmp_path / "x.html"), weights_in(tmp_path / "y.html"))


def test_two_stored_runs_have_all_the_heads_of_both_in_one_page(folder, tmp_path) -> None:
    code, said = run("compare", *[f"{folder}/all.npz"] * 2, "-o", f"{tmp_path}/x.html", "-q")
    assert code == 0, said
    told = document(tmp_path / "x.html")
    assert [(len(each["layers"]), len(each["heads"])) for each in told["readings"]] == [(4, 12)] * 2
    assert len(told["both"]["pairs"]) == 48


def test_a_grid_with_a_page_reads_and_recomputes_each_head_once_and_is_the_same_grid(
    folder, tmp_path, monkeypatch
) -> None:
    counted = []
    once = Reading.attention
    monkeypatch.setattr(Reading, "attention", lambda *a, **k: counted.append(1) or once(*a, **k))
    code, said = run(
        "heads", TEXT, "-m", "demo", "--grid", "-o", f"{tmp_path}/x.html", "-o", f"{tmp_path}/x.npz", "-q"
    )
    assert code == 0, said
    assert len(counted) == 1
    code, said = run("heads", TEXT, "-m", "demo", "--grid", "-o", f"{tmp_path}/y.npz", "-q")
    assert code == 0, said
    with np.load(tmp_path / "x.npz") as first, np.load(tmp_path / "y.npz") as second:
        np.testing.assert_array_equal(first["weights"], second["weights"])
    assert weights_in(tmp_path / "x.html").shape == (4, 12, 6, 6)


def dense(tokens: int, layers: int, heads: int) -> Overview:
    """Weights with about as many small ones as a model of language has."""
    random = np.random.default_rng(2)
    plain = made.overview(layers, heads, [f"t{i}" for i in range(tokens)])
    weights = random.dirichlet(np.full(tokens, 0.3), size=(layers, heads, tokens))
    return replace(plain, weights=tuple(tuple(each) for each in weights))


@pytest.fixture(scope="module")
def long() -> Overview:
    return dense(130, 2, 3)


@pytest.mark.parametrize(("tokens", "heads"), [(130, 3), (600, 2)])
def test_what_is_foretold_is_what_a_page_takes_within_a_quarter(
    tokens, heads, long, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tokens == 600:  # of which the largest of each row are kept
        for module in (room, readings):
            monkeypatch.setattr(module, "DENSE_BYTES", 400_000)
    found = long if tokens == 130 else dense(tokens, 12, heads)
    page = len(content(found, ".html"))
    every = len(found.layers) * heads
    assert room.expected_bytes(every, tokens, tokens, causal=False) == pytest.approx(page, rel=0.25)


@pytest.mark.parametrize(
    ("extent", "told"),
    [
        ((12, 12, 1900, 1900, False), "144 heads over 1900 tokens"),
        ((1, 1, 3000, 3000, False), "one head over 3000 tokens"),
        ((2, 2, 64, 9000, False), "4 heads over 9000 tokens"),
    ],
)
def test_what_is_too_large_is_said_in_one_line_with_what_to_leave_out(extent, told) -> None:
    if extent == (2, 2, 64, 9000, False):
        room.check_room(*extent)
        return
    with pytest.raises(InputError) as refused:
        room.check_room(*extent)
    assert told in str(refused.value)
    assert ("--layer, --head" in str(refused.value)) == (extent[0] > 1)
    assert "\n" not in str(refused.value)


def test_what_has_room_instead_is_told_and_has_it() -> None:
    with pytest.raises(InputError, match=r"([\d]+) heads have room") as refused:
        room.check_room(12, 12, 1900, 1900, False)
    fewer = int(re.search(r"(\d+) heads have room", str(refused.value))[1])
    assert room.fits(1, fewer, 1900, 1900, False)
    assert not room.fits(1, fewer + 1, 1900, 1900, False)
    with pytest.raises(InputError, match=r"about 2,000 tokens for one head"):
        room.check_room(1, 1, 3000, 3000, False)
    room.check_room(1, 1, 2000, 2000, False)


def test_of_many_heads_over_a_long_text_the_largest_of_each_row_have_room_and_more_if_causal() -> None:
    dense = 144 * 1000 * 1000 * 4.6 / 1000**0.457
    assert room.expected_bytes(144, 1000, 1000, causal=False) < dense / 1.8
    assert room.fits(12, 12, 1000, 1000, causal=False)
    assert not room.fits(1, 1, 2400, 2400, causal=False)
    assert room.fits(1, 1, 2400, 2400, causal=True)


def test_a_page_that_would_be_too_large_is_refused_before_the_model_runs(tmp_path, monkeypatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("the model ran")

    monkeypatch.setattr(room, "MOST_BYTES", 91_000)
    monkeypatch.setattr(Reading, "attention", never)
    code, said = run("heads", TEXT, "-m", "demo", "-o", f"{tmp_path}/x.html")
    assert code == 2
    assert "48 heads over 6 tokens would have about" in said
    assert "(--layer, --head)" in said
    assert list(tmp_path.iterdir()) == []


def test_a_ranking_that_has_no_room_for_all_heads_shows_the_best(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(room, "MOST_BYTES", 91_000)
    files = [part for suffix in ("html", "npz", "json") for part in ("-o", f"{tmp_path}/x.{suffix}")]
    asked = ("--from", "opened", "--to", "door", "--controls", "2")
    code, said = run("find", TEXT, "-m", "demo", *asked, *files, "-q")
    assert code == 0, said
    (reading,) = document(tmp_path / "x.html")["readings"]
    with np.load(tmp_path / "x.npz") as stored:
        strongest = np.argsort(-stored["weights"].ravel(), kind="stable")[:16]
    ranked = json.loads((tmp_path / "x.json").read_text("utf-8"))["heads"]
    assert reading["blocks"] is None
    assert len(ranked) == 48
    assert set(reading["full"]) == {f"L{one['layer']}H{one['head']}" for one in ranked[:16]}
    assert set(reading["full"]) != {f"L{i // 12}H{i % 12}" for i in strongest}, "evidence, not weight alone"


def test_every_head_is_there_in_small_as_a_slow_loop_makes_it(tmp_path, long) -> None:
    Path(tmp_path / "x.html").write_bytes(content(long, ".html"))
    (reading,) = document(tmp_path / "x.html")["readings"]
    step, tokens = reading["small"]["step"], 130
    cells = -(-tokens // step)
    found = np.frombuffer(block(tmp_path / "x.html", reading["small"]["block"]), np.uint8).reshape(
        2, 3, cells, cells
    )
    for (i, j), (q, k) in (((0, 0), (0, 0)), ((1, 2), (3, 30)), ((0, 1), (cells - 1, cells - 1))):
        pairs = [
            long.dense_weights[i][j][a][b]
            for a in range(q * step, min((q + 1) * step, tokens))
            for b in range(k * step, min((k + 1) * step, tokens))
        ]
        assert found[i, j, k, q] == 1 + round(254 * math.asin(max(pairs) ** 0.5) / (math.pi / 2))


@pytest.mark.parametrize("name", ["swin", "whisper"])
def test_a_page_of_a_picture_or_a_sound_is_refused_after_one_layer_and_only_for_what_that_holds(
    tmp_path, monkeypatch, name
) -> None:
    folder = media_models.save(name, tmp_path)
    heard = name == "whisper"
    file = media_models.sound_file(tmp_path) if heard else media_models.picture_file(tmp_path)
    asked = ["heads", "--audio" if heard else "--image", str(file), "-m", str(folder), "-q"]
    asked += ["--kind", "encoder"] if heard else []
    asked += ["--layer", "0"] if name == "swin" else []
    ran: list[tuple[int, ...]] = []
    capture = Reading.capture

    def seen(self, chosen, *others, **more):
        ran.append(chosen.layers)
        return capture(self, chosen, *others, **more)

    monkeypatch.setattr(Reading, "capture", seen)
    place = tmp_path / "x.html"
    monkeypatch.setattr(room, "MOST_BYTES", 90_001)
    code, said = run(*asked, "-o", str(place))
    assert code == 2, said
    assert "would have about" in said
    assert ran == [(0,)]
    assert not place.exists()
    if name == "swin":  # its windows hold fewer patches than the picture has
        monkeypatch.setattr(room, "MOST_BYTES", 91_500)
        ran.clear()
        code, said = run(*asked, "-o", str(place))
        assert code == 0, said
        assert place.exists()
        assert ran == [(0,), (0,)], "the probe, then the run"
