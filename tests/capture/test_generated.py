"""Attention of generated text, put together from the steps of `model.generate`.

The oracles are transformers' own: the attentions that `generate` itself returns step by step, and those of
one plain forward over the whole text without any cache.
"""

from dataclasses import replace
from functools import cache

import pytest
import torch
import transformers as hf
from families import CONFIGS, DIM, HEADS, HIDDEN, LAYERS, ids, sharp
from torch import Tensor, nn
from transformers.generation import utils as generation_utils

from attnscope.attention import AttentionCall, Capture
from attnscope.capture import Selection, record
from attnscope.capture.generated import JoinedCall, Steps, record_written
from attnscope.errors import InputError
from attnscope.model.inputs.generation import Written
from attnscope.results import Kind, Route, Verdict
from attnscope.verify import certify

PROMPT, NEW = 9, 6
READ = PROMPT + NEW - 1
SLIDING = ("mistral", "gemma2", "gpt_oss")
ROTARY = ("llama", *SLIDING)
TRACED = ("bloom",)
WRITERS = ("gpt2", "llama", "gemma2", "gpt_oss", "bloom")
_OLD = {
    "bloom": lambda: hf.BloomConfig(vocab_size=97, hidden_size=HIDDEN, n_layer=LAYERS, n_head=HEADS),
}


@cache
def writer(family: str) -> nn.Module:
    """A tiny causal language model with peaked attention that never comes to an end."""
    torch.manual_seed(3)
    config = {**CONFIGS, **_OLD}[family]()
    model = hf.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        if family in CONFIGS:
            model.base_model.load_state_dict(sharp(family).state_dict())
            model.get_output_embeddings().weight.normal_(std=0.5)
        else:
            for weight in model.parameters():
                weight.normal_(std=2 * weight.shape[-1] ** -0.5) if weight.ndim > 1 else None
    model.generation_config.eos_token_id = None
    model.generation_config.no_repeat_ngram_size = 1  # no word twice, so that all positions differ
    return model


@cache
def translator() -> nn.Module:
    """A tiny T5 with peaked attention: 4 positions more in the encoder than are generated."""
    torch.manual_seed(5)
    config = hf.T5Config(
        vocab_size=97, d_model=HIDDEN, d_kv=DIM, d_ff=40, num_layers=LAYERS, num_heads=HEADS,
        pad_token_id=0, decoder_start_token_id=0,
    )  # fmt: skip
    model = hf.T5ForConditionalGeneration._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=weight.shape[-1] ** -0.5) if weight.ndim > 1 else None
    model.generation_config.eos_token_id = None
    return model


@cache
def read(family: str) -> tuple[Capture, Written]:
    return record_written(writer(family), ids(PROMPT), NEW)


def own(call: AttentionCall) -> Tensor:
    """The model's own weights: `head query key`."""
    return torch.stack([call.weights[head] for head in range(call.heads)])


def text(written: Written) -> dict[str, Tensor]:
    return {"input_ids": torch.tensor([written.read])}


def hooks(model: nn.Module) -> list[int]:
    """How many hooks stand on each module; the library leaves some of its own."""
    return [len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules()]


@pytest.mark.parametrize("family", WRITERS)
def test_the_tokens_are_those_of_plain_generate_and_all_but_the_last_have_a_row(family):
    captured, written = read(family)
    plain = writer(family).generate(**ids(PROMPT), max_new_tokens=NEW, do_sample=False)
    assert list(written.ids) == plain[0].tolist()
    assert len(plain[0]) == PROMPT + NEW
    assert len({*plain[0].tolist()}) >= PROMPT + NEW - 1, "the same word again and again tells nothing"
    for call in captured.calls:
        assert call.q.shape[1] == call.k.shape[1] == len(call.query_tokens) == len(call.key_tokens) == READ
        assert call.query_tokens.ids == call.key_tokens.ids == written.read == captured.provenance.token_ids


@pytest.mark.parametrize("family", WRITERS)
def test_every_row_is_what_generate_itself_returns_in_that_step(family):
    captured, _ = read(family)
    made = writer(family).generate(
        **ids(PROMPT),
        max_new_tokens=NEW,
        do_sample=False,
        output_attentions=True,
        return_dict_in_generate=True,
    )
    assert len(made.attentions) == NEW
    for call in captured.calls:
        weights, row = own(call), 0
        for step in made.attentions:
            rows = step[call.layer][0]  # head query key, the keys those that are left in the cache
            for i in range(rows.shape[1]):
                expected = torch.zeros(HEADS, READ)
                end = row + rows.shape[1] - i
                expected[:, end - rows.shape[2] : end] = rows[:, i]
                assert torch.equal(weights[:, row], expected)
                row += 1
        assert row == READ


@pytest.mark.parametrize("family", WRITERS)
def test_the_whole_is_what_one_run_without_a_cache_computes(family):
    captured, written = read(family)
    with torch.no_grad():
        plain = writer(family)(**text(written), use_cache=False, output_attentions=True).attentions
    at_once = record(writer(family), text(written))
    for call, other, weights in zip(captured.calls, at_once.calls, plain, strict=True):
        torch.testing.assert_close(own(call), weights[0], rtol=0, atol=2e-5)
        for name in ("q", "k", "v", "output", "unrotated_k"):
            torch.testing.assert_close(getattr(call, name), getattr(other, name), rtol=1e-4, atol=5e-5)
        for head in range(HEADS):
            assert torch.equal(call.allowed_matrix(head), other.allowed_matrix(head))
        assert (weights.amax(-1) > 0.5).float().mean() > 0.3, "too even to tell positions apart"


@pytest.mark.parametrize("family", WRITERS)
def test_every_head_is_certified_against_the_steps(family):
    captured, _ = read(family)
    for call in captured.calls:
        for head in range(HEADS):
            certificate = certify(call, head)
            assert certificate.verdict is Verdict.CERTIFIED, certificate
            faults = {fault.name for fault in certificate.faults}
            assert ("window dropped" in faults) == (call.window is not None)
            assert ("key rotation left out" in faults) == (family in ROTARY)
            assert ("alibi dropped" in faults) == (family == "bloom")
        assert (call.route is Route.TRACED) == (family in TRACED)


@pytest.mark.parametrize("family", ["llama", "bloom"])
def test_keys_and_values_that_stand_one_position_off_fail(family):
    call = read(family)[0].calls[1]
    for side in ("k", "v"):
        shifted = replace(call, **{side: getattr(call, side).roll(1, dims=1)})
        assert certify(shifted, 0).verdict is Verdict.FAILED


@pytest.mark.parametrize("family", SLIDING)
def test_a_wrong_place_in_the_text_is_noticed_while_the_cache_slides(family, monkeypatch):
    place = JoinedCall._start
    monkeypatch.setattr(JoinedCall, "_start", lambda self, call: max(place(self, call) - 1, 0))
    with pytest.raises(InputError, match="does not keep its keys and values"):
        record_written(writer(family), ids(PROMPT), NEW)


@pytest.mark.parametrize("kind", [Kind.DECODER, Kind.CROSS])
def test_of_an_encoder_decoder_the_decoder_is_read_from_its_first_token_on(kind):
    model, inputs = translator(), ids(PROMPT + 1)
    captured, written = record_written(model, inputs, NEW, Selection(kind=kind))
    plain = model.generate(**inputs, max_new_tokens=NEW, do_sample=False)
    assert list(written.ids) == plain[0].tolist()
    assert written.given == 1
    with torch.no_grad():
        output = model(**inputs, decoder_input_ids=plain[:, :-1], use_cache=False, output_attentions=True)
    expected = output.decoder_attentions if kind is Kind.DECODER else output.cross_attentions
    keys = NEW if kind is Kind.DECODER else PROMPT + 1
    for call, weights in zip(captured.calls, expected, strict=True):
        assert own(call).shape == (HEADS, NEW, keys)
        assert len(call.query_tokens) == NEW
        assert len(call.key_tokens) == keys
        torch.testing.assert_close(own(call), weights[0], rtol=0, atol=2e-5)
        assert certify(call, 5).verdict is Verdict.CERTIFIED
    names = [term.name for term in captured.calls[1].terms]
    assert names == (["relative position"] if kind is Kind.DECODER else [])
    assert call.key_tokens.ids == (
        written.read if kind is Kind.DECODER else tuple(inputs["input_ids"][0].tolist())
    )


class _Event:
    """A CPU has no events to wait for."""

    def __init__(self, **_options) -> None:
        pass

    def record(self) -> None:
        pass

    synchronize = record


@pytest.mark.skipif(
    not hasattr(generation_utils, "DeferredStopCheck"), reason="this transformers takes no step back"
)
@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_a_step_too_far_that_the_library_takes_back_has_no_row(family, monkeypatch):
    model = writer(family)
    monkeypatch.setattr(model.generation_config, "eos_token_id", read(family)[1].ids[PROMPT + 2])
    expected, written = record_written(model, ids(PROMPT), NEW)
    monkeypatch.setattr(torch, "Event", _Event)
    monkeypatch.setattr(generation_utils.DeferredStopCheck, "is_supported", lambda *_told, **_more: True)
    steps, begin = [], Steps._begin
    monkeypatch.setattr(Steps, "_begin", lambda self, *given: steps.append(1) or begin(self, *given))
    captured, again = record_written(model, ids(PROMPT), NEW)
    assert len(steps) == 4, "the prompt, two tokens, and the end that need not have been read"
    assert again.ids == written.ids == read(family)[1].ids[: PROMPT + 3]
    for call, other in zip(captured.calls, expected.calls, strict=True):
        assert torch.equal(own(call), own(other))
        for name in ("q", "k", "v", "unrotated_k"):
            torch.testing.assert_close(getattr(call, name), getattr(other, name), rtol=0, atol=0)
        assert certify(call, 3).verdict is Verdict.CERTIFIED


def test_a_cache_of_fixed_size_is_refused(monkeypatch):
    monkeypatch.setattr(writer("llama").generation_config, "cache_implementation", "static")
    with pytest.raises(InputError, match=r"handed \d+ keys after 9 tokens: a cache of fixed size"):
        record_written(writer("llama"), ids(PROMPT), NEW)


def test_a_model_without_a_cache_is_refused():
    torch.manual_seed(0)
    config = hf.OpenAIGPTConfig(vocab_size=97, n_positions=40, n_embd=24, n_layer=2, n_head=3)
    model = hf.OpenAIGPTLMHeadModel._from_config(config, attn_implementation="eager").eval()
    with pytest.raises(InputError, match="did not read its text token by token"):
        record_written(model, ids(PROMPT), NEW)


def test_what_cannot_write_is_refused():
    with pytest.raises(InputError, match="GPT2Model has no language-model head and writes no text"):
        record_written(writer("gpt2").transformer, ids(PROMPT), NEW)
    with pytest.raises(InputError, match="reads nothing of what is generated"):
        record_written(translator(), ids(PROMPT), NEW, Selection(kind=Kind.ENCODER))
    with pytest.raises(InputError, match="the inputs hold several"):
        record_written(writer("gpt2"), ids(PROMPT, batch=2), NEW)
    with pytest.raises(InputError, match="no layer 3: the model has attention in layers 0-2"):
        record_written(writer("gpt2"), ids(PROMPT), NEW, Selection(layers=[3]))


def test_a_model_that_never_asks_for_its_kernel_is_traced_while_it_writes():
    torch.manual_seed(3)
    config = hf.GPT2Config(
        vocab_size=97, n_embd=HIDDEN, n_layer=2, n_head=HEADS, n_positions=64, reorder_and_upcast_attn=True
    )
    model = hf.GPT2LMHeadModel._from_config(config, attn_implementation="eager").eval()
    model.generation_config.eos_token_id = None
    captured, written = record_written(model, ids(PROMPT), NEW)
    assert {call.route for call in captured.calls} == {Route.TRACED}
    assert captured.provenance.route == str(Route.TRACED)
    expected = model(torch.tensor([written.read]), output_attentions=True).attentions
    for call, weights in zip(captured.calls, expected, strict=True):
        torch.testing.assert_close(own(call), weights[0], atol=1e-5, rtol=0)
    with pytest.raises(InputError, match="made no dense softmax attention"):
        record_written(model, ids(PROMPT), NEW, Selection(route=Route.TAKEOVER))


def test_what_one_step_leaves_unread_leaves_the_whole_partial() -> None:
    prompt = record(sharp("llama"), ids(), Selection(layers=[1])).calls[0]
    growing = JoinedCall(prompt)
    growing.add(prompt)
    newest = replace(
        prompt, q=prompt.q[:, -1:], output=prompt.output[:, -1:], allowed=None, unrotated_k=None, unread=2,
        weights={head: nn.functional.pad(rows[-1:], (0, 1)) for head, rows in prompt.weights.items()},
        k=torch.cat([prompt.k, prompt.k[:, -1:]], 1), v=torch.cat([prompt.v, prompt.v[:, -1:]], 1),
    )  # fmt: skip
    growing.add(newest)
    assert (growing.call().unread, growing.call().q.shape[1]) == (2, prompt.q.shape[1] + 1)
    with pytest.raises(InputError, match="changes its weights after the softmax"):
        growing.add(replace(newest, reweighted=newest.weights))
