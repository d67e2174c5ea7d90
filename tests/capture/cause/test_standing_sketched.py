"""Where tokens stand is seen as well when large matrices answer a sketch and kernels only who asks them."""

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers as hf
from bypassing import bypassing
from families import CONFIGS, sharp
from torch import Tensor, nn

from attnscope.capture import record
from attnscope.capture.cause import muted, sketched
from attnscope.capture.cause.muted import Kernels, Unasked
from attnscope.capture.cause.sketched import Sketches
from attnscope.capture.following.takeover import KernelInputs
from attnscope.vocabulary import Standing

OWN, MIXED, UNKNOWN, OTHER = Standing.OWN, Standing.MIXED, Standing.UNKNOWN, Standing.OTHER
WIDE = {"vocab_size": 97, "hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 3}


@pytest.fixture
def every_matrix(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """All products with matrices of more than some features are sketched; how many were is counted."""
    made: list[int] = []
    honest = sketched._linear

    def counted(*given: Any) -> Tensor:
        made.append(len(given[1]))
        return honest(*given)

    monkeypatch.setattr(sketched, "LARGE", 0)
    monkeypatch.setattr(sketched, "MANY", 0)
    monkeypatch.setattr(sketched, "_linear", counted)
    yield made
    assert made, "nothing was sketched"


def ids(length: int = 11) -> Tensor:
    return torch.randint(7, 90, (1, length), generator=torch.Generator().manual_seed(5))


def bert() -> hf.BertModel:
    torch.manual_seed(2)
    config = hf.BertConfig(**WIDE, intermediate_size=60)
    return hf.BertModel._from_config(config, attn_implementation="eager").eval()


def changed_forward(module: nn.Module, change: Callable[[Any, Any], Any]) -> None:
    """`change` gets the module's forward and its input, and answers in its place."""
    forward = module.forward
    module.forward = types.MethodType(lambda self, given, *o, **n: change(forward, given), module)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "gemma2", "qwen3", "modernbert"])
def test_in_ordinary_models_every_position_is_its_token(family: str, every_matrix: list[int]) -> None:
    assert family in CONFIGS
    captured = record(sharp(family), {"input_ids": ids()})
    assert {call.standing for call in captured.calls} == {OWN}


def test_models_whose_operations_are_followed_are_told_too(every_matrix: list[int]) -> None:
    model, inputs = bypassing("bloom")
    assert {call.standing for call in record(model, inputs).calls} == {OWN}


@pytest.mark.parametrize("order", ["reversed", "rolled", "first two exchanged"])
def test_tokens_in_another_order_are_seen_in_the_layer_that_has_it(
    order: str, every_matrix: list[int]
) -> None:
    model = bert()
    attention = model.encoder.layer[1].attention.self
    places = {
        "reversed": list(range(11))[::-1],
        "rolled": [*range(1, 11), 0],
        "first two exchanged": [1, 0, *range(2, 11)],
    }
    there = torch.tensor(places[order])
    forward = attention.forward

    def permuted(self: nn.Module, hidden: Tensor, *others: Any, **named: Any) -> Any:
        output, *rest = forward(hidden[:, there], *others, **named)
        return (output[:, there.argsort()], *rest)

    attention.forward = types.MethodType(permuted, attention)
    captured = record(model, {"input_ids": ids()})
    assert [call.standing for call in captured.calls] == [OWN, OTHER, OWN]


def test_what_mixes_positions_behind_a_matrix_is_seen_from_there_on(every_matrix: list[int]) -> None:
    model = bert()
    changed_forward(
        model.encoder.layer[0].intermediate,
        lambda forward, given: (made := forward(given)) + made.roll(1, dims=1),
    )
    captured = record(model, {"input_ids": ids()})
    assert [call.standing for call in captured.calls] == [OWN, MIXED, MIXED]


def test_a_matrix_of_zeros_moves_nothing_in_a_sketch_either(every_matrix: list[int]) -> None:
    model = bert()
    for part in ("query", "key"):
        getattr(model.encoder.layer[2].attention.self, part).weight.data.zero_()
    captured = record(model, {"input_ids": ids()})
    assert [call.standing for call in captured.calls] == [OWN, OWN, UNKNOWN]


def test_what_a_layer_was_given_and_returned_is_never_a_sketch(every_matrix: list[int]) -> None:
    sketchy = record(bert(), {"input_ids": ids()}).calls
    with torch.no_grad():
        states = bert()(ids(), output_hidden_states=True).hidden_states
    for call, given, layer in zip(sketchy, states, bert().encoder.layer, strict=False):
        query = layer.attention.self.query(given)[0].view(11, 4, 12).transpose(0, 1)
        assert torch.equal(call.q, query)


@contextmanager
def sketching() -> Iterator[None]:
    with torch.no_grad(), Sketches():
        yield


@pytest.mark.parametrize("form", ["linear", "addmm"])
def test_a_sketch_reads_each_position_by_itself_and_all_of_it(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sketched, "LARGE", 7 * 40 * 35)
    drawn = torch.Generator().manual_seed(1)
    given, weight, bias = (torch.randn(*shape, generator=drawn) for shape in ((7, 35), (40, 35), (40,)))

    def product(of: Tensor) -> Tensor:
        return F.linear(of, weight, bias) if form == "linear" else torch.addmm(bias, of, weight.T)

    real = product(given)
    with sketching():
        plain = product(given)
        for dimension in (0, 34):
            other = given.clone()
            other[4, dimension] += 1
            moved = (product(other) - plain).abs().amax(1) > 1e-4
            assert moved.tolist() == [place == 4 for place in range(7)]
        assert torch.equal(product(given[:6]), real[:6]), "what is smaller is computed as it is"
    assert plain.shape == real.shape
    assert not torch.allclose(plain, real, atol=0.1)
    assert 0.5 < plain.std() / real.std() < 2
    assert torch.equal(product(given), real), "closed again"


@pytest.mark.parametrize("function", [F.gelu, F.silu])
def test_of_many_numbers_activations_are_left_out(
    function: Callable[[Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sketched, "MANY", 7 * 5)
    given = torch.randn(7, 5)
    real = function(given)
    with sketching():
        assert torch.equal(function(given), given)
        assert torch.allclose(function(given[1:]), real[1:])
    assert not torch.equal(real, given)
    assert torch.equal(function(given), real), "closed again"


def test_matrices_of_another_kind_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketched, "LARGE", 0)

    class Packed(nn.Parameter):
        pass

    given, weight = torch.randn(3, 5), Packed(torch.randn(64, 5))
    real = F.linear(given, weight)
    with sketching():
        assert torch.equal(F.linear(given, weight), real)


def test_weights_that_a_model_looks_at_are_those_of_its_kernel() -> None:
    asked: list[int] = []
    real = torch.rand(2, 3)
    lazy = Unasked.to_be_asked(lambda: asked.append(1) or real)
    assert lazy is not None
    assert asked == []
    for made, expected in (
        (lazy + 1, real + 1),
        (torch.stack([lazy, lazy]), torch.stack([real, real])),
        (lazy.mean(dim=0), real.mean(dim=0)),
    ):
        assert type(made) is Tensor
        assert torch.equal(made, expected)
    assert lazy.shape == real.shape


def asked_of(answered: Callable[[Tensor], Tensor]) -> tuple[Tensor, list[int]]:
    """The zeros for an attention of 3 texts of 5 tokens, and of how many texts its kernel was asked."""
    asked: list[int] = []

    def kernel(_module: nn.Module, query: Tensor, *_given: Any, **_named: Any) -> tuple[Tensor, None]:
        asked.append(len(query))
        return answered(query.transpose(1, 2)), None

    query, key, value = torch.randn(3, 2, 5, 4), torch.randn(3, 2, 7, 4), torch.randn(3, 2, 7, 4)
    made, weights = Kernels().answer(KernelInputs(nn.Identity(), kernel, query, key, value, None, {}))
    assert weights is None
    return made, asked


@pytest.mark.parametrize(
    ("answered", "asked"),
    [
        (Tensor.contiguous, [2]),
        (lambda rows: rows, [2, 3]),  # laid out otherwise
        (lambda rows: rows.transpose(0, 1).contiguous().transpose(0, 1), [2, 3]),
        (lambda rows: rows.mean(0).expand(3, -1, -1, -1).contiguous(), [2, 3]),  # of all three texts
    ],
)
def test_zeros_are_laid_out_as_the_kernel_lays_its_output_out(
    answered: Callable[[Tensor], Tensor], asked: list[int]
) -> None:
    made, texts = asked_of(answered)
    real = answered(torch.randn(3, 2, 5, 4).transpose(1, 2))
    assert (made.shape, made.stride(), texts) == (real.shape, real.stride(), asked)
    assert not made.any()


def test_a_kernel_that_fails_of_some_texts_alone_is_asked_of_all() -> None:
    def of_three(rows: Tensor) -> Tensor:
        if len(rows) < 3:
            raise RuntimeError("three texts at a time")
        return rows.contiguous()

    made, texts = asked_of(of_three)
    assert (made.shape, texts) == ((3, 5, 2, 4), [2, 3])


def test_a_model_that_sorts_its_tokens_by_its_weights_is_seen_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is asked after all: by the second layer, whose like has been answered before."""
    asked: list[int] = []
    honest = muted._weights
    monkeypatch.setattr(muted, "_weights", lambda given: asked.append(1) or honest(given))
    assert {call.standing for call in record(bert(), {"input_ids": ids()}).calls} == {OWN}
    assert asked == []
    model = bert()
    attention = model.encoder.layer[1].attention.self
    forward = attention.forward

    def by_weight(self: nn.Module, hidden: Tensor, *others: Any, **named: Any) -> Any:
        output, weights = forward(hidden, *others, **named)
        there = weights.sum((1, 2)).argsort(-1)[..., None].expand_as(output)
        return output + hidden.gather(1, there), weights

    attention.forward = types.MethodType(by_weight, attention)
    standings = [call.standing for call in record(model, {"input_ids": ids()}).calls]
    assert standings[:2] == [OWN, OWN]
    assert standings[2] is not OWN
    assert asked
