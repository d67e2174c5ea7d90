"""The link that a page opens on: one that says something of this text, and no quirk of its position."""

from dataclasses import replace

import made_results as made
import numpy as np
import pytest

from attnscope.results.base.evidence import Explained, Link, most_telling_link, says_something, telling_pairs
from attnscope.results.claims.ranking import much
from attnscope.tokens import Token, Tokens

NAMES = ["[CLS]", "The", "cat", "sat", "near", "the", "door", "because", "it", "slept", ".", "[SEP]"]
COUNT = len(NAMES)
SEEN = {"crosses": False, "causal": False}


@pytest.fixture
def tokens() -> Tokens:
    return made.tokens(NAMES)


def even(layers: int = 2, heads: int = 3) -> np.ndarray:
    return np.full((layers, heads, COUNT, COUNT), 1 / COUNT)


def chosen(weights: np.ndarray, queries: Tokens, keys: Tokens, **how: object) -> Link | None:
    return most_telling_link([list(layer) for layer in weights], queries, keys, **how)


def planted(weights: np.ndarray, layer: int, head: int, query: int, key: int, weight: float = 0.8) -> None:
    """One row that gives one key so much, and the others the rest alike."""
    weights[layer, head, query] = (1 - weight) / (COUNT - 1)
    weights[layer, head, query, key] = weight


def test_a_planted_link_between_two_words_is_found_with_what_may_explain_it(tokens) -> None:
    weights = even()
    planted(weights, 1, 2, 8, 2)
    found = chosen(weights, tokens, tokens, **SEEN)
    assert (found.layer, found.head, found.query, found.key) == (1, 2, 8, 2)
    assert found.weight == pytest.approx(0.8)
    assert [found.even, found.others, found.distance] == pytest.approx([1 / COUNT] * 3)
    assert found.controls is None
    assert found.evidence == pytest.approx(0.8 - 1 / COUNT)


def test_a_quirk_of_two_positions_that_control_texts_have_too_is_passed_over(tokens) -> None:
    weights, controls = even(), even()
    planted(weights, 1, 0, 9, 2, 0.9)
    planted(weights, 0, 1, 8, 6, 0.6)
    controls[1, 0, 9, 2] = 0.85
    alone = chosen(weights, tokens, tokens, **SEEN)
    beside = chosen(weights, tokens, tokens, **SEEN, controls=controls)
    assert (alone.query, alone.key) == (9, 2)
    assert (beside.query, beside.key, beside.controls) == (8, 6, pytest.approx(1 / COUNT))


def test_a_head_that_looks_three_back_everywhere_is_passed_over(tokens) -> None:
    weights = even()
    for query in range(3, COUNT):
        planted(weights, 1, 0, query, query - 3, 0.95)
    planted(weights, 0, 0, 9, 2, 0.5)
    found = chosen(weights, tokens, tokens, **SEEN)
    assert (found.layer, found.query, found.key) == (0, 9, 2)


def test_a_key_that_every_query_looks_at_is_passed_over(tokens) -> None:
    weights = even()
    for query in range(COUNT):
        planted(weights, 1, 0, query, 6, 0.95)
    assert chosen(weights, tokens, tokens, **SEEN) is None


@pytest.mark.parametrize(
    ("query", "key"), [(0, 6), (6, 0), (10, 2), (3, 2), (2, 3), (6, 6)], ids=lambda at: NAMES[at]
)
def test_special_tokens_punctuation_and_neighbours_are_no_links(tokens, query, key) -> None:
    weights = even()
    planted(weights, 0, 0, query, key)
    assert chosen(weights, tokens, tokens, **SEEN) is None


def test_a_word_that_looks_at_itself_elsewhere_is_no_link() -> None:
    text = made.tokens(["door", "cat", "saw", "a", "door", "shut"])
    again = made.tokens(["door", "cat", "saw", "a", "cat", "shut"])
    same = replace(text, items=(*text.items[:4], replace(text.items[4], id=text.items[0].id), text.items[5]))
    assert not telling_pairs(same, same, **SEEN)[4, 0]
    assert telling_pairs(again, again, **SEEN)[4, 0]


def test_pieces_of_a_word_and_unknown_tokens_are_no_links() -> None:
    items = (
        Token(1, "un", "un", (0, 2), 0), Token(2, "##told", "told", (2, 6), 0),
        Token(3, "and", "and", (7, 10), 1),
        Token(4, "[UNK]", "☃", (11, 12), 2, unknown=True), Token(5, "tale", "tale", (13, 17), 3),
    )  # fmt: skip
    text = Tokens(("untold and ☃ tale",), items)
    pairs = telling_pairs(text, text, **SEEN)
    assert np.argwhere(pairs).tolist() == [[2, 4], [4, 2]]


def test_parts_of_what_stands_between_two_blanks_are_no_links() -> None:
    source = "edition 3.0, 'the rabbit-hole' don't end."
    pieces = "edition 3 . 0 , ' the rabbit - hole ' don ' t end ."
    items, at = list[Token](), 0
    for i, piece in enumerate(pieces.split()):
        at = source.index(piece, at)
        items.append(Token(i, piece, piece, (at, at + len(piece)), i))
        at += len(piece)
    text = Tokens((source,), tuple(items))
    whole = telling_pairs(text, text, **SEEN).any(axis=0)
    assert [token.text for token, one in zip(items, whole, strict=True) if one] == ["edition", "the", "end"]


def test_across_two_texts_a_query_stands_for_the_word_behind_it_too(tokens) -> None:
    asking = made.tokens(["le", "chat", "de", "la", "dort"])
    weights = np.full((1, 2, 5, COUNT), 1 / COUNT)
    # `de`, with `la` behind it, and `le` before `chat`
    for head, query, weight in ((0, 2, 0.95), (1, 0, 0.9)):
        weights[0, head, query] = (1 - weight) / (COUNT - 1)
        weights[0, head, query, 2] = weight
    found = chosen(weights, asking, tokens, crosses=True, causal=False)
    assert (found.head, found.query, found.key) == (1, 0, 2)


def test_a_link_of_a_word_that_says_nothing_counts_half(tokens) -> None:
    weights = even()
    planted(weights, 1, 0, 9, 5, 0.95)
    planted(weights, 0, 1, 9, 2, 0.65)
    found = chosen(weights, tokens, tokens, **SEEN)
    assert (found.query, found.key) == (9, 2)
    weights[0, 1] = 1 / COUNT
    planted(weights, 0, 1, 9, 2, 0.3)
    found = chosen(weights, tokens, tokens, **SEEN)
    assert (found.query, found.key) == (9, 5)


def test_of_links_nearly_as_strong_the_deepest_layer_opens(tokens) -> None:
    weights = even(3, 1)
    for layer, weight in enumerate((0.8, 0.75, 0.3)):
        planted(weights, layer, 0, 9, 2, weight)
    assert chosen(weights, tokens, tokens, **SEEN).layer == 1


def test_nothing_opens_where_all_is_even_or_hardly_more(tokens) -> None:
    assert chosen(even(), tokens, tokens, **SEEN) is None
    weights = even()
    planted(weights, 0, 0, 9, 2, 0.16)
    assert chosen(weights, tokens, tokens, **SEEN) is None


def test_later_keys_of_a_decoder_are_masked_and_its_first_key_is_where_heads_rest(tokens) -> None:
    mask = np.tri(COUNT, dtype=bool)
    weights = np.where(mask, 1.0, 0.0) / mask.sum(axis=1, keepdims=True) * np.ones((1, 1, 1, 1))
    weights[0, 0, 9] = np.where(np.arange(COUNT) == 0, 1.0, 0.0)
    weights[0, 0, 8] = np.where(np.arange(COUNT) <= 8, 0.05, 0.0)
    weights[0, 0, 8, 2] = 0.6
    found = chosen(weights, tokens, tokens, crosses=False, causal=True)
    assert (found.query, found.key, found.even) == (8, 2, pytest.approx(1 / 9))


def test_across_two_texts_no_distance_is_taken_and_neighbours_are_links(tokens) -> None:
    asking = made.tokens(["the", "dog", "stood"])
    weights = np.full((1, 2, 3, COUNT), 1 / COUNT)
    weights[0, 1, 1] = 0.1 / (COUNT - 1)
    weights[0, 1, 1, 2] = 0.9
    found = chosen(weights, asking, tokens, crosses=True, causal=False)
    assert (found.head, found.query, found.key, found.distance) == (1, 1, 2, None)


def test_what_others_give_is_what_a_loop_finds() -> None:
    random = np.random.default_rng(3)
    weights, allowed = random.random((4, 6)), random.random((4, 6)) > 0.3
    explains = Explained.of(np.where(allowed, weights, 0.0)[None], crosses=False)
    assert np.array_equal(explains.allowed, allowed)
    distance, others = explains.distance[0], explains.others[0]
    for query, key in np.ndindex(4, 6):
        away = [
            weights[i, i + key - query]
            for i in range(4)
            if i != query and 0 <= i + key - query < 6 and allowed[i, i + key - query]
        ]
        if allowed[query, key]:
            same = [weights[i, key] for i in range(4) if i != query and allowed[i, key]]
            assert distance[query, key] == pytest.approx(np.mean(away) if away else np.nan, nan_ok=True)
            assert others[query, key] == pytest.approx(np.mean(same) if same else 0.0)


def test_pronouns_say_something_and_articles_do_not() -> None:
    said = [says_something(Token(0, name, name, (0, 1), 0)) for name in ("it", "cat", " The", "because")]
    assert said == [True, True, False, False]


@pytest.mark.parametrize(
    ("even", "least"), [(0.0, 0.0), (0.09, 0.18), (1 / 3, 2 / 3), (0.5, 0.75), (0.55, 0.775), (1.0, 1.0)]
)
def test_what_is_called_weight_is_twice_even_attention_and_can_be_reached_where_that_is_more_than_half(
    even: float, least: float
) -> None:
    assert much(even) == pytest.approx(least)
    assert even <= much(even) <= 1
