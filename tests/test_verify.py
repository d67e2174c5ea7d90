"""Certificates: agreement on every family, every fault seen, every tampering caught, and no false comfort."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, reduce

import pytest
import torch
from families import (
    FAMILIES,
    HEADS,
    LAYERS,
    ROTATION_SEEN,
    TOKENS,
    WINDOW,
    full_run,
    ids,
    padded,
    plain,
    sharp,
    twin,
)
from torch import Tensor
from transformers import AttentionInterface
from transformers.models.llama.modeling_llama import eager_attention_forward

from attnscope.attention import AttentionCall, Term
from attnscope.capture import Selection, record
from attnscope.results import Certificate, Fault, Verdict
from attnscope.verify import certify, certify_heads

ALWAYS = {"scale off by sqrt 2", "wrong key head", "wrong value head", "query and key exchanged"}


@cache
def calls(family: str) -> tuple[AttentionCall, ...]:
    return record(sharp(family), ids()).calls


def certificates(of: tuple[AttentionCall, ...]) -> list[Certificate]:
    return [certificate for call in of for certificate in certify_heads(call)]


def ratio(certificate: Certificate) -> float:
    """The larger of the two errors in units of its tolerance."""
    return max(
        certificate.weight_error / certificate.weight_tolerance,
        certificate.output_error / certificate.output_tolerance,
    )


def assert_certified(found: list[Certificate]) -> None:
    assert len(found) == LAYERS * HEADS
    assert {each.verdict for each in found} == {Verdict.CERTIFIED}
    assert max(map(ratio, found)) < 0.7, "the tolerance leaves hardly any room"
    assert min(each.power for each in found) > 20, "the smallest fault is hardly seen"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_head_of_a_sharp_model_is_certified(family):
    assert_certified(certificates(calls(family)))


@pytest.mark.parametrize("family", ["bert", "mistral"])
def test_every_head_is_certified_under_the_fused_kernel(family):
    assert_certified(certificates(record(twin(sharp(family), "sdpa"), ids()).calls))


@pytest.mark.parametrize(
    ("family", "side"), [("modernbert", "right"), ("mistral", "left"), ("t5", "right"), ("gpt_oss", "left")]
)
def test_no_head_of_a_padded_row_fails(family, side):
    found = certificates(record(sharp(family), padded(side), Selection(row=1)).calls)
    assert {each.verdict for each in found} <= {Verdict.CERTIFIED, Verdict.INCONCLUSIVE}
    assert max(map(ratio, found)) < 0.7
    assert all("mask dropped" in {fault.name for fault in each.faults} for each in found)


# which faults apply, and which do not --------------------------------------------------------------


def names(call: AttentionCall) -> set[str]:
    return {fault.name for fault in certify(call, 0).faults}


def extra(family: str, layer: int) -> set[str]:
    """What applies beyond `ALWAYS` to a layer of a family, on an input longer than its window."""
    windowed = {
        "mistral": (0, 1, 2),
        "gemma2": (0, 2),
        "gemma3": (0, 1, 2),
        "gpt_oss": (0, 2),
        "modernbert": (1, 2),
    }
    causal = {"gpt2", "llama", "mistral", "gemma2", "qwen3", "gemma3", "gpt_oss"}
    window = layer in windowed.get(family, ())
    return {
        *({"mask dropped"} if window or family in causal else ()),
        *({"window dropped"} if window else ()),
        *({"key rotation left out"} if family in ROTATION_SEEN else ()),
        *({"soft cap dropped"} if family == "gemma2" else ()),
        *({"relative position dropped"} if family == "t5" else ()),
        *({"sink dropped"} if family == "gpt_oss" else ()),
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_just_the_faults_that_could_apply_are_tried(family):
    for call in calls(family):
        assert names(call) == ALWAYS | extra(family, call.layer)


def test_a_single_key_head_cannot_be_confused_with_another():
    call = calls("llama")[0]
    call = replace(call, k=call.k[:1], v=call.v[:1], unrotated_k=None)
    assert not {"wrong key head", "wrong value head"} & names(call)


def test_what_the_text_does_not_show_is_no_fault():
    def tried(family: str, inputs: dict, row: int = 0) -> set[str]:
        return names(record(sharp(family), inputs, Selection(row=row, layers=[0])).calls[0])

    assert "window dropped" not in tried("mistral", ids(WINDOW))
    assert "window dropped" in tried("mistral", ids(WINDOW + 1))
    padding = padded("left", length=WINDOW + 2, padding=2)
    assert "window dropped" not in tried("mistral", padding, 1), "only padding fills it"
    assert "key rotation left out" not in tried("llama", ids(1))
    call = calls("bert")[0]
    longer = replace(call, q=call.q[:, :5], output=call.output[:, :5], weights={0: call.weights[0][:5]})
    assert "query and key exchanged" not in names(longer)
    assert certify(longer, 0).verdict is Verdict.CERTIFIED


# how far a fault lies off, found a second way ------------------------------------------------------


def own_softmax(call: AttentionCall, head: int, **changed: object) -> Tensor:
    """Weights by torch.softmax, every ingredient open to change."""
    use = {
        "q": call.q[head],
        "k": call.k[head * call.key_heads // call.heads],
        "scale": call.scale,
        "softcap": call.softcap,
        "allowed": call.allowed_matrix(head),
        "bias": None if call.bias is None else call.bias[min(head, len(call.bias) - 1)],
        "sink": None if call.sinks is None else call.sinks[head],
        **changed,
    }
    logits = use["q"].double() @ use["k"].double().T * use["scale"]
    logits = logits if use["softcap"] is None else (logits / use["softcap"]).tanh() * use["softcap"]
    logits = logits if use["bias"] is None else logits + use["bias"]
    logits = logits.masked_fill(~use["allowed"], -math.inf)
    if use["sink"] is not None:
        logits = torch.cat([logits, use["sink"].double().expand(len(logits), 1)], -1)
        return torch.softmax(logits, -1)[:, :-1]
    return torch.softmax(logits, -1)


CAUSAL = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
FAULTY: dict[str, tuple[str, Callable[[AttentionCall], dict[str, object]]]] = {
    "scale off by sqrt 2": ("llama", lambda call: {"scale": call.scale * 2**0.5}),
    "mask dropped": ("llama", lambda call: {"allowed": torch.ones_like(CAUSAL)}),
    "window dropped": ("mistral", lambda call: {"allowed": CAUSAL}),
    "soft cap dropped": ("gemma2", lambda call: {"softcap": None}),
    "relative position dropped": ("t5", lambda call: {"bias": None}),
    "sink dropped": ("gpt_oss", lambda call: {"sink": None}),
    "wrong key head": ("llama", lambda call: {"k": call.k[0]}),
    "query and key exchanged": ("llama", lambda call: {"q": call.k[1], "k": call.q[4]}),
}


@pytest.mark.parametrize("name", FAULTY)
def test_the_size_of_a_fault_is_that_of_a_second_computation(name):
    family, changes = FAULTY[name]
    head, call = 4, calls(family)[0]  # of two key heads, query head 4 of 6 reads number 1
    torch.testing.assert_close(own_softmax(call, head), call.weights[head].double(), rtol=0, atol=1e-5)
    off = (own_softmax(call, head, **changes(call)) - call.weights[head].double()).abs().max()
    (fault,) = (fault for fault in certify(call, head).faults if fault.name == name)
    assert fault.weight_error == pytest.approx(float(off), abs=1e-9)
    assert off > 1e-2


def test_the_rotation_left_out_is_that_of_keys_taken_by_independent_hooks():
    model, seen, family = sharp("llama"), [], "llama"
    model.layers[1].self_attn.k_proj.register_forward_hook(lambda _, args, out: seen.append(out[0].clone()))
    full_run(model, ids())
    head, call = 4, calls(family)[1]
    unrotated = seen[0].view(TOKENS, 2, 8)[:, 1]
    off = (own_softmax(call, head, k=unrotated) - call.weights[head].double()).abs().max()
    (fault,) = (fault for fault in certify(call, head).faults if fault.name == "key rotation left out")
    assert fault.weight_error == pytest.approx(float(off), rel=1e-6)
    assert off > 0.1


def test_faults_come_smallest_first_and_power_is_that_of_the_smallest():
    certificate = certify(calls("gemma2")[0], 1)
    powers = [fault.power for fault in certificate.faults]
    assert powers == sorted(powers)
    assert certificate.power == powers[0]
    assert certificate.unseen == ()


# tampering -----------------------------------------------------------------------------------------

HEAD = 4


def with_nan(tensor: Tensor) -> Tensor:
    spoilt = tensor.clone()
    (spoilt if spoilt.ndim == 2 else spoilt[HEAD])[-1, -1] = torch.nan
    return spoilt


TAMPERINGS: dict[str, tuple[str, Callable[[AttentionCall], dict[str, object]]]] = {
    "scale of another width": ("llama", lambda call: {"scale": 10**-0.5}),
    "scale a little off": ("llama", lambda call: {"scale": call.scale * 1.001}),
    "mask dropped": ("llama", lambda call: {"allowed": None}),
    "one pair forbidden": ("bert", lambda call: {"allowed": ~torch.eye(TOKENS, dtype=torch.bool)[None]}),
    "mask transposed": ("llama", lambda call: {"allowed": call.allowed.transpose(1, 2)}),
    "padding dropped": ("padded bert", lambda call: {"allowed": None}),
    "window ignored": ("mistral", lambda call: {"allowed": CAUSAL[None]}),
    "window of an encoder ignored": ("modernbert", lambda call: {"allowed": None}),
    "soft cap dropped": ("gemma2", lambda call: {"softcap": None}),
    "another soft cap": ("gemma2", lambda call: {"softcap": 50.0}),
    "relative position dropped": ("t5", lambda call: {"terms": ()}),
    "bias of another head": ("t5", lambda call: {"terms": (Term("bias", call.bias.roll(1, 0)),)}),
    "sinks dropped": ("gpt_oss", lambda call: {"sinks": None}),
    "sinks of another head": ("gpt_oss", lambda call: {"sinks": call.sinks.roll(1)}),
    "key of another head": ("llama", lambda call: {"k": call.k.flip(0)}),
    "value of another head": ("llama", lambda call: {"v": call.v.flip(0)}),
    "query of another head": ("llama", lambda call: {"q": call.q.roll(1, 0)}),
    "key not rotated": ("llama", lambda call: {"k": call.unrotated_k}),
    "query and key exchanged": ("bert", lambda call: {"q": call.k, "k": call.q}),
    "keys in another order": ("bert", lambda call: {"k": call.k.roll(1, 1)}),
    "output of another head": ("llama", lambda call: {"output": call.output.roll(1, 0)}),
    "output of another token": ("llama", lambda call: {"output": call.output.roll(1, 1)}),
    "weights of another head": ("llama", lambda call: {"weights": {HEAD: call.weights[HEAD - 1]}}),
    "weights transposed": ("bert", lambda call: {"weights": {HEAD: call.weights[HEAD].T}}),
    "uniform weights": ("bert", lambda call: {"weights": {HEAD: torch.full((TOKENS, TOKENS), 1 / TOKENS)}}),
    "a number in q that is none": (
        "llama",
        lambda call: {"q": with_nan(call.q)},
    ),
    "a weight that is no number": ("llama", lambda call: {"weights": {HEAD: with_nan(call.weights[HEAD])}}),
    "an output that is no number": ("llama", lambda call: {"output": with_nan(call.output)}),
}


def honest(subject: str) -> AttentionCall:
    if subject == "padded bert":
        return record(sharp("bert"), padded("right"), Selection(row=1, layers=[1])).calls[0]
    return calls(subject)[2 if subject in ("gemma2", "gpt_oss") else 1]


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_a_tampered_call_fails(tampering):
    subject, changes = TAMPERINGS[tampering]
    call = honest(subject)
    assert certify(call, HEAD).verdict is Verdict.CERTIFIED
    found = certify(replace(call, **changes(call)), HEAD)
    assert found.verdict is Verdict.FAILED
    assert found.reason


@pytest.mark.parametrize(
    "wrong",
    [
        lambda kernel, module, q, k, v, mask, o: kernel(
            module, q, k, v, mask, **{**o, "scaling": o["scaling"] * 1.01}
        ),
        lambda kernel, module, q, k, v, mask, o: kernel(module, q, k.roll(1, 1), v, mask, **o),
        lambda kernel, module, q, k, v, mask, o: kernel(module, q, k, v, None, **o),
        lambda kernel, module, q, k, v, mask, o: kernel(module, q.roll(1, 2), k, v, mask, **o),
    ],
    ids=["scale", "key head", "mask", "query"],
)
def test_a_model_whose_kernel_computes_something_else_fails(wrong, registries):
    def attention(module, query, key, value, attention_mask, **options):
        return wrong(eager_attention_forward, module, query, key, value, attention_mask, options)

    def faithful(module, query, key, value, attention_mask, **options):
        return eager_attention_forward(module, query, key, value, attention_mask, **options)

    for function, verdict in ((faithful, Verdict.CERTIFIED), (attention, Verdict.FAILED)):
        AttentionInterface.register("eager", function)
        found = certificates(record(sharp("llama"), ids(), Selection(layers=[0])).calls)
        assert {each.verdict for each in found} == {verdict}


# no power, no certificate --------------------------------------------------------------------------


def test_near_uniform_attention_and_a_single_token_prove_nothing_and_name_what_is_unseen():
    model = plain("bert")
    with torch.no_grad():
        for layer in model.encoder.layer:
            layer.attention.self.query.weight.mul_(1e-6)
    for certificate in certificates(record(model, ids()).calls):
        assert certificate.verdict is Verdict.INCONCLUSIVE
        assert set(certificate.unseen) == ALWAYS - {"wrong value head"}
        assert all(name in certificate.reason for name in certificate.unseen)
    for certificate in certificates(record(sharp("gpt2"), ids(1)).calls):
        assert certificate.weight_error == 0
        assert certificate.verdict is Verdict.INCONCLUSIVE
        assert certificate.power == 0
        assert "scale off by sqrt 2" in certificate.reason


def test_small_scores_in_bfloat16_are_inconclusive_where_float32_sees():
    assert {each.verdict for each in certificates(record(plain("bert"), ids()).calls)} == {Verdict.CERTIFIED}
    for certificate in certificates(record(plain("bert").to(torch.bfloat16), ids()).calls):
        assert certificate.verdict is Verdict.INCONCLUSIVE
        assert "scale off by sqrt 2" in certificate.unseen


@pytest.mark.parametrize(
    ("dtype", "step"), [(torch.float32, 2**-23), (torch.float16, 2**-10), (torch.bfloat16, 2**-7)], ids=str
)
def test_the_tolerance_is_that_of_the_kernels_own_numbers(dtype, step):
    (call,) = record(sharp("qwen3").to(dtype), ids(), Selection(layers=[0])).calls
    certificate = certify(call, 3)
    largest = 0.0  # of the sums of absolute products that make up one allowed score
    for query in range(TOKENS):
        for key in range(query + 1):
            products = (call.q[3, query].double() * call.k[1, key].double()).abs().sum()
            largest = max(largest, float(products) * 10**-0.5)
    tolerance = step * (1 + largest) + 10**0.5 * 2**-24 * largest  # ten products are added up in float32
    assert certificate.weight_tolerance == pytest.approx(tolerance)
    adding = TOKENS * 2**-24  # a half of float32's step for each key of the last query
    assert certificate.output_tolerance == pytest.approx(2 * tolerance + adding)
    assert certificate.precision == f"{str(dtype).removeprefix('torch.')} on cpu"


@pytest.mark.parametrize(
    ("family", "dtype"),
    [("bert", torch.float16), ("t5", torch.bfloat16), ("gpt_oss", torch.bfloat16)],
    ids=str,
)
def test_half_precision_never_fails_and_is_still_caught_when_tampered_with(family, dtype):
    captured = record(sharp(family).to(dtype), ids()).calls
    found = certificates(captured)
    assert {each.verdict for each in found} <= {Verdict.CERTIFIED, Verdict.INCONCLUSIVE}
    assert max(map(ratio, found)) < 0.7
    call = captured[0]
    assert certify(replace(call, weights={0: call.weights[0].roll(1, -1)}), 0).verdict is Verdict.FAILED


def test_rows_without_any_allowed_key_do_not_count():
    (call,) = record(sharp("llama"), padded("left"), Selection(row=1, layers=[0])).calls
    rows = call.allowed_matrix(0).any(-1)
    assert not rows[:3].any()
    assert rows[3:].all()
    spoilt = {0: call.weights[0].clone()}
    spoilt[0][:3] = torch.nan
    assert certify(replace(call, weights=spoilt), 0).verdict is Verdict.CERTIFIED
    spoilt[0][3] = torch.nan
    assert certify(replace(call, weights=spoilt), 0).verdict is Verdict.FAILED


def test_a_fault_of_unknown_size_counts_as_unseen():
    faults = (
        Fault("seen", 0.1, 0.1, 30.0),
        Fault("unknown", math.nan, 0.1, math.nan),
        Fault("edge", 0.0, 0.0, 1.0),
    )
    certificate = Certificate(Verdict.CERTIFIED, 0.0, 1.0, 0.0, 1.0, "", faults)
    assert certificate.unseen == ("unknown", "edge")
    assert Certificate(Verdict.CERTIFIED, 0.0, 1.0, 0.0, 1.0, "", ()).power == 0


def test_what_adding_up_many_alike_values_loses_is_no_fault() -> None:
    """1500 keys that are nearly alike, as silence is to Whisper: every addition is rounded the same way."""
    keys, drawn = 1500, torch.manual_seed(3)
    q, k = torch.randn(1, 3, 4, generator=drawn), torch.randn(1, keys, 4, generator=drawn)
    v = 0.7 + 1e-4 * torch.randn(1, keys, 2, generator=drawn)
    weights = torch.softmax(q @ k.mT * 0.05, -1)
    output = torch.zeros(1, 3, 2)
    for key in range(keys):  # the plainest kernel there is, in float32
        output += weights[:, :, key, None] * v[:, None, key]
    made = {"q": q, "k": k, "v": v, "output": output, "weights": {0: weights[0]}, "scale": 0.05}
    call = replace(calls("bert")[0], **made, terms=(), allowed=None, unrotated_k=None)
    found = certify(call, 0)
    assert found.verdict is Verdict.CERTIFIED
    assert 2 * found.weight_tolerance < found.output_error < found.output_tolerance < 1e-4
    half = keys // 2
    lost = weights[:, :, :half] @ v[:, :half]
    assert certify(replace(call, output=lost), 0).verdict is Verdict.FAILED
    without_one = output - weights[:, :, 7, None] * v[:, None, 7]
    assert certify(replace(call, output=without_one), 0).verdict is Verdict.FAILED


def test_what_adding_up_the_products_of_one_score_loses_is_no_fault() -> None:
    """One large product comes first, and every one after it is rounded to the last places of the sum.

    So is a score of SmolLM2's L3 H5: it is off by 4.7 epsilons of its sum, and was once taken for a fault.
    """
    dim, drawn = 64, torch.manual_seed(0)
    q = 1 + 0.01 * torch.randn(1, 400, dim, generator=drawn)
    k = 0.01 * torch.rand(1, 2, dim, generator=drawn)
    k[..., 0], v = 8.1, torch.randn(1, 2, 3, generator=drawn)
    products = q[..., None, :] * k[:, None]
    parts = products.unbind(-1)  # of every score, to be added up in this order in float32

    def made(added: Sequence[Tensor]) -> AttentionCall:
        met = reduce(torch.add, added).softmax(-1)
        given = {"q": q, "k": k, "v": v, "output": met @ v, "weights": {0: met[0]}, "scale": 1.0}
        return replace(calls("bert")[0], **given, terms=(), allowed=None, unrotated_k=None)

    found = certify(made(parts), 0)
    assert found.verdict is Verdict.CERTIFIED
    assert found.weight_error > 2**-23 * (1 + float(products.abs().sum(-1).max()))  # of one rounding a score
    assert certify(made(parts[:-1]), 0).verdict is Verdict.FAILED


def test_what_a_mask_of_minus_a_billion_loses_in_rounding_does_not_widen_the_tolerance() -> None:
    """Some models forbid by adding -1e9, which stays a number: no rounding of it can give it weight."""
    (call,) = record(sharp("bert"), ids(), Selection(layers=[1])).calls
    forbidding = torch.zeros(1, TOKENS, TOKENS)
    forbidding[..., 4] = -1e9
    logits = (call.q[2] @ call.k[2].T) * call.scale + forbidding[0]
    weights = logits.softmax(-1)
    made = {"weights": {2: weights}, "output": (weights @ call.v[2])[None].expand(6, -1, -1)}
    masked = replace(call, **made, terms=(Term("mask", forbidding),))
    found = certify(masked, 2)
    assert found.verdict is Verdict.CERTIFIED
    assert found.weight_tolerance == pytest.approx(certify(call, 2).weight_tolerance, rel=0.5)
    assert {fault.name for fault in found.faults} > {"added mask dropped"}
