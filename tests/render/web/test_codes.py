"""Weights as codes against a decoder of its own: plain loops over the bytes that stand in the file."""

import base64
import math
import struct
import zlib

import numpy as np
import pytest

from attnscope.printable import printable
from attnscope.render.web import codes
from attnscope.render.web.blocks import Blocks, as_json


def read_again(packed: list[str], rows: int) -> list[float | None]:
    """Bytes of one head to weights, row by row, as the format is described: None where a pair is masked."""
    planes = [zlib.decompress(base64.b64decode(each)) for each in packed]
    columns = len(planes[0]) // rows
    found: list[float | None] = []
    for row in range(rows):
        for column in range(columns):
            code = [plane[column * rows + row] for plane in planes]
            share = (code[0] * 256 + code[1] - 256) / 65279 if len(code) == 2 else (code[0] - 1) / 254
            found.append(math.sin(math.pi / 2 * share) ** 2 if code[0] else None)
    return found


def planes(weights: np.ndarray) -> list[str]:
    """As a page has the fine codes of one head."""
    return [Blocks.pack(plane) for plane in codes.planes(codes.fine(weights))]


@pytest.fixture(scope="module")
def weights() -> np.ndarray:
    """Two heads, 5 queries, 7 keys; from 1e-9 to 1, a masked triangle, and weights at the edge of a digit."""
    made = np.random.default_rng(3).dirichlet(np.full(7, 0.2), size=(2, 5))
    made[0, 0] = [1, 0, 1e-9, 0.00005, 0.00015, 0.99995, 0.99985]
    made[1, 1] = [0.12345, 0.12355, 0.00004999, 0.00005001, 0.5, 0.49995, 0.50005]
    made[1][np.triu_indices(5, 3)] = np.nan
    return made


def test_fine_codes_say_every_weight_within_one_step_and_masked_pairs_nothing(weights) -> None:
    for head in weights:
        for exact, read in zip(head.ravel(), read_again(planes(head), 5), strict=True):
            assert (read is None) == math.isnan(exact)
            assert read is None or abs(read - exact) <= 2.5e-5


@pytest.mark.parametrize(("made", "error"), [(codes.coarse, 0.0031), (codes.sparing, 0.0034)])
def test_codes_of_8_bits_are_within_their_stated_error(weights, made, error) -> None:
    for head in weights:
        packed = Blocks.pack_runs(made(head).astype(np.uint8).tobytes("F"))
        for exact, read in zip(head.ravel(), read_again([packed], 5), strict=True):
            assert (read is None) == math.isnan(exact)
            assert read is None or abs(read - exact) <= error


@pytest.mark.parametrize(("made", "error"), [(codes.coarse, 0.0031), (codes.sparing, 0.0034)])
def test_no_weight_from_0_to_1_is_farther_off_than_is_stated(made, error) -> None:
    every = np.linspace(0, 1, 100_001)
    assert np.abs(codes.decoded(made(every), both=False) - every).max() <= error


def test_sparing_codes_of_a_long_text_take_fewer_bytes_for_the_same_largest_error() -> None:
    weights = np.random.default_rng(5).dirichlet(np.full(400, 0.3), size=(2, 400))
    coarse, spared = (made(weights).astype(np.uint8) for made in (codes.coarse, codes.sparing))
    assert len(Blocks.pack_runs(spared.tobytes())) < 0.75 * len(Blocks.pack_runs(coarse.tobytes()))
    assert np.abs(codes.decoded(spared, both=False) - weights).max() <= 0.0034
    assert len(np.unique(spared[spared <= 31])) == 10


def single(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def printed(value: float) -> int:
    return math.floor(value * 1e4 + 0.5)


def test_all_printed_digits_are_those_of_the_exact_number() -> None:
    """Where the nearest code is printed otherwise its neighbour is taken; else digits would be wrong."""
    exact = np.random.default_rng(1).random(40_000) ** 3
    found = read_again(planes(exact), 1)
    assert [printed(single(each)) for each in found if each is not None] == [printed(each) for each in exact]
    angle = math.pi / 2
    steps = [round(math.asin(math.sqrt(each)) / angle * 65279) for each in exact]
    nearest = [single(math.sin(angle * each / 65279) ** 2) for each in steps]
    assert sum(printed(a) != printed(b) for a, b in zip(nearest, exact, strict=True)) > 100


def test_codes_that_lie_closer_than_can_be_read_are_spared_and_take_fewer_bytes() -> None:
    """Of what is small half a hundredth, of all else 2.5e-5; nearer codes would be noise in a file."""
    weights = np.random.default_rng(5).dirichlet(np.full(60, 0.5), size=(6, 60))
    low = lambda found: sum(len(Blocks.pack_runs((each & 255).astype(np.uint8).tobytes())) for each in found)  # noqa: E731
    nearest = np.rint(np.arcsin(np.sqrt(weights)) / (np.pi / 2) * 65279).astype(np.uint16) + 256
    assert low(codes.fine(weights)) < 0.93 * low(nearest)
    every = np.geomspace(1e-4, 1, 200_001)
    off = np.abs(codes.decoded(codes.fine(every), both=True) - every)
    assert (off <= np.minimum(2.5e-5, 0.005 * every)).all()


def test_a_fault_in_the_codes_is_seen(weights) -> None:
    found = read_again(planes(weights[0])[::-1], 5)
    assert any(
        each is not None and abs(each - exact) > 0.01
        for each, exact in zip(found, weights[0].ravel(), strict=True)
    )


@pytest.mark.parametrize(
    "text", ["</script><script>alert(1)</script>", "<!--<script>", "a & b", "\u2028\u2029", "]]>"]
)
def test_json_in_a_page_holds_no_markup(text) -> None:
    import json

    written = as_json({"text": text, text: [float("nan"), 1.5]})
    assert not set("<>&\u2028\u2029") & set(written)
    shown = printable(text)
    assert json.loads(written) == {"text": shown, shown: [None, 1.5]}
