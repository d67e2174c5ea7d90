"""The sheets of a corpus, of two and of a verification: errors beside numbers, and what failed."""

from dataclasses import replace
from typing import Any

import made_corpus as made
import made_results
import numpy as np
import pytest
from cases_corpora import differing
from cases_corpus import flat
from cases_verification import EXAMPLES as VERIFIED
from golden_text import printed

from attnscope.render.figure import figure_of
from attnscope.render.kit.numbers import cell, give_or_take, number, signed, signed_cell, with_error
from attnscope.render.sheet import measured
from attnscope.render.sheet.blocks import Curve, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets import Focus, sheet_of
from attnscope.render.terminal.sheet import screen
from attnscope.results import Corpus, Kind, LayerCheck, OutputCheck, Result, Verdict, Verification
from attnscope.results.base.presented import Damaged
from attnscope.verbs.compare.corpora_sheet import ranked
from attnscope.verbs.compare.corpora_sheet import sheet as corpora
from attnscope.verbs.corpus.sheet import sheet as corpus
from attnscope.verbs.verify.result import Proved
from attnscope.verbs.verify.sheet import sheet as verification


def grid(sheet: Sheet) -> HeadGrid:
    (block,) = [each for each in sheet.every if isinstance(each, HeadGrid)]
    return block


def rankings(sheet: Sheet) -> list[Ranking]:
    """All but the texts that lie furthest from a mean."""
    return [each for each in sheet.every if isinstance(each, Ranking) and each.of != "text"]


def row(text: str, start: str) -> list[str]:
    return next(line for line in text.splitlines() if line.startswith(start)).split()


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
    assert sheet_of(of_file(nowhere_whole(result), None)).next is None, "of several files, or of a pipe"
    result, linked = of_file(result), of_file(made.linked())
    opened, link, sink = (corpus(each).next for each in (result, linked, nowhere_whole(result)))
    tagged = corpus(replace(result, read=replace(result.read, files=("dev.conllu",)))).next
    alone = corpus(replace(nowhere_whole(result), measures={"entropy": result.main})).next
    start = "attnscope corpus 'a corpus.txt' --limit 8 -m bert-base-uncased"
    told = [
        None if each is None else each.command.removeprefix(start) for each in (sink, link, tagged, alone)
    ]
    assert told == [
        " --measure sink", " --from-pos NOUN --to-pos VERB", " --from-pos VERB --to-pos NOUN", "",
    ]  # fmt: skip
    best = measured.ranked(result.main.scores)[0]
    (number, *_) = [each for each, _ in result.main.furthest(best) if result.texts[each].whole]
    assert opened is not None
    assert opened.command == (
        f"attnscope heads '{result.texts[number].text}' -m bert-base-uncased "
        f"--layer {result.layers[best[0]]} --head {result.heads[best[1]]}"
    )


def of_file(result: Corpus, read: tuple[str, ...] | None = ("a corpus.txt", "--limit", "8")) -> Corpus:
    return replace(result, provenance=replace(result.provenance, read=read))


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


def test_the_proof_says_no_more_than_what_was_held_against_what() -> None:
    def told(**how: Any) -> str:
        return corpus(made.corpus(**how)).proof[0][1]

    assert "weights to 3e-7; " in told()
    assert "the same weights to 3e-7 in 16 of their 44 queries;" in told(held=16)
    assert "in each of 2 of 41 texts; measured alone" in told(held=0)
    assert "4 of 12 heads" in told(untried=4)


def shown(result: Result, width: int = 110, focus: Focus = Focus()) -> str:  # noqa: B008
    return "".join(
        printed(part, width) for part in screen(result, width, replace(focus, legend=True, verbose=True))
    )


def checks(*places: tuple[str, Kind, str, int, int, Verdict]) -> Verification:
    """One check of two heads per place: tower, kind, route, layer, block, the second head's verdict."""
    layers = tuple(
        LayerCheck(
            layer,
            kind,
            f"{tower}.{layer}",
            (made_results.certificate(), made_results.certificate(verdict, 2e-8 * (block + 1))),
            tower,
            route,
            block,
        )
        for tower, kind, route, layer, block, verdict in places
    )
    outputs = (OutputCheck("last_hidden_state", 0.0, True),)
    return Verification(made_results.tokens(made_results.DOOR), layers, outputs, made_results.provenance())


GOOD, OPEN, PART = Verdict.CERTIFIED, Verdict.INCONCLUSIVE, Verdict.PARTIAL
SEVERAL = (
    ("vision", Kind.ENCODER, "takeover", 0, 0, GOOD),
    ("vision", Kind.ENCODER, "takeover", 0, 1, OPEN),
    ("vision", Kind.ENCODER, "takeover", 0, 2, GOOD),
    ("text", Kind.ENCODER, "traced operations", 0, 0, PART),
    ("fuse", Kind.CROSS, "takeover", 0, 0, GOOD),
)


def test_blocks_of_a_layer_are_one_row_with_the_worst_of_them() -> None:
    lines = shown(checks(*SEVERAL), 160).splitlines()
    row = next(line for line in lines if line.startswith("L0 vision"))
    assert "5 of 6 (3 blocks)" in row
    assert "✓ 5 ? 1" in row
    assert "6.0e-8 H1 B2" in row
    assert sum(line.startswith("L0 ") and "-8" in line for line in lines) == 3


HALF = {(0, j): Verdict.INCONCLUSIVE for j in range(2)}
CASES = {  # what of numbers and names the answer has
    "all": (Proved.ALL, "48 encoder heads", "bert-base-uncased", "none of its results"),
    "the only one": (Proved.ALL, "only encoder head"),
    "inconclusive": (Proved.NOT_ALL, "46 of 48 encoder heads", "2"),
    "none to the end": (Proved.NOT_ALL, "None of 48", "48"),
    "of three kinds": (Proved.NOT_ALL, "45 of 48", "relative-position term read as a remainder"),
    "unchecked": (Proved.WEIGHTS,),
    "one failed": (Proved.FAILED, "✗ 1 of 48 encoder heads", "does not come out", ".25", "5.2e-7"),
    "all failed": (Proved.FAILED, "✗ None of the 48 encoder heads", ".25", "5.2e-7"),
    "failed and changed": (Proved.FAILED, "✗ 1 of 48", "last_hidden_state", ".0010"),
    "no number": (Proved.FAILED, "✗ The only encoder head", "does not come out", "no number"),
    "changed": (Proved.CHANGED, "✗", "last_hidden_state", ".0010"),
    "stored": (Proved.STORED, "48 heads"),
    "nothing": (Proved.NOTHING, "No head"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_of_each_case_claims_no_more_than_its_verdicts(case: str) -> None:
    made_one, (expected, *parts) = VERIFIED[case](), CASES[case]
    told = verification(made_one)
    assert made_one.case is expected
    assert [each for each in parts if each not in told.answer] == []
    assert (told.next is None) == (expected not in (Proved.ALL, Proved.STORED))


def test_the_control_is_the_mistake_that_is_hardest_to_see_and_there_is_none_where_none_was_tried() -> None:
    half = verification(made_results.verification(4, 12, HALF)).control
    assert "2 mistakes" in half
    assert "at .31 times what rounding allows" in half
    assert verification(VERIFIED["unchecked"]()).control == ""


def test_a_verification_whose_outputs_changed_has_failed_and_one_without_layers_claims_nothing() -> None:
    changed, nothing = made_results.verification(2, 3, difference=1e-3), made_results.verification(layers=0)
    assert verification(changed).proof[-1][0] is Verdict.FAILED
    assert "✗ FAILED" in shown(changed)
    assert "✗" not in shown(made_results.verification(2, 3))
    assert "✓" not in shown(nothing)


def heads_of(found: Verification) -> list[object]:
    ranking = verification(found).blocks[0]
    assert isinstance(ranking, Ranking)
    return list(ranking.table["heads"].values)


def test_a_stored_verification_says_of_no_head_that_it_is_proved_or_not_and_leads_on() -> None:
    places = [("", Kind.ENCODER, "takeover", layer, 0, Verdict.STORED) for layer in (0, 1, 2)]
    found = checks(*places)
    assert heads_of(found) == ["✓ 1 ○ 1"] * 3
    assert heads_of(checks(("", Kind.ENCODER, "takeover", 0, 0, GOOD))) == ["2 of 2"]
    assert heads_of(checks(("", Kind.ENCODER, "takeover", 0, 0, OPEN))) == ["1 of 2"]
    led = sheet_of(found).next
    assert led is not None
    assert led.command.startswith("attnscope heads ")
    assert sheet_of(checks(("", Kind.ENCODER, "takeover", 0, 0, Verdict.UNCERTIFIED))).next is None


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
