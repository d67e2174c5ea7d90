"""Control texts keep words and break what a claim is about; links held against them by a plain count."""

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
import torch

from attnscope.analysis.controls import batches, classes_of, control_texts, inputs_with
from attnscope.errors import InputError
from attnscope.results.base.evidence import LEAST
from attnscope.tokens import Token, Tokens
from attnscope.verbs.find.answer import Read, in_order, telling_links

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


def test_tokens_change_places_within_their_class_alone_and_what_asks_stays() -> None:
    found = control_texts(SENTENCE, mask_id=MASK, count=80, seed=0)
    classes = np.array(classes_of(SENTENCE, MASK), dtype=object)
    assert (classes[found.sources] == classes).all()
    assert {classes[4], classes[10]} == {"pieces that go on a word"}
    assert {classes[11], classes[13]} == {"punctuation"}
    assert (found.sources[:, 4] == 10).any()  # and they do
    assert (found.sources[:, 11] == 13).any()
    assert "each among their own kind" in found.how
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


@pytest.mark.parametrize(
    ("text", "moved"),
    [(tokens_of("[CLS]", "door", "[SEP]"), [1]), (tokens_of("[CLS]", "a", "a", "a", "[SEP]"), [2])],
)
def test_a_text_without_another_order_has_no_control(text: Tokens, moved: list[int]) -> None:
    with pytest.raises(InputError, match="too few words"):
        control_texts(text, count=5, moved=moved)


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


LAYERS, HEADS, SIZE = 2, 3, 7


def _tokens(names: Sequence[str]) -> Tokens:
    special = {"[CLS]", "[SEP]"}
    return Tokens(
        (" ".join(names),),
        tuple(
            Token(sum(map(ord, name)), name, name, None, i, 0, special=name in special)
            for i, name in enumerate(names)
        ),
    )


def _texts(count: int, causal: bool, seed: int) -> list[Read]:
    random = np.random.default_rng(seed)
    tokens, read = _tokens(["[CLS]", "red", "fox", "saw", "blue", "dog", "."]), list[Read]()
    for number in range(count):
        weights = random.dirichlet(np.full(SIZE, 0.2), (LAYERS, HEADS, SIZE))
        if causal:
            weights = np.tril(weights)
            weights /= weights.sum(-1, keepdims=True)
        order = np.array([0, *(1 + random.permutation(5)), 6]) if number else np.arange(SIZE)
        moved = in_order(tokens, order)
        read.append(Read(weights, moved, moved))
    return read


def _plainly(texts: list[Read], of: int, causal: bool) -> dict[tuple[int, ...], float]:
    """The evidence of every link of one text, straight from the words that define it."""
    mine, found = texts[of], dict[tuple[int, ...], float]()
    ids = [token.id for token in mine.keys.items]
    words = [token.text.isalpha() and not token.special for token in mine.keys.items]
    for layer in range(LAYERS):
        allowed = [[any(mine.weights[layer, h, q, k] > 0 for h in range(HEADS)) for k in range(SIZE)]
                   for q in range(SIZE)]  # fmt: skip
        for head in range(HEADS):
            seen = mine.weights[layer, head]
            for q in range(SIZE):
                for k in range(SIZE):
                    near = abs(q - k) < 2 or ids[q] == ids[k] or (causal and k == 0)
                    if near or not (words[q] and words[k] and allowed[q][k]):
                        continue
                    away = [seen[a, a + k - q] for a in range(SIZE) if a != q and 0 <= a + k - q < SIZE
                            and allowed[a][a + k - q]]  # fmt: skip
                    same = [seen[a, k] for a in range(SIZE) if a != q and allowed[a][k]]
                    others = [each.weights[layer, head, q, k] for i, each in enumerate(texts) if i != of]
                    most = max(max(others), np.mean(same or [0]), 1 / sum(allowed[q]),
                               np.mean(away) if away else 0)  # fmt: skip
                    found[layer, head, q, k] = seen[q, k] - most
    return found


@pytest.mark.parametrize("causal", [False, True])
def test_every_text_is_held_against_all_the_others(causal: bool) -> None:
    texts = _texts(6, causal, seed=5)
    seen = telling_links(iter(texts), crosses=False, causal=causal)
    expected = {place: left for place, left in _plainly(texts, 0, causal).items() if left >= LEAST}
    assert expected, "the specimen has links with evidence"
    assert {(each.layer, each.head, each.query, each.key) for each in seen.links} == set(expected)
    for each in seen.links:
        assert each.evidence == pytest.approx(expected[each.layer, each.head, each.query, each.key])
    assert [each.evidence for each in seen.links] == sorted(
        (each.evidence for each in seen.links), reverse=True
    )
    best = [max(0.0, *_plainly(texts, i, causal).values()) for i in range(1, len(texts))]
    assert seen.best == pytest.approx(best)


def test_a_link_that_every_order_has_is_none() -> None:
    texts = _texts(5, False, seed=2)
    always = np.full((LAYERS, HEADS, SIZE, SIZE), 0.02)
    always[1, 2, 5, 2] = 0.88
    same = [Read(always, each.queries, each.keys) for each in texts]
    assert telling_links(iter(same), crosses=False, causal=False).links == ()
    others = [Read(np.full_like(always, 0.02), each.queries, each.keys) for each in texts[1:]]
    alone = telling_links(iter([same[0], *others]), crosses=False, causal=False)
    assert [(each.layer, each.head, each.query, each.key) for each in alone.links] == [(1, 2, 5, 2)]
    assert not alone.best.any()


def test_of_texts_that_differ_by_chance_the_first_is_seldom_clearest() -> None:
    """All orders are alike: the share of them with as clear a link is as often small as large."""
    shares = []
    for seed in range(60):
        seen = telling_links(iter(_texts(20, False, seed)), crosses=False, causal=False)
        mine = seen.links[0].evidence if seen.links else 0.0
        shares.append((1 + (seen.best >= mine).sum()) / 20)
    assert 0.35 < np.mean(shares) < 0.7
    assert np.mean(np.array(shares) <= 0.05) < 0.2
