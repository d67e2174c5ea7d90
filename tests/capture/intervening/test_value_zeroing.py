"""Values zeroed at the attention, against hooks on the model's own value projections and whole runs."""

import copy
from collections.abc import Callable
from functools import cache

import families
import pytest
import torch
from bypassing import MODELS
from torch import Tensor, nn

from attnscope.capture import Selection
from attnscope.capture.intervening import value_zeroing as module
from attnscope.capture.intervening.changes import Attended
from attnscope.capture.intervening.passing import passing
from attnscope.capture.intervening.value_zeroing import NoLayersError, ValueZeroing, turned, value_zeroing_on
from attnscope.model.anatomy.sites import find_sites
from attnscope.vocabulary import Kind

TOKENS, HEADS = families.TOKENS, families.HEADS
# the module that makes the values, which of its features they are, and the layer whose vectors are compared
VALUES: dict[str, tuple[str, slice, str]] = {
    "bert": ("encoder.layer.{}.attention.self.value", slice(None), "encoder.layer.{}"),
    "gpt2": ("h.{}.attn.c_attn", slice(2 * families.HIDDEN, None), "h.{}"),
    "llama": ("layers.{}.self_attn.v_proj", slice(None), "layers.{}"),
    "t5": ("encoder.block.{}.layer.0.SelfAttention.v", slice(None), "encoder.block.{}"),
    "mpnet": ("encoder.layer.{}.attention.attn.v", slice(None), "encoder.layer.{}"),
}
CROSS = ("decoder.block.{}.layer.1.EncDecAttention.v", slice(None), "decoder.block.{}")
FAMILIES = tuple(VALUES)
EPSILON = torch.finfo(torch.float32).eps
# entries of one batch are not the same to the bit: two unit vectors that are 64 roundings apart
ROUNDED = (64 * EPSILON) ** 2 / 2


@cache
def model_and_inputs(family: str) -> tuple[nn.Module, dict[str, Tensor]]:
    if family != "mpnet":
        return families.sharp(family), families.ids()
    torch.manual_seed(0)
    model, inputs = MODELS[family]()  # read by its operations
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model.eval(), {name: value[:1] for name, value in inputs.items()}


@cache
def zeroing(family: str) -> ValueZeroing:
    model, inputs = model_and_inputs(family)
    return value_zeroing_on(model, inputs, Selection(kind=Kind.ENCODER if family == "t5" else None))


def first_vectors(output: object) -> Tensor:
    return output if isinstance(output, Tensor) else output[0]  # type: ignore[index,no-any-return]


def by_hand(
    model: nn.Module, inputs: dict[str, Tensor], places: tuple[str, slice, str], layer: int, key: int
) -> list[float]:
    """1 - cosine for each query, from two whole runs: as it is, and with zeros in the projected values."""
    value, features, whole = (each.format(layer) if isinstance(each, str) else each for each in places)
    seen: list[Tensor] = []

    def empty(_module: nn.Module, _given: object, made: Tensor) -> Tensor:
        made = made.clone()
        made[:, key, features] = 0
        return made

    keep = model.get_submodule(whole).register_forward_hook(
        lambda _module, _given, made: seen.append(first_vectors(made))
    )
    try:
        plain_run(model, inputs)
        change = model.get_submodule(value).register_forward_hook(empty)
        try:
            plain_run(model, inputs)
        finally:
            change.remove()
    finally:
        keep.remove()
    one, other = (each[0].double() for each in seen)
    pairs = zip(one, other, strict=True)
    return [1 - float(a @ b) / (float(a @ a) ** 0.5 * float(b @ b) ** 0.5) for a, b in pairs]


def plain_run(model: nn.Module, inputs: dict[str, Tensor]) -> None:
    with torch.no_grad():
        model(**inputs)


@pytest.mark.parametrize("family", FAMILIES)
def test_distances_are_those_of_zeros_put_in_behind_the_value_projection(family: str) -> None:
    made, (model, inputs) = zeroing(family), model_and_inputs(family)
    layers = sorted(made.lengths)
    for layer in (layers[0], layers[-1]):
        found = made.distances(layer, range(HEADS))
        assert found.shape == (TOKENS, TOKENS)
        for key in (0, 4, TOKENS - 1):
            expected = by_hand(model, inputs, VALUES[family], layer, key)
            assert max(expected) > 1e-4, "the key does nothing: nothing is compared"
            assert found[:, key].tolist() == pytest.approx(expected, abs=2e-6), (layer, key)
    assert made.plainness == 0, "nothing had to be run again"
    assert made.faithful
    assert (made.lost, made.unseen) == (0, 0)
    assert made.back >= 2


def test_no_later_key_turns_an_earlier_querys_vector() -> None:
    found = zeroing("llama").distances(1, range(HEADS))
    assert found.triu(1).max() <= ROUNDED
    assert found[4, :5].min() > 1e4 * ROUNDED


def test_a_turn_a_decade_above_rounding_is_a_turn() -> None:
    one = torch.randn(1, 3, families.HIDDEN, generator=torch.Generator().manual_seed(2))
    across = torch.randn(one.shape, generator=torch.Generator().manual_seed(3))
    across -= (across * one).sum(-1, keepdim=True) / one.square().sum(-1, keepdim=True) * one
    across *= one.norm(dim=-1, keepdim=True) / across.norm(dim=-1, keepdim=True)
    found = turned(one, one + (2 * 10 * ROUNDED) ** 0.5 * across)
    assert found.flatten().tolist() == pytest.approx([10 * ROUNDED] * 3, rel=0.1)
    assert turned(one, one * 3).max() <= ROUNDED


def test_only_what_the_chosen_heads_read_is_zeroed_where_groups_share_values() -> None:
    made, (model, inputs) = zeroing("llama"), model_and_inputs("llama")
    some = made.distances(1, [0, 4])
    projection, size = model.get_submodule("layers.1.self_attn.o_proj"), families.DIM
    with torch.no_grad():
        weights = model(**inputs, output_attentions=True).attentions[1][0]
    values: list[Tensor] = []
    handle = model.layers[1].self_attn.v_proj.register_forward_hook(lambda _m, _i, out: values.append(out[0]))
    plain_run(model, inputs)
    handle.remove()
    group = HEADS // families.KEY_HEADS
    key, vectors = 4, list[Tensor]()

    def without(_module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor]:
        rows = given[0].clone()
        for head in (0, 4):
            own = slice(head * size, (head + 1) * size)
            shared = slice(head // group * size, (head // group + 1) * size)
            rows[0, :, own] -= weights[head][:, key, None] * values[0][key, shared]
        return (rows,)

    keep = model.layers[1].register_forward_hook(lambda _m, _i, out: vectors.append(first_vectors(out)[0]))
    plain_run(model, inputs)
    change = projection.register_forward_pre_hook(without)
    plain_run(model, inputs)
    keep.remove()
    change.remove()
    expected = 1 - torch.cosine_similarity(vectors[0].double(), vectors[1].double(), dim=-1)
    assert some[:, key].tolist() == pytest.approx(expected.tolist(), abs=2e-6)
    assert not torch.allclose(some, made.distances(1, range(HEADS)), atol=1e-4)


@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
@pytest.mark.parametrize("family", ["bert", "llama", "t5"])
def test_the_same_kernel_answers_the_same_values_bit_for_bit(family: str, kernel: str) -> None:
    model, inputs = families.twin(families.sharp(family), kernel), families.ids()
    untouched, seen_of = plain_of(model, inputs), list[int]()

    def same(seen: Attended) -> Tensor:
        seen_of.append(seen.place[0])
        assert torch.equal(seen.with_values(seen.value.clone()), seen.output)
        return seen.with_values(seen.value.clone())

    with passing(find_sites(model), same, changing=True):
        assert torch.equal(plain_of(model, inputs), untouched)
    assert len(seen_of) == families.LAYERS
    made = value_zeroing_on(model, inputs, Selection())
    assert made.faithful
    assert made.distances(1, range(HEADS), keys=[]).count_nonzero() == 0
    assert made.distances(1, [], keys=[4]).max() <= ROUNDED, "a key whose values no head has zeroed"
    found = made.distances(1, range(HEADS))
    eager = value_zeroing_on(families.sharp(family), inputs, Selection()).distances(1, range(HEADS))
    assert torch.allclose(found, eager, atol=1e-6)


@pytest.mark.parametrize(("times", "faithful"), [(0.5, True), (10, False)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("family", ["gpt2", "llama", "mpnet"])
def test_an_answer_made_once_more_is_the_models_own_within_rounding_and_no_further(
    family: str, dtype: torch.dtype, times: float, faithful: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = model_and_inputs(family)
    model = copy.deepcopy(model).to(dtype)
    assert value_zeroing_on(model, inputs, Selection()).faithful

    def off(seen: Attended, keys: object) -> Tensor:
        made = seen.output.clone()
        made[:, 3, 4] += times * seen.rounding * seen.value.abs().max()
        return made

    monkeypatch.setattr(module, "_remade", off)
    assert value_zeroing_on(model, inputs, Selection()).faithful is faithful


def plain_of(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    with torch.no_grad():
        return model(**inputs).last_hidden_state  # type: ignore[no-any-return]


def test_layers_that_share_their_weights_are_told_apart() -> None:
    made = zeroing("albert")
    model, inputs = model_and_inputs("albert")
    seen: list[Tensor] = []
    group = "encoder.albert_layer_groups.0"
    values = f"{group}.albert_layers.0.attention.value"
    calls = {"values": 0}

    def empty_in_the_second(_module: nn.Module, _given: object, out: Tensor) -> Tensor:
        calls["values"] += 1
        out = out.clone()
        out[:, 4] = 0 if calls["values"] == 2 else out[:, 4]
        return out

    keep = model.get_submodule(group).register_forward_hook(
        lambda _module, _given, out: seen.append(first_vectors(out))
    )
    plain_run(model, inputs)
    handle = model.get_submodule(values).register_forward_hook(empty_in_the_second)
    plain_run(model, inputs)
    handle.remove()
    keep.remove()
    expected = 1 - torch.cosine_similarity(seen[1][0].double(), seen[families.LAYERS + 1][0].double(), dim=-1)
    assert made.distances(1, range(HEADS))[:, 4].tolist() == pytest.approx(expected.tolist(), abs=2e-6)


@pytest.mark.parametrize("family", ["bert", "gpt2", "mpnet"])
def test_one_by_one_gives_what_a_batch_gives(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    together = zeroing(family).distances(1, range(HEADS))
    model, inputs = model_and_inputs(family)
    alone = value_zeroing_on(model, inputs, Selection())
    alone.plainness = 2
    assert torch.allclose(alone.distances(1, range(HEADS)), together, atol=1e-6)
    assert alone.lost == 0
    strayed = value_zeroing_on(model, inputs, Selection())
    monkeypatch.setattr(module, "strays", lambda made, plain: True)
    assert torch.allclose(strayed.distances(1, range(HEADS)), together, atol=1e-6)
    assert strayed.plainness == 2


Fault = Callable[[Tensor, Tensor], Tensor]


def nothing_zeroed(values: Tensor, zeroed: Tensor) -> Tensor:
    return values


def next_token(values: Tensor, zeroed: Tensor) -> Tensor:
    return torch.where((zeroed == 0).roll(1, dims=2), torch.zeros_like(values), values)


def half_of_it(values: Tensor, zeroed: Tensor) -> Tensor:
    return (values + zeroed) / 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("fault", [nothing_zeroed, next_token, half_of_it])
@pytest.mark.parametrize("family", ["bert", "llama", "mpnet"])
def test_values_that_were_not_the_ones_to_be_zero_are_noticed(
    family: str, fault: Fault, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = model_and_inputs(family)
    made = value_zeroing_on(copy.deepcopy(model).to(dtype), inputs, Selection())
    made.distances(1, range(HEADS))
    assert (made.back, made.lost) == (1, 0)
    made.back = 0
    right = module._zeroed
    monkeypatch.setattr(module, "_zeroed", lambda values, keys: fault(values, right(values, keys)))
    made.distances(1, range(HEADS))
    assert (made.back, made.lost) == (0, 1)


def test_a_model_whose_layers_cannot_be_run_alone_says_so() -> None:
    model, _ = model_and_inputs("bert")

    class Nameless(nn.Module):  # its layers stand in no list
        def __init__(self) -> None:
            super().__init__()
            self.only = model.encoder.layer[0]

        def forward(self, vectors: Tensor) -> Tensor:
            return first_vectors(self.only(vectors))

    wrapped = Nameless()
    with pytest.raises(NoLayersError, match="layer 0 is no module that returns the vectors of the next"):
        value_zeroing_on(wrapped, {"vectors": torch.randn(1, 5, families.HIDDEN)}, Selection())
