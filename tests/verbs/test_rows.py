"""Long texts are answered by rows: against plain runs of the model, and against whole layers."""

from collections.abc import Callable
from typing import Any

import families
import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

import attnscope as at
from attnscope import demo
from attnscope.analysis import prediction
from attnscope.capture.long import chunked, run
from attnscope.errors import DoesNotFitError, InputError
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column
from attnscope.render.sheets import Focus, sheet_of
from attnscope.results import Finding, Why
from attnscope.session.questions import replacing, rows
from attnscope.verbs.why import answer as why


def long_llama(times: float) -> LlamaForCausalLM:
    """Grouped queries, and weights so many times as large that heads look somewhere."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=90, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=48, max_position_embeddings=128, attn_implementation="eager",
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(times)
    return model


def ids(length: int) -> list[int]:
    return torch.randint(3, 90, (length,), generator=torch.Generator().manual_seed(1)).tolist()


class Squares(TorchDispatchMode):
    """While open, keeps in `made` which functions make a tensor of so many queries by as many keys."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length, self.made = length, list[Callable[..., Any]]()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor) and found.shape[-2:] == (self.length, self.length):
            self.made.append(function)
        return found


QUERY, KEY, TOKENS, FEW = 17, 15, 23, 7
FAMILIES = ("bert", "mistral", "gpt_oss")
TEXT, TARGET = "I was watching the red door when it opened.", "je regardais la porte rouge quand elle"


@pytest.fixture
def all_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LONG", 4)


def close(found: object, expected: object) -> None:
    """Within the rounding of two kernels in float32, through all layers."""
    assert np.allclose(found, expected, rtol=1e-5, atol=5e-6, equal_nan=True)


def alike(by_rows: Finding, whole: Finding) -> None:
    assert (by_rows.by_rows, whole.by_rows, whole.sampled) == (True, False, 0)
    assert by_rows.question == whole.question
    assert by_rows.controls.ids.tolist() == whole.controls.ids.tolist()
    assert by_rows.links.tolist() == whole.links.tolist()
    for name in ("weights", "norms", "shares", "even_attention", "followed", "ranks"):
        one, other = getattr(by_rows, name), getattr(whole, name)
        assert (one is None) == (other is None), name
        if one is not None:
            close(one, other)
    for name in ("mean", "low", "high", "spread", "best"):
        close(getattr(by_rows.controls, name), getattr(whole.controls, name))


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers_of_rows_are_those_that_the_model_returns_for_the_text_and_its_controls(
    family: str, all_are_long: None
) -> None:
    inputs = families.ids(TOKENS)
    expected = torch.stack(families.eager_weights(families.sharp(family), inputs))[:, 0, :, QUERY, KEY]
    reading = at.wrap(families.sharp(family)).read(ids=inputs["input_ids"][0].tolist())
    found = reading.find(f"@{QUERY}", f"@{KEY}", controls=FEW)
    assert found.by_rows
    assert found.verdict in ("certified", "partial", "inconclusive")
    close(found.weights, expected)
    assert "sdpa" in found.provenance.kernel or family in ("gemma2", "gpt_oss")
    controls = [{"input_ids": torch.tensor(each)[None]} for each in found.controls.ids]
    again = [torch.stack(families.eager_weights(families.sharp(family), each)) for each in controls]
    close(found.controls.mean, torch.stack(again)[:, :, 0, :, QUERY, KEY].mean(0))


@pytest.mark.parametrize(("family", "first"), [("bert", 0), ("gpt2", KEY + 1)])
def test_what_a_few_queries_give_elsewhere_is_theirs_and_said_to_be_of_so_many(
    family: str, first: int, all_are_long: None
) -> None:
    inputs, spread = families.ids(TOKENS), {round(22 * i / 15 - 0.49999) for i in range(16)}
    expected = torch.stack(families.eager_weights(families.sharp(family), inputs))[:, 0]
    others = sorted(each for each in spread - {QUERY, KEY} if each >= first)
    reading = at.wrap(families.sharp(family)).read(ids=inputs["input_ids"][0].tolist())
    found = reading.find(f"@{QUERY}", f"@{KEY}", controls=FEW)
    close(found.elsewhere, expected[..., others, KEY].double().mean(-1))
    assert found.sampled == len(others) < TOKENS - 2 - first
    told = sheet_of(found, Focus(verbose=True))
    assert any(f"what {len(others)} other tokens of the text give" in each.says for each in columns(told))


def columns(sheet: Sheet) -> list[Column]:
    return [column for block in sheet.blocks if isinstance(block, Ranking) for column in block.table.columns]


@pytest.mark.parametrize("looking", [{"words": True}, {"special": "renormalise"}])
def test_words_and_special_tokens_are_looked_at_as_in_whole_layers(
    looking: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = at.load("demo").read("I was unhappily watching the door when [MASK] opened.")
    whole = reading.find("[MASK]", "door", controls=3, **looking)
    monkeypatch.setattr(rows, "LONG", 4)
    alike(reading.find("[MASK]", "door", controls=3, **looking), whole)


def test_a_row_that_the_kernel_answered_otherwise_is_not_certified(
    all_are_long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the row that is asked about is spoilt: had another been certified, nothing would be seen."""
    honest = chunked.fused

    def spoilt(given):
        output = honest(given)
        output[:, QUERY] += 0.1 * output[:, QUERY].abs().max()
        return output

    reading = at.wrap(families.sharp("llama")).read(ids=families.ids(TOKENS)["input_ids"][0].tolist())
    monkeypatch.setattr(chunked, "fused", spoilt)
    assert reading.find(f"@{QUERY}", f"@{KEY}", controls=FEW).verdict == "failed"
    assert reading.find(f"@{QUERY - 1}", f"@{KEY}", controls=FEW).verdict != "failed"


def test_no_run_holds_queries_by_keys(all_are_long: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a length at which code that did would be seen: no tensor of the whole answer has its pairs."""
    length = 61
    reading = at.wrap(families.sharp("llama")).read(ids=families.ids(length)["input_ids"][0].tolist())
    monkeypatch.setattr(run, "TRIED", 12)  # tokens of the proof by cause, which exchanges them
    with Squares(length) as squares:
        found = reading.find(f"@{length - 1}", f"@{KEY}", controls=2)
    assert found.by_rows
    assert squares.made == []
    monkeypatch.setattr(rows, "LONG", length)
    with Squares(length) as squares:
        reading.find(f"@{length - 1}", f"@{KEY}", controls=2)
    assert squares.made


def test_flow_of_a_long_text_is_that_of_whole_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = at.load("demo-causal").read(TEXT)
    whole = reading.flow("opened")
    monkeypatch.setattr(rows, "LONG", 4)
    monkeypatch.setattr(replacing, "MOST_REPLACED", 4)
    found = reading.flow("opened")
    assert (found.sampled, whole.sampled) == (len(whole.tokens), 0)
    assert found.certified == whole.certified
    assert whole.ablated is not None
    assert found.ablated is None
    assert "texts of up to 4" in found.reason
    for name in ("raw", "rollout", "by_norm"):
        close(getattr(found, name), getattr(whole, name))


def test_a_kernel_that_is_asked_for_by_name_runs_also_over_a_long_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without one the rows of a long text are read with torch's fused kernel; eager makes whole layers."""
    monkeypatch.setattr(rows, "LONG", 4)
    ran = {}
    for asked in (None, "eager", "sdpa"):
        ran[asked] = (
            at.load("demo-causal", attn=asked).read("I put my money in the").find("the", "money", controls=2)
        )
    assert [each.by_rows for each in ran.values()] == [True, False, True]
    assert "sdpa" in ran[None].provenance.kernel
    assert ran["eager"].provenance.kernel == "eager"
    assert "sdpa" in ran["sdpa"].provenance.kernel
    np.testing.assert_allclose(ran["eager"].weights, ran[None].weights, atol=1e-5)


def test_whole_layers_that_were_asked_for_and_do_not_fit_are_refused_with_the_kernel_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "LONG", 4)
    monkeypatch.setattr(rows.memory, "free", lambda device: 1000)
    reading = at.load("demo-causal", attn="eager").read("I put my money in the")
    with pytest.raises(DoesNotFitError, match="with --attn eager reads whole layers"):
        reading.find("the", "money", controls=2)
    with pytest.raises(DoesNotFitError, match="flow with --attn eager reads whole layers"):
        reading.flow("the")


LENGTH = 61
TEXTS = {
    "demo": "I was watching the [MASK] when it opened.",
    "demo-causal": "I put my money in the bank and sat on the",
    "demo-translate": "I was watching the red door when it opened.",
}


def near(found: object, expected: object) -> None:
    """Within the rounding of two kernels in float32, through all layers and the word head."""
    assert np.allclose(found, expected, rtol=1e-4, atol=5e-6, equal_nan=True)


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    return long_llama(6)


def guesses(made: Any) -> list[tuple[int, float]]:
    return [(guess.id, guess.probability) for blank in made.blanks for guess in blank.guesses]


ASKED: dict[str, Callable[[Any], Any]] = {
    "predict": lambda reading: reading.predict(),
    "layers": lambda reading: reading.predict_layers(controls=3),
    "rank": lambda reading: reading.ablate(rank=True, top=3, controls=3),
    "one": lambda reading: reading.ablate(1, 2),
}


def test_the_answer_to_a_long_text_is_what_the_plain_library_says(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXTS["demo-causal"]
    plain = AutoModelForCausalLM.from_pretrained(demo.folder().parent / "causal", attn_implementation="eager")
    reading = at.load("demo-causal").read(text)
    with torch.no_grad():
        chances = plain.eval()(torch.tensor([reading.tokens.ids])).logits[0, -1].double().softmax(-1)
    monkeypatch.setattr(rows, "LONG", 4)
    found = reading.predict().blanks[0].guesses
    near([each.probability for each in found], [float(chances[each.id]) for each in found])


def test_the_word_head_answers_after_a_long_text_alone(
    llama: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, reading = list[int](), at.wrap(llama).read(ids=ids(LENGTH))
    whole = reading.predict()
    monkeypatch.setattr(prediction, "_MANY", 4)
    with llama.lm_head.register_forward_hook(lambda _module, _given, output: made.append(output.shape[1])):
        long = reading.predict()
    assert made == [1]
    assert [each[0] for each in guesses(long)] == [each[0] for each in guesses(whole)]
    near([each[1] for each in guesses(long)], [each[1] for each in guesses(whole)])


def test_layers_of_a_long_text_answer_as_those_of_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = at.load("demo-causal").read(TEXTS["demo-causal"])
    whole = reading.predict_layers(controls=3)
    monkeypatch.setattr(rows, "LONG", 4)
    long = reading.predict_layers(controls=3)
    assert long.provenance.kernel == "sdpa, some queries at a time"
    for one, other in zip(long.places, whole.places, strict=True):
        for mine, its in zip(one.layers, other.layers, strict=True):
            near((mine.probability, mine.control), (its.probability, its.control))


@pytest.mark.parametrize("how", [{"rank": True, "top": 3}, {"part": "mlp"}, {"layers": 1}])
def test_what_becomes_of_a_long_answer_is_what_becomes_of_a_short_one(
    how: dict, llama: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = at.wrap(llama).read(ids=ids(LENGTH))
    whole = reading.ablate(**how)
    monkeypatch.setattr(rows, "LONG", 4)
    long = reading.ablate(**how)
    assert long.provenance.kernel == "sdpa, some queries at a time"
    its = {(each.layer, each.head): each.change for each in whole.alone}
    near([each.change for each in long.alone], [its[each.layer, each.head] for each in long.alone])
    assert long.alone


@pytest.mark.parametrize("asked", ASKED)
def test_no_answer_to_a_long_text_holds_queries_by_keys(
    asked: str, llama: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a length at which code that did would be seen: no tensor of the whole answer has its pairs."""
    reading = at.wrap(llama).read(ids=ids(LENGTH))
    monkeypatch.setattr(rows, "LONG", 4)
    with Squares(LENGTH) as squares:
        ASKED[asked](reading)
    assert squares.made == []
    monkeypatch.setattr(rows, "LONG", LENGTH)
    with Squares(LENGTH) as squares:
        ASKED[asked](reading)
    assert squares.made


LONGER, ASKS, GIVES, LAYER, HEAD = 97, 90, 31, 2, 3
MODELS = {
    "demo": ("I was watching the red door when [MASK] opened.", (3, 1), "[MASK]", "door"),
    "demo-causal": ("river king door river king", (1, 2), "@4", "@1"),
    "demo-translate": ("I was watching the red door when it opened.", (1, 1), "rouge", "red"),
}


@pytest.fixture(scope="module")
def sharper() -> LlamaForCausalLM:
    return long_llama(4)


def same_parts(long: Why, whole: Why) -> None:
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


@pytest.mark.parametrize("model", ["demo", "demo-translate"])
def test_parts_of_a_long_text_are_those_of_whole_layers(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, (layer, head), query, key = MODELS[model]
    reading = at.load(model).read(text)
    whole = reading.why(layer, head, query, key)
    monkeypatch.setattr(rows, "LONG", 4)
    long = reading.why(layer, head, query, key)
    same_parts(long, whole)
    assert (whole.provenance.kernel, long.provenance.kernel) == ("eager", "sdpa, some queries at a time")
    assert long.certificate.verdict == whole.certificate.verdict


def test_grouped_queries_have_the_parts_of_whole_layers_and_the_score_of_the_model_itself(
    sharper: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = at.wrap(sharper).read(ids=ids(LONGER))
    whole = reading.why(LAYER, HEAD, f"@{ASKS}", f"@{GIVES}")
    monkeypatch.setattr(rows, "LONG", 4)
    long = reading.why(LAYER, HEAD, f"@{ASKS}", f"@{GIVES}")
    same_parts(long, whole)
    entered = []
    attention = sharper.model.layers[LAYER].self_attn
    with (
        torch.no_grad(),
        attention.register_forward_pre_hook(
            lambda _module, _args, named: entered.append(named), with_kwargs=True
        ),
    ):
        sharper(torch.tensor([ids(LONGER)]))
    hidden, (cos, sin) = entered[0]["hidden_states"], entered[0]["position_embeddings"]
    query = attention.q_proj(hidden).view(1, LONGER, 4, 8).transpose(1, 2)
    key = attention.k_proj(hidden).view(1, LONGER, 2, 8).transpose(1, 2)
    query, key = apply_rotary_pos_emb(query, key, cos, sin)
    score = (query[0, HEAD, ASKS] @ key[0, HEAD // 2, GIVES]).item() / 8**0.5
    assert long.score == pytest.approx(score, rel=1e-4)


def test_whole_layers_of_a_long_text_are_refused_with_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LONG", 4)
    monkeypatch.setattr(why, "MOST", 4)
    text, (layer, head), query, key = MODELS["demo-causal"]
    at.load("demo-causal").read(text).why(layer, head, query, key)
    with pytest.raises(InputError, match="up to 4 tokens, here are 6"):
        at.load("demo-causal", attn="eager").read(text).why(layer, head, query, key)
