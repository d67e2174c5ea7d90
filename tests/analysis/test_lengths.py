"""Costs at several lengths, beyond what a model reads too: held against the same model made for more."""

from dataclasses import replace

import pytest
from families import HIDDEN
from made_outlines import outline
from outlined import config, outlined

from attnscope.analysis.outline.outline import cost_at
from attnscope.errors import InputError
from attnscope.render.sheets import sheet_of
from attnscope.results import Cost

READS, LONG, MADE_FOR = 64, 200, 256


def made_for_more(family: str) -> Cost:
    """The cost at the long length of the same model with more positions."""
    longer = config(family)
    longer.max_position_embeddings = MADE_FOR
    cost = outlined(longer, length=LONG).cost
    assert cost is not None
    return cost


def test_beyond_a_table_of_positions_the_cost_is_that_of_a_model_with_a_larger_one() -> None:
    told, oracle = outlined(config("bert"), length=LONG).cost, made_for_more("bert")
    assert told is not None
    assert told.beyond
    assert not oracle.beyond
    table = 4 * (MADE_FOR - READS) * HIDDEN
    assert replace(told, beyond=False, weights=told.weights + table) == oracle


def test_computed_positions_are_run_at_any_length() -> None:
    told = outlined(config("llama"), length=LONG).cost
    assert told is not None
    assert told.beyond
    assert replace(told, beyond=False) == made_for_more("llama")


def test_every_length_has_its_cost_and_the_run_is_one_that_the_model_can_make() -> None:
    result = outlined(config("bert"), length=[LONG, 16, READS])
    assert [(cost.length, cost.beyond) for cost in result.costs] == [
        (LONG, True),
        (16, False),
        (READS, False),
    ]
    assert result.length == READS
    assert result.towers[0].layers[0].seen
    assert result.costs[1] == outlined(config("bert"), length=16).cost
    assert outlined(config("bert"), length=16).further == ()


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_figure_is_gone_on_with_only_where_a_fourth_length_confirms_the_rule(degree: int) -> None:
    base = outline().cost
    assert base is not None

    def run(length: int) -> Cost | None:
        return None if length > READS else replace(base, length=length, kernel=7 + 3 * length**degree)

    if degree < 3:
        told = cost_at(1000, READS, READS, run, "some")
        assert told is not None
        assert told.kernel == 7 + 3 * 1000**degree
        return
    with pytest.raises(InputError, match="--length 1000: nothing can be said of a text so long, some reads"):
        cost_at(1000, READS, READS, run, "some")


@pytest.mark.parametrize("wrong", [0, -3, 10**9 + 1])
def test_what_is_no_length_is_refused(wrong: int) -> None:
    with pytest.raises(
        InputError, match=f"--length {wrong}: a text has 1 to 1,000,000,000 tokens, bert reads"
    ):
        outlined(config("bert"), length=wrong)


def test_growth_is_that_of_the_text_and_of_its_weights() -> None:
    base = outline().cost
    assert base is not None
    short, long = (replace(base, length=n, queries=n, keys=n) for n in (128, 1024))
    for at, weights in ((long, 64), (replace(long, keys=128), 8)):
        notes = sheet_of(replace(outline(), cost=at, further=(short,))).notes
        assert notes[-1] == f"from 128 to 1,024 tokens: 8 times the text, {weights} times the weights"
    beyond = replace(outline(), cost=replace(long, tower="other", beyond=True), further=(short,))
    assert not any("reads at most" in each for each in sheet_of(beyond).notes)
