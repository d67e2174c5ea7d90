"""What reaches a token as it is shown: shares beside effects and what is shuffled, pictures as maps."""

import csv
import io
from dataclasses import replace

import cases_flow
import made_results as made
import matplotlib.pyplot as plt
import numpy as np
import pytest
from cases_flow import COLUMNS, EXAMPLES, ROWS, few, of_picture

from attnscope.render.figure import figure_of
from attnscope.render.files import as_csv
from attnscope.render.focus import Focus
from attnscope.render.kit.numbers import signed
from attnscope.render.kit.palette import INK, RAMPS, SIGNED, TINTS
from attnscope.render.plot.ranking import draw
from attnscope.render.sheet.blocks import Beside, Matrix, Ranking
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.flow import patches_of
from attnscope.render.sheets.flow import sheet as flow
from attnscope.render.terminal.sheet import written
from attnscope.results import Flow
from attnscope.results.claims.flow import INTEGRATED, Case
from attnscope.tokens import Patches


def rankings(found: Flow) -> tuple[Ranking, ...]:
    beside = flow(found).blocks[0]
    assert isinstance(beside, Beside)
    return tuple(each for each in beside.blocks if isinstance(each, Ranking))


def whole_ranking(found: Flow) -> Ranking:
    """The tokens with all columns, as -v shows them."""
    beside = flow(found, Focus(verbose=True)).blocks[0]
    assert isinstance(beside, Beside)
    tokens = beside.blocks[0]
    assert isinstance(tokens, Ranking)
    return tokens


def test_what_was_replaced_stands_by_its_effect_beside_the_last_layers_attention() -> None:
    found = cases_flow.flow()
    tokens, _ = rankings(found)
    sizes = [abs(each) for each in tokens.table["effect"].values]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == found.ablated.count == 10
    places = [int(name.split()[0]) for name in tokens.names]
    assert set(places) == set(range(1, 12)) - {cases_flow.QUERY}
    assert tokens.table["attention"].values == pytest.approx(found.raw[-1][places])
    assert tokens.unshown == "3 tokens not replaced (-v)"
    lost, gained = tokens.marks
    for row, value in enumerate(found.ablated.effects[places]):
        assert lost.at[row] == (value if value >= 0 else None)
        assert gained.at[row] == (value if value < 0 else None)


def test_red_is_what_the_answer_loses_here_as_where_heads_are_taken_away() -> None:
    """A cost is above 0 and a change below it, and both are the answer's loss."""
    import cases_ablate

    tokens, _ = rankings(cases_flow.flow())
    heads = next(each for each in sheet_of(cases_ablate.ablation()).every if isinstance(each, Ranking))
    for marks in (tokens.marks, heads.marks):
        told = {mark.label: TINTS[mark.tint] for mark in marks}
        assert told["the answer loses"] == TINTS["loses"] == "#b2182b"
        assert told["the answer gains"] == TINTS["gains"]
    cost, change = tokens.table["effect"].scale, heads.table["change"].scale
    assert cost is not None
    assert change is not None
    red, blue = RAMPS["light"][SIGNED][0], RAMPS["light"][SIGNED][-1]
    assert (cost.anchors[-1], change.anchors[0]) == (red, red)
    assert (cost.anchors[0], change.anchors[-1]) == (blue, blue)
    assert (
        cost.style(cost.high) == change.style(change.low) != cost.style(cost.low) == change.style(change.high)
    )


def test_a_lead_over_another_answer_is_told_in_logits_and_no_probability_is_made_of_it() -> None:
    found = cases_flow.leading()
    assert found.ablated is not None
    first = float(found.ablated.effects[found.ablated.ranking[0]])
    told = flow(found).answer
    assert f"from +2.50 to {signed(2.5 - first)}" in told
    assert "%" not in told
    tokens, _ = rankings(found)
    assert tokens.table["effect"].heading == "lead loses (logits)"
    assert tokens.measured == "effect of replacing it, logits"
    assert "nats" not in written(replace(found, attributed=()), width=100)


def test_what_the_query_cannot_see_has_no_row_and_is_counted() -> None:
    found = cases_flow.flow()
    rollout = found.rollout.copy()
    rollout[-1, cases_flow.QUERY + 1 :] = 0  # as in a decoder
    effects = found.ablated.effects.copy()
    effects[cases_flow.QUERY + 1 :] = np.nan
    seen = replace(found, rollout=rollout, ablated=replace(found.ablated, effects=effects))
    assert rankings(seen)[0].unshown == "2 tokens not replaced (-v), 4 tokens it cannot see"
    whole = whole_ranking(seen)
    assert sorted(int(name.split()[0]) for name in whole.names) == list(range(cases_flow.QUERY + 1))
    assert whole.unshown == "4 tokens it cannot see"
    nothing = replace(seen, ablated=None, attributed=(), reason="there is no other token")
    tokens = flow(nothing).blocks[0].blocks[0]
    assert [int(name.split()[0]) for name in tokens.names] == list(range(cases_flow.QUERY + 1))
    assert tokens.unshown == "4 tokens it cannot see"


def test_two_methods_stand_beside_attention_those_that_agree_best_and_the_others_behind() -> None:
    found = cases_flow.flow()
    agrees = {each.method: each.correlation for each in found.ablated.trust}
    others = sorted((each for each in found.methods if each != "attention"), key=lambda each: -agrees[each])
    keys = ["effect", "attention", *(each.replace(" ", "_") for each in others)]
    first = rankings(found)[0].table
    assert [each.name for each in first.columns] == keys[:4]
    assert [each.name for each in whole_ranking(found).table.columns] == keys


def test_what_each_way_back_sums_to_is_told_and_what_there_is_none_of_and_why() -> None:
    found = cases_flow.flow()
    says = {each.name: each.says for each in whole_ranking(found).table.columns}
    summed = next(one for one in found.attributed if one.method == INTEGRATED)
    proved = [each for _, each in flow(found).proof]
    assert "integrated gradients sum to what replacing all costs, .002 off, each token at most .004" in proved
    assert (
        f"24 steps, times that way (Sundararajan et al. 2017); sums to {signed(summed.whole)}"
        in (says["integrated_gradients"])
    )
    silent = cases_flow.flow(answer="")
    assert "no gradient x input, attention x gradient: nothing is answered here" in flow(silent).notes


def test_with_everything_every_token_has_its_share_by_each_method() -> None:
    found = cases_flow.flow()
    tokens = whole_ranking(found)
    places = [int(name.split()[0]) for name in tokens.names]
    assert sorted(places) == list(range(13))
    assert [places[i] for i in tokens.chosen] == [cases_flow.QUERY]
    for name, values in found.methods.items():
        assert tokens.table[name.replace(" ", "_")].values == pytest.approx(values[places], nan_ok=True)
    empty = [places[row] for row in range(13) if not tokens.table["effect"].text(row)]
    assert sorted(empty) == [0, cases_flow.QUERY, 12], "the query and two others were not replaced"


def test_every_method_stands_beside_shuffled_effects_and_beside_distance_the_best_first() -> None:
    found = cases_flow.flow()
    _, agreement = rankings(found)
    correlations = agreement.table["correlation"].values
    assert list(correlations) == sorted(correlations, reverse=True)
    assert len(agreement.names) == len(found.methods) + 1
    span = agreement.marks[-1]
    ranked = sorted(found.ablated.trust, key=lambda each: -each.correlation)
    assert list(zip(span.at, span.to, strict=True)) == [(each.low, each.high) for each in ranked]
    assert {agreement.names[i] for i in agreement.faint} == {"distance alone"}


CASES = {  # what of tokens and numbers the answer has
    "one method agrees": (Case.AGREES, "75.0 % to 3.7 %|91.6 %|Of 8 methods attention of the last|+.80|+.60"),
    "no method does": (Case.CANNOT_TELL, "None of 8 methods|attention of the last layer|+.80|+.60"),
    "the line between them": (Case.AGREES, "Of 8 methods"),
    "just beyond the line": (Case.CANNOT_TELL, "None of 8"),
    "distance does as well": (Case.AGREES, "Distance alone does as well (+.90)."),
    "few": (Case.AGREES, "Only 5 tokens"),
    "few and near": (Case.AGREES, "(+.90), and there are only 5 tokens"),
    "flat": (Case.FLAT, "No token matters|one of 5|75.0 % to 71.3 %"),
    "too few for a correlation": (Case.TOO_FEW, "Only 3 tokens"),
    "an answer that is none": (Case.AGREES, "turns most|(3.00, then −.20; 0: not at all)"),
    "nothing replaced": (Case.NOT_REPLACED, "no other token that could be replaced"),
    "a lead": (Case.CANNOT_TELL, "“it” over “they”|from +2.50 to "),
}


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_the_sentence_of_its_case(name: str) -> None:
    case, parts = CASES[name]
    found = EXAMPLES[name]()
    told = flow(found).answer
    assert found.case is case
    assert [each for each in parts.split("|") if each not in told] == []
    assert ("Distance alone does as well" in told) is ("near" in name or "distance" in name)


def test_where_no_method_can_be_ranked_there_is_no_table_of_methods_and_no_control() -> None:
    found = cases_flow.flow()
    few_of_them = replace(found, ablated=replace(found.ablated, effects=few(3), trust=()))
    assert len(rankings(found)) == 2
    assert flow(found).control
    assert len(rankings(few_of_them)) == 1
    assert not flow(few_of_them).control


def test_the_next_question_is_which_heads_look_at_what_the_answer_hangs_on() -> None:
    found = cases_flow.flow()
    sides = found.tokens.labels[cases_flow.QUERY], found.tokens.labels[found.ablated.ranking[0]]
    following = flow(found).next
    assert following is not None
    assert " find " in following.command
    assert all(each.strip("[]") in following.command for each in sides)
    assert flow(cases_flow.flow(replaced=False)).next is None


def test_where_nothing_was_replaced_nothing_is_trusted_and_no_effect_is_drawn() -> None:
    found = cases_flow.flow(replaced=False)
    (tokens,) = rankings(found)
    assert not tokens.marks
    assert "no other token that could be replaced" in flow(found).answer
    (axes,) = figure_of(found).axes
    assert len(axes.child_axes[0].texts) == 13 * len(found.methods), "cells all the same"


def test_of_a_long_text_those_tokens_have_a_row_that_most_reaches_the_query_from() -> None:
    count, query = 100, 60
    tokens = made.tokens([f"w{i}" for i in range(count)])
    shares = np.random.default_rng(1).dirichlet(np.ones(count), size=3)
    found = replace(
        cases_flow.flow(replaced=False, whole=False), tokens=tokens, query=query, raw=shares, rollout=shares
    )
    (ranking,) = rankings(found)
    listed = [int(each.split()[0]) for each in ranking.names]
    assert set(np.argsort(-shares[-1])[:40]) | {query} == set(listed)
    assert listed == sorted(listed)
    assert ranking.hidden == count - len(listed)


def test_every_method_is_a_map_of_the_picture_beside_the_effects() -> None:
    found = of_picture()
    beside = flow(found).blocks[1]
    assert isinstance(beside, Beside)
    maps = [each for each in beside.blocks if isinstance(each, Matrix)]
    assert [each.title for each in maps] == [*found.methods, "effect, 1 less cosine"]
    assert maps[1].values == pytest.approx(found.rollout[-1][1:].reshape(ROWS, COLUMNS))
    assert maps[-1].values[2, 2] == pytest.approx(found.ablated.effects[1 + 2 * COLUMNS + 2])
    assert np.isnan(maps[-1].values[1, 3]), "the query itself was not replaced"
    assert {each.marked for each in maps} == {((1, 3),)}
    others = np.delete(found.rollout[-1], [0, cases_flow.QUERY])
    assert maps[1].scale.top == pytest.approx(others.max()), "the query is not in it"
    drawn = figure_of(found)
    words = " ".join(text.get_text() for text in drawn.texts)
    assert "over square.png" in words
    assert "shares of 0 [CLS] attention" in words


def test_patches_stand_where_their_positions_say_and_one_without_stays_empty() -> None:
    places = (6, 5, 4, 3, 2, -1, 7, 8, 9, 10, 11, 12)
    found = of_picture(Patches(1, ROWS, COLUMNS, places))
    beside = flow(found).blocks[1]
    assert isinstance(beside, Beside)
    raw = beside.blocks[0].values
    assert raw[0].tolist() == found.raw[-1][[6, 5, 4, 3]].tolist()
    assert np.isnan(raw[1, 1])
    assert raw[2, 3] == found.raw[-1][12]


def test_tokens_of_a_text_are_rows_and_no_map() -> None:
    assert patches_of(cases_flow.flow()) is None
    assert len(flow(cases_flow.flow()).blocks) == 1


@pytest.mark.parametrize("width", [40, 60, 80, 140])
@pytest.mark.parametrize("replaced", [True, False])
def test_no_line_is_wider_than_the_terminal(width: int, replaced: bool) -> None:
    for found in (cases_flow.flow(replaced=replaced), of_picture()):
        assert max(map(len, written(found, width=width).splitlines())) <= width


def test_a_row_of_the_file_is_a_fact_and_only_what_was_replaced_has_an_effect() -> None:
    found = cases_flow.flow()
    lines = [each for each in as_csv(found).splitlines() if not each.startswith("#")]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    raw = [each for each in rows if each["fact"] == "attention"]
    assert [float(each["value"]) for each in raw] == found.raw.ravel().tolist()
    assert {int(each["position"]) for each in rows if each["fact"] == "effect"} == set(range(1, 12)) - {8}
    trust = {each["fact"]: float(each["value"]) for each in rows if each["fact"].endswith("of rollout")}
    rollout = next(each for each in found.ablated.trust if each.method == "rollout")
    assert trust == {
        f"{name} of rollout": getattr(rollout, name) for name in ("correlation", "low", "high", "below")
    }


def test_on_an_axes_stand_the_tokens() -> None:
    _, axes = plt.subplots()
    assert cases_flow.flow().plot(axes) is axes
    assert len(axes.child_axes[0].get_yticklabels()) == 10
    plt.close()


def test_every_panel_side_by_side_has_a_title() -> None:
    assert all(each.title for each in rankings(cases_flow.flow()))


def test_what_the_answer_rests_on_has_one_colour_in_a_row() -> None:
    found = cases_flow.flow()
    scales = {each.name: each.scale for each in rankings(found)[0].table.columns}
    both = [each.kind for each in scales.values() if each is not None and each.around_0]
    assert set(both) == {"costs"}
    assert len(both) > 1


def test_numbers_stand_in_a_column_in_the_colours_of_their_bars_where_other_marks_reach_farther() -> None:
    marks = Mark("bar", "gains", "", (0.3, 2.0)), Mark("diamond", "query", "", (1.4, 1.0))
    table = Table(Column("brings", (0.3, 2.0), "brings", signed))
    drawn = []
    for shown in (marks, marks[:1]):
        axes = plt.figure().subplots()
        draw(Ranking("", "part", ("a", "b"), table, marks=shown, written="brings", measured="score"), axes)
        drawn.append({each.get_text(): each for each in axes.texts if each.get_text().startswith("+")})
    apart, beside = drawn
    assert len({each.get_position()[0] for each in apart.values()}) == 1
    assert {each.get_color() for each in apart.values()} == {TINTS["gains"]}
    assert beside["+.30"].get_position()[0] < 0.5 < beside["+2.00"].get_position()[0]
    assert {each.get_color() for each in beside.values()} == {INK}
    plt.close("all")
