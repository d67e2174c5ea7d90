"""A page by sentences or passages: sums over keys and means over queries, as a terminal has them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner
from written_numbers import number_of

import attnscope as at
from attnscope.cli.app import app
from attnscope.render.terminal.sheet import written

TEXT = "The door was open. A boy saw it!\n\nWas [MASK] cold?"
GROUPS = {  # positions of [CLS], of every part and of [SEP], counted by hand
    "sentence": ([0], [1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12, 13, 14], [15]),
    "passage": ([0], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [11, 12, 13, 14], [15]),
}
READ = "[CLS] the door was open . a boy saw it ! was [MASK] cold ? [SEP]"
WEIGHTS = "() => [...document.querySelectorAll('#view text[data-key].number')].map(each => each.textContent)"
CELLS = "() => [...document.querySelectorAll('#view text.value')].map(each => each.textContent)"
CHOICE = '[data-choice="words"]'


@pytest.fixture(scope="module")
def reading() -> at.Reading:
    found = at.load("demo").read(TEXT)
    assert " ".join(found.tokens.names).lower() == READ.lower()
    return found


def plainly(weights: np.ndarray, groups: tuple[list[int], ...]) -> np.ndarray:
    """Added up over the tokens of a key, averaged over those of a query."""
    rows = [weights[query].astype(np.float64).mean(axis=0) for query in groups]
    return np.array([[row[key].sum() for key in groups] for row in rows])


def cells_of(screen: str, rows: int) -> list[str]:
    """The numbers of the matrix in a terminal, row after row."""
    lines = screen.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("query ↓")) + 1
    return [cell for line in lines[first : first + rows] for cell in line.split()[-rows:]]


@pytest.mark.parametrize("by", GROUPS)
def test_choosing_a_unit_sums_over_keys_and_averages_over_queries_as_the_terminal_does(
    opened: Any, go: Any, reading: at.Reading, by: str
) -> None:
    groups, tokens, shown = GROUPS[by], reading.head(1, 3).weights, reading.head(1, 3, by=by)
    expected = plainly(tokens, groups)
    with opened(shown, "#L1H3,view=matrix") as view:
        choice = view.locator(CHOICE)
        assert choice.locator("option").all_inner_texts() == ["tokens", f"{by}s"]
        assert choice.input_value() == "true", "it opens as it was asked"
        cells = view.evaluate(CELLS)
        assert cells == cells_of(written(shown, width=100), len(groups))
        assert [number_of(each) for each in cells] == pytest.approx(expected.ravel(), abs=0.0051)
        choice.select_option("false")
        view.wait_for_function(
            "many => document.querySelectorAll('#view text.value').length === many", arg=256
        )
        assert [number_of(each) for each in view.evaluate(CELLS)] == pytest.approx(tokens.ravel(), abs=0.0051)
        choice.select_option("true")
        for row, group in enumerate(groups):
            go(view, f"#L1H3,view=lines,q={group[0]}")
            told = [number_of(each) for each in view.evaluate(WEIGHTS)]
            assert told == pytest.approx(expected[row], abs=6e-4)


def test_a_sentence_goes_by_its_own_number_and_by_no_place_of_a_token(
    opened: Any, reading: at.Reading
) -> None:
    with opened(reading.head(1, 3, by="sentence"), "#L1H3,view=matrix,q=11,k=6") as view:
        assert view.inner_text("#reader h2") == "L1 H3 · 3 Was [MASK] cold?"
        assert re.match(r"3 Was \[MASK\] cold\? → 2 A boy saw it!: \.\d+$", view.inner_text("output.readout"))
        assert view.get_by_role("button", name="all queries again").inner_text() == "3 Was [MASK] cold? ✕"
        rows = [row.split() for row in view.locator("#lists section").first.locator("li").all_inner_texts()]
        assert sorted(row[0] for row in rows if row) == ["0", "1", "2", "3", "4"]
        view.locator(CHOICE).select_option("false")
        view.wait_for_function("document.querySelector('#reader h2').innerText === 'L1 H3 · 11 Was'")


def test_a_page_of_find_by_sentence_opens_on_sentences(
    opened: Any, reading: at.Reading, tmp_path: Path
) -> None:
    asked = ["find", TEXT, "-m", "demo", "--from", "3", "--to", "1", "--by", "sentence", "--controls", "20"]
    file = tmp_path / "found.html"
    ended = CliRunner().invoke(app, [*asked, "-q", "-o", str(file)], env={"HF_HUB_OFFLINE": "1"})
    assert ended.exit_code == 0, ended.stderr
    with opened(file.read_bytes()) as view:
        head = re.match(r"L(\d+) H(\d+) · 3 Was \[MASK\] cold\?$", view.inner_text("#reader h2"))
        assert head is not None
        layer, number = map(int, head.groups())
        expected = plainly(reading.head(layer, number).weights, GROUPS["sentence"])[3]
        assert view.locator("#text-query .t").count() == len(GROUPS["sentence"])
        rows = view.locator("#lists section").first.locator("li").all_text_contents()
        told = {int(row[0]): number_of(row[-4:]) for row in rows if row}
        assert told == pytest.approx(dict(enumerate(expected)), abs=6e-3)


def test_across_two_texts_the_sentences_of_both_stand_under_their_own_heading(opened: Any) -> None:
    read = at.load("demo-translate").read("The cat sleeps. The dog sleeps.")
    shown = read.head(1, 1, kind="cross", by="sentence")
    with opened(shown, "#L1H1,view=matrix") as view:
        headings = view.locator("#text .side, #reader .side").all_inner_texts()
        assert headings == ["what looks", "what is looked at"]
        sides = [view.locator(f"#text-{side} .t").all_inner_texts() for side in ("query", "key")]
        assert sides == [
            ["[BOS]", "le chat dort.", "le chien dort."],
            ["The cat sleeps.", "The dog sleeps.", "[EOS]"],
        ]
        labels = view.locator("#view svg text.label").all_text_contents()
        assert [each.split()[0] for each in labels] == ["0", "1", "2"] * 2
