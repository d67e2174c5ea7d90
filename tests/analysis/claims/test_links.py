"""Links held against the same words in other orders, beside a plain count over all texts and pairs."""

from collections.abc import Sequence

import cases_links
import numpy as np
import pytest

from attnscope.analysis.claims.finding.links import Read, in_order, telling_links
from attnscope.results.base.evidence import LEAST
from attnscope.results.claims.links import Links
from attnscope.tokens import Token, Tokens

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
    once = np.full_like(always, 0.02)
    alone = telling_links(iter([same[0], *(Read(once, each.queries, each.keys) for each in texts[1:])]),
                          crosses=False, causal=False)  # fmt: skip
    (link,) = alone.links
    assert (link.layer, link.head, link.query, link.key) == (1, 2, 5, 2)
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


def test_links_stand_out_by_how_many_controls_have_as_clear_a_one() -> None:
    assert cases_links.links().standing_out == 2
    assert cases_links.links(as_clear=1).standing_out == 0
    assert cases_links.links(as_clear=1).p == pytest.approx(2 / 21)
    assert cases_links.links(found=0).p == 1.0
    few: Links = cases_links.links(controls=18)
    assert few.few
    assert few.standing_out == 0
