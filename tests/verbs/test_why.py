"""A score, and an answer, as a sum of parts, against sums written out by hand; and each without a part."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import families
import pytest
import torch
from torch import Tensor, nn
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
from worded import worded

from attnscope.analysis.answers.question import Question as Asked
from attnscope.analysis.answers.question import word_at
from attnscope.attention import AttentionCall
from attnscope.capture import Selection, record
from attnscope.capture.parts.run import cut_run
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import find_sites
from attnscope.results.claims.effect import Asks
from attnscope.verbs.why.account import Account, Name, Names, find_row, named_masks
from attnscope.verbs.why.logit import Told, contributions
from attnscope.verbs.why.reasons import Explanation, Question, Removals, contrast_of, explain
from attnscope.verbs.why.result import LEFT, Side

LAYER, HEAD, QUERY, KEY = 2, 4, 9, 3
Parts = dict[str, Tensor]  # by name what of the stream it is, token by dim


def inputs_of(seed: int = 0) -> dict[str, Tensor]:
    ids = torch.randint(3, 97, (1, families.TOKENS), generator=torch.Generator().manual_seed(seed))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def call_of(model: nn.Module, inputs: dict[str, Tensor], layer: int = LAYER) -> AttentionCall:
    return record(model, inputs, Selection(layers=(layer,), heads=(HEAD,))).call(layer)


def explained(model: nn.Module, inputs: dict[str, Tensor], **asked: Any) -> Explanation:
    call = call_of(model, inputs)
    question = Question(HEAD, call.heads, asked.pop("query", QUERY), asked.pop("key", KEY), **asked)
    return explain(model, inputs, find_sites(model), call, question)


def watched(model: nn.Module, inputs: dict[str, Tensor], modules: dict[str, nn.Module]) -> dict[str, Tensor]:
    """What each of these modules is given in a plain run."""
    seen: dict[str, Tensor] = {}
    hooks = [
        module.register_forward_pre_hook(
            lambda _, given, name=name: seen.update({name: given[0][0].double()})
        )
        for name, module in modules.items()
    ]
    with torch.no_grad():
        model(**inputs)
    for hook in hooks:
        hook.remove()
    return seen


def normed(parts: Parts, norm: nn.Module, *, centred: bool) -> Parts:
    """Every part through a norm whose scale is that of the whole."""
    whole = sum(parts.values(), torch.tensor(0.0))
    spread = whole - whole.mean(-1, keepdim=True) if centred else whole
    eps = getattr(norm, "eps", None) or norm.variance_epsilon
    scale = (spread.pow(2).mean(-1, keepdim=True) + eps).rsqrt()
    weight = norm.weight.double()
    made = {
        name: (part - part.mean(-1, keepdim=True) if centred else part) * scale * weight
        for name, part in parts.items()
    }
    if (bias := getattr(norm, "bias", None)) is not None:
        made["biases"] = made.get("biases", torch.zeros_like(whole)) + bias.double()
    return made


def of_heads(mixed: Tensor, out: Tensor, layer: int) -> Parts:
    """What each head writes: its slice of what meets the output matrix (in by out), times its rows of it."""
    size = len(out) // families.HEADS
    slices = [slice(head * size, (head + 1) * size) for head in range(families.HEADS)]
    return {f"L{layer} H{head}": mixed[:, one] @ out[one] for head, one in enumerate(slices)}


def added(parts: Parts, more: Parts, bias: Tensor | None = None) -> Parts:
    summed = {name: parts.get(name, 0) + more.get(name, 0) for name in {**parts, **more}}
    if bias is not None:
        summed["biases"] = summed.get("biases", 0) + bias.double().expand_as(next(iter(more.values())))
    return summed


def seen_by(model: Any, inputs: dict[str, Tensor], heads: list[Any], mlps: list[Any]) -> list[list[Tensor]]:
    """What the output matrix of each layer's heads and the last one of its MLP are given."""
    named = {f"z{i}": each for i, each in enumerate(heads)} | {f"m{i}": each for i, each in enumerate(mlps)}
    seen = watched(model, inputs, named)
    return [[seen[f"{letter}{i}"] for i in range(len(heads))] for letter in "zm"]


def gpt2_stream(model: Any, inputs: dict[str, Tensor]) -> Parts:
    """What stands in the stream before the layer that is asked about."""
    ids, blocks = inputs["input_ids"][0], model.h
    mixed, bent = seen_by(
        model, inputs, [each.attn.c_proj for each in blocks], [each.mlp.c_proj for each in blocks]
    )
    parts = {"token": model.wte.weight[ids].double(), "position": model.wpe.weight[: len(ids)].double()}
    for i, block in enumerate(blocks[:LAYER]):
        out, mlp = block.attn.c_proj, block.mlp.c_proj
        parts = added(parts, of_heads(mixed[i], out.weight.double(), i), out.bias)
        parts = added(parts, {f"MLP L{i}": bent[i] @ mlp.weight.double()}, mlp.bias)
    return parts


def llama_stream(model: Any, inputs: dict[str, Tensor], layers: int) -> Parts:
    mixed, bent = seen_by(
        model,
        inputs,
        [each.self_attn.o_proj for each in model.layers],
        [each.mlp.down_proj for each in model.layers],
    )
    parts = {"token": model.embed_tokens.weight[inputs["input_ids"][0]].double()}
    for i, layer in enumerate(model.layers[:layers]):
        parts = added(parts, of_heads(mixed[i], layer.self_attn.o_proj.weight.T.double(), i))
        parts = added(parts, {f"MLP L{i}": bent[i] @ layer.mlp.down_proj.weight.T.double()})
    return parts


def bert_stream(model: Any, inputs: dict[str, Tensor], layers: int) -> Parts:
    """Norms come after each sum here: every part goes through all of them."""
    ids, table, every = inputs["input_ids"][0], model.embeddings, model.encoder.layer
    mixed, bent = seen_by(
        model, inputs, [each.attention.output.dense for each in every], [each.output.dense for each in every]
    )
    parts = {
        "token": table.word_embeddings.weight[ids].double(),
        "position": table.position_embeddings.weight[: len(ids)].double(),
        "segment": table.token_type_embeddings.weight[[0] * len(ids)].double(),
    }
    parts = normed(parts, table.LayerNorm, centred=True)
    for i, layer in enumerate(every[:layers]):
        out, mlp = layer.attention.output, layer.output
        parts = added(parts, of_heads(mixed[i], out.dense.weight.T.double(), i), out.dense.bias)
        parts = normed(parts, out.LayerNorm, centred=True)
        parts = added(parts, {f"MLP L{i}": bent[i] @ mlp.dense.weight.T.double()}, mlp.dense.bias)
        parts = normed(parts, mlp.LayerNorm, centred=True)
    return parts


def gpt2_ends(model: Any, inputs: dict[str, Tensor]) -> tuple[Parts, Parts]:
    parts = normed(gpt2_stream(model, inputs), model.h[LAYER].ln_1, centred=True)
    made, ends = model.h[LAYER].attn.c_attn, []
    for offset in (0, families.HIDDEN):
        one = slice(offset + HEAD * families.DIM, offset + (HEAD + 1) * families.DIM)
        end = {name: part @ made.weight[:, one].double() for name, part in parts.items()}
        end["biases"] = end["biases"] + made.bias[one].double()
        ends.append(end)
    return ends[0], ends[1]


def llama_ends(model: Any, inputs: dict[str, Tensor]) -> tuple[Parts, Parts]:
    attention = model.layers[LAYER].self_attn
    stream = llama_stream(model, inputs, LAYER)
    parts = normed(stream, model.layers[LAYER].input_layernorm, centred=False)
    turn = model.rotary_emb(parts["token"][None].float(), torch.arange(families.TOKENS)[None])
    ends, shared = [], HEAD // (families.HEADS // families.KEY_HEADS)
    for matrix, head in ((attention.q_proj, HEAD), (attention.k_proj, shared)):
        rows = matrix.weight[head * families.DIM : (head + 1) * families.DIM].T.double()
        both = {name: (part @ rows)[None, None] for name, part in parts.items()}
        ends.append({name: apply_rotary_pos_emb(each, each, *turn)[0][0, 0] for name, each in both.items()})
    return ends[0], ends[1]


def bert_ends(model: Any, inputs: dict[str, Tensor]) -> tuple[Parts, Parts]:
    parts, ends = bert_stream(model, inputs, LAYER), []
    attention = model.encoder.layer[LAYER].attention.self
    one = slice(HEAD * families.DIM, (HEAD + 1) * families.DIM)
    for matrix in (attention.query, attention.key):
        end = {name: part @ matrix.weight[one].T.double() for name, part in parts.items()}
        end["biases"] = end["biases"] + matrix.bias[one].double()
        ends.append(end)
    return ends[0], ends[1]


ENDS: dict[str, Callable[[Any, dict[str, Tensor]], tuple[Parts, Parts]]] = {
    "gpt2": gpt2_ends,
    "llama": llama_ends,
    "bert": bert_ends,
}


def by_hand(family: str, model: Any, inputs: dict[str, Tensor]) -> dict[Side, dict[str, tuple[float, float]]]:
    """By side and part what it brings to the score and to the contrast above the mean of the other keys."""
    with torch.no_grad():
        queries, keys = ENDS[family](model, inputs)
    scale = families.DIM**-0.5
    whole_query = sum(part[QUERY] for part in queries.values())
    allowed = range(QUERY + 1) if family != "bert" else range(families.TOKENS)
    others = [key for key in allowed if key != KEY]

    def numbers(query: Tensor, key: Tensor) -> tuple[float, float]:
        scores = key @ query * scale
        return float(scores[KEY]), float(scores[KEY] - scores[others].mean())

    whole_keys = sum(keys.values())
    return {
        Side.QUERY: {name: numbers(part[QUERY], whole_keys) for name, part in queries.items()},
        Side.KEY: {name: numbers(whole_query, part) for name, part in keys.items()},
    }


@pytest.mark.parametrize("family", ENDS)
def test_every_share_is_that_of_a_sum_written_out_by_hand(family: str) -> None:
    model, inputs = families.sharp(family), inputs_of()
    found, expected = explained(model, inputs), by_hand(family, model, inputs)
    for side in Side:
        mine = {part.name: (part.score, part.contrast) for part in found.parts if part.side is side}
        assert mine.keys() == expected[side].keys()
        for name, numbers in expected[side].items():
            assert mine[name] == pytest.approx(numbers, abs=2e-4), (side, name)
        assert max(abs(contrast) for _, contrast in mine.values()) > 0.1


@pytest.mark.parametrize("family", ["qwen3", "albert"])
def test_the_parts_of_each_side_sum_to_the_score_that_the_model_makes(family: str) -> None:
    model, inputs = families.sharp(family), inputs_of(1)
    call = call_of(model, inputs)
    found = explained(model, inputs, key=7)
    operands = call.operands(HEAD)
    scores = operands.q[0, QUERY] @ operands.k[0].T * operands.scale
    allowed = call.allowed_matrix(HEAD)[QUERY].clone()
    allowed[7] = False
    contrast = float(scores[7] - scores[allowed].mean())
    assert found.residual < 1e-5
    for side in Side:
        parts = [part for part in found.parts if part.side is side]
        assert sum(part.score for part in parts) == pytest.approx(float(scores[7]), rel=1e-4, abs=1e-4)
        assert sum(part.contrast for part in parts) == pytest.approx(contrast, rel=1e-4, abs=1e-4)


def test_a_score_below_a_soft_cap_is_told_before_it() -> None:
    model, inputs = families.sharp("gemma2"), inputs_of()
    call = call_of(model, inputs)
    found = explained(model, inputs, key=8)
    operands = call.operands(HEAD)
    before = float(operands.q[0, QUERY] @ operands.k[0, 8] * operands.scale)
    assert found.capped
    assert call.softcap == 3.0
    assert found.score == pytest.approx(before, rel=1e-4)
    assert not explained(families.sharp("llama"), inputs).capped


def test_a_key_is_set_against_another_one() -> None:
    model, inputs = families.sharp("gpt2"), inputs_of()
    both = [explained(model, inputs, key=key) for key in (KEY, 6)]
    found = explained(model, inputs, against=6)
    assert found.others == 1
    assert found.contrast == pytest.approx(both[0].score - both[1].score, abs=1e-4)


@pytest.mark.parametrize(("side", "row"), [(Side.QUERY, QUERY), (Side.KEY, KEY)])
def test_a_run_with_frozen_norms_does_what_the_account_says(side: Side, row: int) -> None:
    """With other parts and norms held, the score is what the shares say: the arithmetic of a replacement.

    Against another key: the row of the query is a key as well, and would move with it.
    """
    model, inputs = families.sharp("gpt2"), inputs_of()
    call = call_of(model, inputs)
    sites = find_sites(model)
    paths = [site.path for site in sites]
    rule = cut_run(model, inputs, paths, (call.module, call.call))
    found = find_row(rule, call, HEAD, QUERY, call.heads)
    weights = contrast_of(call, Question(HEAD, call.heads, QUERY, KEY, 6))
    score, contrast = (Account(found, each) for each in (weights.clamp(min=0), weights))
    names = Names(sites, next(site for site in sites if site.path == call.module))
    held = frozenset(leaf.key for end in contrast.ends.values() for leaf in end)
    removals = Removals(model, inputs, paths, held, None, found, QUERY, KEY, weights)
    moved = []
    for name in (Name("head", 0, 3), Name("head", 1, 0), Name("MLP", 0)):
        masks = named_masks(score.ends[side], names, name)
        change = removals.change(masks, {leaf: torch.ones_like(mask) for leaf, mask in masks.items()})
        (outcome,) = removals.outcomes([change], hold=True, frozen=True)
        told = sum(
            float(
                (contrast.ends[side][leaf] * mask * (change.parts[leaf.key][1] - leaf.tensor.detach())).sum()
            )
            for leaf, mask in masks.items()
        )
        assert all(mask.nonzero()[:, leaf.tokens].unique().tolist() == [row] for leaf, mask in masks.items())
        assert outcome.contrast - contrast.total == pytest.approx(told, abs=2e-4)
        moved.append(abs(told))
    assert max(moved) > 0.05


def test_a_part_taken_away_is_taken_away_in_the_model_itself() -> None:
    """All computed again: the same as a plain hook that replaces a head's output in one row by the mean."""
    model, inputs = families.sharp("gpt2"), inputs_of()
    found = explained(model, inputs)
    call = call_of(model, inputs)
    weights = contrast_of(call, Question(HEAD, call.heads, QUERY, KEY))
    tried = [
        part for part in found.parts if part.removed and part.head is not None and part.side is Side.QUERY
    ]
    assert tried
    for part in tried:
        one = slice(part.head * families.DIM, (part.head + 1) * families.DIM)

        def without(module: nn.Module, given: Any, one: slice = one) -> Any:
            changed = given[0].clone()
            others = [row for row in range(families.TOKENS) if row != QUERY]
            changed[0, QUERY, one] = changed[0, others][:, one].mean(0)
            return (changed,)

        hook = model.h[part.layer].attn.c_proj.register_forward_pre_hook(without)
        operands = call_of(model, inputs).operands(HEAD)
        hook.remove()
        scores = (operands.q[0, QUERY] @ operands.k[0].T * operands.scale).float()
        meant = weights.nonzero()[:, 0]
        after = float((scores[meant] * weights[meant]).sum())
        assert part.removed.total == pytest.approx(after - found.contrast, abs=1e-3)


class Hidden(torch.autograd.Function):
    """A function that the rule does not see, as BLOOM's own GELU is one."""

    @staticmethod
    def forward(context: Any, given: Tensor) -> Tensor:
        context.save_for_backward(given)
        return given.tanh()

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:
        return slope


class Hides(nn.Module):
    def forward(self, given: Tensor) -> Tensor:
        made: Tensor = Hidden.apply(given)
        return made


def test_a_function_that_cannot_be_seen_is_refused_by_its_name() -> None:
    model = families.sharp("gpt2")
    model.h[0].mlp.act = Hides()
    with pytest.raises(InputError, match="HiddenBackward is not known to be linear"):
        explained(model, inputs_of())


def test_a_model_that_does_not_run_cut_into_parts_is_refused_in_one_line() -> None:
    class Counts(nn.Module):
        def forward(self, given: Tensor) -> Tensor:
            if given.requires_grad:
                raise ValueError("no gradients here")
            return given.relu()

    model = families.sharp("gpt2")
    model.h[1].mlp.act = Counts()
    with pytest.raises(InputError, match="does not run cut into parts: no gradients here"):
        explained(model, inputs_of())


def test_parts_that_miss_the_score_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bias that is never made a part is missing in the sum."""
    from attnscope.capture.parts.rule import Rule

    monkeypatch.setattr(Rule, "_term", lambda rule, value, like, name: value)
    with pytest.raises(InputError, match="parts miss the score by"):
        explained(families.sharp("albert"), inputs_of())


def test_a_model_that_runs_otherwise_under_the_rule_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnscope.capture.parts.rule import SPELLED

    monkeypatch.setitem(SPELLED, "layer_norm", lambda x, *others, **more: x * 0.5)
    with pytest.raises(InputError, match="gives other weights there"):
        explained(families.sharp("gpt2"), inputs_of())


def test_a_masked_key_and_a_query_with_one_key_are_refused() -> None:
    model, inputs = families.sharp("gpt2"), inputs_of()
    with pytest.raises(InputError, match="masked"):
        explained(model, inputs, query=2, key=5)
    with pytest.raises(InputError, match="masked"):
        explained(model, inputs, query=4, key=3, against=5)
    with pytest.raises(InputError, match="nothing to explain"):
        explained(model, inputs, query=0, key=0)


def test_pairs_of_a_part_of_the_query_sum_to_its_share() -> None:
    model, inputs = families.sharp("gpt2"), inputs_of()
    call, sites = call_of(model, inputs), find_sites(model)
    rule = cut_run(model, inputs, [site.path for site in sites], (call.module, call.call))
    asked = Question(HEAD, call.heads, QUERY, KEY)
    contrast = Account(find_row(rule, call, HEAD, QUERY, call.heads), contrast_of(call, asked))
    names = Names(sites, next(site for site in sites if site.path == call.module))
    shares = contrast.shares(Side.QUERY, names)
    for name in (Name("head", 0, 3), Name("MLP", 1)):
        masks = named_masks(contrast.ends[Side.QUERY], names, name)
        assert sum(contrast.paired(masks, names).values()) == pytest.approx(shares[name], abs=1e-4)


# the answer

POSITION, ANSWER, AGAINST = 6, 5, 71
GELU = "bert with the GELU of GPT-2"


def made(family: str) -> Any:
    if family == GELU:
        return worded("bert", 4, 0.15, hidden_act="gelu_new")
    return worded(family, 4, 0.15)


def told(model: Any, against: int | None = AGAINST, **more: Any) -> Told:
    asked: Asked = word_at(Asks.MASK, POSITION, families.TOKENS, (ANSWER,), str)
    if against is not None:
        asked = replace(asked, against=(against,), against_text=str(against))
    return contributions(model, inputs_of(), find_sites(model), asked, **more)


def logit(model: Any, against: int | None = AGAINST) -> float:
    with torch.no_grad():
        row = model(**inputs_of()).logits[0, POSITION].double()
    return float(row[ANSWER] - (0 if against is None else row[against]))


def unembedded(parts: Parts, words: Any) -> dict[str, float]:
    way = (words.weight[ANSWER] - words.weight[AGAINST]).double()
    found = {name: float(part @ way) for name, part in parts.items()}
    if words.bias is not None:
        found["biases"] += float(words.bias[ANSWER] - words.bias[AGAINST])
    return found


def at_position(parts: Parts) -> Parts:
    return {name: part[POSITION] for name, part in parts.items()}


def of_llama(model: Any) -> dict[str, float]:
    parts = at_position(llama_stream(model.model, inputs_of(), families.LAYERS))
    return unembedded(normed(parts, model.model.norm, centred=False), model.lm_head)


def of_bert(model: Any) -> dict[str, float]:
    """Behind all its norms the transform along its tangent: slope times x, and what that misses."""
    parts = at_position(bert_stream(model.bert, inputs_of(), families.LAYERS))
    head = model.cls.predictions
    dense = head.transform.dense
    parts = {name: part @ dense.weight.T.double() for name, part in parts.items()}
    parts["biases"] = parts["biases"] + dense.bias.double()
    whole = sum(parts.values(), torch.tensor(0.0))
    normal = torch.distributions.Normal(0.0, 1.0)
    slope = normal.cdf(whole) + whole * normal.log_prob(whole).exp()  # of x Phi(x)
    parts = {name: part * slope for name, part in parts.items()}
    parts[LEFT] = whole * normal.cdf(whole) - slope * whole
    return unembedded(normed(parts, head.transform.LayerNorm, centred=True), head.decoder)


@pytest.mark.parametrize(("family", "of"), [("llama", of_llama), ("bert", of_bert)])
def test_what_every_part_brings_is_what_hooks_and_slices_say(family: str, of: Callable[[Any], Any]) -> None:
    """Of a GPT-2 it is what another library says: `test_figures_of_others.py`."""
    model = made(family)
    found = {part.name: part.direct for part in told(model).parts}
    with torch.no_grad():
        expected = of(model)
    assert found.keys() == expected.keys()
    largest = max(map(abs, expected.values()))
    for name, direct in expected.items():
        assert found[name] == pytest.approx(direct, rel=1e-4, abs=1e-5 * largest), name
    heads = [abs(direct) for name, direct in found.items() if " H" in name]
    assert len(heads) == families.LAYERS * families.HEADS
    assert max(heads) > 0.01


@pytest.mark.parametrize(
    ("family", "against"),
    [("gpt2", None), ("llama", AGAINST), ("gemma2", AGAINST), ("albert", AGAINST), (GELU, AGAINST)],
)
def test_all_parts_sum_to_the_logit_and_a_bent_head_has_a_row_for_what_is_left(
    family: str, against: int | None
) -> None:
    model = made(family)
    found = told(model, against)
    whole = logit(model, against)
    rounding = max(abs(logit(model, None)), abs(whole))
    assert found.logit == pytest.approx(whole, abs=1e-12)
    assert found.summed == pytest.approx(sum(part.direct for part in found.parts))
    assert abs(found.summed - whole) <= 1e-5 * max(rounding, 0.01 * sum(abs(p.direct) for p in found.parts))
    assert found.residual <= 1e-5
    assert (LEFT in {part.name for part in found.parts}) == (family not in ("gpt2", "llama"))


def test_a_part_of_an_answer_is_taken_away_in_the_model_itself() -> None:
    """All computed again: a plain hook puts the mean of the other rows in the place of a head's output."""
    model, size = made("llama"), families.DIM
    found, before = told(model), logit(model)
    tried = [part for part in found.parts if part.removed is not None and part.head is not None]
    assert tried

    def without(layer: int, head: int) -> float:
        one = slice(head * size, (head + 1) * size)

        def replaced(module: nn.Module, given: Any) -> Any:
            changed = given[0].clone()
            others = [row for row in range(families.TOKENS) if row != POSITION]
            changed[0, POSITION, one] = changed[0, others][:, one].mean(0)
            return (changed,)

        hook = model.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(replaced)
        after = logit(model)
        hook.remove()
        return after - before

    for part in tried:
        others = [without(part.layer, head) for head in range(families.HEADS) if head != part.head]
        assert part.removed.total == pytest.approx(without(part.layer, part.head), abs=1e-4)
        assert part.controls == pytest.approx(others, abs=1e-4)


def test_parts_of_the_same_text_in_their_own_place_change_nothing() -> None:
    model = made("llama")
    for seed, changes in ((0, False), (3, True)):
        parts = told(model, other=inputs_of(seed)).parts
        most = max(abs(part.removed.total) for part in parts if part.removed is not None)
        assert most > 1e-2 if changes else most < 1e-4


def test_a_head_whose_output_is_zero_brings_nothing() -> None:
    model, size = made("gpt2"), families.DIM
    with torch.no_grad():
        model.transformer.h[1].attn.c_proj.weight[2 * size : 3 * size] = 0.0
    parts = {part.name: part for part in told(model).parts}
    assert (parts["L1 H2"].direct, parts["L1 H2"].removed) == (0.0, None)
    assert abs(parts["L1 H3"].direct) > 1e-3


class Sorting(nn.Module):
    """Sorted logits are no function of each entry alone."""

    def __init__(self, words: nn.Module) -> None:
        super().__init__()
        self.words = words

    def forward(self, given: Tensor) -> Tensor:
        return self.words(given.sort(-1).values)


def test_half_precision_and_a_head_that_bends_without_a_slope_have_no_sum() -> None:
    with pytest.raises(InputError, match="--dtype float32"):
        told(made("gpt2").to(torch.bfloat16))
    model = made("gpt2")
    model.lm_head = Sorting(model.lm_head)
    with pytest.raises(InputError, match="cannot be taken apart"):
        told(model)
