"""What each part brings to an answer, against sums written out by hooks; and what becomes of it without."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import families
import pytest
import torch
import transformers as hf
from torch import Tensor, nn

from attnscope.analysis.claims.ablation.question import Question, word_at
from attnscope.analysis.claims.why.answer import Told, contributions
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import find_sites
from attnscope.results.claims.effect import Asks
from attnscope.results.claims.why import LEFT

POSITION, ANSWER, AGAINST, VOCABULARY = 6, 5, 71, 97
Shares = dict[str, float]
WORDED: dict[str, Callable[[], nn.Module]] = {
    "bert": lambda: hf.BertForMaskedLM(families.CONFIGS["bert"]()),
    "gpt2": lambda: hf.GPT2LMHeadModel(families.CONFIGS["gpt2"]()),
    "llama": lambda: hf.LlamaForCausalLM(families.CONFIGS["llama"]()),
    "mistral": lambda: hf.MistralForCausalLM(families.CONFIGS["mistral"]()),
    "gemma2": lambda: hf.Gemma2ForCausalLM(families.CONFIGS["gemma2"]()),
    "albert": lambda: hf.AlbertForMaskedLM(families.CONFIGS["albert"]()),
    "bert with the GELU of GPT-2": lambda: hf.BertForMaskedLM(
        hf.BertConfig(**{**families.CONFIGS["bert"]().to_diff_dict(), "hidden_act": "gelu_new"})
    ),
}


def made(family: str) -> Any:
    """With weights and biases large enough that no part is next to nothing."""
    torch.manual_seed(4)
    model = WORDED[family]().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
    return model


def inputs_of(seed: int = 0) -> dict[str, Tensor]:
    ids = torch.randint(3, VOCABULARY, (1, families.TOKENS), generator=torch.Generator().manual_seed(seed))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def question(against: int | None = AGAINST, position: int = POSITION) -> Question:
    asked = word_at(Asks.MASK, position, families.TOKENS, (ANSWER,), str)
    return asked if against is None else replace(asked, against=(against,), against_text=str(against))


def told(model: Any, against: int | None = AGAINST, **more: Any) -> Told:
    return contributions(model, inputs_of(), find_sites(model), question(against), **more)


def logit(model: Any, against: int | None = AGAINST) -> float:
    with torch.no_grad():
        row = model(**inputs_of()).logits[0, POSITION].double()
    return float(row[ANSWER] - (0 if against is None else row[against]))


def seen(model: Any, modules: dict[str, nn.Module]) -> dict[str, Tensor]:
    """What each of these modules is given at the answer's position in a plain run."""
    found: dict[str, Tensor] = {}
    hooks = [
        module.register_forward_pre_hook(
            lambda _, given, name=name: found.update({name: given[0][0, POSITION].double()})
        )
        for name, module in modules.items()
    ]
    with torch.no_grad():
        model(**inputs_of())
    for hook in hooks:
        hook.remove()
    return found


def by_head(mixed: Tensor, out: Tensor, layer: int) -> dict[str, Tensor]:
    size = len(out) // families.HEADS
    slices = [slice(head * size, (head + 1) * size) for head in range(families.HEADS)]
    return {f"L{layer} H{head}": mixed[one] @ out[one] for head, one in enumerate(slices)}


def through_norm(parts: dict[str, Tensor], norm: Any, *, centred: bool) -> dict[str, Tensor]:
    whole = sum(parts.values(), torch.tensor(0.0))
    spread = whole - whole.mean() if centred else whole
    eps = norm.eps if centred else norm.variance_epsilon
    scale = (spread.pow(2).mean() + eps).rsqrt() * norm.weight.double()
    made = {name: (part - part.mean() if centred else part) * scale for name, part in parts.items()}
    if centred:
        made["biases"] = made.get("biases", 0) + norm.bias.double()
    return made


def joined(parts: dict[str, Tensor], more: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: parts.get(name, 0) + more.get(name, 0) for name in {**parts, **more}}


def unembedded(parts: dict[str, Tensor], words: Any) -> Shares:
    way = (words.weight[ANSWER] - words.weight[AGAINST]).double()
    found = {name: float(part @ way) for name, part in parts.items()}
    if words.bias is not None:
        found["biases"] += float(words.bias[ANSWER] - words.bias[AGAINST])
    return found


def of_gpt2(model: Any) -> Shares:
    body, given = model.transformer, inputs_of()["input_ids"][0, POSITION]
    modules = {f"z{i}": block.attn.c_proj for i, block in enumerate(body.h)}
    found = seen(model, modules | {f"m{i}": block.mlp.c_proj for i, block in enumerate(body.h)})
    parts = {"token": body.wte.weight[given].double(), "position": body.wpe.weight[POSITION].double()}
    for i, block in enumerate(body.h):
        bias = (block.attn.c_proj.bias + block.mlp.c_proj.bias).double()
        mlp = found[f"m{i}"] @ block.mlp.c_proj.weight.double()
        parts = joined(parts, by_head(found[f"z{i}"], block.attn.c_proj.weight.double(), i))
        parts = joined(parts, {f"MLP L{i}": mlp, "biases": bias})
    return unembedded(through_norm(parts, body.ln_f, centred=True), model.lm_head)


def of_llama(model: Any) -> Shares:
    body, given = model.model, inputs_of()["input_ids"][0, POSITION]
    modules = {f"z{i}": layer.self_attn.o_proj for i, layer in enumerate(body.layers)}
    found = seen(model, modules | {f"m{i}": layer.mlp.down_proj for i, layer in enumerate(body.layers)})
    parts = {"token": body.embed_tokens.weight[given].double()}
    for i, layer in enumerate(body.layers):
        parts = joined(parts, by_head(found[f"z{i}"], layer.self_attn.o_proj.weight.T.double(), i))
        parts = joined(parts, {f"MLP L{i}": found[f"m{i}"] @ layer.mlp.down_proj.weight.T.double()})
    return unembedded(through_norm(parts, body.norm, centred=False), model.lm_head)


def of_bert(model: Any) -> Shares:
    """Norms after every sum, then the transform along its tangent: slope times x, and what that misses."""
    body, head, given = model.bert, model.cls.predictions, inputs_of()["input_ids"][0, POSITION]
    layers, table = body.encoder.layer, body.embeddings
    modules = {f"z{i}": layer.attention.output.dense for i, layer in enumerate(layers)}
    found = seen(model, modules | {f"m{i}": layer.output.dense for i, layer in enumerate(layers)})
    parts = {
        "token": table.word_embeddings.weight[given].double(),
        "position": table.position_embeddings.weight[POSITION].double(),
        "segment": table.token_type_embeddings.weight[0].double(),
    }
    parts = through_norm(parts, table.LayerNorm, centred=True)
    for i, layer in enumerate(layers):
        out = layer.attention.output
        parts = joined(parts, by_head(found[f"z{i}"], out.dense.weight.T.double(), i))
        parts = through_norm(joined(parts, {"biases": out.dense.bias.double()}), out.LayerNorm, centred=True)
        mlp = found[f"m{i}"] @ layer.output.dense.weight.T.double()
        parts = joined(parts, {f"MLP L{i}": mlp, "biases": layer.output.dense.bias.double()})
        parts = through_norm(parts, layer.output.LayerNorm, centred=True)
    dense = head.transform.dense
    parts = {name: part @ dense.weight.T.double() for name, part in parts.items()}
    parts = joined(parts, {"biases": dense.bias.double()})
    whole = sum(parts.values(), torch.tensor(0.0))
    normal = torch.distributions.Normal(0.0, 1.0)
    slope = normal.cdf(whole) + whole * normal.log_prob(whole).exp()  # of x Phi(x)
    parts = {name: part * slope for name, part in parts.items()}
    parts[LEFT] = whole * normal.cdf(whole) - slope * whole
    return unembedded(through_norm(parts, head.transform.LayerNorm, centred=True), head.decoder)


BY_HAND = {"gpt2": of_gpt2, "llama": of_llama, "bert": of_bert}


@pytest.mark.parametrize("family", BY_HAND)
def test_what_every_part_brings_is_what_hooks_and_slices_say(family: str) -> None:
    model = made(family)
    found = {part.name: part.direct for part in told(model).parts}
    with torch.no_grad():
        expected = BY_HAND[family](model)
    assert found.keys() == expected.keys()
    largest = max(map(abs, expected.values()))
    for name, direct in expected.items():
        assert found[name] == pytest.approx(direct, rel=1e-4, abs=1e-5 * largest), name
    heads = [abs(direct) for name, direct in found.items() if " H" in name]
    assert len(heads) == families.LAYERS * families.HEADS
    assert max(heads) > 0.01


@pytest.mark.parametrize("against", [AGAINST, None])
@pytest.mark.parametrize("family", WORDED)
def test_all_parts_sum_to_the_logit_of_the_model(family: str, against: int | None) -> None:
    model = made(family)
    found = told(model, against)
    whole = logit(model, against)
    rounding = max(abs(logit(model, None)), abs(whole))
    assert found.logit == pytest.approx(whole, abs=1e-12)
    assert found.summed == pytest.approx(sum(part.direct for part in found.parts))
    assert abs(found.summed - whole) <= 1e-5 * max(rounding, 0.01 * sum(abs(p.direct) for p in found.parts))
    assert found.residual <= 1e-5


def test_a_linear_head_leaves_nothing_over_and_a_bent_one_has_a_row_for_it() -> None:
    names = {family: {part.name for part in told(made(family)).parts} for family in WORDED}
    assert {family for family, parts in names.items() if LEFT in parts} == {
        "bert", "albert", "gemma2", "bert with the GELU of GPT-2",
    }  # fmt: skip


def test_a_head_whose_output_is_zero_brings_nothing() -> None:
    model, size = made("gpt2"), families.HIDDEN // families.HEADS
    with torch.no_grad():
        model.transformer.h[1].attn.c_proj.weight[2 * size : 3 * size] = 0.0
    parts = {part.name: part for part in told(model).parts}
    assert parts["L1 H2"].direct == 0.0
    assert parts["L1 H2"].removed is None
    assert abs(parts["L1 H3"].direct) > 1e-3


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_part_taken_away_is_taken_away_in_the_model_itself(family: str) -> None:
    """All computed again: a plain hook puts the mean of the other rows in the place of a head's output."""
    model, size = made(family), families.DIM
    found, before = told(model), logit(model)
    blocks = model.transformer.h if family == "gpt2" else model.model.layers
    tried = [part for part in found.parts if part.removed is not None and part.head is not None]
    assert tried

    def without(layer: int, head: int) -> float:
        one = slice(head * size, (head + 1) * size)

        def replaced(module: nn.Module, given: Any) -> Any:
            changed = given[0].clone()
            others = [row for row in range(families.TOKENS) if row != POSITION]
            changed[0, POSITION, one] = changed[0, others][:, one].mean(0)
            return (changed,)

        out = blocks[layer].attn.c_proj if family == "gpt2" else blocks[layer].self_attn.o_proj
        hook = out.register_forward_pre_hook(replaced)
        after = logit(model)
        hook.remove()
        return after - before

    for part in tried:
        others = [without(part.layer, head) for head in range(families.HEADS) if head != part.head]
        assert part.removed.total == pytest.approx(without(part.layer, part.head), abs=1e-4)
        assert part.controls == pytest.approx(others, abs=1e-4)


def test_parts_of_the_same_text_in_their_own_place_change_nothing() -> None:
    model = made("llama")
    found = told(model, other=inputs_of())
    removed = [part.removed for part in found.parts if part.removed is not None]
    assert removed
    assert max(abs(each.total) for each in removed) < 1e-4
    elsewhere = told(model, other=inputs_of(3))
    assert max(abs(part.removed.total) for part in elsewhere.parts if part.removed) > 1e-2


def test_in_half_precision_there_is_no_sum() -> None:
    with pytest.raises(InputError, match="--dtype float32"):
        told(made("gpt2").to(torch.bfloat16))


def test_a_head_that_bends_in_a_way_without_a_slope_is_refused_by_its_name() -> None:
    """Sorted logits are no function of each entry alone."""
    model = made("gpt2")

    class Sorting(nn.Module):
        def __init__(self, words: nn.Module) -> None:
            super().__init__()
            self.words = words

        def forward(self, given: Tensor) -> Tensor:
            return self.words(given.sort(-1).values)

    model.lm_head = Sorting(model.lm_head)
    with pytest.raises(InputError, match="cannot be taken apart"):
        told(model)
