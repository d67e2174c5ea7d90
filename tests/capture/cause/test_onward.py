"""Whether what a block returns is read, and whether its rows reach one another beside the attention shown."""

from typing import Any

import pytest
import torch
from families import HIDDEN, LAYERS, ids, sharp
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, BertModel
from transformers.modeling_outputs import CausalLMOutput

from attnscope.capture import Selection, record
from attnscope.capture.cause.reaching import reaches_of
from attnscope.model.anatomy.sites import find_sites
from attnscope.model.loading.partial import cut, refuse_missing
from attnscope.results import Certificate, Verdict
from attnscope.verify import certify_heads
from attnscope.vocabulary import Effect

FAMILIES = ("bert", "gpt2", "llama")


def blocks(model: nn.Module) -> nn.ModuleList:
    return next(part for part in model.modules() if isinstance(part, nn.ModuleList))


def first(result: Any) -> Tensor:
    return result if isinstance(result, Tensor) else result[0]


def told(model: nn.Module) -> list[Certificate]:
    """Of every layer the certificate of a head."""
    return [certify_heads(call, [2])[0] for call in record(model, ids(), Selection()).calls]


class Beside(nn.Module):
    """What is added to the rows of a block: another attention, their mean so far, or each row's own doing."""

    def __init__(self, how: str, is_causal: bool) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.how, self.is_causal = how, is_causal
        self.made = nn.Linear(HIDDEN, 3 * HIDDEN)
        nn.init.normal_(self.made.weight, std=1.2 * HIDDEN**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.made(x).chunk(3, -1)
        if self.how == "fused":
            return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=self.is_causal)
        if self.how == "softmax":
            scores = query @ key.mT / HIDDEN**0.5
            if self.is_causal:
                scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -1e9)
            return scores.softmax(-1) @ value
        if self.how == "mean":
            return value.cumsum(1) / torch.arange(1, value.shape[1] + 1)[:, None]
        return value.softmax(-1) * query


def with_beside(model: nn.Module, layer: int, how: str) -> nn.Module:
    beside = Beside(how, "Bert" not in type(model).__name__)

    def added(_block: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Any], result: Any) -> Any:
        x = args[0] if args else kwargs["hidden_states"]
        whole = first(result) + beside(x)
        return whole if isinstance(result, Tensor) else (whole, *result[1:])

    blocks(model)[layer].register_forward_hook(added, with_kwargs=True)
    return model


@pytest.mark.parametrize(("family", "layer"), [("bert", 0), ("gpt2", 0), ("llama", LAYERS - 1)])
@pytest.mark.parametrize("how", ["softmax", "fused"])
def test_a_layer_with_another_attention_beside_the_one_that_is_shown_is_partial(
    family: str, layer: int, how: str
) -> None:
    found = told(with_beside(sharp(family), layer, how))
    verdicts = [each.verdict for each in found]
    assert verdicts == [Verdict.PARTIAL if each == layer else Verdict.CERTIFIED for each in range(LAYERS)]
    assert "another softmax" in found[layer].reason
    assert found[layer].reach.effect is Effect.OWN  # the one that is shown acts all the same


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_that_reach_one_another_by_no_attention_are_said_to_and_those_that_do_not_are_not(
    family: str,
) -> None:
    for how, layers in (("mean", [1]), ("row by row", [])):
        found = told(with_beside(sharp(family), 1, how))
        assert {each.verdict for each in found} == {Verdict.CERTIFIED}
        assert [layer for layer, each in enumerate(found) if each.reach.beside] == layers


def kept_by_hook(model: nn.Module) -> nn.Module:
    """The last block reads what the first one returned, and not the one before it."""
    kept: list[Tensor] = []
    blocks(model)[0].register_forward_hook(lambda _block, _args, result: kept.append(first(result)))
    last = blocks(model)[LAYERS - 1]
    last.register_forward_pre_hook(lambda _, args, kwargs: ((kept[-1], *args[1:]), kwargs), with_kwargs=True)
    return model


class Loop(nn.Module):
    """A model whose own loop hands each block what one of those before it returned, by `reads`."""

    def __init__(self, base: nn.Module, reads: tuple[int, ...]) -> None:
        super().__init__()
        self.base, self.reads, self.config = base, reads, base.config

    def forward(self, input_ids: Tensor) -> CausalLMOutput:
        states = [self.base.embeddings(input_ids)]
        for layer, read in zip(blocks(self.base), self.reads[:-1], strict=True):
            states.append(first(layer(states[read])))
        return CausalLMOutput(logits=states[self.reads[-1]])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_block_that_the_next_one_does_not_read_is_partial(family: str) -> None:
    found = told(kept_by_hook(sharp(family)))
    assert [each.verdict is Verdict.PARTIAL for each in found] == [False, True, False]
    assert found[1].reach.effect is Effect.NONE


@pytest.mark.parametrize(
    ("reads", "unread"),
    [
        ((0, 1, 2, 3), []),  # each reads the one before, and the result the last
        ((0, 1, 1, 3), [1]),
        ((0, 1, 2, 2), [2]),  # the result is read off the last but one
        ((0, 1, 2, 0), [0, 1, 2]),  # off the embeddings
    ],
)
def test_of_a_loop_over_layers_those_that_do_not_come_to_the_result_are_partial(
    reads: tuple[int, ...], unread: list[int]
) -> None:
    found = told(Loop(sharp("bert"), reads))
    assert [layer for layer, each in enumerate(found) if each.verdict is Verdict.PARTIAL] == unread


def test_a_result_that_hangs_on_nothing_tells_nothing_of_the_layers() -> None:
    model = Loop(sharp("bert"), (0, 1, 2, 3))
    model.register_forward_hook(lambda _model, _args, result: CausalLMOutput(logits=result.logits * 0))
    assert {each.verdict for each in told(model)} == {Verdict.CERTIFIED}


def test_layers_of_no_text_may_stay_unread() -> None:
    model = Loop(sharp("bert"), (0, 1, 2, 2))
    found = reaches_of(model, ids(), find_sites(model), None).found  # with nothing known of their tokens
    last = found["base.encoder.layer.2.attention.self", 0][2]
    assert last.effect is Effect.OWN
    assert "not read" in last.beside


def test_a_layer_alone_is_tried_up_to_what_the_next_one_is_given() -> None:
    model = Loop(sharp("bert"), (0, 1, 1, 3))
    for layer, verdict in ((0, Verdict.CERTIFIED), (1, Verdict.PARTIAL)):
        call = record(model, ids(), Selection([layer])).calls[0]
        assert {each.verdict for each in certify_heads(call)} == {verdict}


def cut_after(family: str, layers: int) -> nn.Module:
    """The first layers of a model, as they are loaded: without the norm behind them."""
    whole = sharp(family)
    part = cut(type(whole), layers)._from_config(whole.config, attn_implementation="eager").eval()
    part.load_state_dict(whole.state_dict(), strict=False)
    refuse_missing(
        part, [name for name in dict(part.named_parameters()) if name in ("norm.weight", "ln_f.weight")], "m"
    )
    return part


def with_head(model: nn.Module) -> nn.Module:
    made = AutoModelForMaskedLM if isinstance(model, BertModel) else AutoModelForCausalLM
    whole = made.from_config(model.config, attn_implementation="eager").eval()
    setattr(whole, whole.base_model_prefix, model)
    return whole


def passed_by(model: nn.Module, layer: int) -> nn.Module:
    """A model that goes on with what it gave to the layer."""
    block = blocks(model)[layer]

    def call(self: nn.Module, hidden: Tensor, *args: Any, **kwargs: Any) -> Any:
        result = super(type(self), self).__call__(hidden, *args, **kwargs)
        return hidden if isinstance(result, Tensor) else (hidden, *result[1:])

    block.__class__ = type("PassedBy", (type(block),), {"__call__": call})
    return model


@pytest.mark.parametrize("family", FAMILIES)
def test_of_the_last_layer_that_is_loaded_it_is_seen_whether_what_comes_next_reads_it(family: str) -> None:
    models = cut_after(family, 2), passed_by(cut_after(family, 2), 1), passed_by(cut_after(family, 2), 0)
    calls = [record(model, ids(), Selection([1])).calls[0] for model in models]
    read, passed, before = (certify_heads(call, [2])[0].reach for call in calls)
    assert (read.effect, read.reason) == (Effect.OWN, "up to what comes next")
    assert (passed.effect, "nothing behind that was loaded" in passed.reason) == (Effect.UNKNOWN, True)
    assert before == read
