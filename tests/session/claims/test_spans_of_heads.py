"""Weights between spans, beside plain sums and means of what models themselves return, on four families."""

from pathlib import Path
from typing import Any

import families
import numpy as np
import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

import attnscope as at
from attnscope.errors import InputError
from attnscope.render.sheets import sheet_of
from attnscope.session.looking import aim_at
from attnscope.session.wanted import Looking

IDS = [1, 20, 31, 42, 53, 64, 75, 20, 31, 9, 2]
QUERIES, KEYS = [6, 7, 8], [2, 3]  # of different lengths
TRANSLATE = Path(at.__file__).parent / "demo" / "translate"


def between(rows: np.ndarray, queries: list[int], keys: list[int]) -> np.ndarray:
    """Mean over the queries of the sum over the keys, head by head."""
    return rows[..., queries, :][..., keys].sum(axis=-1).mean(axis=-1)


def returned(model: Any, ids: Any) -> np.ndarray:
    """The weights that an untouched copy returns, layer by layer."""
    own = families.eager_weights(model, {"input_ids": torch.tensor([ids])})
    return np.stack([each[0].double().numpy() for each in own])


@pytest.fixture(scope="module", params=["bert", "gpt2", "llama"])
def asked(request: pytest.FixtureRequest) -> tuple[Any, at.Reading]:
    model = families.sharp(request.param)
    return model, at.wrap(families.sharp(request.param)).read(ids=IDS)


def test_find_sums_over_the_keys_and_averages_over_the_queries_in_the_text_and_its_controls(asked) -> None:
    model, reading = asked
    found = reading.find("6-8", "2-3", controls=7, seed=3)
    own = returned(model, IDS)
    assert found.weights == pytest.approx(between(own, QUERIES, KEYS), abs=2e-6)
    assert (found.question.query_span, found.question.key_span) == ((6, 7, 8), (2, 3))
    controls = np.stack([returned(model, ids.tolist()) for ids in found.controls.ids])
    assert found.controls.mean == pytest.approx(between(controls, QUERIES, KEYS).mean(axis=0), abs=2e-6)
    assert (found.controls.ids[:, QUERIES] == np.array(IDS)[QUERIES]).all(), "what asks stays"
    assert (found.controls.ids[:, KEYS] != np.array(IDS)[KEYS]).any(), "the keys change"
    allowed = (own[0, 0] > 0).astype(float)
    even = between(allowed / allowed.sum(axis=1, keepdims=True), QUERIES, KEYS)
    assert found.even_attention == pytest.approx(np.full(found.weights.shape, even), abs=1e-9)


def test_a_span_is_ranked_among_the_other_keys_as_one_of_them(asked) -> None:
    model, reading = asked
    rows = returned(model, IDS)[..., QUERIES, :].mean(axis=-2)
    others = [*(rows[..., i] for i in range(len(IDS)) if i not in QUERIES + KEYS), rows[..., QUERIES].sum(-1)]
    ranks = 1 + (np.stack(others) > rows[..., KEYS].sum(axis=-1)).sum(axis=0)
    assert (reading.find("6-8", "2-3", controls=2).ranks == ranks).all()


def test_what_followed_the_keys_of_a_span_is_summed_where_they_went(asked) -> None:
    model, reading = asked
    found = reading.find("9", "3-4", controls=6, seed=3)
    given = []
    for ids in found.controls.ids:
        row = returned(model, ids.tolist())[..., 9, :]
        given.append(row[..., np.isin(ids, [IDS[3], IDS[4]])].sum(axis=-1))  # each stands once
    assert found.followed == pytest.approx(np.mean(given, axis=0), abs=2e-6)


def test_several_heads_give_to_a_span_what_find_says(asked) -> None:
    model, reading = asked
    own = returned(model, IDS)
    several = reading.overview(query="6-8", key="2-3")
    assert several.main.values == pytest.approx(between(own, QUERIES, KEYS), abs=2e-6)
    assert several.aim_spans == ((6, 7, 8), (2, 3))
    allowed = (own[0, 0] > 0).astype(float)
    even = between(allowed / allowed.sum(axis=1, keepdims=True), QUERIES, KEYS)
    assert several.aimed is not None
    assert several.aimed.even_attention == pytest.approx(float(even), abs=1e-9)
    assert several.aimed.elsewhere is None, "no other key is a sum of two"


def test_rows_of_a_head_with_spans_still_sum_to_1(asked) -> None:
    model, reading = asked
    own = returned(model, IDS)[2, 4]
    seen = aim_at(reading.head(2, 4), Looking(), "6-8", "2-3")
    shown = seen.shown
    assert shown.weights.shape == (8, 8)
    assert shown.weights.sum(axis=1) == pytest.approx(np.ones(8), abs=1e-9)
    assert shown.weights[seen.query, seen.key] == pytest.approx(between(own, QUERIES, KEYS), abs=2e-6)
    assert shown.weights[0, seen.key] == pytest.approx(own[0, KEYS].sum(), abs=2e-6)
    single = aim_at(reading.head(2, 4), Looking(), "6", "2")
    assert single.shown.weights.shape == (11, 11), "what is named by one token stays as it is"


def test_cross_attention_takes_a_span_of_either_text() -> None:
    text, target = "I was watching the red door when it opened.", "je regardais la porte rouge quand elle"
    reading = at.load("demo-translate").read(text, target=target)
    found = reading.find("la porte", "the red door", kind="cross", controls=2)
    model = AutoModelForSeq2SeqLM.from_pretrained(TRANSLATE, attn_implementation="eager").eval()
    head = reading.head(0, 0, kind="cross")
    read, written = (torch.tensor([side.ids]) for side in (head.key_tokens, head.query_tokens))
    with torch.no_grad():
        given = model(input_ids=read, decoder_input_ids=written, output_attentions=True).cross_attentions
    own = torch.stack(given)[:, 0].double().numpy()
    queries, keys = list(found.question.query_span), list(found.question.key_span)
    assert [found.query_tokens.names[found.question.query or 0]] == ["la porte"]
    assert (len(queries), len(keys)) == (2, 3)
    assert found.weights == pytest.approx(between(own, queries, keys), abs=2e-6)


def test_words_are_taken_together_by_their_text_and_spans_that_share_tokens_are_refused() -> None:
    reading = at.load("demo").read("I was watching the door when [MASK] opened.")
    found = reading.find("[MASK]", "the door", controls=2)
    one = [reading.find("[MASK]", word, controls=2).weights for word in ("the", "door")]
    assert found.weights == pytest.approx(one[0] + one[1], abs=1e-9)
    with pytest.raises(InputError, match="'4-5 the door' and '5-6 door when' share 5 door"):
        reading.find("the door", "door when")
    with pytest.raises(InputError, match="no token 'the window' in the input"):
        reading.find("[MASK]", "the window")


def test_even_attention_to_a_span_is_that_to_all_of_its_tokens() -> None:
    reading = at.load("demo").read("I was watching the door when [MASK] opened.")
    shown = aim_at(reading.head(3, 11), Looking(), "[MASK]", "the door").shown
    said = "“the door”, with .98 of its attention (if all tokens got the same: .18)"
    assert sheet_of(shown).answer.count(said) == 1, "2 of 11 tokens"
