"""What reaches a token, and which heads read each other, as they are shown beside what is shuffled."""

import shlex
from dataclasses import replace

import cases_compose
import cases_flow
import made_results as made
import matplotlib.pyplot as plt
import numpy as np
import pytest
from cases_compose import EXAMPLES as COMPOSED
from cases_compose import read_in
from cases_flow import COLUMNS, EXAMPLES, ROWS, of_picture

from attnscope.render.figure import figure_of
from attnscope.render.kit.numbers import signed
from attnscope.render.kit.palette import INK, RAMPS, SIGNED, TINTS
from attnscope.render.plot.ranking import draw
from attnscope.render.sheet.blocks import Beside, Matrix, Ranking
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.render.sheets import Focus, sheet_of
from attnscope.results import Composition, Flow, Kind
from attnscope.tokens import Patches
from attnscope.verbs.compose.result import Through
from attnscope.verbs.compose.sheet import sheet as composition
from attnscope.verbs.flow.result import Case
from attnscope.verbs.flow.sheet import sheet as flow


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


@pytest.fixture(scope="module")
def every() -> Composition:
    return cases_compose.composition()


@pytest.fixture(scope="module")
def one() -> Composition:
    return cases_compose.composition((1, 2))


def test_pairs_are_ranked_by_what_they_have_over_chance_and_those_without_score_are_left_out(
    every: Composition,
) -> None:
    for t, through in enumerate(Through):
        ranked = every.ranked(through)
        above, needed = (each[t] - every.chance[t] for each in (every.scores, every.limit))
        assert [pair.excess for pair in ranked] == pytest.approx(
            np.sort(above / needed)[::-1][-len(ranked) :]
        )
        assert [pair.stands_out for pair in ranked] == [pair.excess > 1 for pair in ranked]
        assert every.looked_at(through) == len(ranked)
    assert [every.looked_at(through) for through in Through] == [47, 47, 20]  # 4 x 5 + 4 x 3 + 5 x 3


def test_what_stands_beside_a_pair_is_the_median_of_the_others_of_its_layers(every: Composition) -> None:
    pair = every.ranked(Through.KEY)[3]
    layers = pair.early[0], pair.late[0]
    others = [
        each.score
        for each in every.ranked(Through.KEY)
        if (each.early[0], each.late[0]) == layers and each != pair
    ]
    assert pair.beside == pytest.approx(np.median(others))


@pytest.mark.parametrize(
    ("name", "left"), [("rotary", True), ("rotary, through values", False), ("one", False)]
)
def test_rotary_positions_that_are_left_out_are_a_note_where_they_turn_what_is_read(
    name: str, left: bool
) -> None:
    assert any("rotary" in each for each in composition(COMPOSED[name]()).notes) is left


def test_it_leads_on_to_the_later_head_and_then_to_what_that_looks_at(
    every: Composition, one: Composition
) -> None:
    leads = composition(every).next
    assert every.best is not None
    layer, head = every.best.late
    assert leads is not None
    assert leads.command == (f"attnscope compose -m bert-base-uncased --layer {layer} --head {head}")
    read = composition(read_in("it's late", every)).next
    assert read is not None
    both = ",".join(f"L{layer}H{head}" for layer, head in (every.best.early, every.best.late))
    words = ["attnscope", "ablate", "it's late", "-m", "bert-base-uncased", "--heads", both]
    assert shlex.split(read.command) == words, "whether an answer needs the link"
    encoder = composition(replace(every, kind=Kind.ENCODER, read_back_in="it's late")).next
    assert encoder is not None
    assert " compose " in encoder.command, "not every encoder answers"
    assert composition(one).next is None, "there was no text"
    told = composition(replace(one, read_back_in="it's late")).next
    assert told is not None
    assert told.command.endswith("late' -m bert-base-uncased --layer 1 --head 2")
    nothing = replace(every, scores=np.full_like(every.scores, np.nan))
    assert composition(nothing).next is None
