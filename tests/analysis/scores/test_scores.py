"""Measures of heads: what they need, by words, beside even weights, and where they mean nothing."""

import math
from dataclasses import replace

import made_results as made
import numpy as np
import pytest
import torch
from families import HEADS, KEY_HEADS, ids, sharp

import attnscope as at
from attnscope.analysis.heads.overview import measure_heads, viewed_overview
from attnscope.analysis.scores import supplies
from attnscope.analysis.scores.dense import apply_measures, evenly_spread, unplaced
from attnscope.attention import Capture
from attnscope.capture import Selection, record
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.results import HeadScores, Kind
from attnscope.tokens import Patches, Token, Tokens
from attnscope.verbs.report.answer import statistics
from attnscope.vocabulary import Unit


def mean_distance(weights: np.ndarray) -> float:
    """By a loop over every pair."""
    rows = [sum(p * abs(i - j) for j, p in enumerate(row)) for i, row in enumerate(weights.tolist())]
    return sum(rows) / len(rows)


def of_made(*names: str, words: bool = False, apart: str = "") -> dict[str, HeadScores]:
    rows = made.overview(2, 3).dense_weights
    weights = [[torch.from_numpy(each) for each in row] for row in rows]
    return apply_measures(
        weights, names, layers=(4, 9), heads=(0, 2, 5), unplaced=apart, by=Unit.WORD if words else Unit.TOKEN
    )


def test_measures_without_a_meaning_are_nan_and_say_why():
    found = of_made("previous", "entropy", "first", "distance", apart="no")
    assert {name: each.absent for name, each in found.items()} == {
        "previous": "no",
        "entropy": "",
        "first": "",
        "distance": "no",
    }
    assert np.isnan(found["previous"].values).all()
    assert found["previous"].values.shape == (2, 3)
    assert np.array_equal(found["entropy"].values, of_made("entropy")["entropy"].values)
    message = "no self, next here: no; what can be measured is entropy, confidence, first"
    with pytest.raises(InputError, match=f"^{message}$"):
        of_made("self", "next", apart="no")


def test_positions_mean_nothing_in_cross_attention_even_between_equal_texts():
    text, other = made.tokens(["a", "b", "c"]), made.tokens(["d", "e"])
    assert unplaced(Kind.ENCODER, text, text) == unplaced(Kind.DECODER, text, made.tokens("abc")) == ""
    for kind, key in ((Kind.CROSS, text), (Kind.CROSS, other), (Kind.DECODER, other)):
        assert unplaced(kind, text, key) == "queries and keys are not the same tokens"


def test_an_overview_of_a_model_holds_every_measure_that_was_asked_for():
    captured = record(sharp("gpt2"), ids())
    found = measure_heads(captured, measures=tuple(MEASURES))
    assert list(found.scores) == list(MEASURES)
    assert found.main.measure == "entropy"
    for i, j in np.ndindex(found.main.values.shape):
        weights = found.dense_weights[i][j]
        assert found.scores["distance"].values[i, j] == pytest.approx(mean_distance(weights))
        assert found.scores["previous"].values[i, j] == pytest.approx(
            np.diag(weights, -1).sum() / (len(weights) - 1)
        )
    assert np.isnan(found.scores["next"].values).all()
    assert found.scores["next"].absent == "no query may look there"
    assert list(measure_heads(captured).scores) == ["entropy"]
    assert np.array_equal(measure_heads(captured).main.values, found.scores["entropy"].values)


def test_an_overview_by_words_counts_words():
    names = ["a", "bc", "d"]  # the second word is cut in two
    text = made.tokens(names)
    items = (
        *text.items[:1],
        *(replace(text.items[1], span=s, text=t) for s, t in (((2, 3), "b"), ((3, 4), "c"))),
    )
    cut = replace(text, items=(*items, text.items[2]))
    weights = np.array(
        [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.2, 0.4, 0.2, 0.2], [0.7, 0.1, 0.1, 0.1]]
    )
    whole = replace(made.overview(1, 1, names), query_tokens=cut, key_tokens=cut, weights=((weights,),))
    found = viewed_overview(made.measured(whole, "distance", "previous"), by=Unit.WORD)
    words = np.array([[0.1, 0.5, 0.4], [0.3, 0.55, 0.15], [0.7, 0.2, 0.1]])
    np.testing.assert_allclose(found.dense_weights[0][0], words)
    assert found.scores["distance"].values[0, 0] == pytest.approx((0.5 + 0.8 + 0.45 + 1.4 + 0.2) / 3)
    assert found.scores["previous"].values[0, 0] == pytest.approx((0.3 + 0.2) / 2)
    assert found.scores["distance"].unit == "words"


# one head


def test_statistics_are_every_measure_and_the_special_tokens_beside_even_weights():
    head = made.head(causal=True, kind=Kind.DECODER)
    found = {one.measure: one for one in statistics(head)}
    assert list(found) == [*(name for name, each in MEASURES.items() if each.brief), "special tokens"]
    counts = range(1, 14)
    even = {name: one.even_attention[0, 0] for name, one in found.items() if one.even_attention is not None}
    assert even["entropy"] == pytest.approx(sum(math.log(n) for n in counts) / 13)
    assert (
        even["confidence"] == even["self"] == even["first"] == pytest.approx(sum(1 / n for n in counts) / 13)
    )
    assert even["distance"] == pytest.approx(sum((n - 1) / 2 for n in counts) / 13)
    assert even["next"] == 0
    assert even["special tokens"] == pytest.approx((sum(1 / n for n in counts) + 1 / 13) / 13)
    allowed = np.array([[True, False, True], [False, False, False], [False, True, False]])
    even = evenly_spread(allowed)
    assert even[[0, 2]].tolist() == [[0.5, 0, 0.5], [0, 1, 0]]
    assert np.isnan(even[1]).all()


def spelled(*texts: str, special: tuple[int, ...] = (), parts: tuple[int, ...] = ()) -> Tokens:
    items = [
        Token(
            sum(map(ord, text)), text, text, None, None, special=i in special, part=parts[i] if parts else 0
        )
        for i, text in enumerate(texts)
    ]
    return Tokens((" ".join(texts),), tuple(items))


def test_punctuation_is_no_special_token_and_the_same_token_the_same_number_or_word_and_no_patch() -> None:
    tokens = spelled("[SEP]", ".", "don't", "--", "$", "…", "a", " ,", "", special=(0, 3))
    assert supplies.punctuation(tokens).nonzero().flatten().tolist() == [1, 5, 7]
    assert supplies.special(tokens).nonzero().flatten().tolist() == [0, 3]
    tokens = spelled("door", "was", "door", "opened")
    assert supplies.alike(tokens, tokens).int().tolist() == [
        [1, 0, 1, 0],
        [0, 1, 0, 0],
        [1, 0, 1, 0],
        [0, 0, 0, 1],
    ]
    words = replace(
        tokens, items=tuple(replace(each, id=-1) for each in spelled("The", "b", "the", "c").items)
    )
    assert supplies.alike(words, words)[0].tolist() == [True, False, True, False]
    patched = replace(tokens, marked=(Patches(0, 1, 3),))
    assert torch.equal(supplies.alike(patched, patched), torch.eye(4, dtype=torch.bool))


def test_masses_by_norm_are_those_of_a_slow_loop_over_a_model_s_own_parts() -> None:
    model = sharp("llama")
    captured = record(model, ids(), Selection(projections=True))
    found = measure_heads(captured, measures=["previous-norm", "moved", "entropy"])
    layer, dim, shared = 1, 8, HEADS // KEY_HEADS
    call, output = captured.call(layer), model.layers[layer].self_attn.o_proj.weight.detach().double()
    for head in range(HEADS):
        values = call.v[head // shared].double()
        lengths = [float((output[:, head * dim : (head + 1) * dim] @ value).norm()) for value in values]
        rows = [[p * n for p, n in zip(row, lengths, strict=True)] for row in call.weights[head].tolist()]
        shares = [row[i - 1] / sum(row) for i, row in enumerate(rows) if i]
        assert found.scores["previous-norm"].values[layer, head] == pytest.approx(sum(shares) / 10, abs=1e-6)
        assert found.scores["moved"].values[layer, head] == pytest.approx(sum(map(sum, rows)) / 11, rel=1e-5)
    assert found.scores["moved"].limits == (0, found.scores["moved"].values.max())


def test_layers_without_an_output_projection_are_nan_and_said_to_be() -> None:
    captured = record(sharp("bert"), ids(), Selection(projections=True))
    lame = [replace(call, projection=None if call.layer == 1 else call.projection) for call in captured.calls]
    found = measure_heads(replace(captured, calls=tuple(lame)), measures=["self-norm"])
    assert np.isnan(found.main.values[1]).all()
    assert np.isfinite(found.main.values[[0, 2]]).all()
    assert "what L1 moves is not known: nothing reads the heads' outputs by a matrix alone" in found.notes


def test_what_lacks_everywhere_makes_a_measure_mean_nothing() -> None:
    plain: Capture = record(sharp("bert"), ids())  # projections were not looked for
    with pytest.raises(InputError, match="no self-norm here: nothing reads the heads' outputs"):
        measure_heads(plain, measures=["self-norm"])
    found = measure_heads(plain, measures=tuple(MEASURES))
    absent = {name: each.absent for name, each in found.scores.items() if each.absent}
    assert absent["special-tokens"] == "no key is a special token"
    assert absent["punctuation"] == "no key is punctuation"
    assert absent["induction"] == "it is taken of random tokens"
    assert {"entropy", "evenness", "near", "pattern", "fixed"}.isdisjoint(absent)


def test_by_words_positions_and_sorts_are_those_of_words() -> None:
    reading = at.load("demo").read("the door, the door.")
    words = reading.overview(0, [3, 4], measure="same,punctuation,near", words=True)
    assert words.scores["near"].absent == "scores are of single tokens"
    weights = words.dense_weights[0][1]
    names = [token.piece for token in words.key_tokens.items]
    expected = [
        sum(weights[i, j] for j in range(len(names)) if j != i and names[j] == names[i])
        for i in range(len(names))
    ]
    stand_twice = [i for i, name in enumerate(names) if names.count(name) > 1]
    assert len(stand_twice) == 4
    assert words.scores["same"].values[0, 1] == pytest.approx(np.mean([expected[i] for i in stand_twice]))


def test_near_is_the_correlation_that_stands_beside_a_map() -> None:
    reading = at.load("demo").read("the old door was opened.")
    found = reading.measure("near", [1, 3], [2, 5])
    for i, layer in enumerate((1, 3)):
        for j, head in enumerate((2, 5)):
            assert found.main.values[i, j] == pytest.approx(reading.tsne(layer, head).correlation)


def test_evenness_by_words_is_over_the_words_that_may_be_seen() -> None:
    found = (
        at.load("demo-causal")
        .read("gulping doors, zebra doors.")
        .overview(1, [2, 6], measure="evenness,pattern,moved", words=True)
    )
    assert len(found.key_tokens) < len(found.tokens.key_tokens)  # some words have several pieces
    for j, weights in enumerate(found.dense_weights[0]):
        each = [
            sum(-w * np.log(w) for w in weights[i, : i + 1] if w > 0) / np.log(i + 1)
            for i in range(1, len(weights))
        ]
        assert found.scores["evenness"].values[0, j] == pytest.approx(np.mean(each))
    assert found.scores["pattern"].absent == "it is held against even weights of single tokens"
    assert "may cancel: their lengths do not add up" in found.scores["moved"].absent


def test_where_special_tokens_are_looked_for_no_head_is_passed_over() -> None:
    from golden_text import body, printed

    result = made.overview(12, 12)
    for head in (result.dense_weights[4][7],):
        head[:] = 0.0
        head[:, 0] = 1.0  # all of it on [CLS]
    tokens = {"special-tokens": MEASURES["special-tokens"]}
    values = np.array([[w[:, [0, -1]].sum(1).mean() for w in row] for row in result.dense_weights])
    scores = {name: made.scores(name, values, 13) for name in tokens}
    text = printed(body(replace(result, scores=scores, ordinary=True), 80), 80)
    assert any(line.startswith("L4 H7") for line in text.splitlines())
    assert "passed over" not in text


def test_by_words_distances_are_told_in_words_and_weights_are_not():
    found = of_made("distance", "self", words=True)
    assert (found["distance"].unit, found["self"].unit) == ("words", "weight")
    assert of_made("distance")["distance"].unit == "tokens"


def test_statistics_of_cross_attention_have_no_positions():
    found = {one.measure: one for one in statistics(made.head(key_names=made.DOOR[:5]))}
    assert [name for name, one in found.items() if one.absent] == ["distance", "self", "previous", "next"]
    assert all(math.isnan(found[name].values[0, 0]) for name in ("distance", "next"))
    assert np.isfinite(found["first"].values).all()
