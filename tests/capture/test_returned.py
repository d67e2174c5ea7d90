"""What a model returns is tied to the module that made it; a model that does not do what its code says."""

import pytest
import torch
import transformers as hf
from bypassing import bypassing
from capture.test_untouched import state
from families import CONFIGS, HEADS, LAYERS, eager_weights, ids, padded, sharp, twin

from attnscope.analysis.heads.head import recompute_head, returned_head, returned_overview
from attnscope.capture import Selection, provenance_of, record
from attnscope.capture.following.describe import tokens_of
from attnscope.capture.returned import ASKED, SPARSE, ask_for_weights
from attnscope.capture.run import NothingSeenError
from attnscope.errors import InputError
from attnscope.results import HeadAttention, Route, Verdict
from attnscope.verbs.verify.answer import verify_model
from attnscope.verify import certify

SIZES = {
    "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "vocab_size": 97,
    "intermediate_size": 40, "max_position_embeddings": 120, "pad_token_id": 0,
}  # fmt: skip
SPARSE_MODELS = {
    "longformer": lambda: hf.LongformerConfig(**SIZES, attention_window=8),
    "bigbird": lambda: hf.BigBirdConfig(**SIZES, block_size=4, num_random_blocks=1),
    "nystromformer": lambda: hf.NystromformerConfig(**SIZES, num_landmarks=5, segment_means_seq_len=20),
    "squeezebert": lambda: hf.SqueezeBertConfig(**SIZES, embedding_size=32),
    "yoso": lambda: hf.YosoConfig(**SIZES),
    "fnet": lambda: hf.FNetConfig(
        vocab_size=97, hidden_size=32, num_hidden_layers=2, intermediate_size=40
    ),
    "led": lambda: hf.LEDConfig(
        vocab_size=97, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=40, decoder_ffn_dim=40, attention_window=8,
        max_encoder_position_embeddings=64, max_decoder_position_embeddings=64,
    ),
}  # fmt: skip


def made(name: str) -> torch.nn.Module:
    torch.manual_seed(3)
    model = hf.AutoModel.from_config(SPARSE_MODELS[name](), attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=1.5 * parameter.shape[-1] ** -0.5)
    return model


def text(length: int) -> dict[str, torch.Tensor]:
    inputs = ids(length)
    return {**inputs, "attention_mask": torch.ones_like(inputs["input_ids"])}


def band(row: torch.Tensor, query: int, reach: int) -> dict[int, float]:
    """What a query gives to each key, from a row by distance: column `reach` is the query itself."""
    return {query + column - reach: weight for column, weight in enumerate(row.tolist()) if weight > 0}


@pytest.mark.parametrize("length", [12, 9])  # of 9 columns: once as many tokens as columns
def test_longformer_is_shown_by_distance_and_never_called_after_the_tokens(length: int) -> None:
    model = made("longformer")
    with pytest.raises(NothingSeenError, match="no dense softmax attention in layer 1"):
        record(model, text(length), Selection(layers=[1]))
    found = ask_for_weights(model, text(length), Selection(layers=[1]))
    head = returned_head(found, 1, 2)
    own = twin(model)(**text(length), output_attentions=True).attentions[1][0, 2]
    assert head.weights == pytest.approx(own.detach().numpy())
    assert head.weights.shape == (length, 9)
    assert head.query_tokens.ids == tuple(ids(length)["input_ids"][0].tolist())
    assert head.key_tokens.names == tuple(map(str, range(9)))
    assert head.notes == ("its keys are not the tokens: columns are numbered",)
    keys = band(own[5], 5, 4)
    assert set(keys) == set(range(1, min(length, 10)))
    assert not isinstance(head, HeadAttention)


def test_nothing_is_claimed_of_what_was_returned() -> None:
    head = returned_head(ask_for_weights(made("longformer"), text(12)), 0, 3)
    assert head.certificate.verdict is Verdict.UNCERTIFIED
    assert (head.certificate.reason, head.certificate.faults) == (SPARSE, ())
    assert head.certificate.weight_error != head.certificate.weight_error
    assert head.provenance.route == Route.RETURNED


def test_big_bird_on_a_short_text_attends_fully_and_is_certified() -> None:
    from attnscope.verify import certify

    (call,) = record(made("bigbird"), text(12), Selection(layers=[1])).calls
    assert call.key_tokens.ids == tuple(ids(12)["input_ids"][0].tolist())
    assert certify(call, 3).verdict is Verdict.CERTIFIED


@pytest.mark.parametrize(
    "name", ["squeezebert", "nystromformer"]
)  # scores, and a softmax times an inverse matrix of landmarks
def test_numbers_that_are_returned_as_attentions_and_are_no_weights_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"is no weights \(least -.*\): it cannot be shown"):
        ask_for_weights(made(name), text(20))


SPOILT = {
    "least -0.5, rows sum to 1 to 1": lambda weights: weights + torch.tensor([0.5, -0.5] + [0.0] * 9),
    "no weights .least nan": lambda weights: weights.log() * 0 / 0,
    "returns is 1 x 5 x 11 x 11 numbers, not 1 x 6 x queries x keys": lambda weights: weights[:, :5],
    "returns no attention that was made in layer 1": lambda weights: None,
}


@pytest.mark.parametrize("told", SPOILT)
def test_each_way_not_to_be_weights_is_refused_by_its_name(told: str) -> None:
    model = sharp("bert")
    own = model.encoder.layer[1].attention.self
    own.register_forward_hook(lambda _, args, output: (output[0], SPOILT[told](output[1])))
    with torch.no_grad(), pytest.raises(InputError, match=told):
        ask_for_weights(model, ids())
    assert len(ask_for_weights(model, ids(), Selection(layers=[0])).layers) == 1


@pytest.mark.parametrize(("name", "layer"), [("fnet", "FNetLayer"), ("yoso", "YosoLayer")])
def test_a_model_without_attention_is_told_by_its_layers(name: str, layer: str) -> None:
    for read in (record, ask_for_weights):
        with pytest.raises(InputError, match=f"no attention that can be read: its layers are {layer} "):
            read(made(name), ids(10))


@pytest.mark.parametrize("family", ["bert", "albert", "llama", "gemma2", "modernbert"])
def test_asked_for_of_a_dense_model_it_is_what_the_untouched_model_returns(family: str) -> None:
    model = sharp(family)
    found = ask_for_weights(model, padded("right"), Selection(layers=[0, 2], row=1), reason=ASKED)
    own = eager_weights(model, padded("right"))
    for layer in found.layers:
        assert torch.equal(layer.weights, own[layer.layer][1])
        assert layer.key_tokens.ids == tuple(padded("right")["input_ids"][1].tolist())
        assert layer.notes == ()
    overview = returned_overview(found, [1, 4])
    assert (overview.layers, overview.heads) == ((0, 2), (1, 4))
    assert overview.certificates[1][0].verdict is Verdict.UNCERTIFIED
    assert overview.weights[1][1] == pytest.approx(own[2][1, 4][:-3, :-3].numpy())  # without the padding


def test_hiding_a_token_tells_columns_that_are_tokens_in_models_that_only_a_trace_can_read() -> None:
    torch.manual_seed(0)
    model = hf.MPNetModel(hf.MPNetConfig(**{**SIZES, "vocab_size": 97, "initializer_range": 0.5})).eval()
    found = ask_for_weights(model, text(10), reason=ASKED)
    assert found.layer(1).key_tokens.ids == tuple(ids(10)["input_ids"][0].tolist())
    unhidden = ask_for_weights(model, {"inputs_embeds": torch.randn(1, 10, 32)}, reason=ASKED)
    assert unhidden.layer(1).key_tokens.names == tuple(map(str, range(10)))  # cannot be found out


def test_a_kernel_that_makes_no_weights_is_named() -> None:
    with pytest.raises(InputError, match=r"layer 0 of .* under kernel sdpa: --attn eager"):
        ask_for_weights(twin(sharp("llama"), "sdpa"), ids())


@pytest.mark.parametrize("end", [None, KeyboardInterrupt(), RuntimeError("inside")], ids=repr)
@pytest.mark.parametrize("family", ["llama", "bert"])
def test_the_library_s_own_hooks_do_not_stay(family: str, end: BaseException | None) -> None:
    model = sharp(family)
    model.train()

    def stop(*_: object) -> None:
        if end is not None:
            raise end

    last = model.encoder.layer[2] if family == "bert" else model.layers[2]
    last.register_forward_hook(stop)
    before = state(model)
    if end is None:
        ask_for_weights(model, ids())
    else:
        with pytest.raises(type(end)):
            ask_for_weights(model, ids())
    assert state(model) == before


def test_the_library_s_own_hooks_would_stay() -> None:
    model = sharp("llama")
    before = state(model)["hooks"]
    model(**ids(), output_attentions=True)
    assert state(model)["hooks"] != before


@pytest.mark.parametrize("family", ["bert", "qwen3"])
def test_a_route_that_is_forced_gives_the_same_attention(family: str) -> None:
    model = sharp(family)
    best, forced = (
        record(model, ids(), Selection(layers=[1], route=route)) for route in (None, Route.TRACED)
    )
    assert (best.provenance.route, forced.provenance.route) == ("takeover", "traced operations")
    for head in (0, 5):
        one, other = (recompute_head(each, 1, head) for each in (best, forced))
        assert other.certificate.verdict is Verdict.CERTIFIED
        assert other.weights == pytest.approx(one.weights, abs=1e-6)
        answered = one.answered
        assert other.output[answered] == pytest.approx(one.output[answered], abs=1e-5)
        assert (other.allowed == one.allowed).all()


@pytest.fixture(scope="module")
def upcast() -> torch.nn.Module:
    config = CONFIGS["gpt2"]()
    config.reorder_and_upcast_attn, config.scale_attn_by_inverse_layer_idx = True, True
    config.initializer_range = 0.5
    torch.manual_seed(0)
    return hf.GPT2Model._from_config(config, attn_implementation="eager").eval()


def test_a_model_that_could_ask_for_its_kernel_and_does_not_is_traced(upcast) -> None:
    with torch.no_grad():
        own = upcast(**ids(), output_attentions=True).attentions
    captured = record(upcast, ids(), Selection(layers=[1]))
    (call,) = captured.calls
    assert (call.route, captured.provenance.route) == (Route.TRACED, "traced operations")
    for head in range(HEADS):
        torch.testing.assert_close(call.weights[head], own[1][0, head], rtol=0, atol=1e-7)
        assert certify(call, head).verdict is Verdict.CERTIFIED


def test_such_a_model_is_verified_as_it_is_read(upcast) -> None:
    tokens = tokens_of(ids())
    found = verify_model(upcast, ids(), tokens, provenance_of(upcast, tokens))
    assert [(check.layer, check.route) for check in found.layers] == [
        (layer, "traced operations") for layer in range(LAYERS)
    ]
    assert found.verdict is Verdict.CERTIFIED
    assert found.provenance.route == "traced operations"
    assert all(check.identical for check in found.outputs)


@pytest.fixture(scope="module")
def talking() -> torch.nn.Module:
    config = hf.DebertaConfig(
        vocab_size=97, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, intermediate_size=40,
        talking_head=True, relative_attention=False, initializer_range=0.4, type_vocab_size=0,
    )  # fmt: skip
    torch.manual_seed(1)
    return hf.DebertaModel(config).eval()


def test_heads_that_talk_to_each_other_are_read_in_part(talking) -> None:
    call = record(talking, ids(), Selection(layers=[1])).calls[0]
    certificate = certify(call, 2)
    assert call.reweighted is not None
    assert not torch.allclose(call.reweighted[2], call.weights[2])
    assert certificate.verdict is Verdict.PARTIAL
    assert certificate.weight_error <= certificate.weight_tolerance
    assert certificate.output_error <= certificate.output_tolerance


def test_blocks_beside_a_softmax_that_could_not_be_followed_are_read_in_part() -> None:
    config = hf.BigBirdConfig(
        vocab_size=97, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, intermediate_size=40,
        block_size=4, num_random_blocks=1, initializer_range=0.4, max_position_embeddings=128,
    )  # fmt: skip
    torch.manual_seed(0)
    model = hf.BigBirdModel(config).eval()
    calls = record(model, ids(64), Selection(layers=[1])).calls
    assert [call.unread for call in calls] == [1, 1, 1, 1]  # the middle of the text, in windows
    certificate = certify(calls[0], 1)
    assert certificate.verdict is Verdict.PARTIAL
    assert certificate.reason == "1 more softmax of this layer could not be read"
    assert certificate.weight_error <= certificate.weight_tolerance


def test_scores_that_are_not_numbers_are_a_failure_and_no_mask() -> None:
    model, inputs = bypassing("mpnet")
    model.encoder.layer[0].output.dense.bias.data[0] = torch.nan
    for call in record(model, inputs, Selection(layers=[1])).calls:
        assert call.allowed_matrix(0).any(-1).all()
        assert {certify(call, head).verdict for head in range(call.heads)} == {Verdict.FAILED}
