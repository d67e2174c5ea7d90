"""One word held against itself, checked against hooks on an untouched model, slow loops and scipy."""

import copy
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
import transformers as hf
from families import CONFIGS, DIM, HEADS, LAYERS, eager_weights, ids, padded, padding_as_tokens, sharp
from scipy.spatial import distance
from torch import Tensor, nn

from attnscope.analysis.controls import cosines, jensen_shannon, total_variation
from attnscope.attention import Capture
from attnscope.capture import Selection, record
from attnscope.errors import InputError
from attnscope.results import Between, Comparison, Kind, Special
from attnscope.session.wanted import Looking
from attnscope.tokens import Token, Tokens
from attnscope.verbs.compare.result import Case
from attnscope.verbs.compare.vectors import compare

WORD, PLACES = 41, (6, 2)
BOTH = (PLACES[:1], PLACES[1:])
EVERY = {"layers": range(LAYERS), "heads": range(HEADS)}
compare_texts, compare_models = partial(compare, Between.TEXTS), partial(compare, Between.MODELS)
compare_layers = partial(compare, Between.LAYERS)
WORDS = Looking(words=True)


def reading(place: int, length: int, seed: int) -> dict[str, Tensor]:
    """A text of random tokens in which `WORD` stands at `place`."""
    inputs = ids(length, seed=seed)
    inputs["input_ids"][0, place] = WORD
    return inputs


A, B = reading(PLACES[0], 9, seed=3), reading(PLACES[1], 7, seed=4)


def compared(family: str, **changed: object) -> Comparison:
    model = sharp(family)
    return compare_texts(record(model, A), record(model, B), BOTH, **{**EVERY, **changed})


def slow_cosine(a: np.ndarray, b: np.ndarray) -> float:
    products = sum(float(x) * float(y) for x, y in zip(a, b, strict=True))
    lengths = [math.sqrt(sum(float(x) ** 2 for x in vector)) for vector in (a, b)]
    return products / (lengths[0] * lengths[1])


def seen_by_hooks(model: nn.Module, inputs: dict[str, Tensor], paths: dict[str, str], place: int) -> dict:
    """By vector and layer what the modules at `paths` give at `place`; `<` before a path: what they get."""
    found, handles = {}, []
    for name, path in paths.items():
        for layer in range(LAYERS):
            module = model.get_submodule(path.strip("<").format(layer))

            def keep(_module, given, given_back, key=(name, layer), path=path) -> None:
                value = given[0] if path.startswith("<") else given_back
                found[key] = value[0, place].double().numpy()

            handles.append(module.register_forward_hook(keep))
    with torch.no_grad():
        model(**inputs)
    for handle in handles:
        handle.remove()
    return found


HOOKED = {
    "bert": {
        "query": "encoder.layer.{}.attention.self.query",
        "key": "encoder.layer.{}.attention.self.key",
        "value": "encoder.layer.{}.attention.self.value",
        "output": "<encoder.layer.{}.attention.output.dense",
    },
    "llama": {
        "unrotated key": "layers.{}.self_attn.k_proj",
        "value": "layers.{}.self_attn.v_proj",
        "output": "<layers.{}.self_attn.o_proj",
    },
}


@pytest.mark.parametrize("family", HOOKED)
def test_cosines_are_those_of_the_vectors_that_an_untouched_model_makes(family: str) -> None:
    result, model = compared(family), sharp(family)
    assert (result.similarity("unrotated key") is None) == (family == "bert")
    assert result.divergence is None, "rows over different tokens are not held against each other"
    first = seen_by_hooks(model, A, HOOKED[family], PLACES[0])
    second = seen_by_hooks(model, B, HOOKED[family], PLACES[1])
    for (name, layer), a in first.items():
        b, found = second[name, layer], result.similarity(name)
        assert found is not None
        assert found.together[layer] == pytest.approx(slow_cosine(a, b), abs=1e-5)
        for head in range(HEADS):
            mine = head // (HEADS * DIM // len(a))  # key and value heads are shared by several query heads
            part = slice(mine * DIM, (mine + 1) * DIM)
            assert found.heads[layer, head] == pytest.approx(slow_cosine(a[part], b[part]), abs=1e-5)


def test_the_rows_in_full_are_the_model_s_own() -> None:
    for family in ("llama", "gpt_oss"):
        result = compared(family)
        for side, inputs in ((result.a, A), (result.b, B)):
            own = eager_weights(sharp(family), inputs)[side.head.layer][0, side.head.head, side.position]
            np.testing.assert_allclose(side.weights, own[: len(side.weights)], atol=1e-5)
            assert len(side.weights) == inputs["input_ids"].shape[1]


def test_a_rotary_position_changes_query_and_key_and_the_unrotated_key_shows_by_how_much() -> None:
    result = compared("llama")
    assert result.similarity("unrotated key").together[0] == pytest.approx(1)  # the word, and no context yet
    assert result.similarity("value").together[0] == pytest.approx(1)
    assert result.similarity("query").together[0] < 0.99
    assert result.similarity("key").together[0] < 0.99
    model, other = sharp("llama"), reading(PLACES[0], 8, seed=5)  # the word at the same position
    result = compare_texts(record(model, A), record(model, other), (BOTH[0],) * 2, **EVERY)
    key, unrotated = result.similarity("key"), result.similarity("unrotated key")
    np.testing.assert_allclose(key.heads, unrotated.heads, atol=1e-5)
    assert key.heads[-1].min() < 0.99


def test_two_layers_have_rows_but_no_cosines() -> None:
    model = sharp("bert")
    result = compare_layers(*[record(model, A)] * 2, BOTH[:1] * 2, layers=(0, 2), heads=[1, 3, 4, 5])
    assert (result.between, result.layers, result.similarities) == (Between.LAYERS, ((0, 2),), ())
    own = eager_weights(model, A)
    for j, head in enumerate(result.heads):
        rows = [own[layer][0, head, PLACES[0]].double().numpy() for layer in (0, 2)]
        nats = distance.jensenshannon(*(row / row.sum() for row in rows)) ** 2
        assert result.divergence.jensen_shannon[0, j] == pytest.approx(nats, abs=1e-5)
        moved = sum(abs(float(x) - float(y)) for x, y in zip(*rows, strict=True)) / 2
        assert result.divergence.total_variation[0, j] == pytest.approx(moved, abs=1e-5)
    furthest = result.heads[int(result.divergence.jensen_shannon[0].argmax())]
    assert (result.a.head.name, result.b.head.name) == (f"L0 H{furthest}", f"L2 H{furthest}")


# two models


def under_two(first: Capture, second: Capture, **changed: object) -> Comparison:
    return compare_models(first, second, (BOTH[0],) * 2, **{**EVERY, **changed})


def test_the_same_text_twice_is_alike_and_two_architectures_have_rows_but_no_cosines() -> None:
    captured = record(sharp("llama"), A)
    result = compare_texts(captured, captured, (BOTH[0],) * 2, **EVERY)
    for similarity in result.similarities:
        np.testing.assert_allclose(similarity.heads, 1)
    assert result.divergence is not None
    assert not result.divergence.jensen_shannon.any()
    assert not result.divergence.total_variation.any()
    result = under_two(record(sharp("bert"), A), record(sharp("modernbert"), A))
    assert (result.similarities, result.divergence.jensen_shannon.shape) == ((), (LAYERS, HEADS))


def shallow_bert() -> nn.Module:
    model = sharp("bert")
    del model.encoder.layer[-1]
    return model


def test_models_of_two_depths_or_other_tokens_are_compared_in_the_one_head_that_is_named() -> None:
    sides = record(sharp("bert"), A), record(shallow_bert(), A)
    with pytest.raises(InputError, match="3 layers x 6 heads and 2 layers x 6 heads: give one --layer and"):
        under_two(*sides)
    result = under_two(*sides, layers=[1], heads=[4])
    assert (result.layers, result.similarities, result.a.head.name) == (((1, 1),), (), "L1 H4")
    np.testing.assert_allclose(result.divergence.jensen_shannon, 0, atol=1e-9)  # the same weights so far
    sides = record(sharp("bert"), A), record(sharp("modernbert"), B)
    with pytest.raises(InputError, match="different tokens: give one --layer and one --head"):
        compare_models(*sides, BOTH, **EVERY)
    result = compare_models(*sides, BOTH, layers=[2], heads=[3])
    assert (result.similarities, result.divergence, result.chosen) == ((), None, False)
    assert (result.a.word, result.b.word) == (str(WORD), str(WORD))


# cross-attention


def test_in_cross_attention_the_word_is_a_query_only() -> None:
    torch.manual_seed(3)
    model = hf.T5Model._from_config(CONFIGS["t5"](), attn_implementation="eager").eval()
    sides = [
        record(model, {**source, "decoder_input_ids": target["input_ids"]}, Selection(kind=Kind.CROSS))
        for source, target in ((A, ids(4, seed=8)), (B, ids(5, seed=9)))
    ]
    result = compare_texts(*sides, ((3,), (1,)), layers=range(3), heads=range(6))
    assert [each.vector for each in result.similarities] == ["query", "output"]
    assert (len(result.a.weights), len(result.b.weights)) == (9, 7)
    assert result.a.word == str(int(ids(4, seed=8)["input_ids"][0, 3]))


# the maths


ROWS = np.array([[0.5, 0.25, 0.25, 0.0], [1.0, 0.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4]])
OTHERS = np.array([[0.25, 0.25, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0], [0.1, 0.2, 0.3, 0.4]])


def test_jensen_shannon_is_scipy_s_squared_and_at_most_ln_2() -> None:
    found = jensen_shannon(ROWS, OTHERS)
    assert found == pytest.approx(distance.jensenshannon(ROWS, OTHERS, axis=1) ** 2)
    assert found[1] == pytest.approx(math.log(2))
    assert found[2] == 0
    by_hand = (0.5 * math.log(0.5 / 0.375) + 0.25 * math.log(2)) / 2
    by_hand += (0.25 * math.log(0.25 / 0.375) + 0.5 * math.log(2)) / 2
    assert found[0] == pytest.approx(by_hand)
    tiny = np.array([[5e-324, 1.0]])  # the smallest weight that there is
    assert jensen_shannon(tiny, np.array([[0.0, 1.0]]))[0] == pytest.approx(0, abs=1e-300)


def test_total_variation_cosines_and_rows_without_any_key_by_hand() -> None:
    assert total_variation(ROWS, OTHERS) == pytest.approx([0.5, 1.0, 0.0])
    a = np.array([[3.0, 4.0, 0.0], [1.0, 0.0, 0.0], [1.0, 2.0, 2.0], [1.0, 1.0, 1.0]])
    b = np.array([[4.0, 3.0, 0.0], [0.0, 2.0, 0.0], [-2.0, -4.0, -4.0], [0.0, 0.0, 0.0]])
    assert cosines(a, b) == pytest.approx([0.96, 0.0, -1.0, math.nan], nan_ok=True)
    nothing = np.full((1, 4), np.nan)
    assert np.isnan(jensen_shannon(nothing, OTHERS[:1])).all()
    assert np.isnan(total_variation(OTHERS[:1], nothing)).all()


def test_a_word_that_may_look_at_nothing_has_vectors_but_no_output() -> None:
    model, inputs = sharp("llama"), padded("left")
    sides = record(model, inputs, Selection(row=1)), record(model, inputs, Selection(row=0))
    result = compare_texts(*map(padding_as_tokens, sides), ((0,), (5,)), **EVERY)
    assert np.isnan(result.similarity("output").heads).all()
    assert np.isfinite(result.similarity("value").heads).all()
    assert result.a.head.name == "L0 H0"
    assert np.isnan(result.a.weights).all()


# by words, and without special tokens

GROUPS = [[0], [1], [2, 3, 4], [5], [6, 7], [8]]  # of the first text; its last token is a special one
SECOND = [[0], [1, 2, 3, 4], [5], [6]]


def worded(captured: Capture, groups: list[list[int]]) -> Capture:
    """The same with tokens that are pieces of words: `word3` is cut as in `groups`, the ends are special."""
    text, items = "", []
    for number, group in enumerate(groups):
        special = number in (0, len(groups) - 1)
        for _ in group:
            start, text = len(text), text if special else text + "ab"
            span = None if special else (start, len(text))
            name = f"[{number}]" if special else text[start:]
            items.append(Token(7, name, text[start:], span, None if special else number, special=special))
        text += "" if special else " "
    tokens = Tokens((text,), tuple(items))
    calls = tuple(replace(call, query_tokens=tokens, key_tokens=tokens) for call in captured.calls)
    return replace(captured, calls=calls)


def slow_row(weights: np.ndarray, pieces: list[int], groups: list[list[int]]) -> list[float]:
    """Mean over the pieces of a query of the sum over those of a key, pair by pair."""
    return [sum(float(weights[q, k]) for q in pieces for k in group) / len(pieces) for group in groups]


def test_vectors_of_a_word_are_the_means_over_its_pieces() -> None:
    model, look, family = sharp("bert"), WORDS, "bert"
    result = compare_texts(
        worded(record(model, A), GROUPS), worded(record(model, B), SECOND), ((3,), (2,)), **EVERY, look=look
    )
    pieces, others = GROUPS[2], SECOND[1]
    assert (result.a.word, result.b.word) == ("ab" * 3, "ab" * 4)
    assert (result.a.position, result.a.pieces, result.b.pieces) == (2, tuple(pieces), tuple(others))
    first, second = (
        [seen_by_hooks(model, inputs, HOOKED[family], piece) for piece in places]
        for inputs, places in ((A, pieces), (B, others))
    )
    for name, layer in first[0]:
        a, b = (sum(one[name, layer] for one in each) / len(each) for each in (first, second))
        assert result.similarity(name).together[layer] == pytest.approx(slow_cosine(a, b), abs=1e-5)
    alone = compared(family).similarity("value").together
    assert np.abs(result.similarity("value").together - alone).max() > 0.01  # not those of one piece
    by_hand = [result.a.head.output[piece] for piece in pieces]
    np.testing.assert_allclose(result.a.vectors["output"], sum(by_hand) / 3)


def test_several_tokens_are_compared_by_the_means_of_their_vectors() -> None:
    """A stretch of three tokens against one of two; of grouped queries the values are shared."""
    model, spans, family = sharp("llama"), ((3, 4, 5), (1, 2)), "llama"
    result = compare_texts(record(model, A), record(model, B), spans, **EVERY)
    assert (result.a.pieces, result.b.pieces) == spans
    first, second = (
        [seen_by_hooks(model, inputs, HOOKED[family], place) for place in span]
        for inputs, span in zip((A, B), spans, strict=True)
    )
    for name, layer in first[0]:
        a, b = (sum(one[name, layer] for one in each) / len(each) for each in (first, second))
        assert result.similarity(name).together[layer] == pytest.approx(slow_cosine(a, b), abs=1e-5)
    for side, inputs in zip(result.sides, (A, B), strict=True):
        own = eager_weights(model, inputs)[side.head.layer][0, side.head.head].numpy()
        count = inputs["input_ids"].shape[1]
        groups = [[i] for i in range(side.pieces[0])] + [[*side.pieces]]
        groups += [[i] for i in range(side.pieces[-1] + 1, count)]
        np.testing.assert_allclose(side.weights, slow_row(own, [*side.pieces], groups), atol=1e-5)


@pytest.mark.parametrize("special", Special)
def test_rows_of_a_word_are_compared_as_a_slow_loop_makes_them(special: Special) -> None:
    model = sharp("bert")
    captured = worded(record(model, A), GROUPS)
    result = compare_layers(
        captured, captured, ((4,),) * 2, layers=(0, 2), heads=[1, 5], look=Looking(True, special)
    )
    own = eager_weights(model, A)
    kept = GROUPS if special is not Special.RENORMALISE else GROUPS[1:-1]
    for j, head in enumerate(result.heads):
        rows = [np.array(slow_row(own[layer][0, head].numpy(), GROUPS[2], kept)) for layer in (0, 2)]
        rows = [row / row.sum() for row in rows]
        nats = distance.jensenshannon(*rows) ** 2
        assert result.divergence.jensen_shannon[0, j] == pytest.approx(nats, abs=1e-5)
        moved = np.abs(rows[0] - rows[1]).sum() / 2
        assert result.divergence.total_variation[0, j] == pytest.approx(moved, abs=1e-5)
    head = own[0][0, result.a.head.head].numpy()
    shown = slow_row(head, GROUPS[2], GROUPS if special is Special.SHOW else GROUPS[1:-1])
    scale = sum(shown) if special is Special.RENORMALISE else 1
    np.testing.assert_allclose(result.a.weights, np.array(shown) / scale, atol=1e-5)
    hidden = sum(slow_row(head, GROUPS[2], [GROUPS[0], GROUPS[-1]]))
    wanted = None if special is Special.SHOW else pytest.approx(hidden, abs=1e-5)
    assert result.a.special_weight == wanted


def test_a_sink_is_left_out_where_rows_are_divided_and_counts_where_they_are_not() -> None:
    model = sharp("gpt_oss")
    captured = worded(record(model, A), GROUPS)
    own = eager_weights(model, A)
    for special, kept in ((Special.SHOW, GROUPS), (Special.RENORMALISE, GROUPS[1:-1])):
        result = compare_layers(
            captured, captured, ((6,),) * 2, layers=(1, 2), heads=[2], look=Looking(True, special)
        )
        rows = [np.array(slow_row(own[layer][0, 2].numpy(), GROUPS[4], kept)) for layer in (1, 2)]
        if special is Special.SHOW:
            rows = [np.append(row, 1 - row.sum()) for row in rows]
        nats = distance.jensenshannon(*(row / row.sum() for row in rows)) ** 2
        assert result.divergence.jensen_shannon[0, 0] == pytest.approx(nats, abs=1e-5)


def test_models_that_cut_the_same_words_otherwise_meet_by_words() -> None:
    first, second = (record(sharp("bert"), A), record(sharp("modernbert"), A))
    same = [[0], [1], [2, 3], [4], [5], [6], [7], [8]]
    sides = worded(first, same), worded(second, same)
    other = replace(sides[1].calls[0].key_tokens, texts=("other",))
    apart = tuple(replace(call, key_tokens=other) for call in sides[1].calls)
    assert compare_models(*sides, ((2,), (3,)), **EVERY, look=WORDS).divergence is not None
    with pytest.raises(InputError, match="as different words: give one --layer"):
        compare_models(sides[0], replace(sides[1], calls=apart), ((2,), (3,)), **EVERY, look=WORDS)


def test_where_every_key_is_special_nothing_is_left() -> None:
    captured = record(sharp("bert"), A)
    tokens = captured.calls[0].key_tokens
    special = replace(tokens, items=tuple(replace(item, special=True) for item in tokens.items))
    calls = tuple(replace(call, query_tokens=special, key_tokens=special) for call in captured.calls)
    empty = replace(captured, calls=calls)
    for look in (Looking(special=Special.HIDE), Looking(special=Special.RENORMALISE)):
        with pytest.raises(InputError, match="is a special token: without them nothing is left to show"):
            compare_layers(empty, empty, ((4,),) * 2, layers=(0, 2), heads=[1], look=look)


# heads that look at special tokens


def with_special(captured: Capture, keys: tuple[int, ...]) -> Capture:
    """The same reading, of which the tokens at `keys` are special."""

    def marked(tokens: Tokens) -> Tokens:
        items = (replace(each, special=i in keys) for i, each in enumerate(tokens.items))
        return replace(tokens, items=tuple(items))

    calls = tuple(
        replace(call, query_tokens=(tokens := marked(call.query_tokens)), key_tokens=tokens)
        for call in captured.calls
    )
    return replace(captured, calls=calls)


def slow_shares(family: str, inputs: dict[str, Tensor], place: int, keys: tuple[int, ...]) -> np.ndarray:
    weights = eager_weights(sharp(family), inputs)
    return np.array(
        [
            [sum(float(weights[i][0, j, place, key]) for key in keys) for j in range(HEADS)]
            for i in range(LAYERS)
        ]
    )


def test_the_head_that_is_shown_is_chosen_among_those_that_look_at_the_text() -> None:
    keys = (0, 5)
    model = sharp("bert")
    a, b = (with_special(record(model, inputs), keys) for inputs in (A, B))
    found = compare_texts(a, b, BOTH, **EVERY)
    sides = zip((A, B), PLACES, strict=True)
    over = np.logical_or(*(slow_shares("bert", inputs, place, keys) > 0.5 for inputs, place in sides))
    assert 0 < over.sum() < over.size
    assert found.passed_over == over.sum()
    assert not over[found.shown]
    outputs = found.similarity("output").heads
    assert outputs[found.shown] == outputs[~over].min()

    every = compare_texts(a, b, BOTH, **EVERY, look=Looking(special=Special.SHOW))
    assert every.passed_over == 0
    assert every.similarity("output").heads[every.shown] == outputs.min()


def test_where_every_head_looks_at_special_tokens_none_is_passed_over() -> None:
    a, b = (with_special(record(sharp("bert"), inputs), tuple(range(9))) for inputs in (A, B))
    found = compare_texts(a, b, BOTH, **EVERY)
    assert found.passed_over == 0
    assert found.similarity("output").heads[found.shown] == found.similarity("output").heads.min()


def test_a_head_that_was_changed_in_one_model_is_the_one_that_is_shown() -> None:
    model, layer, head = sharp("bert"), 1, 2
    changed = copy.deepcopy(model)
    query = changed.get_submodule(f"encoder.layer.{layer}.attention.self.query").weight
    with torch.no_grad():
        query[head * DIM : (head + 1) * DIM] *= -0.5
    every_key = tuple(range(A["input_ids"].shape[1]))  # all of them special: no head may be passed over
    sides = [with_special(record(each, A), every_key[:-1]) for each in (model, changed)]
    found = compare_models(*sides, (BOTH[0],) * 2, **EVERY)
    assert (found.a.head.layer, found.a.head.head) == (layer, head)
    assert found.begins == ((layer, head),)
    assert found.passed_over == 0
    assert not found.same
    assert found.case is Case.MODELS_BEGIN
    same = compare_models(sides[0], sides[0], (BOTH[0],) * 2, **EVERY)
    assert same.same
    assert same.begins == ()
    assert same.case is Case.MODELS_SAME
    with torch.no_grad():  # from the first layer on: no head is where they part
        changed.get_submodule("encoder.layer.0.attention.self.query").weight.mul_(-0.5)
    found = compare_models(record(model, A), record(changed, A), (BOTH[0],) * 2, **EVERY)
    assert found.begins == ()
    assert found.case is Case.MODELS_DIFFER
