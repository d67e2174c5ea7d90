"""The parts of an answer: their sum, and never that a part does what it was not seen to do."""

import re
from dataclasses import replace

import pytest
from cases_contributions import EXAMPLES, contributions

from attnscope.render.focus import Focus
from attnscope.render.sheets import sheet_of

made = contributions


@pytest.mark.parametrize("name", ["otherwise", "controlled", "alone"])
def test_no_part_is_marked_that_does_not_do_what_it_brings(name: str) -> None:
    assert not sheet_of(EXAMPLES[name]()).every[0].chosen
    assert sheet_of(EXAMPLES["stands"]()).every[0].chosen == {0, 5}


def test_the_sum_stands_in_the_heading_and_beside_the_models_own_logit() -> None:
    result = replace(made(), summed=1.5001, residual=4e-6)
    shown = sheet_of(result)
    assert shown.every[0].title.endswith("+1.50")
    assert re.findall(r"[+-]?\d\S*\d", shown.untouched) == ["+1.5001", "+1.5", "4.0e-6", "1e-5"]


def test_rows_of_a_long_list_are_added_up_and_sum_to_the_whole() -> None:
    parts = tuple(
        replace(made().parts[3], name=f"L{i} H0", layer=i, head=0, direct=0.1 * (i + 1)) for i in range(20)
    )
    result = replace(made(), parts=parts)
    short, whole = (sheet_of(result, Focus(verbose=full)).every[0] for full in (False, True))
    assert short.names[-1] == "8 others"
    assert len(whole.names) == 20
    for block in (short, whole):
        assert sum(block.table["direct"].values) == pytest.approx(sum(part.direct for part in parts))
