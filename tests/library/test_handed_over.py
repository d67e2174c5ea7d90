"""Models that come in memory and not as `from_pretrained` leaves them: in training, compiled, own kernels."""

import logging
import math

import numpy as np
import pytest
import torch
from families import TOKENS, WINDOW, ids, sharp
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface, AutoModel, AutoTokenizer
from transformers.masking_utils import sdpa_mask

import attnscope as at
from attnscope import demo
from attnscope.capture import Selection, record
from attnscope.results import Verdict
from attnscope.verify import certify

SENTENCE = "I was watching the [MASK] when it opened."


def module(name: str = "demo") -> nn.Module:
    return AutoModel.from_pretrained(demo.folder(name), attn_implementation="eager").eval()


def wrapped(model: nn.Module, name: str = "demo") -> at.Model:
    return at.wrap(model, AutoTokenizer.from_pretrained(demo.folder(name)))


@pytest.fixture
def notices(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)
    return lambda: [record.message for record in caplog.records if record.name == "attnscope"]


# training mode


def test_a_model_in_training_mode_is_read_without_dropout_and_that_is_said_once(notices) -> None:
    model = module()
    model.encoder.layer[2].eval()  # only a part of it
    for each in (model, model.embeddings):
        each.training = True
    flags = [each.training for each in model.modules()]
    expected = wrapped(module()).read(SENTENCE).head(3, 11).weights
    assert notices() == []
    given = wrapped(model)
    for _ in range(2):
        head = given.read(SENTENCE).head(3, 11)
        assert np.array_equal(head.weights, expected)
        assert head.verdict is Verdict.CERTIFIED
    assert [each.training for each in model.modules()] == flags
    (said,) = notices()
    assert said.endswith("is in training mode: it is read in evaluation mode, without dropout, and put back")


# compiled code


class Counting:
    """A compiler that leaves the code as it is, and counts how often it is asked and what it made runs."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, graph, _inputs):
        def run(*given):
            self.runs += 1
            return graph.forward(*given)

        return run


@pytest.mark.parametrize("way", ["the model", "in place", "its forward"])
def test_each_way_to_ask_for_compiled_code_is_seen(way: str, notices) -> None:
    model, compiler = module(), Counting()
    if way == "in place":
        model.compile(backend=compiler)
    elif way == "its forward":
        model.forward = torch.compile(model.forward, backend=compiler)
    else:
        model = torch.compile(model, backend=compiler)
    head = wrapped(model).read(SENTENCE).head(3, 11)
    assert (head.provenance.route, head.provenance.architecture) == ("takeover", "BertModel")
    assert compiler.runs == 0
    assert len(notices()) == 1


def test_a_compiled_model_is_certified_as_it_is_written_which_is_said(notices, capfd, recwarn) -> None:
    expected = wrapped(module()).read(SENTENCE).head(3, 11).weights
    model, compiler, inputs = module(), Counting(), demo_inputs()
    for i, layer in enumerate(model.encoder.layer):
        model.encoder.layer[i] = torch.compile(layer, backend=compiler)
    with torch.no_grad():
        model(**inputs)
    before = compiler.runs
    assert before > 0
    recwarn.clear()
    capfd.readouterr()
    reading = wrapped(model).read(SENTENCE)
    head = reading.head(3, 11)
    assert np.array_equal(head.weights, expected)
    assert reading.verify().verdict is Verdict.CERTIFIED
    assert compiler.runs == before
    assert (capfd.readouterr().err, len(recwarn)) == ("", 0)
    (said,) = notices()
    assert said.endswith("is compiled: its code is read as it is written, not the kernels compiled from it")
    with torch.no_grad():
        model(**inputs)
    assert compiler.runs == 2 * before, "what was compiled is not compiled any more"


def demo_inputs():
    return AutoTokenizer.from_pretrained(demo.folder())(SENTENCE, return_tensors="pt")


def test_what_is_kept_from_the_compiler_is_not_called_compiled(notices) -> None:
    model = module()
    model.encoder.forward = torch.compiler.disable(model.encoder.forward)
    assert wrapped(model).read(SENTENCE).head(1, 2).provenance.route == "takeover"
    assert notices() == []


# kernels that a user registers


@pytest.fixture
def kernels(registries):
    """The tables of attention functions and of masks, put back afterwards."""
    masks = dict(AttentionMaskInterface._global_mapping)
    yield
    AttentionMaskInterface._global_mapping.clear()
    AttentionMaskInterface._global_mapping.update(masks)


def own(sharpness: float = 1.0, *, causal: bool = False, window: bool = False):
    """Attention as a user writes it, in an obvious loop over queries."""

    def attend(module, query, key, value, attention_mask, scaling=None, sliding_window=None, **options):
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
        rows = []
        for i in range(query.shape[2]):
            scores = (key @ query[:, :, i, :, None])[..., 0] * (scaling or 1 / math.sqrt(query.shape[-1]))
            if attention_mask is not None:
                allowed = attention_mask[:, :, i if attention_mask.shape[2] > 1 else 0]
                scores = scores.masked_fill(~allowed, -torch.inf)
            if causal:
                scores[..., i + 1 :] = -torch.inf
            if window:
                scores[..., : max(0, i - sliding_window + 1)] = -torch.inf
            rows.append(((scores * sharpness).softmax(-1)[..., None] * value).sum(2))
        return torch.stack(rows, 1), None

    return attend


def running(model: nn.Module, kernel: str) -> nn.Module:
    for each in model.modules():
        if hasattr(each, "config"):
            each.config._attn_implementation_internal = kernel
    return model


def verdicts(model: nn.Module, inputs=None, row: int = 0) -> set[Verdict]:
    calls = record(model, ids() if inputs is None else inputs, Selection(row=row)).calls
    return {certify(call, head).verdict for call in calls for head in call.weights}


def test_a_kernel_of_a_user_is_certified_under_its_own_name(kernels, notices) -> None:
    AttentionInterface.register("mine", own())
    AttentionMaskInterface.register("mine", sdpa_mask)
    model = AutoModel.from_pretrained(demo.folder(), attn_implementation="mine").eval()
    head = wrapped(model).read(SENTENCE).head(3, 11)
    assert (head.verdict, head.provenance.kernel) == (Verdict.CERTIFIED, "mine")
    expected = wrapped(module()).read(SENTENCE).head(3, 11)
    assert np.abs(head.weights - expected.weights).max() < 1e-5  # another kernel, three layers below
    assert notices() == []
    assert AttentionInterface()["mine"].__name__ == "attend"


def test_a_kernel_of_a_user_that_computes_something_else_fails(kernels) -> None:
    AttentionInterface.register("mine", own(1.1))
    AttentionMaskInterface.register("mine", sdpa_mask)
    assert verdicts(running(sharp("bert"), "mine")) == {Verdict.FAILED}
    assert verdicts(running(sharp("mistral"), "mine")) == {Verdict.FAILED}


def test_a_kernel_of_a_user_with_masks_of_its_own_is_read_with_these(kernels) -> None:
    AttentionInterface.register("mine", own(causal=True))
    AttentionMaskInterface.register("mine", sdpa_mask)
    padded = {"input_ids": torch.cat([ids()["input_ids"], ids()["input_ids"].flip(1)])}
    padded["attention_mask"] = torch.ones(2, TOKENS, dtype=torch.long)
    padded["attention_mask"][1, -3:] = 0
    model = running(sharp("llama"), "mine")
    assert verdicts(model, padded, 1) == {Verdict.CERTIFIED}
    for call in record(model, padded, Selection(row=1)).calls:
        assert call.weights[4][: TOKENS - 3, -3:].max() == 0


@pytest.mark.parametrize(("causal", "window"), [(True, False), (False, True)])
def test_without_masks_a_kernel_is_read_as_it_looks_whatever_it_was_told(
    kernels, causal: bool, window: bool
) -> None:
    AttentionInterface.register("mine", own(causal=causal, window=window))
    model = running(sharp("mistral"), "mine")
    assert verdicts(model) == {Verdict.CERTIFIED}
    for call in record(model, ids()).calls:
        seen = call.weights[4] > 0
        assert bool(seen.triu(1).any()) is not causal
        assert bool(seen.tril(-WINDOW).any()) is not window


def test_that_a_kernel_is_handed_no_masks_is_said(kernels, notices) -> None:
    AttentionInterface.register("mine", own(causal=True))
    model = AutoModel.from_pretrained(demo.folder("demo-causal"), attn_implementation="mine").eval()
    head = wrapped(model, "demo-causal").read("river piano doctor window").head(1, 10)
    assert (head.verdict, head.provenance.kernel) == (Verdict.CERTIFIED, "mine")
    (said,) = notices()
    assert said.startswith("transformers hands attention kernel mine no mask")


@pytest.mark.parametrize("name", ["never_registered", "paged|eager"])
def test_a_kernel_that_cannot_be_read_is_refused_in_one_line(name) -> None:
    with pytest.raises(at.AttnscopeError, match=r"^cannot read attention kernel .*: those that"):
        record(running(sharp("bert"), name), ids())
