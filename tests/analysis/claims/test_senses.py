"""One word in many texts against pairs that are counted one by one, and its forms."""

from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest

from attnscope.analysis.claims.comparison.senses import separation, together
from attnscope.analysis.claims.comparison.word import forms_in, stems
from attnscope.errors import InputError
from attnscope.results.claims.senses import splits_of
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
    assert found.exact
    assert (found.below == found.controls).all()
    assert found.p == found.least_p == 1 / 35
    assert (np.abs(found.control_mean) < 0.3).all()
    random = [separation(vectors(seed), LABELS, controls=200, seed=0).p for seed in range(60)]
    assert 0.4 < np.mean(random) < 0.7
    assert np.mean(np.array(random) <= 0.1) < 0.2


def by_permutations(labels: list[str]) -> set[tuple[bool, ...]]:
    """Which pairs of texts have one label, for every way to hand the labels out."""
    return {tuple(a == b for a, b in combinations(each, 2)) for each in permutations(labels)}


@pytest.mark.parametrize("labels", [LABELS, list("aabbcc"), list("aabbbc"), list("aaabbb")])
def test_few_texts_are_held_against_every_other_split_once(labels: list[str]) -> None:
    by_layer = [each[: len(labels)] for each in vectors()]
    found = separation(by_layer, labels, controls=1000, seed=0)
    every = by_permutations(labels)
    assert found.splits == splits_of(list(Counter(labels).values())) == len(every)
    pairs = list(combinations(range(len(labels)), 2))
    gaps = []
    for same in every:
        cosines = [[cosine(each[i], each[j]) for i, j in pairs] for each in by_layer]
        kept = np.array(same)
        gaps.append([np.mean(np.array(c)[kept]) - np.mean(np.array(c)[~kept]) for c in cosines])
    spread = np.maximum(np.std(gaps, axis=0), 0.02)
    excess = (np.array(gaps) - np.mean(gaps, axis=0)) / spread
    own = (found.gap - np.mean(gaps, axis=0)) / spread
    assert found.excess == pytest.approx(own)
    most = sorted(excess.max(axis=1))
    del most[next(i for i, each in enumerate(most) if each == pytest.approx(own.max()))]
    assert sorted(found.strongest) == pytest.approx(most)
    assert found.p == pytest.approx(np.mean(excess.max(axis=1) >= own.max() - 1e-9))


def test_the_best_layer_and_the_best_head_are_held_against_the_best_of_other_labels() -> None:
    found = separation(vectors(), LABELS, controls=300, seed=0)
    first = separation(vectors()[:1], LABELS, controls=300, seed=0)
    assert found.controls == first.controls
    assert (found.strongest > first.strongest - 1e-9).all()
    assert (found.strongest > first.strongest + 0.1).any()
    single = [each[:, :1] for each in vectors()]
    alone = separation(single, LABELS, controls=300, seed=0)
    assert alone.heads_strongest == pytest.approx(alone.strongest)
    assert alone.heads_p == alone.p


def test_more_splits_than_are_asked_for_are_shuffled_and_the_best_that_can_come_out_is_known() -> None:
    found = separation(vectors(), LABELS, controls=30, seed=0)
    assert not found.exact
    assert (found.controls, found.splits) == (30, 35)
    assert found.least_p == 1 / 31


def test_a_word_without_a_direction_is_no_evidence() -> None:
    nothing = separation([np.zeros((TEXTS, HEADS, DIM))], LABELS, controls=100, seed=0)
    assert nothing.p == nothing.heads_p == 1


def test_the_same_seed_shuffles_the_same_way() -> None:
    one, two, other = (separation(vectors(), LABELS, controls=20, seed=seed) for seed in (3, 3, 4))
    assert one.control_mean.tolist() == two.control_mean.tolist()
    assert one.control_mean.tolist() != other.control_mean.tolist()


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
