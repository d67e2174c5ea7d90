"""Two runs, and one word in many texts: divergences by hand, pairs counted one by one, controls."""

import json
import math
from collections import Counter
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import cases_difference as made
import made_results
import numpy as np
import pytest

import attnscope as at
from attnscope.errors import InputError
from attnscope.results import Difference
from attnscope.tokens import Token, Tokens
from attnscope.verbs.compare.difference import Picked, difference, matrices_in
from attnscope.verbs.compare.texts_result import splits_of
from attnscope.verbs.compare.words import forms_in, separation, stems, together


def by_hand(a: list[float], b: list[float]) -> float:
    """Jensen-Shannon divergence in nats, term by term."""
    total = 0.0
    for x, y in zip(a, b, strict=True):
        middle = (x + y) / 2
        total += sum(z / 2 * math.log(z / middle) for z in (x, y) if z > 0)
    return total


def two(a: list[list[float]], b: list[list[float]], tolerance: float = 1e-6) -> Difference:
    head = made_results.head(["one", "two"])
    runs = [
        replace(matrices_in(head, "x"), weights={(2, 5): np.array(each)}, tolerances={(2, 5): tolerance})
        for each in (a, b)
    ]
    return difference(*runs)


def test_rows_and_heads_are_apart_as_worked_by_hand_and_what_a_sink_takes_is_one_more_key() -> None:
    found = two([[0.5, 0.5], [1.0, 0.0]], [[0.9, 0.1], [0.0, 1.0]])
    rows = [by_hand([0.5, 0.5], [0.9, 0.1]), math.log(2)]
    assert found.rows[0].tolist() == pytest.approx(rows)
    assert found.divergences[0] == pytest.approx(sum(rows) / 2)
    assert found.signed.tolist() == [pytest.approx([0.4, -0.4]), [-1.0, 1.0]]
    assert (found.largest[0], found.rounding[0]) == (1.0, 2e-6)
    found = two([[0.5, 0.1], [0.5, 0.5]], [[0.2, 0.1], [0.5, 0.5]])
    assert found.rows[0].tolist() == pytest.approx([by_hand([0.5, 0.1, 0.4], [0.2, 0.1, 0.7]), 0.0])


def test_a_query_without_a_key_is_left_out_and_one_that_only_one_run_answers_is_no_rounding() -> None:
    none = [math.nan, math.nan]
    both = two([none, [0.5, 0.5]], [none, [0.4, 0.6]])
    assert np.isnan(both.rows[0]).tolist() == [True, False]
    assert both.divergences[0] == pytest.approx(by_hand([0.5, 0.5], [0.4, 0.6]))
    assert both.largest[0] == pytest.approx(0.1)
    assert two([none, [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]]).largest[0] == math.inf


def test_a_difference_below_both_tolerances_is_told_as_rounding() -> None:
    assert two([[0.5, 0.5]] * 2, [[0.5 + 1.9e-6, 0.5 - 1.9e-6]] * 2).within_rounding == 1
    assert two([[0.5, 0.5]] * 2, [[0.5 + 2.1e-6, 0.5 - 2.1e-6]] * 2).within_rounding == 0
    assert "within rounding" in two([[0.5, 0.5]] * 2, [[0.5 + 1.9e-6, 0.5 - 1.9e-6]] * 2).text()


def test_heads_are_ranked_and_the_control_is_the_median_of_neighbours() -> None:
    a, b = made.run(0), made.run(1)
    found = made.between()
    own = {
        place: np.mean(
            [by_hand(x, y) for x, y in zip(a.weights[place].tolist(), b.weights[place].tolist(), strict=True)]
        )
        for place in a.weights
    }
    order = sorted(own, key=lambda place: -own[place])
    assert [found.pairs[i][:2] for i in found.ranking] == order
    assert found.pairs[found.shown][:2] == order[0]
    neighbours = [
        np.mean(
            [
                by_hand(x, y)
                for x, y in zip(a.weights[i, j].tolist(), a.weights[i, j + 1].tolist(), strict=True)
            ]
        )
        for i in range(3)
        for j in range(3)
    ]
    assert found.unlike == pytest.approx(np.median(neighbours))


def test_a_run_beside_itself_is_the_same_to_the_bit() -> None:
    found = difference(made.run(), made.run())
    assert (found.within_rounding, found.other_tokens) == (len(found.pairs), 0)
    assert not found.divergences.any()
    assert "each of 12 heads, to the last bit" in found.text()
    run = made.run()
    found = difference(run, run, Picked((1,), (2,), 0, 3))
    assert found.pairs == ((1, 2, 0, 3),)
    assert found.signed == pytest.approx(run.weights[0, 3] - run.weights[1, 2])
    assert "L1 H2 and L0 H3" in found.text()


@pytest.mark.parametrize(
    ("picked", "why"),
    [
        (Picked(layers=(7,)), "no such head in the first run: it has layers 0-2, heads 0-3"),
        (Picked(layers=(1,), layer_b=9), "no L9 H0 in the second run"),
    ],
)
def test_heads_that_are_not_there_are_refused(picked: Picked, why: str) -> None:
    with pytest.raises(InputError, match=why):
        difference(made.run(), made.run(), picked)


def test_runs_without_a_head_in_common_or_with_other_lengths_are_refused() -> None:
    a, b = made.run(), made.run()
    other = replace(b, weights={(9, 9): b.weights[0, 0], (9, 8): b.weights[0, 1]})
    with pytest.raises(InputError, match="no head is in both runs: the first has layers 0-2"):
        difference(a, other)
    short = matrices_in(made_results.head(["one", "two"]), "x")
    with pytest.raises(InputError, match="as many tokens"):
        difference(a, short)
    with pytest.raises(InputError, match="holds no weights of heads"):
        matrices_in(made_results.verification(), "v.npz")


def test_files_are_compared_by_the_library_and_by_the_command(tmp_path: Path, monkeypatch) -> None:
    from typer.testing import CliRunner

    from attnscope.cli.app import app

    a, b = (made_results.overview(3, 4).save(tmp_path / f"{name}.npz") for name in "ab")
    assert at.difference(a, b).within_rounding == 12
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str):
        return CliRunner().invoke(app, ["compare", *arguments], env={"COLUMNS": "80", "TERM": "dumb"})

    shown = run("a.npz", "b.npz", "-o", "c.json", "-o", "c.png")
    assert shown.exit_code == 0, shown.stderr
    assert "each of 12 heads" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert json.loads((tmp_path / "c.json").read_text("utf-8"))["looked_at"] == 12
    for arguments, why in (
        (("a.npz",), "compare a stored run with another one"),
        (("a.npz", "hello"), "'a.npz' is a stored run and the other is not"),
        (("a.npz", "b.npz", "--word", "x"), "leave --word out"),
        (("a.npz", "none.npz"), "no such file"),
        (("a text", "another"), "missing option '--word': name the word"),
        (("a text", "another", "--word", "text", "--head-b", "1"), "--head-b is of stored runs"),
    ):
        refused = run(*arguments)
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
        assert why in refused.stderr


def test_a_file_and_a_table_hold_the_numbers(tmp_path: Path) -> None:
    found = made.between()
    again = at.open(found.save(tmp_path / "d.json"))
    assert "✓ certified: both runs" in found.text(width=100)
    assert "○ as stored, not checked here: both runs" in again.text(width=100)
    told = json.loads((tmp_path / "d.json").read_text("utf-8"))["ranking"]
    assert [each["divergence"] for each in told] == sorted(found.divergences.tolist(), reverse=True)
    frame = found.to_pandas()
    assert frame[frame.fact == "weight"].value.tolist() == found.signed.ravel().tolist()


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
    nothing = separation([np.zeros((TEXTS, HEADS, DIM))], LABELS, controls=100, seed=0)
    assert nothing.p == nothing.heads_p == 1


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


def test_the_best_layer_and_the_best_head_are_held_against_the_best_of_other_labels() -> None:
    found = separation(vectors(), LABELS, controls=300, seed=0)
    first = separation(vectors()[:1], LABELS, controls=300, seed=0)
    assert found.controls == first.controls
    assert (found.strongest > first.strongest - 1e-9).all()
    assert (found.strongest > first.strongest + 0.1).any()
    alone = separation([each[:, :1] for each in vectors()], LABELS, controls=300, seed=0)
    assert alone.heads_strongest == pytest.approx(alone.strongest)
    assert alone.heads_p == alone.p
    few = separation(vectors(), LABELS, controls=30, seed=0)  # more splits than are asked for: shuffled
    assert (few.exact, few.controls, few.splits, few.least_p) == (False, 30, 35, 1 / 31)


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


@pytest.mark.parametrize(
    ("labels", "message"), [(["a"] * TEXTS, "two groups are needed"), (list("abcdefg"), "no two texts")]
)
def test_labels_that_part_nothing_are_refused(labels: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        separation(vectors(), labels, controls=5, seed=0)


def test_forms_of_a_word_share_a_stem_and_other_words_do_not() -> None:
    for word, form in (("bank", "banks"), ("bank", "banking"), ("story", "stories"), ("live", "lived")):
        assert stems(word) & stems(form), word
    for word, other in (("was", "wa"), ("bus", "bu"), ("bank", "blank")):
        assert not stems(word) & stems(other), word


def sentence(*words: str) -> Tokens:
    return Tokens((), tuple(Token(i, word, word, (0, 1), i) for i, word in enumerate(words)))


def test_a_form_is_looked_for_only_where_the_word_itself_is_not() -> None:
    assert forms_in(sentence("the", "banks", "of", "a", "river"), "bank") == [1]
    assert forms_in(sentence("the", "bank", "and", "banks"), "bank") == []
    assert forms_in(sentence("banks", "and", "banking"), "bank") == [0, 2]
    assert forms_in(sentence("a", "3"), "3") == []
