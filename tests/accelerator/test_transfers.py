"""What comes back from an accelerator: of a chosen head one layer's queries, keys, values and output.

A tiny Llama with 3 layers of 4 query heads and 2 key heads, 8 wide, that reads 64 tokens and more.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaModel

import attnscope as at
from attnscope.model.loading.load import moved

LAYERS, HEADS, KEY_HEADS, WIDTH = 3, 4, 2, 8
SMALL = 148  # bytes a token: number and place, where it may look, which rows and heads change when answers do


@pytest.fixture(scope="module")
def llama() -> LlamaModel:
    torch.manual_seed(2)
    config = LlamaConfig(
        hidden_size=HEADS * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS,
        intermediate_size=48,
        vocab_size=71,
        max_position_embeddings=1024,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    config._attn_implementation = "eager"
    model = LlamaModel(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(4)  # far from uniform
    return model


@pytest.fixture(params=["cuda", "mps"])
def read(request: Any, emulated: Any, llama: LlamaModel) -> Iterator[Callable[[int], Any]]:
    """`read(n)`: n tokens under the model on the accelerator."""
    with emulated.present(request.param):
        model = at.wrap(llama.to("emulated"))
        yield lambda tokens: model.read(ids=[3 + i * i % 67 for i in range(tokens)])
        llama.to("cpu")


def returned(done: Any) -> Counter[tuple[int, ...]]:
    return Counter(each.shape for each in done.transfers if (each.source, each.target) == (0, -1))


def test_a_chosen_head_brings_one_layer_back_and_its_own_weights_alone(
    emulated: Any, read: Callable[[int], Any]
) -> None:
    tokens = 64
    with emulated.watched() as done:
        head = read(tokens).head(1, 3)
    assert head.verdict == "certified"
    back = returned(done)
    per_head = tokens * WIDTH * 4
    # queries and output as wide as all heads, keys and values as the key heads
    assert back[(HEADS, tokens, WIDTH)] == 2
    assert back[(KEY_HEADS, tokens, WIDTH)] >= 2
    assert back[(tokens, tokens)] == 1
    squares = {shape for shape in back if shape[-2:] == (tokens, tokens)}
    assert squares == {
        (tokens, tokens),
        (1, tokens, tokens),
    }  # and once where its queries may look, a byte each
    layer, weights = (2 * HEADS + 3 * KEY_HEADS) * per_head, tokens * tokens * 4
    assert done.moved() <= layer + weights + tokens * tokens + SMALL * tokens
    assert done.moved() < LAYERS * layer


def test_a_long_text_brings_nothing_back_of_queries_by_keys(
    emulated: Any, read: Callable[[int], Any]
) -> None:
    moved = {}
    for tokens in (512, 1024):
        with emulated.watched() as done:
            assert read(tokens).long_head(2, 1).verdict == "certified"
        back = [sorted(shape) for shape in returned(done) if len(shape) > 1]
        assert max(shape[-2] for shape in back) <= 256  # the blocks that a picture is made of
        moved[tokens] = done.moved()
    of_a_token = 3 * 2 * 64 + 4 * (3 * HEADS + 5 * KEY_HEADS + 8) * WIDTH  # of a sample, and of one layer
    assert 0 < moved[1024] - moved[512] <= 512 * of_a_token


def test_verifying_a_model_brings_verdicts_back_where_the_device_has_float64(
    emulated: Any, llama: LlamaModel
) -> None:
    moved = {}
    with emulated.present("cuda"):
        model = at.wrap(llama.to("emulated"))
        for tokens in (32, 64):
            with emulated.watched() as done:
                assert model.read(ids=list(range(3, 3 + tokens))).verify().verdict == "certified"
            assert not [shape for shape in returned(done) if shape[-2:] == (tokens, tokens)]
            moved[tokens] = done.moved()
    llama.to("cpu")
    assert moved[64] <= 2 * moved[32]


def test_weights_that_modules_share_are_shared_on_a_device_that_makes_new_ones(emulated: Any) -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.read, self.again = torch.nn.Embedding(7, 3), torch.nn.Embedding(7, 3)
            self.write, self.own = torch.nn.Linear(3, 7), torch.nn.Linear(3, 7)
            self.again.weight = self.write.weight = self.read.weight

    model = Tied()
    values, own = model.read.weight.detach().clone(), model.own.weight.detach().clone()
    with emulated.present("cuda"):
        model = moved(model, torch.device("emulated"))
        assert model.read.weight.device.type == "emulated"
        assert model.again.weight is model.read.weight
        assert model.write.weight is model.read.weight
        assert torch.equal(model.write.weight.cpu(), values)
        assert torch.equal(model.own.weight.cpu(), own), "its own stays its own"
