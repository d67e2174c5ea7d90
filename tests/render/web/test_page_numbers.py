"""The script of the page writes numbers by the rule of the package: the same cases, in a browser."""

import math
import re

import pytest
import written_numbers as cases

from attnscope.render.web.assets import asset

RULES = {
    "numberText": cases.SIGNIFICANT,
    "parameterText": cases.PARAMETER,
    "signedText": cases.SIGNED,
    "weightText": cases.WEIGHT,
    "weightCell": cases.WEIGHT_CELL,
}


@pytest.fixture(scope="module")
def written(browser):
    """A function of the script by its name, for values and their digits."""
    view = browser.new_page()
    view.add_script_tag(content=re.sub(r"^export ", "", asset("elements.js"), flags=re.MULTILINE))
    yield lambda name, pairs: view.evaluate(
        f"pairs => pairs.map(([value, digits]) => {name}(value, digits))", pairs
    )
    view.close()


@pytest.mark.parametrize("name", RULES)
def test_the_page_writes_a_number_as_the_package_does(written, name) -> None:
    values, texts = [[value, digits] for value, digits, _ in RULES[name]], [text for *_, text in RULES[name]]
    assert written(name, values) == texts


def test_the_page_leaves_a_place_empty_where_there_is_no_number(written) -> None:
    for name in RULES:
        assert written(name, [[math.nan, 2]]) == [""]
