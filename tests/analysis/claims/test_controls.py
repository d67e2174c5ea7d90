"""Control texts keep a text's shape and its words, and break what a claim is about."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
import torch

from attnscope.analysis.claims.controls import batches, classes_of, control_texts, inputs_with
from attnscope.errors import InputError
from attnscope.tokens import Token, Tokens

MASK = 4


def tokens_of(*pieces: str) -> Tokens:
    """BERT's way: `[...]` is special, but for the mask; `##` goes on a word."""
    known = {"[CLS]": 1, "[SEP]": 2, "[MASK]": MASK}
    ids = {piece: known.get(piece, 10 + i) for i, piece in enumerate(dict.fromkeys(pieces))}
    items, word = list[Token](), -1
    for piece in pieces:
        word += not piece.startswith("##")
        special = piece in ("[CLS]", "[SEP]")
        text = piece.removeprefix("##")
        items.append(Token(ids[piece], piece, text, None, None if special else word, special=special))
    return Tokens((" ".join(pieces),), tuple(items))


SENTENCE = tokens_of(
    "[CLS]", "i", "was", "watch", "##ing", "the", "door", "when", "[MASK]", "open", "##ed", ",",
    "the", ".", "[SEP]",
)  # fmt: skip
DOOR, ASKED = 6, 8


def test_a_control_has_the_same_words_and_special_tokens_and_masks_in_their_place() -> None:
    found = control_texts(SENTENCE, mask_id=MASK, count=50, seed=3, moved=[DOOR])
    ids = np.array(SENTENCE.ids)
    assert found.ids.shape == (50, len(SENTENCE))
    for control, sources in zip(found.ids, found.sources, strict=True):
        assert Counter(control.tolist()) == Counter(SENTENCE.ids)
        assert (control[[0, ASKED, 14]] == ids[[0, ASKED, 14]]).all()
        assert (control == ids[sources]).all()
    assert len({control.tobytes() for control in found.ids}) == 50
    assert not (found.ids == ids).all(axis=1).any()


def test_tokens_change_places_within_their_class_alone() -> None:
    found = control_texts(SENTENCE, mask_id=MASK, count=80, seed=0)
    classes = np.array(classes_of(SENTENCE, MASK), dtype=object)
    assert (classes[found.sources] == classes).all()
    assert {classes[4], classes[10]} == {"pieces that go on a word"}
    assert {classes[11], classes[13]} == {"punctuation"}
    assert (found.sources[:, 4] == 10).any()  # and they do
    assert (found.sources[:, 11] == 13).any()
    assert "each among their own kind" in found.how


def test_what_asks_stays() -> None:
    found = control_texts(SENTENCE, mask_id=MASK, count=60, seed=1, kept=[9], moved=[5])
    assert (found.ids[:, 9] == SENTENCE.ids[9]).all()
    assert "the token that asks" in found.how


def test_a_text_is_one_of_its_own_orders_and_each_is_as_likely_as_any_other() -> None:
    """A control may have the word that is asked about at its place, as the text has."""
    short = tokens_of("[CLS]", "a", "b", "c", "d", "[SEP]")
    every = {*permutations(short.ids[1:5])}
    found = control_texts(short, count=100, moved=[2])
    orders = {tuple(control[1:5].tolist()) for control in found.ids}
    assert orders == every - {tuple(short.ids[1:5])}
    assert (len(found), found.wanted) == (23, 100)
    assert found.changed([2]).tolist() == [control[2] != short.ids[2] for control in found.ids.tolist()]
    assert found.changed([2]).sum() == 24 - 6
    assert found.changed([2, 1]).sum() == 24 - 2
    twice = [control_texts(short, count=1, seed=seed, moved=[2]).ids[0, 2] for seed in range(230)]
    kinds = Counter(int(each) for each in twice)
    assert kinds[short.ids[2]] == pytest.approx(230 * 5 / 23, abs=25)


def test_a_moved_token_of_a_class_that_is_small_changes_places_with_any() -> None:
    text = tokens_of("[CLS]", "watch", "##ing", "the", "door", "##s", "[SEP]")
    found = control_texts(text, count=10, moved=[2])
    assert {*found.sources[:, 2].tolist()} > {2, 5}
    assert "whatever their kind" in found.how
    apart = control_texts(text, count=10)
    assert {*apart.sources[:, 2].tolist()} == {2, 5}


def test_the_same_seed_gives_the_same_controls_and_another_one_others() -> None:
    first, again, other = (control_texts(SENTENCE, count=20, seed=seed).ids for seed in (5, 5, 6))
    assert (first == again).all()
    assert not (first == other).all()


@pytest.mark.parametrize(
    ("text", "moved"),
    [(tokens_of("[CLS]", "door", "[SEP]"), [1]), (tokens_of("[CLS]", "a", "a", "a", "[SEP]"), [2])],
)
def test_a_text_without_another_order_has_no_control(text: Tokens, moved: list[int]) -> None:
    with pytest.raises(InputError, match="too few words"):
        control_texts(text, count=5, moved=moved)


def test_a_special_token_that_is_asked_for_stays_where_it_is() -> None:
    found = control_texts(SENTENCE, mask_id=MASK, count=10, moved=[14])
    assert (found.ids[:, 14] == SENTENCE.ids[14]).all()


def test_a_batch_repeats_what_is_not_exchanged() -> None:
    inputs = {"input_ids": torch.tensor([[1, 7, 8]]), "attention_mask": torch.ones(1, 3), "use_cache": False}
    ids = np.array([[1, 8, 7], [1, 7, 7]])
    made = inputs_with(inputs, "input_ids", ids)
    assert made is not None
    assert made["input_ids"].tolist() == ids.tolist()
    assert made["attention_mask"].shape == (2, 3)
    assert made["use_cache"] is False
    packed = {"input_ids": inputs["input_ids"], "pixel_values": torch.ones(4, 3, 2, 2)}
    assert inputs_with(packed, "input_ids", ids) is None


def test_batches_hold_every_control_once() -> None:
    parts = list(batches(7, 10, at_once=35))
    assert [range(7)[part] for part in parts] == [range(3), range(3, 6), range(6, 7)]
    assert list(batches(2, 10**6)) == [slice(0, 1), slice(1, 2)]


THRICE = tokens_of("[CLS]", "sea", "hill", "sea", "road", "sea", "hill", "lamp", "moon", "[SEP]")


def links_of(tokens: Tokens) -> np.ndarray:
    """Each earlier place of a query's own word."""
    ids = tokens.ids
    return np.array([[q, k] for q in range(len(ids)) for k in range(1, q) if ids[q] == ids[k]])


def test_chance_moves_links_of_the_same_two_words_farther_than_those_of_different_words() -> None:
    found, links, places = control_texts(THRICE, count=6, seed=1), links_of(THRICE), [[i] for i in range(10)]
    assert len(links) == 4  # three of one word, one of another
    random = np.random.default_rng(0)
    drawn = random.standard_normal((20_000, 20, 20))  # one number for every pair of words, of no meaning

    def moved(ids: np.ndarray) -> float:
        return float(drawn[:, ids[links[:, 0]], ids[links[:, 1]]].mean(axis=1).std())

    expected = [moved(np.array(THRICE.ids)) / moved(ids) for ids in found.ids]
    wider = found.wider(places, places, links)
    assert wider == pytest.approx(np.maximum(expected, 1), rel=0.03)
    assert wider.max() > 1.5


def test_no_control_is_wider_where_no_two_words_are_linked_twice() -> None:
    text = tokens_of("[CLS]", "sea", "hill", "road", "sea", "hill", "road", "[SEP]")
    places = [[i] for i in range(len(text))]
    assert (control_texts(text, count=9).wider(places, places, links_of(text)) == 1).all()
    twice = tokens_of("[CLS]", "sea", "hill", "hill", "sea", "[SEP]")
    orders = control_texts(twice, count=9)
    links = np.array([[1, 2], [3, 4]])  # of two pairs of words here, of one and the same in two of the orders
    assert ((orders.ids[:, 1:3] == orders.ids[:, 3:5]).all(axis=1)).sum() == 2
    assert (orders.wider(places[:6], places[:6], links) == 1).all()
    pair = control_texts(SENTENCE, count=9, moved=[DOOR]).wider([[5, DOOR]], [[9, 10]], np.array([[0, 0]]))
    assert (pair == 1).all()
