"""One word in many texts against pairs that are counted one by one, and its forms."""

from itertools import combinations

import numpy as np
import pytest

from attnscope.analysis.claims.comparison.senses import separation, together
from attnscope.analysis.claims.comparison.word import forms_in, stems
from attnscope.errors import InputError
from attnscope.tokens import Token, Tokens

TEXTS, HEADS, DIM, LAYERS = 7, 3, 4, 2
LABELS = ["river", "money", "river", "money", "money", "river", "river"]


def vectors(seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.normal(size=(TEXTS, HEADS, DIM)) for _ in range(LAYERS)]


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float((a.ravel() @ b.ravel()) / (np.linalg.norm(a) * np.linalg.norm(b)))


def test_cosines_within_and_between_are_those_of_pairs_counted_one_by_one() -> None:
    by_layer = vectors()
    found = separation(by_layer, LABELS, controls=5, seed=0)
    for layer, each in enumerate(by_layer):
        pairs = list(combinations(range(TEXTS), 2))
        same = [cosine(each[i], each[j]) for i, j in pairs if LABELS[i] == LABELS[j]]
        other = [cosine(each[i], each[j]) for i, j in pairs if LABELS[i] != LABELS[j]]
        assert found.within[layer] == pytest.approx(np.mean(same))
        assert found.between[layer] == pytest.approx(np.mean(other))
        for head in range(HEADS):
            own = [cosine(each[i, head], each[j, head]) for i, j in pairs if LABELS[i] == LABELS[j]]
            assert found.heads_within[layer, head] == pytest.approx(np.mean(own))
        assert together(each)[1, 4] == pytest.approx(cosine(each[1], each[4]))


def test_groups_that_lie_apart_beat_shuffled_labels_and_random_ones_do_not() -> None:
    by_layer = vectors()
    river = np.array([label == "river" for label in LABELS])
    for each in by_layer:
        each[river] += 5
        each[~river] -= 5
    found = separation(by_layer, LABELS, controls=500, seed=1)
    assert (found.gap > 1).all()
    assert (found.percentile > 90).all()  # of 35 labelings one is the real one
    assert (found.percentile < 100).all()  # shuffling meets it too
    assert (np.abs(found.chance) < 0.3).all()
    random = [separation(vectors(seed), LABELS, controls=200, seed=0).percentile[0] for seed in range(8)]
    assert 20 < np.mean(random) < 80


def test_the_best_head_is_held_against_the_best_of_shuffled_labels() -> None:
    found = separation(vectors(), LABELS, controls=300, seed=0)
    assert (found.best_chance > found.chance).all()
    single = [each[:, :1] for each in vectors()]
    alone = separation(single, LABELS, controls=300, seed=0)
    assert alone.best_percentile == pytest.approx(alone.percentile)


def test_the_same_seed_shuffles_the_same_way() -> None:
    one, two, other = (separation(vectors(), LABELS, controls=50, seed=seed) for seed in (3, 3, 4))
    assert one.chance.tolist() == two.chance.tolist()
    assert one.chance.tolist() != other.chance.tolist()


@pytest.mark.parametrize(
    ("labels", "message"), [(["a"] * TEXTS, "two groups are needed"), (list("abcdefg"), "no two texts")]
)
def test_labels_that_part_nothing_are_refused(labels: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        separation(vectors(), labels, controls=5, seed=0)


@pytest.mark.parametrize(
    ("word", "form"),
    [("bank", "banks"), ("banks", "Bank"), ("bank", "banking"), ("story", "stories"), ("live", "lived")],
)
def test_forms_of_a_word_share_a_stem(word: str, form: str) -> None:
    assert stems(word) & stems(form)


@pytest.mark.parametrize(("word", "other"), [("was", "wa"), ("bus", "bu"), ("bank", "blank"), ("his", "hi")])
def test_other_words_do_not(word: str, other: str) -> None:
    assert not stems(word) & stems(other)


def sentence(*words: str) -> Tokens:
    return Tokens((), tuple(Token(i, word, word, (0, 1), i) for i, word in enumerate(words)))


def test_a_form_is_looked_for_only_where_the_word_itself_is_not() -> None:
    assert forms_in(sentence("the", "banks", "of", "a", "river"), "bank") == [1]
    assert forms_in(sentence("the", "bank", "and", "banks"), "bank") == []
    assert forms_in(sentence("banks", "and", "banking"), "bank") == [0, 2]
    assert forms_in(sentence("a", "3"), "3") == []
