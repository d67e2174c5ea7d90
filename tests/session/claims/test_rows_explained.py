"""Why a head of a long text looks where it looks, by rows: against whole layers, and against plain slices."""

import long_text
import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

import attnscope as at
from attnscope.errors import InputError
from attnscope.results import Why
from attnscope.session.questions.claims import rows, why

LENGTH, QUERY, KEY, LAYER, HEAD = 97, 90, 31, 2, 3
MODELS = {
    "demo": ("I was watching the red door when [MASK] opened.", (3, 1), "[MASK]", "door"),
    "demo-causal": ("river king door river king", (1, 2), "@4", "@1"),
    "demo-translate": ("I was watching the red door when it opened.", (1, 1), "rouge", "red"),
}


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    return long_text.llama(4)


def alike(long: Why, whole: Why) -> None:
    """The same parts, shares, sources and removals, within the rounding of two kernels."""

    def close(one: object, other: object) -> None:
        assert np.allclose(one, other, rtol=2e-3, atol=2e-4, equal_nan=True), (one, other)

    close(long.weight, whole.weight)
    close((long.score, long.contrast), (whole.score, whole.contrast))
    assert max(long.residual, whole.residual) <= 1e-5
    mine, its = ({(part.side, part.name): part for part in each.parts} for each in (long, whole))
    assert mine.keys() == its.keys()
    assert any(part.removed for part in mine.values())
    for name, part in mine.items():
        other = its[name]
        close((part.score, part.contrast), (other.score, other.contrast))
        assert part.source == other.source
        assert (part.removed is None) == (other.removed is None)
        if part.removed is not None and other.removed is not None:
            close(part.removed.total, other.removed.total)
            close(part.removed.held, other.removed.held)
            close(part.controls, other.controls)


@pytest.mark.parametrize("model", MODELS)
def test_parts_of_a_long_text_are_those_of_whole_layers(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, (layer, head), query, key = MODELS[model]
    reading = at.load(model).read(text)
    whole = reading.why(layer, head, query, key)
    monkeypatch.setattr(rows, "LONG", 4)
    long = reading.why(layer, head, query, key)
    alike(long, whole)
    assert (whole.provenance.kernel, long.provenance.kernel) == ("eager", "sdpa, some queries at a time")
    assert long.certificate.verdict == whole.certificate.verdict


def test_grouped_queries_have_the_parts_of_whole_layers_and_the_score_of_the_model_itself(
    llama: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = at.wrap(llama).read(ids=long_text.ids(LENGTH))
    whole = reading.why(LAYER, HEAD, f"@{QUERY}", f"@{KEY}")
    monkeypatch.setattr(rows, "LONG", 4)
    long = reading.why(LAYER, HEAD, f"@{QUERY}", f"@{KEY}")
    alike(long, whole)
    entered = []
    attention = llama.model.layers[LAYER].self_attn
    with (
        torch.no_grad(),
        attention.register_forward_pre_hook(
            lambda _module, _args, named: entered.append(named), with_kwargs=True
        ),
    ):
        llama(torch.tensor([long_text.ids(LENGTH)]))
    hidden, (cos, sin) = entered[0]["hidden_states"], entered[0]["position_embeddings"]
    query = attention.q_proj(hidden).view(1, LENGTH, 4, 8).transpose(1, 2)
    key = attention.k_proj(hidden).view(1, LENGTH, 2, 8).transpose(1, 2)
    query, key = apply_rotary_pos_emb(query, key, cos, sin)
    score = (query[0, HEAD, QUERY] @ key[0, HEAD // 2, KEY]).item() / 8**0.5
    assert long.score == pytest.approx(score, rel=1e-4)


def test_another_text_gives_its_parts_to_a_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    text, (layer, head), query, key = MODELS["demo"]
    reading, other = at.load("demo").read(text), text.replace("watching", "opening")
    whole = reading.why(layer, head, query, key, patch_from=other)
    monkeypatch.setattr(rows, "LONG", 4)
    alike(reading.why(layer, head, query, key, patch_from=other), whole)


def test_no_run_taken_apart_holds_queries_by_keys(
    llama: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = at.wrap(llama).read(ids=long_text.ids(LENGTH))
    monkeypatch.setattr("attnscope.capture.long.run.TRIED", 12)  # tokens of the proof by cause
    monkeypatch.setattr("attnscope.analysis.claims.why.account._AT_ONCE", 4 * LENGTH * 5)
    monkeypatch.setattr(rows, "LONG", 4)
    with long_text.Squares(LENGTH) as squares:
        reading.why(LAYER, HEAD, f"@{QUERY}", f"@{KEY}")
    assert squares.made == []
    monkeypatch.setattr(rows, "LONG", LENGTH)
    with long_text.Squares(LENGTH) as squares:
        reading.why(LAYER, HEAD, f"@{QUERY}", f"@{KEY}")
    assert squares.made


def test_whole_layers_of_a_long_text_are_refused_with_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LONG", 4)
    monkeypatch.setattr(why, "MOST", 4)
    text, (layer, head), query, key = MODELS["demo-causal"]
    at.load("demo-causal").read(text).why(layer, head, query, key)
    with pytest.raises(InputError, match="up to 4 tokens, here are 6"):
        at.load("demo-causal", attn="eager").read(text).why(layer, head, query, key)
