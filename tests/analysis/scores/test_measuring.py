"""What measures need beside weights: sorts of tokens, what is moved, scores; what is said where it lacks."""

from dataclasses import replace

import made_results as made
import numpy as np
import pytest
import torch
from families import HEADS, KEY_HEADS, ids, sharp

import attnscope as at
from attnscope.analysis.heads.overview import measure_heads
from attnscope.analysis.scores import sorts
from attnscope.analysis.scores.supplies import of_tokens
from attnscope.attention import Capture
from attnscope.capture import Selection, record
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.tokens import Frames, Patches, Token, Tokens


def spelled(*texts: str, special: tuple[int, ...] = (), parts: tuple[int, ...] = ()) -> Tokens:
    items = [
        Token(
            sum(map(ord, text)), text, text, None, None, special=i in special, part=parts[i] if parts else 0
        )
        for i, text in enumerate(texts)
    ]
    return Tokens((" ".join(texts),), tuple(items))


def test_punctuation_is_nothing_else_and_no_special_token() -> None:
    tokens = spelled("[SEP]", ".", "don't", "--", "$", "…", "a", " ,", "", special=(0, 3))
    assert sorts.punctuation(tokens).nonzero().flatten().tolist() == [1, 5, 7]
    assert sorts.special(tokens).nonzero().flatten().tolist() == [0, 3]


def test_the_same_token_is_the_same_number_or_the_same_word_and_no_patch() -> None:
    tokens = spelled("door", "was", "door", "opened")
    assert sorts.alike(tokens, tokens).int().tolist() == [
        [1, 0, 1, 0],
        [0, 1, 0, 0],
        [1, 0, 1, 0],
        [0, 0, 0, 1],
    ]
    words = replace(
        tokens, items=tuple(replace(each, id=-1) for each in spelled("The", "b", "the", "c").items)
    )
    assert sorts.alike(words, words)[0].tolist() == [True, False, True, False]
    patched = replace(tokens, marked=(Patches(0, 1, 3),))
    assert torch.equal(sorts.alike(patched, patched), torch.eye(4, dtype=torch.bool))


def test_two_texts_are_told_apart_and_one_has_no_blocks() -> None:
    pair = spelled("a", "b", "c", parts=(0, 0, 1))
    assert sorts.together(pair, pair).int().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert sorts.together(spelled("a", "b"), spelled("a", "b")) is None


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


def test_near_is_the_correlation_that_stands_beside_a_map() -> None:
    reading = at.load("demo").read("the old door was opened.")
    found = reading.measure("near", [1, 3], [2, 5])
    for i, layer in enumerate((1, 3)):
        for j, head in enumerate((2, 5)):
            assert found.main.values[i, j] == pytest.approx(reading.tsne(layer, head).correlation)


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


def test_of_a_picture_what_counts_positions_in_a_line_means_nothing() -> None:
    token = Token(-1, "r0c0", "r0c0", None, None)
    patches = Tokens((), (token,) * 6, (Patches(0, 2, 3),))
    known = of_tokens(patches, patches, "")
    assert {"distance", "offset", "previous"} <= {*known.absent}
    assert {"self", "entropy", "sink"}.isdisjoint(known.absent)
    assert not of_tokens(replace(patches, texts=("a text with a picture in it",)), patches, "").absent
    assert not of_tokens(replace(patches, marked=(Frames(0, 6, 0.1),)), patches, "").absent


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
