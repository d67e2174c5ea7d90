"""`find` on a long text, by rows: against plain runs of the model, and against whole layers."""

import families
import long_text
import numpy as np
import pytest
import torch
from transformers import BartForConditionalGeneration

import attnscope as at
from attnscope import demo
from attnscope.capture.long import chunked, run
from attnscope.errors import DoesNotFitError
from attnscope.render.focus import Focus
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column
from attnscope.render.sheets import sheet_of
from attnscope.results import Finding
from attnscope.session.questions.claims import replacing, rows

QUERY, KEY, TOKENS, FEW = 17, 15, 23, 7
FAMILIES = ("bert", "gpt2", "llama", "mistral", "gemma2", "gpt_oss")
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


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_say_what_whole_layers_say(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = at.wrap(families.sharp(family)).read(ids=families.ids(TOKENS)["input_ids"][0].tolist())
    whole = reading.find(f"@{QUERY}", f"@{KEY}", controls=FEW)
    monkeypatch.setattr(rows, "LONG", 4)
    alike(reading.find(f"@{QUERY}", f"@{KEY}", controls=FEW), whole)


@pytest.mark.parametrize("looking", [{}, {"words": True}, {"special": "renormalise"}, {"special": "hide"}])
def test_words_and_special_tokens_are_looked_at_as_in_whole_layers(
    looking: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = at.load("demo").read("I was unhappily watching the door when [MASK] opened.")
    whole = reading.find("[MASK]", "door", controls=FEW, **looking)
    monkeypatch.setattr(rows, "LONG", 4)
    alike(reading.find("[MASK]", "door", controls=FEW, **looking), whole)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_each_side_of_an_encoder_decoder_is_read_by_rows(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair_of = {"encoder": ("door", "red"), "decoder": ("rouge", "porte"), "cross": ("rouge", "red")}
    pair, text = pair_of[kind], {} if kind == "encoder" else {"target": TARGET}
    reading = at.load("demo-translate").read(TEXT, **text)
    whole = reading.find(*pair, controls=FEW, kind=kind)
    monkeypatch.setattr(rows, "LONG", 4)
    found = reading.find(*pair, controls=FEW, kind=kind)
    alike(found, whole)
    model = BartForConditionalGeneration.from_pretrained(demo.folder().parent / "translate")
    model.set_attn_implementation("eager")
    ids = torch.tensor([reading.tokens.ids])
    own = found.query_tokens.ids if text else (model.config.decoder_start_token_id,)
    with torch.no_grad():
        made = model.eval()(input_ids=ids, decoder_input_ids=torch.tensor([own]), output_attentions=True)
    question = found.question
    close(found.weights, torch.stack(made[f"{kind}_attentions"])[:, 0, :, question.query, question.key])


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
    with long_text.Squares(length) as squares:
        found = reading.find(f"@{length - 1}", f"@{KEY}", controls=2)
    assert found.by_rows
    assert squares.made == []
    monkeypatch.setattr(rows, "LONG", length)
    with long_text.Squares(length) as squares:
        reading.find(f"@{length - 1}", f"@{KEY}", controls=2)
    assert squares.made


@pytest.mark.parametrize(("model", "token"), [("demo", "door"), ("demo-causal", "opened")])
def test_flow_of_a_long_text_is_that_of_whole_layers(
    model: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = at.load(model).read(TEXT)
    whole = reading.flow(token)
    monkeypatch.setattr(rows, "LONG", 4)
    monkeypatch.setattr(replacing, "MOST_REPLACED", 4)
    found = reading.flow(token)
    assert (found.sampled, whole.sampled) == (len(whole.tokens), 0)
    assert found.certified == whole.certified
    assert whole.ablated is not None
    assert found.ablated is None
    assert "texts of up to 4" in found.reason
    for name in ("raw", "rollout", "by_norm"):
        close(getattr(found, name), getattr(whole, name))


def test_what_needs_whole_layers_is_refused_where_they_do_not_fit(
    all_are_long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = at.load("demo-causal").read(TEXT)
    assert not reading.find(pattern="previous", controls=FEW).by_rows
    monkeypatch.setattr(rows.memory, "free", lambda device: 10**6)
    with pytest.raises(DoesNotFitError, match=r"whole layers: .* pairs take .* tokens fit"):
        reading.find(pattern="previous", controls=FEW)
    assert reading.find("door", "red", controls=FEW).by_rows


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
