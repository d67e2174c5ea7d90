"""What is said of an explanation, a why, a tuning, layers, citations and many prompts: by case, within their
controls.
"""

import math
import re
from dataclasses import replace

import cases_cite
import cases_drift
import cases_prompts
import cases_why
import numpy as np
import pytest
from cases_contributions import EXAMPLES as CONTRIBUTED
from cases_contributions import contributions
from cases_explain import EXAMPLES as EXPLAINED
from cases_explain import explanation
from cases_layers import layered
from cases_referee import EXAMPLES as REFEREES
from cases_why import changed

from attnscope.analysis.prompts import Seen, tabled
from attnscope.render.sheet.blocks import Statement, Statements
from attnscope.render.sheets import Focus, sheet_of
from attnscope.results import Drift, Explanation, Prompts, Why
from attnscope.results.claims.prompts import Asked, Case, Figure
from attnscope.verbs.cite.sheet import sheet as cited
from attnscope.verbs.cite.sheet import sheet as referee_sheet
from attnscope.verbs.compare.drift_sheet import sheet as drift
from attnscope.verbs.compare.texts_result import DriftCase as Drifted
from attnscope.verbs.explain import result as explained
from attnscope.verbs.explain.result import Need
from attnscope.verbs.why import result as why
from attnscope.verbs.why.result import Part, Removed, Side

CASES = {  # what of heads and numbers the verdict has
    "circuit": (
        explained.Case.CIRCUIT,
        "L3 H1|“it”|“cat”|.91|L0 H2|“because”|L1 H0|“on”|30 of 30|25.0 %|7.2 %",
    ),
    "shown": (explained.Case.SHOWN, "3 of 12|L2 H4|.93|.16|25.0 %|7.2 %"),
    "one of twelve": (explained.Case.SHOWN, "Of 12|L1 H2|.71|.01|because of L1 H0"),
    "the one that was asked": (explained.Case.SHOWN, "L1 H2 clearly|.71|.01"),
    "none": (explained.Case.NONE, "L2 H4|.93|.16|30 of 30"),
    "nobody": (explained.Case.NONE, "No head|.02|L0 H0|.08"),
    "by its place": (explained.Case.NONE, "because of the place|L0 H1|.75|.71"),
    "few controls": (explained.Case.CIRCUIT, "12 shuffled texts"),
}


def told(result: Explanation) -> dict[str, Statement]:
    """Its statements by their questions."""
    (block,) = (block for block in sheet_of(result).every if isinstance(block, Statements))
    return {each.question: each for each in block.statements}


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_says_what_is_shown_or_by_what_the_evidence_does_not_suffice(case: str) -> None:
    made, parts = CASES[case]
    result = EXPLAINED[case]()
    verdict = sheet_of(result).answer
    assert result.case is made
    assert [each for each in parts.split("|") if each not in verdict] == []


@pytest.mark.parametrize("case", CASES)
def test_each_question_is_answered_with_figures_and_a_command_that_shows_more(case: str) -> None:
    statements = told(EXPLAINED[case]())
    assert len(statements) <= 8
    for question, each in statements.items():
        assert each.sentence.endswith((".", ")")), each.sentence
        assert each.figures or re.search(r"\d", each.sentence), question
        assert each.command.startswith("attnscope ") or question == "what could not be asked?"


def test_heads_that_are_read_are_confirmed_by_what_is_left_without_them() -> None:
    confirmed = told(explanation())[explained.Asked.READ]
    assert "L3 H1 reads L0 H2 with its queries and L1 H0 with its keys" in confirmed.sentence
    assert "L3 H1 scores .900 (random circuits: .239, needed: .344)" in confirmed.figures
    assert explanation().reads_confirmed == ("L0 H2 by query", "L1 H0 by key")
    by_weights = told(explanation("none"))[explained.Asked.READ]
    assert "could read L0 H2 with its queries" in by_weights.sentence
    assert explanation("none").reads_confirmed == ()


WORDS = {  # of what is said and its figures
    "most": (Need.NEEDS, "“door” needs “cat”|25.0 %|7.5 %|1.20|none of 1 other"),
    "little": (Need.HARDLY, "hardly|25.0 %|23.8 %|.05"),
    "gains": (Need.GAINS, "likelier|25.0 %|41.2 %|.50 nats gained"),
    "among many": (Need.LOSES, "less likely|20.5 %|3 of 3 others"),
    "a tenth of it": (Need.LOSES, "less likely|21.5 %|none of 2 others"),
    "as another": (Need.LOSES, "less likely|7.5 %|1 of 2 others"),
    "no answer": (None, "“it” turns more where “cat”|any of 3|1.25"),
    "no answer, as others": (None, "“it” turns less where “cat”|1 of 2"),
    "left": (None, "“cat” was not replaced"),
}


@pytest.mark.parametrize("case", WORDS)
def test_whether_the_answer_depends_on_the_word_is_told_beside_the_other_words(case: str) -> None:
    needs, parts = WORDS[case]
    result = EXPLAINED[case]()
    each = told(result)[explained.Asked.WORD]
    assert result.need is needs
    assert [part for part in parts.split("|") if part not in f"{each.sentence} {each.figures}"] == []


def part(result: Why, name: str) -> Part:
    return next(part for part in result.parts if part.name == name)


@pytest.mark.parametrize(
    ("fields", "case"),
    [
        ({"controls": (0.3, -9.0, 0.1)}, why.Case.KEY),
        ({"controls": (0.3, -4.7, 0.1)}, why.Case.KEY),
        (
            {"controls": (*[0.0] * 12, -3.5)},
            why.Case.KEY,
        ),  # more than −3.36, which lies 3 spreads beyond them
        ({"controls": (0.3, -0.1)}, why.Case.KEY),
        ({"contrast": 2.9}, why.Case.KEY),
        ({"controls": ()}, why.Case.KEY),
        ({"removed": Removed(4.0, 4.0, 0.01, 1.0)}, why.Case.KEY),
        ({"removed": Removed(-4.0, -4.0, 0.9, 1.0)}, why.Case.KEY),
        ({"contrast": -4.0, "removed": Removed(4.0, 4.0, 0.01, 1.0)}, why.Case.KEY),
    ],
    ids=[
        "a control does more",
        "within their spread",
        "one of many controls does more",
        "two controls",
        "a small share",
        "no control",
        "it rises",
        "the weight stays",
        "a share against it",
    ],
)
def test_a_part_is_no_reason_unless_every_test_is_passed(fields: dict[str, object], case: why.Case) -> None:
    result = changed(cases_why.why(), "L0 H2", **fields)
    assert result.case is case
    assert result.reasons_of(Side.QUERY) == ()


def test_embeddings_and_biases_have_shares_and_are_never_reasons() -> None:
    result = cases_why.why()
    for name in ("token", "position", "biases"):
        assert part(result, name).contrast
        assert not result.is_reason(replace(part(result, name), contrast=100.0))


def test_the_rows_of_each_side_sum_to_the_contrast_that_its_title_tells() -> None:
    result = cases_why.why()
    for block in sheet_of(result).every:
        assert sum(block.table["contrast"].values) == pytest.approx(result.contrast)
        assert "+6.00" in block.title


@pytest.mark.parametrize("name", ["otherwise", "controlled", "alone"])
def test_no_part_is_marked_that_does_not_do_what_it_brings(name: str) -> None:
    assert not sheet_of(CONTRIBUTED[name]()).every[0].chosen
    assert sheet_of(CONTRIBUTED["stands"]()).every[0].chosen == {0, 5}


def test_rows_of_a_long_list_are_added_up_and_sum_to_the_whole() -> None:
    parts = tuple(
        replace(contributions().parts[3], name=f"L{i} H0", layer=i, head=0, direct=0.1 * (i + 1))
        for i in range(20)
    )
    result = replace(contributions(), parts=parts)
    short, whole = (sheet_of(result, Focus(verbose=full)).every[0] for full in (False, True))
    assert short.names[-1] == "8 others"
    assert len(whole.names) == 20
    for block in (short, whole):
        assert sum(block.table["direct"].values) == pytest.approx(sum(part.direct for part in parts))


def titles(result: Drift) -> list[str]:
    return [block.title for block in drift(result).every]


def test_of_nothing_that_changed_one_line_tells_the_precision_and_tables_of_zeros_stand_aside() -> None:
    result = cases_drift.drift(moved=False)
    made = drift(result)
    assert result.case is Drifted.SAME
    assert f"{100 * result.loudest.mean():.1f} % at most" in made.answer
    assert any(each.endswith(" 1 part in 1,000,000,000") for each in made.notes)
    assert made.every == ()
    assert [block.title for block in made.more] == ["how far each head changed"]
    assert "how far each head changed" in [block.title for block in drift(result, Focus(verbose=True)).every]
    assert made.next is None
    unheard = replace(result, written=np.full_like(result.written, np.nan))
    assert not [each for each in drift(unheard).notes if "write" in each]


def test_a_head_is_beyond_where_it_is_so_in_more_than_half_of_the_texts() -> None:
    result = cases_drift.drift()
    moved = np.zeros_like(result.moved)
    moved[:2, 0, 0] = 1  # two of four
    moved[:3, 1, 2] = 0.01
    changed = replace(result, moved=moved)
    assert changed.ranking[0] == (0, 0)
    assert changed.beyond == {(1, 2)}
    assert "L4 H0 changed most in the mean: 50 %" in drift(changed).answer


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ([(0, 1)], "and only L4 H1 by its own weights"),
        ([(0, 1), (1, 0)], "and only L4 H1 and L5 H0 by their own weights"),
        ([(0, 1), (0, 2), (1, 0)], "only L4 H1, L4 H2 and 1 more by their own weights"),
        ([], "and none by its own weights"),
    ],
)
def test_who_changed_by_its_own_weights_is_named(changed, told: str) -> None:
    result = cases_drift.drift()
    own = np.zeros_like(result.own)
    for rank, place in enumerate(changed):
        own[(slice(None), *place)] = 0.5 - 0.1 * rank
    result = replace(result, own=own, written=np.zeros_like(own))
    assert told in drift(result).answer
    assert ("heads that changed by their own weights" in titles(result)) is bool(changed)


def test_answers_no_further_apart_than_rounding_moves_them_are_given_no_share() -> None:
    result = cases_drift.drift()
    assert result.put_back is not None
    within = replace(result, answers_floor=np.full(4, 0.25))
    made = drift(within)
    assert "by .16 nats, no more than bfloat16 alone makes (.25)" in made.answer
    assert "put back" not in " ".join((made.answer, *made.notes, *titles(within)))


def test_without_controls_it_is_said_that_there_are_none() -> None:
    shown = sheet_of(layered("middle", controls=0))
    assert shown.control == ""
    assert "no shuffled texts were asked for" in shown.notes
    assert not any(column.name == "control" for column in shown.every[0].table.columns)


def test_a_fit_is_told_with_how_well_it_foretells_and_passages_not_taken_away_have_no_number() -> None:
    result = cases_cite.citation(subsets=16)
    assert any("R² 0.80 on subsets held out" in note for note in cited(result).notes)
    assert result.order(0) == (0, 1, 2)
    poor = replace(result, statements=(replace(result.statements[0], r2=0.1),))
    assert any("it predicts little" in note for note in cited(poor).notes)


def test_ways_to_cite_stand_side_by_side_with_none_apart() -> None:
    parts = {"compared": ("6 cases", "100 % ", "61 %", "0 % ", "39 %", "29 %", "none of 2"),
             "one wrongly named": ("1 of 2",), "without a source": ("none of 2",)}  # fmt: skip
    for name, held in parts.items():
        assert [each for each in held if each not in referee_sheet(REFEREES[name]()).answer] == []
    assert "No case" in referee_sheet(REFEREES["all with a source"]()).answer
    notes = referee_sheet(cases_cite.referee()).notes
    assert {"attention x gradient", "9"} <= {each.rpartition(": ")[2] for each in notes}
    assert not [each for each in notes if "--no-gradients" in each]


def test_cases_that_were_not_asked_by_gradients_say_which_ways_are_left_out() -> None:
    made_without = referee_sheet(REFEREES["without gradients"]())
    assert "and gradients is copying heads: 50 %" in made_without.answer
    left = "gradient x input, integrated gradients, attention x gradient"
    assert f"not asked (--no-gradients): {left}" in made_without.notes


def answer(asked: Asked = Asked.FIND, **how) -> str:
    return sheet_of(cases_prompts.prompts(asked, **how)).answer


def test_no_interval_is_of_fewer_than_six_prompts_or_reaches_beyond_what_a_number_can_be() -> None:
    """Five that all lie on one side do so by chance in 2 of 32."""
    five, six = (cases_prompts.prompts(count=count, off=0) for count in (5, 6))
    assert (five.case, six.case) == (Case.FEW, Case.HOLDS)
    assert np.isnan(five.low).all()
    assert np.isfinite(six.low).all()
    assert answer(count=5, off=0).startswith("5 prompts are too few ")
    for asked, (least, most) in {
        Asked.FIND: (0, 1), Asked.PREDICT: (0, 1), Asked.FLOW: (-1, 1), Asked.LIKE: (0, np.inf),
    }.items():  # fmt: skip
        told = cases_prompts.prompts(asked, off=3)
        plain = told.mean - 9 * told.spread
        assert plain.min() < least, "unbounded it might reach so far"
        assert ((told.low >= least) & (told.high <= most)).all()


def test_what_is_the_same_in_every_prompt_is_said_to_be_so() -> None:
    """.3 + .3 + ... is no multiple of .3 in the last bit, which is no spread."""
    told = cases_prompts.prompts(first=0.3, refused=False)
    assert told.spread[0] == 0
    assert told.low[0] == told.high[0] == told.mean[0]
    column = sheet_of(told).every[0].table["between"]
    assert "all alike" in column.values


def many_heads(first_in: int) -> Prompts:
    """8 prompts, 4 layers of 9 heads: L2 H4 loses most, unlike much, and L0 H1 little, always alike."""
    random = np.random.default_rng(4)
    every = []
    for place in range(8):
        own = {
            Figure(f"L{i} H{j}", "nats", i, j): Seen(0.02 * float(random.normal()), 0.01)
            for i in range(4)
            for j in range(9)
        }
        lost = (0.6, 4.5, 0.9, 5.0, 0.5, 1.2, 6.0, 0.7)[place]
        own[Figure("L2 H4", "nats", 2, 4)] = Seen(-lost, 0.01, stands=place < first_in)
        own[Figure("L0 H1", "nats", 0, 1)] = Seen(-0.2, 0.01, stands=place >= first_in)
        every.append(own)
    base = cases_prompts.prompts(Asked.ABLATE, refused=False)
    return replace(base, **vars(tabled(Asked.ABLATE, every)))


def test_heads_taken_away_come_by_what_is_lost_and_one_that_is_always_first_is_so_by_no_luck() -> None:
    always, seldom = many_heads(8), many_heads(2)
    big = [each.name for each in always.figures].index("L2 H4")
    small = [each.name for each in always.figures].index("L0 H1")
    assert always.excess_surely[big] < 0 < always.excess_low[big], "one of 36 means may lie so far by luck"
    assert always.ranking[:2] == (big, small), "both are shown: the larger comes first"
    assert always.case is Case.HOLDS
    assert "luck" not in sheet_of(always).answer
    assert sheet_of(always).answer.startswith("Without L2 H4 the answer becomes 11 times less likely ")
    assert math.exp(2.42) == pytest.approx(11, abs=0.5)
    assert always.errors[small] > 3 * always.errors[big]
    assert seldom.ranking[:2] == (small, big), "what is shown comes before what may be luck"
    one = 36 * sum(math.comb(8, k) * (1 / 9) ** k * (8 / 9) ** (8 - k) for k in range(5, 9))
    assert many_heads(5).case is Case.HOLDS
    assert many_heads(5).ranking[0] == big
    assert one < 0.05 < 36 * sum(math.comb(8, k) * (1 / 9) ** k * (8 / 9) ** (8 - k) for k in range(4, 9))
    assert many_heads(4).ranking[0] == small


def test_a_head_is_first_in_its_layer_only_where_no_other_figure_there_moves_the_answer_more() -> None:
    """Of 8 of 9 heads of a layer each is held against the ninth alone, and half of them come first by lot."""
    always = many_heads(8)
    big, rival = (next(i for i, each in enumerate(always.figures) if each.name == name) for name in _TWO)
    values = always.values.copy()
    values[rival] = (values[big] - 1.0) * (np.arange(8) % 2)  # more is lost than without L2 H4 in four of 8
    assert replace(always, values=values).ranking[0] != big
    stands = always.stands.copy()
    stands[rival] = True  # against the ninth each of the two came first
    second = replace(always, values=values, stands=stands)
    assert second.ranking[0] not in (big, rival)
    assert always.ranking[0] == big
    alone = [i for i, each in enumerate(always.figures) if each.layer != 2 or i == big]
    arrays = {name: getattr(always, name)[alone] for name in ("values", "controls", "effects", "stands")}
    ends = {
        name: getattr(always, name)[alone]
        for name in ("low", "high", "excess_low", "excess_high", "excess_surely")
    }
    figures = tuple(always.figures[i] for i in alone)
    only = replace(always, figures=figures, **arrays, **ends)
    assert only.figures[only.ranking[0]].name == "L0 H1"  # not the only head of its layer


_TWO = "L2 H4", "L2 H3"


def test_a_change_is_against_the_mean_by_its_sign_and_its_size_is_held_against_others() -> None:
    told = cases_prompts.prompts(Asked.ABLATE)
    assert told.excess[0].tolist() == pytest.approx([1.15, 0.85, 1.35, 1.15, 0.85, 1.35, 1.15, 0.25])
    assert told.opposed(0) == (9,)


@pytest.mark.parametrize("asked", Asked)
def test_one_prompt_says_that_it_has_no_interval(asked: Asked) -> None:
    told = cases_prompts.prompts(asked, count=1)
    assert np.isnan(told.low).all()
    assert not re.search(r"\d to [−+]?[.\d]", answer(asked, count=1))
    if asked is not Asked.LAYERS:
        assert "1 prompt is too few " in answer(asked, count=1)


def test_a_change_that_goes_both_ways_has_an_interval_that_covers_0() -> None:
    told = cases_prompts.prompts(Asked.ABLATE, off=4)
    assert told.low[0] < 0 < told.high[0]
    assert told.case is Case.HOLDS, "it moves every prompt more than others do"
    assert "either way" in answer(Asked.ABLATE, off=4)
    assert "either way" not in answer(Asked.ABLATE)


def test_a_change_that_is_smaller_than_that_of_others_is_not_shown() -> None:
    told = cases_prompts.prompts(Asked.ABLATE, first=0.01)
    assert told.excess_high[0] < told.control_mean[0]
    assert told.case is Case.CANNOT_TELL


def test_one_of_several_that_is_beyond_its_controls_alone_may_be_luck() -> None:
    told = cases_prompts.prompts(count=6, off=2, refused=False)
    assert told.excess_surely[0] < 0 < told.excess_low[0]
    assert told.case is Case.ALONE


@pytest.mark.parametrize(("asked", "first"), [(Asked.FIND, "large"), (Asked.LIKE, "small")])
def test_of_figures_that_stand_out_the_largest_comes_first_and_of_distances_the_smallest(
    asked: Asked, first: str
) -> None:
    below = asked is Asked.LIKE
    every = []
    for place in range(8):
        wobble = 0.03 * (-1) ** place
        own = {
            Figure("small", "weight"): Seen(0.2, 0.6 if below else 0.05),
            Figure("large", "weight"): Seen(0.7 + 2 * wobble, 0.9 if below else 0.5),
            Figure("neither, clearer", "weight"): Seen(0.5 + wobble / 2, 0.5),
            Figure("neither, farther off", "weight"): Seen(0.95, 0.7 if below else 1.0),
        }
        every.append(own)
    base = cases_prompts.prompts(asked, refused=False)
    found = replace(base, **vars(tabled(asked, every)))
    names = [found.figures[i].name for i in found.ranking]
    small, large = (next(i for i, each in enumerate(found.figures) if each.name == name) for name in _SIZES)
    assert found.errors[small] > 2 * found.errors[large] > 0 or below
    assert found.case is Case.HOLDS
    assert names[0] == first
    assert set(names[:2]) == {"small", "large"}
    assert names[2:] == ["neither, clearer", "neither, farther off"]


_SIZES = "small", "large"


def test_likeness_is_nearer_where_the_distance_is_less() -> None:
    told = cases_prompts.prompts(Asked.LIKE)
    assert told.excess[0].tolist() == pytest.approx([0.3, 0.28, 0.25, 0.3, 0.28, 0.25, 0.3, -0.1])
    assert told.opposed(0) == (9,)
    assert told.ranking[0] == 0
