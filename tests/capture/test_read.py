"""What is captured, of one text or of a whole batch, is what the model computed: its own result, hooks."""

import pytest
import torch
import transformers as hf
from bypassing import bypassing
from families import (
    FAMILIES,
    FUSABLE,
    HEADS,
    KEY_HEADS,
    LAYERS,
    TOKENS,
    eager_weights,
    full_run,
    ids,
    padded,
    sharp,
    twin,
)
from torch import Tensor, nn
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from attnscope.arithmetic import attend
from attnscope.attention import AttentionCall, Capture
from attnscope.capture import Selection, record
from attnscope.capture.running import if_it_runs
from attnscope.capture.weights import Passing, Weights
from attnscope.errors import InputError
from attnscope.results import Kind


def own_weights(call: AttentionCall) -> Tensor:
    """The model's own weights, as captured: `head query key`."""
    return torch.stack([call.weights[head] for head in range(call.heads)])


def recomputed(call: AttentionCall) -> Tensor:
    """Weights by our own arithmetic from what was captured: `head query key`."""
    return torch.cat([attend(call.operands(head)).weights for head in range(call.heads)]).float()


def answered(call: AttentionCall) -> Tensor:
    """Rows with an allowed key, `head query`."""
    return torch.stack([call.allowed_matrix(head).any(-1) for head in range(call.heads)])


def assert_is_the_models(captured: Capture, expected: tuple[Tensor, ...], row: int = 0) -> None:
    """Captured and recomputed weights of every layer equal the `expected` ones of an untouched model."""
    assert len(captured.calls) == len(expected) == LAYERS
    for call, weights in zip(captured.calls, expected, strict=True):
        rows = answered(call)
        torch.testing.assert_close(own_weights(call)[rows], weights[row][rows], rtol=0, atol=2e-5)
        torch.testing.assert_close(recomputed(call)[rows], weights[row][rows], rtol=0, atol=2e-5)
        assert (weights[row][rows].amax(-1) > 0.3).any(), "too even to tell anything"


@pytest.mark.parametrize("family", FAMILIES)
def test_captured_and_recomputed_weights_are_those_of_the_untouched_model(family):
    model = sharp(family)
    expected = eager_weights(model, ids())
    captured = record(model, ids())
    assert_is_the_models(captured, expected)
    for call, weights in zip(captured.calls, expected, strict=True):
        assert torch.equal(own_weights(call), weights[0])  # taken and not recomputed: to the bit


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("row", [0, 1, -1])
def test_each_row_of_a_padded_batch_is_read_with_its_own_mask(family, side, row):
    model, inputs = sharp(family), padded(side)
    captured = record(model, inputs, Selection(row=row))
    assert_is_the_models(captured, eager_weights(model, inputs), row=row)
    padding = (inputs["attention_mask"][row] == 0).nonzero().flatten()
    for call in captured.calls:
        assert call.query_tokens.ids == tuple(inputs["input_ids"][row].tolist())
        assert not call.allowed_matrix(0)[:, padding][answered(call)[0]].any()


@pytest.mark.parametrize("family", FUSABLE)
@pytest.mark.parametrize("inputs", [ids(), padded("left")], ids=["one", "left"])
def test_weights_read_out_of_the_fused_kernel_are_those_of_the_eager_twin(family, inputs):
    model = sharp(family)
    captured = record(twin(model, "sdpa"), inputs, Selection(row=-1))
    assert captured.provenance.kernel == "sdpa"
    assert_is_the_models(captured, eager_weights(model, inputs), row=-1)


@pytest.mark.parametrize("length", [3, 8, 9, 17])
def test_the_fused_kernel_is_read_in_blocks_whatever_the_number_of_keys(length):
    model, inputs = sharp("llama"), ids(length)  # values are 8 wide
    assert_is_the_models(record(twin(model, "sdpa"), inputs), eager_weights(model, inputs))


def test_a_decoder_under_the_fused_kernel_is_causal_without_being_handed_a_mask(read_once):
    seen = []
    model = twin(sharp("llama"), "sdpa")
    hook = model.layers[0].self_attn.register_forward_pre_hook(
        lambda module, args, options: seen.append(options["attention_mask"]), with_kwargs=True
    )
    (call,) = record(model, ids(), Selection(layers=[0])).calls
    hook.remove()
    assert seen == [None, None]  # once to read, once to try whose rows they are
    assert torch.equal(call.allowed_matrix(0), torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril())


@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_queries_keys_and_values_of_llama_are_those_of_its_projections_and_its_own_rotation(kernel):
    model = twin(sharp("llama"), kernel)
    watched, inputs, seen = twin(model), ids(), {}
    attention = watched.layers[1].self_attn
    for name in ("q_proj", "k_proj", "v_proj"):
        getattr(attention, name).register_forward_hook(
            lambda _, args, out, name=name: seen.update({name: out})
        )
    watched.rotary_emb.register_forward_hook(lambda _, args, out: seen.update(rotation=out))
    full_run(watched, inputs)
    split = {
        name: seen[name].view(1, TOKENS, -1, 8).transpose(1, 2) for name in ("q_proj", "k_proj", "v_proj")
    }
    q, k = apply_rotary_pos_emb(split["q_proj"], split["k_proj"], *seen["rotation"])

    (call,) = record(model, inputs, Selection(layers=[1])).calls
    torch.testing.assert_close(call.q, q[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(call.k, k[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(call.v, split["v_proj"][0], rtol=0, atol=1e-5)
    torch.testing.assert_close(call.unrotated_k, split["k_proj"][0], rtol=0, atol=1e-5)
    assert (call.k - call.unrotated_k).abs().max() > 0.5
    assert call.q.shape[0] == HEADS
    assert call.k.shape[0] == call.v.shape[0] == KEY_HEADS  # not repeated


@pytest.mark.parametrize("family", ["qwen3", "gemma3"])
@pytest.mark.parametrize("length", [KEY_HEADS, TOKENS])
def test_the_unrotated_key_of_a_normed_model_has_its_axes_right_also_with_as_many_tokens_as_heads(
    family, length
):
    model = sharp(family)
    watched, seen = twin(model), []
    watched.layers[1].self_attn.k_norm.register_forward_hook(lambda _, args, out: seen.append(out[0]))
    full_run(watched, ids(length))
    expected = seen[0].transpose(0, 1) if family == "qwen3" else seen[0]  # gemma 3 norms after splitting
    (call,) = record(model, ids(length), Selection(layers=[1])).calls
    assert torch.equal(call.unrotated_k, expected)
    torch.testing.assert_close(call.unrotated_k[:, 0], call.k[:, 0])  # position 0 is not rotated
    assert not torch.allclose(call.unrotated_k[:, 1:], call.k[:, 1:])


def test_the_options_of_the_call_are_read():
    calls = {
        family: record(sharp(family), ids()).calls
        for family in ("gemma2", "mistral", "gpt_oss", "t5", "qwen3")
    }
    gemma = calls["gemma2"][0]
    assert gemma.softcap == 3.0
    assert gemma.scale == pytest.approx(5**-0.5)  # its own scalar, not that of the head width
    assert [call.window for call in calls["gemma2"]] == [4, None, 4]
    assert [call.window for call in calls["mistral"]] == [4, 4, 4]
    assert calls["qwen3"][0].scale == pytest.approx(10**-0.5)
    assert calls["t5"][0].scale == 1.0
    assert calls["t5"][0].bias.shape == (HEADS, TOKENS, TOKENS)
    assert torch.equal(calls["gpt_oss"][1].sinks, sharp("gpt_oss").layers[1].self_attn.sinks.detach())
    assert calls["mistral"][0].softcap is calls["mistral"][0].sinks is calls["mistral"][0].bias is None


def test_the_window_stands_in_the_mask():
    distance = torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)[None, :]
    (call,) = record(sharp("mistral"), ids(), Selection(layers=[0])).calls
    assert torch.equal(call.allowed_matrix(0), (distance >= 0) & (distance < 4))
    local = record(sharp("modernbert"), ids()).calls[1]
    assert torch.equal(local.allowed_matrix(0), distance.abs() <= 4)


@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
@pytest.mark.parametrize(
    "forbidden", [torch.finfo(torch.float32).min, torch.finfo(torch.float32).min * 0.75, -torch.inf]
)
def test_a_mask_that_carries_a_bias_is_taken_apart_into_the_two(kernel, forbidden):
    generator = torch.Generator().manual_seed(3)
    bias = torch.randn(1, HEADS, TOKENS, TOKENS, generator=generator)
    hidden = torch.rand(1, 1, TOKENS, TOKENS, generator=generator) < 0.3
    hidden[..., range(TOKENS), range(TOKENS)] = False
    inputs = {**ids(), "attention_mask": bias.masked_fill(hidden, forbidden)}
    model = sharp("bert")
    captured = record(twin(model, kernel), inputs)
    assert_is_the_models(captured, eager_weights(model, inputs))
    for call in captured.calls:
        assert torch.equal(call.allowed_matrix(2), ~hidden[0, 0])
        assert torch.equal(call.bias, bias.masked_fill(hidden, 0)[0])


@pytest.mark.parametrize(
    ("layers", "expected"),
    [([1], [1]), ([-1], [2]), ([-3, 2], [0, 2]), ([2, 0, 2], [0, 2]), (None, [0, 1, 2])],
)
@pytest.mark.parametrize("family", ["llama", "albert"])
def test_layers_are_chosen_by_number_and_come_in_their_order(family, layers, expected):
    captured = record(sharp(family), ids(), Selection(layers=layers))
    assert [call.layer for call in captured.calls] == expected
    assert captured.layers == LAYERS
    assert captured.call(expected[0]) is captured.calls[0]


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"layers": [3]}, "no layer 3: the model has attention in layers 0-2"),
        ({"layers": [-4]}, "no layer -4"),
        ({"heads": [6]}, "no head 6: heads are 0-5"),
        ({"heads": [-7]}, "no head -7"),
        ({"row": 1}, "no row 1 in the inputs: rows are 0$"),
        ({"kind": Kind.CROSS}, "LlamaModel has no cross attention: it has decoder"),
    ],
)
def test_what_is_not_there_is_refused_with_what_there_is(chosen, message):
    with pytest.raises(InputError, match=message):
        record(sharp("llama"), ids(), Selection(**chosen))


def test_a_layer_that_was_not_captured_is_refused():
    with pytest.raises(InputError, match="layer 2 was not captured: captured are 1"):
        record(sharp("llama"), ids(), Selection(layers=[1])).call(2)


def test_a_model_without_attention_and_a_kernel_that_cannot_be_read_are_refused():
    with pytest.raises(InputError, match="Sequential has no attention"):
        record(nn.Sequential(nn.Linear(2, 2)), ids())
    model = sharp("llama")
    model.config._attn_implementation_internal = "paged|eager"
    with pytest.raises(InputError, match=r"cannot read attention kernel paged\|eager: those that can be are"):
        record(model, ids())


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
@pytest.mark.parametrize("layer", [0, 1])
def test_the_forward_pass_stops_early_and_what_was_read_is_that_of_a_full_run(family, layer, read_once):
    model, ran = sharp(family), []
    stack = next(each for each in model.modules() if isinstance(each, nn.ModuleList) and len(each) == LAYERS)
    for number, block in enumerate(stack):
        block.register_forward_pre_hook(lambda *_, number=number: ran.append(number))
    before = full_run(model, ids())
    assert ran == [0, 1, 2]
    every = record(model, ids()).calls[layer]
    ran.clear()
    (call,) = record(model, ids(), Selection(layers=[layer])).calls
    assert ran == 2 * list(range(layer + 1))  # once to read, once to try whose rows they are
    for name in ("q", "k", "v", "output"):
        assert torch.equal(getattr(call, name), getattr(every, name))
    assert torch.equal(full_run(model, ids()), before)


def test_what_the_model_does_in_place_afterwards_does_not_reach_the_capture():
    model = sharp("llama")
    (expected,) = record(model, ids(), Selection(layers=[0])).calls

    def spoil(_module, args):
        args[0].zero_()

    model.layers[0].self_attn.o_proj.register_forward_pre_hook(spoil)
    found = record(model, ids(), Selection(layers=[0, 1])).calls[
        0
    ]  # the second layer lets the first one finish
    assert torch.equal(found.output, expected.output)


def only_watched() -> None:
    raise ZeroDivisionError


def test_an_input_that_the_model_cannot_run_on_is_one_line() -> None:
    model = sharp("bert")
    too_long = ids(80)
    with (
        pytest.raises(InputError, match=r"^tiny cannot run on this input: .*") as raised,
        if_it_runs(model, too_long, "tiny"),
    ):
        record(model, too_long)
    assert "\n" not in str(raised.value)


def test_an_error_that_only_the_watched_run_makes_passes_through() -> None:
    model = sharp("bert")
    with pytest.raises(ZeroDivisionError), if_it_runs(model, ids(), "tiny"):
        only_watched()


def returned(model: nn.Module, inputs) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        return twin(model)(**inputs, output_attentions=True).attentions


def kept(layer: int, weights: torch.Tensor) -> torch.Tensor:
    return weights.clone()


@pytest.mark.parametrize("family", FAMILIES)
def test_all_rows_of_a_batch_are_what_the_model_itself_returns(family: str) -> None:
    model, inputs = sharp(family), ids(batch=3)
    found = Weights(model, Selection()).read(inputs, kept)
    expected = returned(model, inputs)
    assert list(found) == list(range(len(expected)))
    for layer, weights in found.items():
        assert weights.shape == (3, 6, 11, 11)
        torch.testing.assert_close(weights, expected[layer], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["deberta-v2", "gptj", "bloom", "mpnet", "gpt2 upcast"])
def test_models_that_make_their_attention_themselves_are_read_as_well(name: str) -> None:
    model, inputs = bypassing(name)
    found = Weights(model, Selection(layers=[1], heads=[4, 1])).read(inputs, kept)
    assert list(found) == [1]
    torch.testing.assert_close(found[1], returned(model, inputs)[1][:, [4, 1]], atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_kernel_that_returns_no_weights_prints_them(family: str) -> None:
    model = sharp(family)
    found = Weights(twin(model, "sdpa"), Selection(layers=[2])).read(ids(batch=3), kept)
    torch.testing.assert_close(found[2], returned(model, ids(batch=3))[2], atol=1e-5, rtol=0)


def test_a_layer_that_reads_in_windows_is_refused() -> None:
    config = hf.SwinConfig(
        image_size=32, patch_size=4, embed_dim=12, depths=[2], num_heads=[3], window_size=4
    )
    model = hf.SwinModel._from_config(config, attn_implementation="eager").eval()
    with pytest.raises(InputError, match="reads 2 texts as 8 pieces"):
        Weights(model, Selection()).read({"pixel_values": torch.rand(2, 3, 32, 32)}, kept)


def test_an_attention_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="no cross"):
        Weights(sharp("bert"), Selection(kind=Kind.CROSS)).read(ids(), kept)
    with pytest.raises(InputError, match="no dense softmax attention in layer 0-2"):
        Weights(sharp("bert"), Selection(), block=1).read(ids(), kept)


def test_a_mask_that_layers_narrow_in_its_place_is_read_anew_in_each() -> None:
    model, lowest = sharp("bert"), torch.finfo(torch.float32).min
    far = (torch.arange(11)[:, None] - torch.arange(11)).abs()
    for i, layer in enumerate(model.encoder.layer):

        def narrow(_module: nn.Module, args: tuple, given: dict, reach: int = 4 - i) -> None:
            mask = next(each for each in (*args, *given.values()) if getattr(each, "ndim", 0) == 4)
            mask.masked_fill_(far > reach, lowest)

        layer.attention.self.register_forward_pre_hook(narrow, with_kwargs=True)
    inputs = ids(batch=2)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    inputs["attention_mask"][1, 8:] = 0
    seen = Passing(model, Selection()).read(inputs, lambda _layer, passed: passed)
    for i, passed in seen.items():
        assert passed.allowed is not None
        assert torch.equal(passed.allowed[0, 0], far <= 4 - i)
        assert torch.equal(passed.allowed[0, 0], (passed.weights[0] > 0).any(0))
        assert torch.equal(passed.allowed[1, 0, :8, :8], (far <= 4 - i)[:8, :8])
