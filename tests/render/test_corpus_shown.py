"""A corpus on the terminal and in a picture: every number beside its error, a link beside its distances."""

import made_corpus as made
import numpy as np
import pytest

from attnscope.render.corpus.words import error_text, held_out, ranked, small
from attnscope.render.figure import figure_of


def words(width: int, **how: bool) -> str:
    return " ".join(made.corpus(**how).text(width=width).split())


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_line_is_wider_than_the_terminal_and_every_measure_has_one(width: int) -> None:
    for result in (made.corpus(), made.linked(), made.apart()):
        lines = result.text(width=width).splitlines()
        assert max(map(len, lines)) <= width
        for name in result.measures:
            assert any(line.startswith(name) for line in lines)


def test_means_stand_beside_their_errors_and_what_was_set_aside_is_said() -> None:
    result, told = made.corpus(), words(140)
    entropy = result.measures["entropy"]
    i, j = ranked(entropy.scores)[0]
    assert entropy.values[i, j] == np.nanmin(entropy.values)
    line = next(each for each in result.text(width=140).splitlines() if each.startswith("entropy  "))
    assert f"L{result.layers[i]} H{result.heads[j]}" in line
    assert f"{entropy.values[i, j]:.2f}" in line
    assert f"±{small(float(entropy.error[i, j]))}" in line
    assert f"{entropy.quantiles[2, i, j]:.2f}" in line
    assert "set aside 1: 1 since it is not valid UTF-8" in told
    assert "1 text cut to 64 tokens" in told
    assert "24 of 24 heads in 2 of 41 texts" in told
    assert any("FAILED" in each.get_text() for each in figure_of(made.corpus(failed=True)).texts)


def test_a_class_has_the_share_of_texts_in_place_of_an_error() -> None:
    pattern = made.corpus().measures["pattern"]
    assert pattern.agreement is not None
    assert error_text(pattern, (0, 0)) == f"{pattern.agreement[0, 0]:.0%}"
    counts = [(pattern.quantiles[:, 0, 0] == each).any() for each in range(4)]
    assert any(counts)
    assert np.isnan(pattern.error).all()


def test_a_link_stands_beside_its_distances_and_its_best_head_beside_texts_held_out() -> None:
    result = made.linked()
    link, place, gain = (result.measures[name] for name in ("link", "link-place", "link-gain"))
    best = ranked(gain.scores)[0]
    assert gain.values[best] == np.nanmax(gain.values)
    row = next(each for each in result.text().splitlines() if each.startswith("L") and "±" in each)
    assert f"{link.values[best]:.2f}" in row
    assert f"{place.values[best]:.2f}" in row
    first, second = (np.unravel_index(np.nanargmax(each), each.shape) for each in gain.halves)
    expected = (gain.halves[1][first] + gain.halves[0][second]) / 2
    assert held_out(result).endswith(f"gain {'-' if expected < 0 else '+'}{small(abs(float(expected)))}")
    assert any("VERB→NOUN" in each.get_text() for each in figure_of(result).texts)


def test_a_picture_has_every_head_with_its_number_and_its_error() -> None:
    result = made.corpus()
    axes = figure_of(result).axes[0]
    drawn = [each.get_text() for each in axes.texts]
    for place in np.ndindex(result.main.values.shape):
        assert f"{result.main.values[place]:.2f}" in drawn
        assert error_text(result.main, (place[0], place[1])) in drawn
    apart = made.apart()
    drawn = [each.get_text() for each in figure_of(apart).axes[0].texts]
    assert f"{apart.main.difference[1, 2]:+.2f}" in drawn
    assert f"{apart.main.reached[1, 2]:+.1f} se" in drawn


def test_small_numbers_keep_two_digits_that_tell() -> None:
    given = (0.0, 0.0214, 0.1, 1.25, 12.3, 0.00021, 4321.0)
    assert [small(each) for each in given] == ["0", ".021", ".10", "1.2", "12", "2.1e-4", "4.3e3"]
