"""The sheets of a corpus and of two: every number beside its error, a link beside its distances."""

from dataclasses import replace

import made_corpus as made
import numpy as np
import pytest
from matplotlib.collections import QuadMesh

from attnscope.render.figure import figure_of
from attnscope.render.kit.numbers import give_or_take, number, signed, with_error
from attnscope.render.saving import content
from attnscope.render.sheet import measured
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets.corpora import ranked
from attnscope.render.sheets.corpora import sheet as corpora
from attnscope.render.sheets.corpus import held_out
from attnscope.render.sheets.corpus import sheet as corpus
from attnscope.results import Corpus


def grid(sheet: Sheet) -> HeadGrid:
    (block,) = [each for each in sheet.every if isinstance(each, HeadGrid)]
    return block


def rankings(sheet: Sheet) -> list[Ranking]:
    return [each for each in sheet.every if isinstance(each, Ranking)]


def row(found: Corpus, start: str, width: int = 100) -> list[str]:
    return next(line for line in found.text(width=width).splitlines() if line.startswith(start)).split()


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_line_is_wider_than_the_terminal_and_every_measure_has_one(width: int) -> None:
    for result in (made.corpus(), made.linked(), made.apart()):
        lines = result.text(width=width).splitlines()
        assert max(map(len, lines)) <= width
        for name in result.measures:
            assert any(name in line for line in lines)


def test_means_stand_beside_their_errors_and_what_was_set_aside_is_said() -> None:
    result = made.corpus()
    entropy = result.measures["entropy"]
    best = measured.ranked(entropy.scores)[0]
    assert entropy.values[best] == np.nanmin(entropy.values)
    mean, spread = number(float(entropy.values[best])), give_or_take(float(entropy.error[best]), None)
    named = f"L{result.layers[best[0]]} H{result.heads[best[1]]}"
    answer, middle = corpus(result).answer, number(float(np.nanmedian(entropy.values)))
    assert answer.startswith(f"{named} has the least entropy in nats of 12 heads, {mean} {spread} over 41")
    assert answer.endswith(f"the head in the middle has {middle}.")
    quantiles = [number(float(each[best])) for each in entropy.quantiles]
    assert row(made.corpus(), "entropy    ") == ["entropy", *named.split(), mean, spread, *quantiles]
    told = " ".join(result.text(width=140).split())
    assert "set aside 1: 1 since it is not valid UTF-8" in told
    assert "1 text cut to 64 tokens" in told
    assert "24 of 24 heads in 2 of 41 texts" in told
    assert any("FAILED" in each.get_text() for each in figure_of(made.corpus(failed=True)).texts)


def test_a_class_has_the_share_of_texts_in_place_of_an_error() -> None:
    result = made.corpus()
    result = replace(result, shown="pattern")
    pattern = result.measures["pattern"]
    assert pattern.agreement is not None
    block = grid(corpus(result))
    assert block.companion is not None
    assert block.companion.short(0, 0) == f"{pattern.agreement[0, 0]:.0%}".replace("%", " %")
    assert block.text(0, 0) == pattern.scores.class_of(0, 0)
    surest = np.unravel_index(np.argmax(pattern.agreement), pattern.agreement.shape)
    assert corpus(result).answer.startswith(
        f"Surest of 12 heads is L{result.layers[surest[0]]} H{result.heads[surest[1]]} of its pattern: "
    )
    assert np.isnan(pattern.error).all()
    assert len(row(result, "pattern    ")) == 6, "name, head, class and share: a class has no quantiles"


def test_a_link_stands_beside_its_distances_and_its_best_head_beside_texts_held_out() -> None:
    result = made.linked()
    link, place, gain = (result.measures[name] for name in ("link", "link-place", "link-gain"))
    best = measured.ranked(gain.scores)[0]
    assert gain.values[best] == np.nanmax(gain.values)
    first, _ = rankings(corpus(result))
    assert first.marks[0].at[0] == link.values[best]
    assert first.marks[1].at[0] == place.values[best]
    assert first.hidden == 12 - len(first.names)
    assert first.table["gain"].text(0) == signed(float(gain.values[best]), None)
    a, b = (np.unravel_index(np.nanargmax(each), each.shape) for each in gain.halves)
    expected = float(gain.halves[1][a] + gain.halves[0][b]) / 2
    found = held_out(result)
    assert found is not None
    assert found == pytest.approx((expected, float(gain.error[a] + gain.error[b]) / 2))
    assert corpus(result).answer.startswith(
        "This corpus cannot tell whether a head links VERB to NOUN beyond"
    )
    assert corpus(result).answer.endswith(f"give {with_error(*found)} on the other.")
    assert any("VERB→NOUN" in each.get_text() for each in figure_of(result).texts)


def gaining(heads: int, gain: float) -> Corpus:
    """So many of 12 heads gain, and the others lose, with an error of .02 and the same on both halves."""
    result = made.linked()
    own = result.measures["link-gain"]
    values = np.full(own.values.size, -gain)
    values[:heads] = gain
    values = values.reshape(own.values.shape)
    changed = replace(
        own,
        scores=replace(own.scores, values=values),
        error=np.full_like(values, 0.02),
        halves=np.array([values, values]),
    )
    return replace(result, measures={**result.measures, "link-gain": changed})


def test_a_link_is_one_where_the_gain_holds_on_other_texts_and_not_every_head_has_it() -> None:
    linked = corpus(gaining(2, 0.1)).answer
    assert linked.startswith("VERB words look at NOUN words more than distance alone explains: ")
    assert linked.endswith("; on texts held out +.100 ±.020); 2 of 12 heads do.")
    every = corpus(gaining(9, 0.1)).answer
    assert "9 of 12 heads do, so it may be the NOUN words: the control knows distances only" in every
    unsure = corpus(gaining(2, 0.03)).answer
    assert unsure.startswith("This corpus cannot tell whether a head links VERB to NOUN")
    few = gaining(2, 0.1)
    assert corpus(replace(few, read=replace(few.read, texts=8))).answer.endswith(" Only 8 texts.")


def test_a_picture_has_every_head_with_its_number_and_its_error() -> None:
    result = made.corpus()
    (axes, _bar) = figure_of(result).axes
    drawn = [each.get_text() for each in axes.texts]
    for place in np.ndindex(result.main.values.shape):
        assert number(float(result.main.values[place])) in drawn
        assert give_or_take(float(result.main.error[place]), None) in drawn
    (mesh,) = [each for each in axes.collections if isinstance(each, QuadMesh)]
    assert mesh.get_clim() == pytest.approx((0, 1.05 * np.nanmax(result.main.values)))


def test_two_corpora_are_ranked_by_errors_and_those_beyond_chance_stand_out() -> None:
    result = made.apart()
    scores, sheet = result.main, corpora(result)
    reached = [abs(scores.reached[place]) for place in ranked(scores)]
    assert reached == sorted(reached, reverse=True)
    first, measures = rankings(sheet)
    assert first.table["errors"].values == [float(scores.reached[place]) for place in ranked(scores)[:10]]
    assert [mark.at for mark in first.marks][-1] == [-scores.chance, scores.chance]
    assert measures.names == tuple(result.measures)
    errors = f"{number(scores.chance, 1)} standard errors, where luck alone gives 1. L"
    opening = "The corpora do not differ in entropy in nats: 0 of 12 heads by more than "
    assert sheet.answer.startswith(opening + errors)
    assert "tokens in the mean" not in sheet.answer, "both are as long"
    block = grid(sheet)
    assert np.nanmax(np.abs(scores.difference)) < 0.1  # so that two decimals would tell little
    assert block.text(1, 2) == signed(float(scores.difference[1, 2]), 3)
    assert block.companion is not None
    assert block.companion.short(1, 2) == f"{signed(float(scores.reached[1, 2]), 1)} se"
    assert not block.beyond[1]
    longer = replace(result.reads[1], tokens=2 * result.reads[1].tokens)
    told = corpora(replace(result, reads=(result.reads[0], longer))).answer
    assert told.endswith("Texts of A have 17.0 tokens in the mean, those of B 34.0: that alone may do it.")
    lower = replace(result, measures={"entropy": replace(scores, chance=1.0)})
    assert grid(corpora(lower)).beyond[1] == {
        place for place in np.ndindex(3, 4) if abs(scores.reached[place]) > 1
    }


def test_two_corpora_differ_where_more_heads_do_than_luck_gives() -> None:
    result = made.apart()
    scores = replace(result.main, chance=0.5)
    beyond = int((np.abs(scores.reached) > 0.5).sum())
    assert beyond > 1
    told = corpora(replace(result, measures={"entropy": scores})).answer
    assert told.startswith(
        f"{beyond} of 12 heads differ in entropy in nats by more than .5 standard errors, where"
    )
    alone = corpora(replace(result, measures={"entropy": replace(scores, chance=float("nan"))})).answer
    assert alone.startswith("One head is compared in entropy in nats: L")


def test_a_page_has_a_grid_of_every_measure_and_the_errors_under_the_pointer() -> None:
    result = made.corpus()
    page = content(result, ".html").decode()
    assert page.count("<figcaption>") == len(result.measures)
    assert f"standard error over texts {give_or_take(float(result.main.error[0, 0]), None)}" in page
    assert content(made.apart(), ".html").decode().count("<figcaption>") == len(made.apart().measures)
