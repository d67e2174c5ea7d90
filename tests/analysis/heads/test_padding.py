"""A text in a padded batch gives the results that it gives alone: padding is no query and no key of it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers as hf
from families import HEADS, LAYERS, eager_weights, ids, sharp
from moved_weights import carried, moved

from attnscope.analysis.heads.head import recompute_head, returned_head, returned_overview
from attnscope.analysis.heads.overview import measure_heads
from attnscope.capture import Selection, record
from attnscope.capture.returned import ask_for_weights
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.results import Between, Kind, Verdict
from attnscope.tokens import Patches, Token, Tokens
from attnscope.verbs.compare.vectors import compare

LONG, SHORT, FILLED = 11, 7, 4
EPSILON = torch.finfo(torch.float32).eps
MEASURED = tuple(MEASURES)
CASES = [
    ("bert", "right"),
    ("modernbert", "left"),
    ("t5", "right"),
    ("mistral", "left"),
    ("gpt_oss", "right"),
]


def batch(side: str) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Two texts padded to one length, with the positions that each has alone; and the shorter one's ids."""
    words = ids(LONG, batch=2)["input_ids"]
    mask, places = torch.ones_like(words), torch.arange(LONG).repeat(2, 1)
    filled = slice(None, FILLED) if side == "left" else slice(SHORT, None)
    words[1, filled] = mask[1, filled] = 0
    own = words[1][mask[1].bool()][None]
    if side == "left":
        places[1] = (places[1] - FILLED).clamp_min(0)
    return {"input_ids": words, "attention_mask": mask, "position_ids": places}, own


def both(family: str, side: str):
    """The shorter text as a row of the batch, and alone; of each the capture."""
    model = sharp(family)
    inputs, own = batch(side)
    if family in ("t5", "modernbert"):  # relative positions
        del inputs["position_ids"]
    return record(model, inputs, Selection(row=1)), record(model, {"input_ids": own}), model, own


@pytest.mark.parametrize(("family", "side"), CASES)
def test_a_head_of_a_padded_row_is_that_of_the_text_alone(family: str, side: str) -> None:
    padded, _, model, own = both(family, side)
    expected = eager_weights(model, {"input_ids": own})
    for layer, head in ((0, 1), (LAYERS - 1, HEADS - 1)):
        found = recompute_head(padded, layer, head)
        assert found.weights.shape == (SHORT, SHORT)
        np.testing.assert_allclose(found.weights, expected[layer][0, head].numpy(), rtol=0, atol=1e-5)
        assert found.query_tokens.ids == found.key_tokens.ids == tuple(own[0].tolist())
        assert found.query_tokens.labels == record(model, {"input_ids": own}).calls[0].query_tokens.labels
        assert list(found.query_tokens.positions) == list(range(SHORT))
        assert found.answered.all()
        assert found.certificate.verdict in (Verdict.CERTIFIED, Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(("family", "side"), [("t5", "right"), ("llama", "left")])
def test_every_measure_and_link_of_a_padded_row_is_that_of_the_text_alone(family: str, side: str) -> None:
    padded, alone, model, own = both(family, side)
    found, expected = measure_heads(padded, measures=MEASURED), measure_heads(alone, measures=MEASURED)
    for name in MEASURED:
        if name == "near":  # what rounding does to its ranks: below
            continue
        np.testing.assert_allclose(found.scores[name].values, expected.scores[name].values, rtol=0, atol=1e-5)
        assert found.scores[name].limits == expected.scores[name].limits
    assert found.strongest.tolist() == expected.strongest.tolist()
    np.testing.assert_allclose(found.strongest_weight, expected.strongest_weight, atol=1e-5)
    rows = eager_weights(model, {"input_ids": own})[1][0, 2].tolist()  # and by a slow loop
    entropies = [-sum(p * math.log(p) for p in row if p > 0) for row in rows]
    assert found.main.values[1, 2] == pytest.approx(sum(entropies) / SHORT, abs=1e-5)


def test_padding_of_which_nobody_was_told_and_a_token_masked_in_the_middle_are_shown() -> None:
    inputs, _ = batch("right")
    del inputs["attention_mask"]
    found = recompute_head(record(sharp("bert"), inputs, Selection(row=1)), 0, 1)
    assert found.weights.shape == (LONG, LONG)
    assert (found.weights[:, SHORT:] > 0).all()
    inputs, _ = batch("right")
    inputs["attention_mask"][0, 4] = 0
    found = recompute_head(record(sharp("bert"), inputs), 0, 1)
    assert found.weights.shape == (LONG, LONG)
    assert not found.allowed[:, 4].any()


def test_padding_that_a_model_looks_at_in_spite_of_its_mask_stays_among_the_keys() -> None:
    captured = record(sharp("bert"), batch("right")[0], Selection(row=1))
    looking = record(sharp("bert"), {"input_ids": batch("right")[0]["input_ids"]}, Selection(row=1))
    call = replace(looking.calls[0], query_tokens=captured.calls[0].query_tokens)
    call = replace(call, key_tokens=call.query_tokens)
    found = recompute_head(replace(captured, calls=(call,)), 0, 1)
    assert found.weights.shape == (SHORT, LONG)
    np.testing.assert_allclose(found.weights.sum(1), 1)
    overview = measure_heads(replace(captured, calls=(call,)), measures=MEASURED)
    assert overview.scores["distance"].absent
    assert not overview.scores["entropy"].absent


def test_a_word_is_compared_in_two_rows_of_a_padded_batch() -> None:
    inputs, own = batch("left")
    inputs["input_ids"][0, 6] = own[0, 2]
    model = sharp("llama")
    rows = [record(model, inputs, Selection(row=row)) for row in (0, 1)]
    place = FILLED + 2
    assert rows[1].calls[0].query_tokens.ids[place] == own[0, 2]
    found = compare(Between.TEXTS, *rows, ((6,), (place,)), layers=range(LAYERS), heads=range(HEADS))
    alone = record(model, {"input_ids": own})
    expected = compare(Between.TEXTS, rows[0], alone, ((6,), (2,)), layers=range(LAYERS), heads=range(HEADS))
    assert found.b.position == expected.b.position == 2
    assert len(found.b.head.query_tokens) == SHORT
    for one, other in zip(found.similarities, expected.similarities, strict=True):
        if one.vector in ("value", "output"):  # queries and keys carry the position
            np.testing.assert_allclose(one.heads, other.heads, atol=1e-4)
    with pytest.raises(InputError, match="position 1 is padding"):
        compare(Between.TEXTS, *rows, ((6,), (1,)), layers=[0], heads=[0])


def bart() -> hf.BartModel:
    torch.manual_seed(5)
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 30, "decoder_ffn_dim": 30}
    heads = {"encoder_attention_heads": 3, "decoder_attention_heads": 4}
    config = hf.BartConfig(
        vocab_size=97, d_model=24, max_position_embeddings=40, pad_token_id=0, init_std=0.8, **sizes, **heads
    )
    return hf.BartModel._from_config(config, attn_implementation="eager").eval()


@pytest.mark.parametrize(
    ("kind", "told"), [(Kind.ENCODER, True), (Kind.DECODER, True), (Kind.DECODER, False), (Kind.CROSS, True)]
)
def test_both_sides_of_an_encoder_decoder_are_cut(kind: Kind, told: bool) -> None:
    model = bart()
    source, own = batch("right")
    target = ids(9, batch=2, seed=4)["input_ids"]
    target[1, 5:] = 0
    inputs = {k: source[k] for k in ("input_ids", "attention_mask")} | {"decoder_input_ids": target}
    if told:
        inputs["decoder_attention_mask"] = (target != 0).long()
    alone = {"input_ids": own, "decoder_input_ids": target[1:, :5]}
    queries, keys = {"encoder": (SHORT, SHORT), "decoder": (5, 5), "cross": (5, SHORT)}[kind]
    found = measure_heads(record(model, inputs, Selection(row=1, kind=kind)), measures=MEASURED)
    expected, *others = (
        measure_heads(record(each, alone, Selection(kind=kind)), measures=MEASURED)
        for each in (model, moved(model, 0), moved(model, 1))
    )
    assert (len(found.query_tokens), len(found.key_tokens)) == (queries, keys)
    for name in MEASURED:
        values, *moves = (each.scores[name].values for each in (expected, *others))
        off = 1e-5 + carried(values, moves)
        np.testing.assert_allclose(found.scores[name].values, values, rtol=0, atol=off)
        spread = float(np.nanmax(np.abs(values - np.roll(values, 1, axis=1)), initial=0.0))
        assert spread == 0 or spread > 100 * off, "another head's is seen"


def test_the_start_token_of_a_decoder_is_no_padding_where_it_is_spelled_alike() -> None:
    target = torch.tensor([[0, 5, 6, 7], [0, 8, 0, 0]])
    inputs = {"input_ids": ids(5, batch=2)["input_ids"], "decoder_input_ids": target}
    (call, _) = record(bart(), inputs, Selection(row=1, kind=Kind.DECODER)).calls
    assert [token.padding for token in call.query_tokens.items] == [False, False, True, True]


def test_returned_weights_of_a_padded_row_are_cut_alike() -> None:
    inputs, own = batch("right")
    model = sharp("bert")
    found = ask_for_weights(model, inputs, Selection(row=1), reason="asked")
    alone = ask_for_weights(model, {"input_ids": own}, Selection(), reason="asked")
    np.testing.assert_allclose(
        returned_head(found, 1, 2).weights, returned_head(alone, 1, 2).weights, atol=1e-5
    )
    one, other = (returned_overview(each, range(HEADS), MEASURED) for each in (found, alone))
    for name in MEASURED:
        np.testing.assert_allclose(one.scores[name].values, other.scores[name].values, atol=1e-5)
    assert len(one.query_tokens) == SHORT


def test_tokens_without_padding_keep_their_stretches() -> None:
    word, pad = Token(5, "a", "a", None, None), Token(0, "p", "p", None, None, padding=True)
    made = Tokens(("a",), (pad, pad, word, word, word, pad), (Patches(3, 1, 2),))
    assert made.only([2, 3, 4]).stretches == (Patches(1, 1, 2),)
    placed = replace(made, marked=(Patches(2, 1, 2, (4, 2)),))
    assert placed.only([2, 3, 4]).stretches == (Patches(0, 1, 2, (2, 0)),)
    assert list(made.only([2, 3, 4]).positions) == [0, 1, 2]


def test_vectors_without_ids_are_cut_by_the_mask_too() -> None:
    inputs, _ = batch("right")
    embedded = {
        "inputs_embeds": torch.randn(2, LONG, 48, generator=torch.Generator().manual_seed(0)),
        "attention_mask": inputs["attention_mask"],
    }
    found = recompute_head(record(sharp("bert"), embedded, Selection(row=1)), 1, 1)
    assert found.query_tokens.names == tuple(str(i) for i in range(SHORT))
