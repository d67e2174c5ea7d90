"""The sheets of heads ranked, of an ablation and of relations: every number beside its controls."""

import re
from collections.abc import Callable
from dataclasses import replace

import cases_ablate
import cases_dependencies
import cases_find
import numpy as np
import pytest
from cases_ablate import alone, one
from cases_dependencies import by_errors
from cases_find import EXAMPLES as FOUND
from cases_find import NUMBERS as FOUND_NUMBERS
from cases_find import ONE, raised, with_heads
from golden_text import IN_FULL, printed
from matplotlib.figure import Figure

from attnscope.errors import InputError
from attnscope.render.figure import figure_of
from attnscope.render.kit.numbers import weight
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets import Focus, sheet_of
from attnscope.render.terminal import sheet as terminal
from attnscope.render.terminal.sheet import written
from attnscope.results import Ablation, Dependencies, Finding, Pattern, Verdict
from attnscope.results.claims.effect import Effect, Floor, Intervention, ranked
from attnscope.results.claims.ranking import Group
from attnscope.verbs.ablate.result import Case
from attnscope.verbs.ablate.sheet import sheet as ablation
from attnscope.verbs.dependencies.result import LEAST, Direction, Example, Relation
from attnscope.verbs.dependencies.sheet import groups
from attnscope.verbs.dependencies.sheet import sheet as dependencies
from attnscope.verbs.find.result import Case as Found
from attnscope.verbs.find.sheet import sheet as finding


def test_a_head_that_position_explains_is_never_called_one_that_stands_out() -> None:
    both = with_heads({(0, 1): 0.99, (1, 2): 0.6}, raised((0, 1), 0.7, 0.72))
    assert both.evidence.as_far((0, 1)) == 0, "it is far beyond its controls"
    assert both.case is Found.ONE
    assert "L1 H2" in finding(both).answer
    names = ranked_heads(both).names
    assert names.index("L1 H2") < names.index("L0 H1")


@pytest.mark.parametrize(
    ("verdict", "begins"),
    [
        (Verdict.INCONCLUSIVE, "Probably: Of 12"),
        (Verdict.PARTIAL, "Probably: Of 12"),
        (Verdict.UNCERTIFIED, "As the model reports it, unchecked: Of 12"),
        (Verdict.FAILED, "✗ Do not use these numbers: 1 of 12 heads does not match the model."),
    ],
)
def test_what_is_not_certified_changes_the_first_line(verdict: Verdict, begins: str) -> None:
    rows = [list(row) for row in ONE.verdicts]
    rows[1][2] = verdict
    told = sheet_of(replace(ONE, verdicts=tuple(map(tuple, rows))))
    assert told.answer.startswith(begins)
    assert (told.next is None) is (verdict is Verdict.FAILED)


def ranked_heads(found: Finding, look: Callable[[Finding], object] = finding) -> Ranking:
    (block,) = [each for each in look(found).every if isinstance(each, Ranking)]
    return block


@pytest.mark.parametrize("name", FOUND_NUMBERS)
def test_a_head_that_the_answer_names_is_a_row_that_is_shown(name: str) -> None:
    shown = finding(FOUND[name]())
    named = set(re.findall(r"L\d+ H\d+", shown.answer)) - {"L2 H4" if name == "one alike" else ""}
    assert named <= {*shown.main.names}


@pytest.mark.parametrize(
    "found",
    [cases_find.finding(), cases_find.finding(by_norm=False), cases_find.finding(pattern=Pattern.PREVIOUS)],
)
def test_few_columns_are_shown_and_in_full_those_that_have_a_meaning(found: Finding) -> None:
    usual = [each.heading for each in ranked_heads(found).table.headed]
    assert usual[:4] == ["weight", "mean", "90 % between", "below"]
    full = {each.heading for each in ranked_heads(found, lambda one: finding(one, IN_FULL)).table.headed}
    assert ("share of output" in full) is (found.shares is not None)
    assert ("goes with the word" in full) is (found.followed is not None)
    assert {"weight", "rank", "mean", "below", "above mean", "excess"} <= full


def test_the_heading_of_a_group_says_how_many_of_a_long_group_are_shown() -> None:
    rare = np.zeros((40, 2, 3))
    rare[np.arange(6), [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]] = 3.0  # in each control another head is clear
    found = cases_find.beside(np.full((2, 3), 0.5), rare)
    assert len(found.evidence.of_group(Group.ABOVE_ITS_OWN)) == 6
    few, every = (_sections(finding(found, focus)) for focus in (Focus(), Focus(verbose=True)))
    assert [re.findall(r"\d+", *each) for each in (few, every)] == [["6", "4", "6", "1"], ["6", "6", "1"]]


def _sections(sheet: Sheet) -> list[str]:
    return [heading for block in sheet.blocks for _, heading in getattr(block, "sections", ())]


def ranking(found: Ablation) -> Ranking:
    (block,) = [each for each in ablation(found).every if isinstance(each, Ranking)]
    return block


def marks(found: Ablation, tint: str) -> list[float]:
    """Where the marks of one meaning are, in the order of the rows."""
    at = [value for mark in ranking(found).marks if mark.tint == tint for value in mark.at]
    return [value for value in at if value is not None]


def shown(found: Ablation, width: int = 80) -> str:
    return "".join(printed(part, width) for part in terminal.screen(found, width, IN_FULL))


def test_of_equal_heads_one_seldom_matters_more_than_the_rest_and_one_or_two_that_do_are_told() -> None:
    random = np.random.default_rng(0)

    def case(changes: list[float]) -> Case:
        heads = [cases_ablate.effect(0, i, -each, typical=0.1, controls=11) for i, each in enumerate(changes)]
        return cases_ablate.ablation(heads=ranked(tuple(heads))).case

    drawn = [random.exponential(1.0, 12).tolist() for _ in range(400)]
    assert sum(case(each) is Case.EACH for each in drawn) <= 36  # 1 in 20 exceeds that once in 1,000 runs
    like = [0.1, 0.2, 0.15, 0.12, 0.11, 0.05, 0.09, 0.2, 0.13, 0.02]
    assert case([3.0, *like]) is Case.EACH
    assert case([3.0, 2.9, *like]) is Case.EACH
    assert case([0.45, 0.3, *like]) is Case.FLAT
    assert case([3.0, 2.9, 2.8, 2.7, *like]) is Case.FLAT


def test_a_head_comes_first_that_exceeds_the_typical_head_of_its_layer_most() -> None:
    loud = cases_ablate.effect(0, 0, -0.9, typical=0.8, below=1, controls=2)
    clear = cases_ablate.effect(1, 0, -0.7, typical=0.1, below=2, controls=2)
    found = cases_ablate.ablation(heads=ranked((loud, clear)))
    assert ranking(found).names == ("L1 H0", "L0 H0")
    assert re.findall(r"L\d H\d", ablation(found).answer) == ["L0 H0", "L1 H0"], "by the change itself"


def test_what_is_asked_next_follows_from_the_case_and_keeps_the_word_that_was_asked_for() -> None:
    def next_of(found: Ablation) -> str:
        return str(ablation(found).next)

    assert "--heads L1H0,L0H1" in next_of(cases_ablate.ablation())
    assert "--heads L1H0,L0H2 --with mean" in next_of(cases_ablate.foretold())
    assert " find " in next_of(cases_ablate.link())
    little = alone(one(-1e-3), answer=replace(cases_ablate.ablation().answer, likeliest=False))
    assert next_of(little).endswith("--answer door")
    assert "--answer" not in next_of(cases_ablate.ablation())
    assert ablation(cases_ablate.ablation(heads=())).next is None


@pytest.mark.parametrize(
    ("change", "unit", "written"),
    [(-0.4, "", "−.40"), (-0.0042, "in thousandths", "−4.2"), (-3.1e-5, "in millionths", "−31.0")],
)
def test_no_number_of_a_dark_cell_is_nothing(change: float, unit: str, written: str) -> None:
    small = tuple(
        cases_ablate.effect(layer, head, change / (1 + 2 * layer + head))
        for layer in (0, 1)
        for head in (0, 1)
    )
    (grid,) = [
        each for each in ablation(cases_ablate.ablation(heads=small)).every if isinstance(each, HeadGrid)
    ]
    assert (grid.unit, grid.text(0, 0)) == (unit, written)
    assert all(grid.text(i, j).strip("−+.0") for i, j in grid.places if np.isfinite(grid.values[i, j]))


def test_a_control_that_there_is_not_is_said_to_be_none() -> None:
    lonely = cases_ablate.ablation(heads=(cases_ablate.effect(0, 0, -0.4),), floor=Floor(2e-7, 0.0, 0, (), 0))
    assert ablation(lonely).control == "none, the layer has no other head; output replaced by zeros"
    told = " ".join(ablation(lonely).legend)
    assert "at most 2.0e-7" in told
    row = next(line for line in shown(lonely).splitlines() if line.startswith("L0 H0 "))
    assert row.split()[-2:] == ["−.400", ".160"], "nothing under typical and rank"
    nothing = cases_ablate.ablation(floor=Floor(0.0, 0.0, 2, (), 0))
    assert "moves by nothing at all" in " ".join(ablation(nothing).legend)


def test_shares_of_a_way_that_is_nothing_are_not_told() -> None:
    near = replace(cases_ablate.patched(), total=Effect(0.25, 0.25, 1e-7, 0.0))
    assert "share of the gap" not in " ".join(shown(near, 140).split())
    assert "share of the gap" in " ".join(shown(cases_ablate.patched(), 140).split())
    assert "19 %" in shown(cases_ablate.patched())


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (Intervention.of(3, 0, 0, True), "✓ certified: the changes were read back in the model"),
        (Intervention.of(3, 0, 0, False), "inconclusive: watching alone changed the answer's scores"),
        (Intervention.of(1, 0, 2, True), "of 3 changed attentions 2 cannot be read back"),
        (Intervention.of(1, 2, 0, True), "2 of 3 changed attentions did not come as asked for"),
    ],
)
def test_what_was_read_back_is_told(done: Intervention, words: str) -> None:
    result = cases_ablate.ablation(intervention=done)
    ((verdict, told),) = ablation(result).proof
    assert words in told
    assert words in " ".join(shown(result, 200).split())
    heading = " ".join(each.get_text() for each in figure_of(result).texts if each.get_weight() == "bold")
    assert (verdict.value in heading.lower()) is (verdict.value != "certified")


def test_all_at_once_comes_first_and_random_heads_only_where_everything_is_asked_for() -> None:
    assert ranking(cases_ablate.together()).names == ("both at once", "L1 H0", "L1 H2")
    assert marks(cases_ablate.together(), "faint") == []
    (block,) = [
        each
        for each in ablation(cases_ablate.together(), Focus(verbose=True)).every
        if isinstance(each, Ranking)
    ]
    assert block.names == ("both at once", "L1 H0", "L1 H2", "L1 H1 random")
    assert block.faint == {3}
    assert "random" not in printed(terminal.screen(cases_ablate.together(), 80)[0], 80)
    assert "L1 H1 random" in shown(cases_ablate.together())


def test_what_is_no_share_of_the_gap_is_told_in_nats_with_the_reason() -> None:
    """A part that goes two and a half times the gap in the wrong direction has no −238 % of it."""
    found = cases_ablate.grid()
    far = replace(found.places[0], enough=2.38 * 7.8)
    told = " ".join(shown(replace(found, places=(far, *found.places[1:])), 160).split())
    assert "238" not in told
    assert "(nats; the gap is −7.82" in told
    assert "+18.56" in told
    assert "no share" in told
    assert "needed: share of the gap" in told, "of this direction all are shares"
    whole = " ".join(shown(found, 160).split())
    assert "no share" not in whole
    assert "enough: share" in whole


def rows(result: Dependencies) -> list[Relation]:
    """The relations that have a row, in the order of the table."""
    return [each for there in groups(result).values() for each in there]


def test_rare_relations_are_left_to_the_files_and_said() -> None:
    result = cases_dependencies.dependencies()
    rare = [each for each in result.relations if each.count < LEAST]
    assert [each.name for each in rare] == ["vocative"]
    assert "vocative" not in result.text().replace("in the files", "")
    assert "1 relation with fewer than 20 pairs, in the files" in result.text()
    assert "vocative" in set(result.to_pandas().relation)


def test_the_best_heads_of_one_relation_stand_beside_the_best_offset() -> None:
    result, relation = (
        cases_dependencies.dependencies("nsubj"),
        cases_dependencies.dependencies().relation("nsubj"),
    )
    (block,) = [each for each in dependencies(result).every if isinstance(each, Ranking)]
    values = np.sort(result.by_head("nsubj"), axis=None)[::-1]
    assert block.table["accuracy"].values == values[:10].tolist()
    assert block.table["above_control"].values == pytest.approx(values[:10] - relation.baseline.accuracy)
    assert block.marks[1].at == [relation.baseline.accuracy]
    assert block.hidden == values.size - 10
    assert relation.held_out is not None
    assert (
        f": {weight(relation.held_out.accuracy)} of {relation.count} pairs, " in dependencies(result).answer
    )
    with pytest.raises(InputError, match="one relation has a panel for each direction"):
        result.plot(ax=Figure().add_subplot())


def test_of_many_relations_one_is_told_apart_only_by_what_is_rare_among_so_many() -> None:
    alone, many = by_errors(2.5), by_errors(2.5, *[0.0] * 9)
    assert alone.told_apart == {"r0": 1}
    assert set(many.told_apart.values()) == {0}
    stepped = by_errors(2.3, -2.6, 2.7)  # p .021, .009 and .007, which .05, .025 and .017 are needed for
    assert stepped.told_apart == {"r0": 1, "r1": -1, "r2": 1}


def test_a_relation_that_would_be_told_alone_says_why_it_is_not_among_others() -> None:
    found = by_errors(2.5, -2.3, 1.5, *[0.0] * 9)  # p .012, .021 and .13; .05 / 12 is needed
    assert set(found.told_apart.values()) == {0}
    why = "r0 (p .012), r1 (p .021) would be found better or worse"
    said = " ".join(written(found, width=140).split())
    assert said.index(why) < said.index("12 relations p .0042 or less")
    three = written(by_errors(-2.3, 2.2, 2.5, *[0.0] * 9), width=140)
    assert "tried alone, r2 (p .012), r1 (p .028) and 1 more would be found" in " ".join(three.split())
    one = replace(found, shown="r1")
    assert "tried alone, r1 (p .021) would be found" in " ".join(written(one, width=140).split())
    for silent in (replace(found, shown="r2"), by_errors(2.5), by_errors(1.5, 4.0)):
        assert "tried alone" not in written(silent, width=140)


def test_relations_stand_in_groups_the_best_evidence_first() -> None:
    found = by_errors(0.5, -4.0, 4.0, 1.0, 5.0)
    (block,) = dependencies(found).every
    assert isinstance(block, Ranking)
    assert block.names == ("r4", "r2", "r3", "r0", "r1", found.overall.name)
    assert [heading for _, heading in block.sections] == [
        "a head is better", "cannot tell", "the distance is better", "all together",
    ]  # fmt: skip
    assert [row for row, _ in block.sections] == [0, 2, 4, 5]
    many = by_errors(*[0.1 * i for i in range(20)])
    (short,) = dependencies(many).every
    (whole,) = dependencies(many, Focus(verbose=True)).every
    assert len(short.names) == 4 + 1  # type: ignore[union-attr]
    assert short.unshown.startswith("16 relations more (-v)")  # type: ignore[union-attr]
    assert len(whole.names) == 21  # type: ignore[union-attr]


def test_what_leads_on_reads_the_same_file_in_the_same_way() -> None:
    found = cases_dependencies.dependencies()
    piped, named = (
        replace(found.provenance, read=read, run=("-m", found.provenance.model, "--device", "cpu"))
        for read in (None, ("../my.conllu", "--limit", "8"))
    )
    assert sheet_of(replace(found, provenance=piped)).next is None
    found = replace(found, provenance=named)
    led = sheet_of(found).next
    assert led is not None
    named = f"attnscope dependencies ../my.conllu --limit 8 -m {found.provenance.model}"
    assert led.command.startswith(f"{named} --device cpu --relation ")


def test_a_head_that_comes_nearest_is_shown_where_many_larger_ones_stand_before_it() -> None:
    wide = np.random.default_rng(2).random((60, 3, 4)) * 0.45
    wide[:, 2, 3] = wide[:, 1, 3] = 0.01
    wide[:4, 1, 3] = 0.95
    own = np.full((3, 4), 0.5)
    own[2, 3], own[1, 3] = 0.35, 0.01
    found = cases_find.beside(own, wide)
    assert found.case is Found.CANNOT_TELL
    assert found.evidence.of_group(found.evidence.group((2, 3)))[-1] == (2, 3)
    assert "L2 H3" in finding(found).answer
    assert "L2 H3" in finding(found).main.names


def test_behind_a_relation_that_is_not_told_others_need_what_it_needed() -> None:
    found = by_errors(2.61, 2.6, *[0.0] * 4)  # p .0091 and .0093, where .05 / 6 and .05 / 5 would be needed
    assert [needed for _, _, needed in found.by_p] == pytest.approx([0.05 / 6] * 6)
    assert set(found.told_apart.values()) == {0}


def test_of_a_heads_strongest_word_the_head_is_marked_and_its_dependent_told() -> None:
    words = "the", "old", "door", "opened"
    missed = Example(words, 2, 3, 1, Direction.STRONGEST)
    assert (missed.right, replace(missed, taken=2).right) == (False, True)
    found = cases_dependencies.dependencies()
    relations = replace(found.relations[0], examples=(missed,)), *found.relations[1:]
    told = " ".join(written(replace(found, relations=relations), Focus(verbose=True), width=140).split())
    assert "misses “the old door «opened»”: old, not door" in told
