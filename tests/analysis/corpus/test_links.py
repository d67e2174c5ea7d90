"""How much a head links two parts of speech, and how much their distances explain, against slow loops."""

import numpy as np
import pytest
import torch

from attnscope.analysis.claims.relations.answers import word_weights
from attnscope.analysis.corpus.links import links

TAGS = (("NOUN", "VERB", "NOUN", "ADJ"), ("VERB", "X", "X"), ("ADJ", "NOUN", "VERB"))
PIECES = torch.tensor(  # row word token: a word of two pieces, one without any, special tokens at both ends
    [
        [[0, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1, 0]],
        [[0, 1, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]],
        [[0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]],
    ]
).bool()


def slow(by_word: np.ndarray, tags: tuple[str, ...], there: list[int]) -> tuple[float, float]:
    """Link and place of one head in one text."""
    pairs = [(i, j) for i in there for j in there if i != j and (tags[i], tags[j]) == ("VERB", "NOUN")]
    if not pairs:
        return float("nan"), float("nan")
    queries = {i for i, _ in pairs}
    expected = 0.0
    for i, j in pairs:
        alike = [by_word[a, b] for a in there for b in there if a != b and b - a == j - i]
        expected += sum(alike) / len(alike)
    return sum(by_word[i, j] for i, j in pairs) / len(queries), expected / len(queries)


def test_links_are_those_of_the_slow_loop() -> None:
    weights = torch.softmax(2 * torch.randn(3, 2, 7, 7, generator=torch.Generator().manual_seed(1)), -1)
    found = links(weights, PIECES, TAGS, "VERB", "NOUN")
    by_word = word_weights(weights, PIECES).numpy()
    for row, tags in enumerate(TAGS):
        there = [i for i in range(len(tags)) if PIECES[row, i].any()]
        for head in range(2):
            link, place = slow(by_word[row, head], tags, there)
            expected = [link, place, link - place]
            assert found[row, :, head].tolist() == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert found[1].isnan().all()  # no noun
    assert found[2].isnan().all()  # a noun without a piece


def test_a_head_that_looks_to_a_place_alone_gains_nothing_and_one_that_seeks_nouns_does() -> None:
    tags = (("VERB", "NOUN", "X", "VERB", "X", "NOUN", "X", "X"),)
    pieces = torch.eye(8, dtype=torch.bool)[None]
    weights = torch.zeros(1, 2, 8, 8)
    weights[0, 0] = torch.eye(8).roll(1, 1)  # the next word, whatever it is
    weights[0, 1, :, 1] = weights[0, 1, :, 5] = 0.5  # the nouns, wherever they are
    link, place, gain = links(weights, pieces, tags, "VERB", "NOUN")[0].tolist()
    assert (link[0], place[0], gain[0]) == pytest.approx((0.5, 0.5, 0.0))
    assert link[1] == pytest.approx(1.0)
    assert gain[1] > 0.4
