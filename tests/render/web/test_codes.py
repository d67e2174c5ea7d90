"""Weights as codes: by plain loops over the bytes, beside the model's own output, the largest of each row."""

import base64
import math
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_results as made
import numpy as np
import pytest

import attnscope as at
from attnscope.printable import printable
from attnscope.render.saving import content
from attnscope.render.web import codes, readings, room
from attnscope.render.web.blocks import Blocks, as_json
from attnscope.render.web.page import as_page
from attnscope.results import Overview


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


@pytest.mark.parametrize(
    "text", ["</script><script>alert(1)</script>", "<!--<script>", "a & b", "\u2028\u2029", "]]>"]
)
def test_json_in_a_page_holds_no_markup(text) -> None:
    import json

    written = as_json({"text": text, text: [float("nan"), 1.5]})
    assert not set("<>&\u2028\u2029") & set(written)
    shown = printable(text)
    assert json.loads(written) == {"text": shown, shown: [None, 1.5]}


TOKENS = 90


@pytest.fixture(scope="module")
def overview() -> Overview:
    """Causal in its first layer; nobody looks at less than 1e-4."""
    random = np.random.default_rng(4)
    weights = random.dirichlet(np.full(TOKENS, 0.6), size=(2, 3, TOKENS)) + 1e-4
    weights[0] *= np.tri(TOKENS)
    weights /= weights.sum(axis=-1, keepdims=True)
    plain = made.overview(2, 3, [f"t{i}" for i in range(TOKENS)])
    return replace(plain, weights=tuple(tuple(each) for each in weights))


@pytest.fixture(scope="module")
def page(overview) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readings, "DENSE_BYTES", 1000)
        return content(overview, ".html")


def largest(row: np.ndarray) -> set[int]:
    return {int(i) for i in np.argsort(-row)[: room.KEPT] if row[i] > 0}


def test_the_largest_of_every_row_are_kept_and_the_share_that_they_hold_is_right(overview) -> None:
    weights = np.array(overview.dense_weights[1])
    found, shares = codes.largest(weights, room.KEPT)
    for head in range(3):
        kept = [largest(row) for row in weights[head]]
        assert [set(np.flatnonzero(row != codes.LOST)) for row in found[head]] == kept
        held = sum(weights[head, q, k] for q, keys in enumerate(kept) for k in keys)
        assert shares[head] == pytest.approx(held / weights[head].sum())
    assert shares.max() < 1


def test_no_weight_that_is_kept_has_the_code_of_one_that_is_not() -> None:
    every = np.linspace(0, 1, 100_001)[None, None]
    assert codes.LOST not in codes.sparing(every)
    assert 0 not in codes.sparing(every)


def test_a_page_says_what_it_keeps_and_what_it_does_not(opened, go, page, overview) -> None:
    weights = overview.dense_weights
    with opened(page, "#L1H2,q=5,view=matrix") as view:
        held = sum(weights[1][2][q][k] for q in range(TOKENS) for k in largest(weights[1][2][q]))
        assert (
            f"64 largest of each row are here, {int(100 * held / TOKENS)} % of its weight"
            in view.inner_text("#reader h2")
        )
        kept = largest(weights[1][2][5])
        lost = next(k for k in range(TOKENS) if k not in kept)
        for key, told in ((lost, "not kept"), (max(kept), "about ")):
            go(view, f"#L1H2,q=5,k={key},view=matrix")
            assert told in view.inner_text("#view .readout")
        assert f"56 others kept, {TOKENS - 64} not" in view.inner_text("#lists")
        assert "of each row the 64 largest are kept" in view.inner_text("footer")
        assert view.locator("[data-choice=words]").count() == 0


def test_the_table_of_a_row_says_of_each_key_whether_it_is_kept(opened, page, overview) -> None:
    with opened(page, "#L1H0,q=7,view=lines") as view:
        view.click("#view summary")
        view.locator("#view .behind td").first.wait_for()
        cells = view.locator("#view .behind td:last-child").all_inner_texts()
    kept = largest(overview.dense_weights[1][0][7])
    assert [each != "not kept" for each in cells] == [k in kept for k in range(TOKENS)]


TEXT = "Max saw a red door. It opened, and Max"
DECODED = """async () => {
  const given = JSON.parse(document.getElementById('document').textContent).readings[0];
  const tokens = given.queries.names.length, found = [];
  const bytes = async (id, line) => {
    const letters = atob(document.getElementById(id).textContent.split('\\n')[line]);
    const packed = Uint8Array.from(letters, (each) => each.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  const high = await bytes(given.small.block, 0);
  let from = 0;
  for (const layer of given.blocks)
    for (let head = 0; head < given.heads.length; head++, from += tokens * tokens) {
      const low = await bytes(layer, head);
      for (let q = 0; q < tokens; q++)
        for (let k = 0; k < tokens; k++) {
          const i = k * tokens + q, code = 256 * high[from + i] + low[i];
          found.push(code === 0 ? null : Math.sin(Math.PI / 2 * (code - 256) / 65279) ** 2);
        }
    }
  return found;
}"""
CORNERS = """([layers, heads]) => {
  const canvas = document.querySelector('#view canvas'), { width, height } = canvas;
  const pixels = canvas.getContext('2d').getImageData(0, 0, width, height).data;
  const across = width / heads, down = height / layers;
  return Array.from({ length: layers * heads }, (_, n) => {
    const x = (n % heads) * across, y = Math.floor(n / heads) * down, side = across - 8;
    const alpha = ([dx, dy]) => pixels[4 * (Math.round(y + dy) * width + Math.round(x + dx)) + 3];
    return [[side, 2], [2, side]].map(alpha);
  });
}"""


@pytest.fixture(scope="module")
def causal() -> Overview:
    return at.load("demo-causal").read(TEXT).overview()


@pytest.fixture(scope="module")
def eager() -> np.ndarray:
    """The weights that the model's own library returns: layer, head, query, key."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = Path(at.__file__).parent / "demo" / "causal"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        answer = model(**tokenizer(TEXT, return_tensors="pt"), output_attentions=True)
    return np.stack([each[0].double().numpy() for each in answer.attentions])


def decoded(view: Any, shape: tuple[int, ...]) -> np.ndarray:
    """NaN where the page says that a pair is masked."""
    return np.array(view.evaluate(DECODED), dtype=np.float64).reshape(shape)


def agrees(found: np.ndarray, exact: np.ndarray) -> bool:
    """Masked is what the model gives exactly nothing, and everything else is within one step of a code."""
    masked = exact == 0
    close = np.abs(np.nan_to_num(found) - exact).max() <= 2.5e-5 + 1e-6
    return bool((np.isnan(found) == masked).all() and close)


def test_the_page_holds_the_weights_of_the_models_own_eager_attention(opened, causal, eager) -> None:
    with opened(as_page(causal), "#view=heads&grid=0") as view:
        found = decoded(view, eager.shape)
        assert agrees(found, eager)
        assert (np.isnan(found) == np.triu(np.ones(eager.shape[2:], bool), 1)).all()
        corners = np.array(view.evaluate(CORNERS, list(eager.shape[:2])))
    assert (corners[:, 0] == 0).all()  # a later key is drawn as nothing at all, in the picture of every head
    assert (corners[:, 1] == 255).all()


def test_a_masked_weight_that_leaks_is_seen_in_the_numbers_and_in_the_picture(opened, causal, eager) -> None:
    """The check of the check: one head of one layer gives the very last key a hundredth."""
    leaking = [[each.copy() for each in layer] for layer in causal.dense_weights]
    leaking[1][2][0, -1] = 0.01
    with opened(as_page(replace(causal, weights=tuple(map(tuple, leaking)))), "#view=heads&grid=0") as view:
        assert not agrees(decoded(view, eager.shape), eager)
        corners = np.array(view.evaluate(CORNERS, list(eager.shape[:2])))
    seen = np.flatnonzero(corners[:, 0])
    assert eager.shape[1] + 2 in seen  # in its own head
    assert set(seen // eager.shape[1]) == {1}  # and in no other layer


def test_a_weight_that_is_off_by_two_steps_is_seen(causal, eager) -> None:
    exact = np.where(eager == 0, np.nan, eager)
    assert agrees(exact, eager)
    off = exact.copy()
    off[2, 3, 4, 1] += 7e-5
    assert not agrees(off, eager)
    off[2, 3, 4, 1] = np.nan
    assert not agrees(off, eager)
