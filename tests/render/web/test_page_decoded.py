"""The numbers that a page holds, decoded in the browser by code of this test, against the model's own output.

The other side is no code of ours: the bundled causal model, run by its library with its eager attention.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnscope as at
from attnscope.render.web.page import as_page
from attnscope.results import Overview

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
