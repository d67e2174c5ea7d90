"""The sheets of a corpus and of two: every number beside its error, a link beside its distances."""

from dataclasses import replace
from typing import Any

import made_corpus as made
import numpy as np
import pytest
from cases_corpora import differing
from cases_corpus import flat
from matplotlib.collections import QuadMesh

from attnscope.render.figure import figure_of
from attnscope.render.focus import Focus
from attnscope.render.kit.numbers import cell, give_or_take, number, signed, signed_cell, with_error
from attnscope.render.kit.words.command import Typed, as_typed, runs
from attnscope.render.saving import content
from attnscope.render.sheet import measured
from attnscope.render.sheet.blocks import Curve, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets.corpora import ranked
from attnscope.render.sheets.corpora import sheet as corpora
from attnscope.render.sheets.corpus import sheet as corpus
from attnscope.render.terminal.sheet import written
from attnscope.results import Corpus, Verdict
from attnscope.results.base.parts import Damaged


def grid(sheet: Sheet) -> HeadGrid:
    (block,) = [each for each in sheet.every if isinstance(each, HeadGrid)]
    return block


def rankings(sheet: Sheet) -> list[Ranking]:
    """All but the texts that lie furthest from a mean."""
    return [each for each in sheet.every if isinstance(each, Ranking) and each.of != "text"]


def row(text: str, start: str) -> list[str]:
    return next(line for line in text.splitlines() if line.startswith(start)).split()


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_line_is_wider_than_the_terminal_and_every_measure_has_one(width: int) -> None:
    for result in (made.corpus(), made.linked(), made.apart()):
        assert max(map(len, result.text(width=width).splitlines())) <= width
        lines = written(result, Focus(verbose=True, in_nats=True), width=width).splitlines()
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
    quantiles = [number(float(each[best])) for each in entropy.quantiles]
    in_nats = written(result, Focus(in_nats=True), width=100)
    assert row(in_nats, "entropy    ") == ["entropy", *named.split(), mean, spread, *quantiles]
    tokens = [cell(float(np.exp(each[best])), 1) for each in entropy.quantiles]
    own = cell(float(np.exp(entropy.values[best])), 1)
    spread = give_or_take(float(np.exp(entropy.values[best]) * entropy.error[best]), None)
    in_tokens = row(result.text(width=100), "tokens looked at")
    assert in_tokens == ["tokens", "looked", "at", *named.split(), own, spread, *tokens]
    told = " ".join(result.text(width=140).split())
    assert "set aside 1: 1 since it is not valid UTF-8" in told
    assert "1 text cut to 64 tokens" in told
    assert "12 of 12 heads recomputed, equal to the model's, in each of 2 of 41 texts" in told
    assert any("FAILED" in each.get_text() for each in figure_of(made.corpus(failed=True)).texts)


def test_an_entropy_is_shown_as_so_many_tokens_unless_it_was_asked_for() -> None:
    result = made.corpus()
    tokens, nats = (grid(corpus(result, Focus(in_nats=asked))) for asked in (False, True))
    np.testing.assert_allclose(tokens.values, np.exp(nats.values))
    assert tokens.title.startswith("tokens each head looks at")
    assert "up to 64" in tokens.title
    assert tokens.companion is not None
    assert nats.companion is not None
    grown = float(np.exp(result.main.values[1, 2]) * result.main.error[1, 2])
    assert tokens.companion.short(1, 2) == give_or_take(grown, None)
    assert nats.companion.short(1, 2) == give_or_take(float(result.main.error[1, 2]), None)


def test_of_all_measures_the_usual_ones_are_told_and_the_others_counted() -> None:
    result = made.corpus()
    every = {**result.measures}
    own = every["previous"]
    for name in ("next", "first", "special-tokens", "fixed", "same"):
        scores = replace(own.scores, description=replace(own.scores.description, name=name))
        every[name] = replace(own, scores=scores)
    whole = replace(result, measures=every)
    (few,), (all_of_them,) = (rankings(corpus(whole, Focus(verbose=verbose))) for verbose in (False, True))
    assert few.names == ("tokens looked at", "previous", "next", "first", "special-tokens", "fixed")
    assert few.unshown == "and 4 measures more (-v)"
    assert len(all_of_them.names) == 10
    assert not all_of_them.hidden
    (moved,) = rankings(corpus(replace(whole, shown="moved")))
    assert "moved" in moved.names, "what is looked at is told whatever it is"
    (asked,) = rankings(corpus(result))
    assert len(asked.names) == len(result.measures), "without some of the usual ones, it was asked for these"


def test_it_leads_on_to_what_runs_with_the_file_that_was_read() -> None:
    result = made.corpus()
    leads = corpus(nowhere_whole(result)).next
    assert leads is not None
    assert not runs(leads.command), "which file that was is not known here"
    with as_typed(Typed(("'a corpus.txt'", "--limit 8"))):
        opened, link = corpus(result).next, corpus(made.linked()).next
        sink = corpus(nowhere_whole(result)).next
        tagged = corpus(replace(result, read=replace(result.read, files=("dev.conllu",)))).next
        alone = corpus(replace(nowhere_whole(result), measures={"entropy": result.main})).next
        many = replace(result.read, files=("a.txt", "b.txt"), digests=("1", "2"))
        assert corpus(replace(nowhere_whole(result), read=many)).next is None
    start = "attnscope corpus 'a corpus.txt' --limit 8 -m bert-base-uncased"
    told = [
        None if each is None else each.command.removeprefix(start) for each in (sink, link, tagged, alone)
    ]
    assert told == [
        " --measure sink", " --from-pos NOUN --to-pos VERB", " --from-pos VERB --to-pos NOUN", "",
    ]  # fmt: skip
    assert sink is not None
    assert runs(sink.command)
    best = measured.ranked(result.main.scores)[0]
    (number, *_) = [each for each, _ in result.main.furthest(best) if result.texts[each].whole]
    assert opened is not None
    assert runs(opened.command)
    assert opened.command == (
        f"attnscope heads '{result.texts[number].text}' -m bert-base-uncased "
        f"--layer {result.layers[best[0]]} --head {result.heads[best[1]]}"
    )


def nowhere_whole(result: Corpus) -> Corpus:
    """The same as if every text were too long to be kept."""
    return replace(result, texts=tuple(replace(each, whole=False) for each in result.texts))


def test_a_class_has_the_share_of_texts_in_place_of_an_error() -> None:
    result = made.corpus()
    result = replace(result, shown="pattern")
    pattern = result.measures["pattern"]
    assert pattern.agreement is not None
    block = grid(corpus(result))
    assert block.companion is not None
    assert block.companion.short(0, 0) == f"{pattern.agreement[0, 0]:.0%}".replace("%", " %")
    assert block.text(0, 0) == pattern.scores.class_of(0, 0)
    named = [pattern.scores.class_of(*place) for place in np.ndindex(pattern.values.shape)]
    assert f"{max(map(named.count, named))} of 12 heads" in corpus(result).answer
    assert np.isnan(pattern.error).all()
    assert not corpus(result).control, "no half of the texts is looked at"
    assert len(row(result.text(width=100), "pattern    ")) == 6, (
        "name, head, class and share: a class has no quantiles"
    )


def test_a_link_stands_beside_its_distances_and_its_best_head_beside_texts_held_out() -> None:
    result = made.linked()
    link, place, gain = (result.measures[name] for name in ("link", "link-distance", "link-gain"))
    best = measured.ranked(gain.scores)[0]
    assert gain.values[best] == np.nanmax(gain.values)
    (first,) = rankings(corpus(result))
    reach, dot, ring = first.marks
    assert (dot.at[0], ring.at[0]) == (link.values[best], place.values[best])
    off = 1.959963984540054 * float(gain.error[best])
    assert reach.ends(0) == pytest.approx([float(link.values[best]) - off, float(link.values[best]) + off])
    assert first.hidden == 12 - len(first.names)
    assert first.table["above_control"].text(0) == signed(float(gain.values[best]), None)
    a, b = (np.unravel_index(np.nanargmax(each), each.shape) for each in gain.halves)
    expected = float(gain.halves[1][a] + gain.halves[0][b]) / 2
    found = result.held_out
    assert found is not None
    assert found == pytest.approx((expected, float(gain.error[a] + gain.error[b]) / 2))
    assert with_error(*found) in corpus(result).answer
    assert any("VERB→NOUN" in each.get_text() for each in figure_of(result).texts)


def test_a_link_without_its_measures_is_damaged() -> None:
    result = made.linked()
    with pytest.raises(Damaged, match="link-distance"):
        replace(result, measures={"link": result.measures["link"]}, shown="").check_parts()


def test_a_picture_has_every_head_with_its_number_and_its_error() -> None:
    result = made.corpus()
    result = replace(result, shown="previous")
    (axes, _curve, _bar) = figure_of(result).axes
    drawn = [each.get_text() for each in axes.texts]
    for place in np.argwhere(~np.isnan(result.main.values)):
        place = tuple(place)
        assert number(float(result.main.values[place])) in drawn
        assert give_or_take(float(result.main.error[place]), None) in drawn
    (mesh,) = [each for each in axes.collections if isinstance(each, QuadMesh)]
    assert mesh.get_clim() == pytest.approx((0, 1.05 * np.nanmax(result.main.values)))


def test_two_corpora_are_ranked_by_errors_and_those_beyond_chance_stand_out() -> None:
    result = made.apart()
    scores, sheet = result.main, corpora(result)
    assert sheet.title.endswith("A small.txt, B other.txt")
    of_needed = [abs(scores.reached[place]) / scores.limit[place] for place in ranked(scores)]
    assert of_needed == sorted(of_needed, reverse=True)
    first, measures = rankings(sheet)
    assert first.table["errors"].values == [float(scores.reached[place]) for place in ranked(scores)[:10]]
    best = ranked(scores)[0]
    assert first.table["first"].text(0) == cell(float(np.exp(scores.first[best])), 1), "so many tokens"
    needed = [float(scores.limit[place]) for place in ranked(scores)[:10]]
    assert [mark.at for mark in first.marks][-1] == first.table["limit"].values == needed
    assert measures.names == tuple(result.measures)
    in_nats, _ = rankings(corpora(result, Focus(in_nats=True)))
    assert in_nats.table["first"].text(0) == number(float(scores.first[best]), 3)
    block = grid(sheet)
    assert np.nanmax(np.abs(scores.difference)) < 0.1  # so that two decimals would tell little
    assert block.text(1, 2) == signed(float(scores.difference[1, 2]), 3)
    assert block.companion is not None
    assert block.companion.short(1, 2) == signed_cell(float(scores.reached[1, 2]), 1)
    assert block.beyond[1] == scores.beyond
    lower = replace(result, measures={"entropy": replace(scores, limit=flat(1.0))})
    assert grid(corpora(lower)).beyond[1] == {
        place for place in np.ndindex(3, 4) if abs(scores.reached[place]) > 1
    }


def test_two_corpora_that_somebody_typed_lead_on_to_one_of_them() -> None:
    result = made.apart()
    assert corpora(result).next is None, "of a result alone nobody knows where the files are"
    with as_typed(Typed(("a.npz", "'my b.npz'"))):
        led = corpora(result).next
    assert led is not None
    assert led.command == "attnscope show 'my b.npz'"


def test_tables_of_zeros_of_two_corpora_stand_aside_until_all_is_wanted() -> None:
    same = differing(np.zeros((3, 4)))
    assert corpora(same).every == ()
    assert [each.title for each in corpora(same).more[:2]] == [
        each.title for each in corpora(same, Focus(verbose=True)).every[:2]
    ]
    assert len(corpora(differing(np.full((3, 4), 1e-12))).every) > 1


def test_corpora_that_share_no_class_of_length_are_not_called_alike() -> None:
    own = (nowhere := differing(np.full((3, 4), np.nan))).measures["entropy"]
    apart = own.of_lengths.copy()
    apart[0, :, :], apart[1, :, :] = np.nan, 2.0
    differs = replace(nowhere, measures={"entropy": replace(own, of_lengths=apart)})
    assert nowhere.nothing
    assert not differs.nothing
    assert "to the last bit" not in corpora(differs).answer


def test_a_page_has_a_grid_of_every_measure_and_the_errors_under_the_pointer() -> None:
    result = made.corpus()
    page = content(result, ".html").decode()
    assert page.count('<table class="heads') == len(result.measures)
    own = float(np.exp(result.main.values[0, 0]) * result.main.error[0, 0])
    assert f"± standard error over texts {give_or_take(own, None)}" in page
    apart = content(made.apart(), ".html").decode()
    assert apart.count('<table class="heads') == len(made.apart().measures)


@pytest.mark.parametrize("scatter", [0.0, 3e-17, 1e-9])
def test_texts_that_differ_by_rounding_alone_are_equal(scatter: float) -> None:
    drawn = 0.1 + scatter * np.random.default_rng(2).normal(size=(40, 2, 3, 4))
    first, second = (of_values(name, own) for name, own in (("a.txt", drawn), ("b.txt", drawn + 0.5)))
    assert np.abs(first.main.error).max() == 0
    assert not furthest(first), "no text lies further from the mean than others"
    apart = made.corpora_apart(first, second)
    assert apart.case == "unranked"
    assert "can be judged" in corpora(apart).answer


@pytest.mark.parametrize("mean", [0.1, 1e-14])
def test_texts_that_differ_by_more_have_an_error(mean: float) -> None:
    rising = mean * (1 + 1e-3 * np.linspace(0, 1, 40)[:, None, None, None] * np.ones((40, 2, 3, 4)))
    found = of_values("a.txt", rising)
    expected = np.full((3, 4), 1e-3 * mean * np.linspace(0, 1, 40).std(ddof=1) / 40**0.5)
    np.testing.assert_allclose(found.main.error, expected, rtol=1e-6)
    (texts,) = furthest(found)
    assert max(texts.table["away"].values) > 1
    assert len({texts.table["value"].text(i) for i in range(2)}) == (2 if mean == 0.1 else 1)


def of_values(name: str, drawn: np.ndarray) -> Corpus:
    return made.corpus(name, 40, measures=("entropy", "previous"), drawn=drawn, tokens=[8] * 40)


def furthest(result: Corpus) -> list[Ranking]:
    return [each for each in corpus(result).every if isinstance(each, Ranking) and each.of == "text"]


def test_the_texts_furthest_from_a_mean_stand_beside_texts_of_their_length() -> None:
    drawn = made.values(41, made.MEASURES, 0)
    result = made.corpus()
    best = measured.ranked(result.main.scores)[0]
    mine = drawn[(slice(None), 0, *best)]
    order = sorted(range(41), key=lambda i: (-abs(mine[i] - mine.mean()), i))[:3]
    if len({np.sign(mine[i] - mine.mean()) for i in order}) == 1:  # then the other end stands behind them
        order.append(int(mine.argmin() if mine[order[0]] > mine.mean() else mine.argmax()))
    (block,) = [
        each
        for each in corpus(result, Focus(in_nats=True)).every
        if isinstance(each, Ranking) and each.of == "text"
    ]
    tokens = [4 + 7 * i % 61 for i in range(41)]
    assert block.names == tuple(f"small.txt:{i + 1}" for i in order)
    assert block.table["value"].values == [mine[i] for i in order]
    assert block.table["tokens"].values == [tokens[i] for i in order]
    assert block.table["text"].values == [f"Text {i} of small.txt." for i in order]
    np.testing.assert_allclose(block.table["away"].values, (mine[order] - mine.mean()) / mine.std(ddof=1))
    for row, i in enumerate(order):
        (size,) = [each for each in result.lengths if each.least <= tokens[i] <= each.most]
        alike = [mine[j] for j in range(41) if size.least <= tokens[j] <= size.most and j != i]
        assert block.table["of_length"].values[row] == pytest.approx(np.mean(alike))
    in_classes = corpus(replace(result, shown="pattern"))
    assert not [each for each in in_classes.every if isinstance(each, Ranking) and each.of == "text"]


def test_texts_that_are_alike_to_the_digits_shown_get_as_many_as_tell_them_apart() -> None:
    drawn = made.values(41, made.MEASURES, 0)
    for least, told_apart in ((1.0, False), (1e-4, True)):
        drawn[:, 0] *= least
        sheet = corpus(made.corpus(drawn=drawn))
        (block,) = [each for each in sheet.every if isinstance(each, Ranking) and each.of == "text"]
        values = block.table["value"]
        shown = [values.form(each) for each in values.values]
        assert all((len(each.partition(".")[2]) > 1) is told_apart for each in shown)
        assert not told_apart or len({*shown}) == len(shown)


def test_a_mean_by_length_has_an_interval_where_two_texts_or_more_have_that_length() -> None:
    drawn = made.values(41, made.MEASURES, 0)
    result = replace(made.corpus(), shown="previous")
    best = measured.ranked(result.main.scores)[0]
    mine, tokens = drawn[(slice(None), 1, *best)], np.array([4 + 7 * i % 61 for i in range(41)])
    (curve,) = [each for each in corpus(result).every if isinstance(each, Curve)]
    band, line, _ = curve.lines
    for row, size in enumerate(result.lengths):
        values = mine[(tokens >= size.least) & (tokens <= size.most)]
        values = values[~np.isnan(values)]
        assert curve.table["texts"].values[row] == len(values)
        assert line.at[row] == pytest.approx(values.mean())
        if len(values) < 2:
            assert (band.at[row], band.to[row]) == (None, None)
            continue
        off = 1.959963984540054 * values.std(ddof=1) / np.sqrt(len(values))
        assert (band.at[row], band.to[row]) == pytest.approx((values.mean() - off, values.mean() + off))
    assert len(curve.names) == len(result.lengths) > 5


def test_the_proof_says_no_more_than_what_was_held_against_what() -> None:
    def told(**how: Any) -> str:
        return corpus(made.corpus(**how)).proof[0][1]

    assert "weights to 3e-7; " in told()
    assert "the same weights to 3e-7 in 16 of their 44 queries;" in told(held=16)
    assert "in each of 2 of 41 texts; measured alone" in told(held=0)
    assert "4 of 12 heads" in told(untried=4)


def test_a_corpus_of_which_no_text_was_certified_says_so() -> None:
    ((verdict, told),) = corpus(replace(made.corpus(), certified={}, sampled=0)).proof
    assert verdict is Verdict.UNCERTIFIED
    assert told.endswith("uncertified: no head was recomputed in any of 41 texts")
