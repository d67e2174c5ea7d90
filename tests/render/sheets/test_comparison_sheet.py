"""A comparison, two runs held against each other, and a word in many texts as they are shown."""

import csv
import io
import json
import math
import re
from dataclasses import replace

import cases_compare as made
import cases_difference
import numpy as np
import pytest
from cases_senses import EXAMPLES as SENSED
from golden_text import IN_FULL, assert_golden, printed

from attnscope.render.files import as_csv, as_json, as_npz
from attnscope.render.sheet.blocks import Block, Matrix, Ranking
from attnscope.render.sheets import WHOLE
from attnscope.render.terminal import sheet as terminal
from attnscope.results import Comparison, Difference
from attnscope.verbs.compare.difference_sheet import sheet as difference
from attnscope.verbs.compare.senses_sheet import sheet as senses
from attnscope.verbs.compare.sheet import MOST_KEYS
from attnscope.verbs.compare.sheet import sheet as comparison

LONG = ["[CLS]", *(f"w{i}" for i in range(70)), "bank", "[SEP]"]
CASES = {"texts": made.texts, "cross": made.cross, "layers": made.layers, "models": made.models}


def shown(result: Comparison, width: int = 80, colour: str | None = None) -> str:
    parts = terminal.screen(result, width, IN_FULL)
    return "\n".join(printed(each, width, colour) if colour else printed(each, width) for each in parts)


# terminal


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("width", [80, 140])
def test_what_a_terminal_shows(name: str, width: int) -> None:
    assert_golden(f"comparison_{name}_{width}", shown(CASES[name](), width))


@pytest.mark.parametrize(
    ("there", "said"), [(6, "all heads of a layer together"), (12, "6 chosen heads together")]
)
def test_cosines_of_some_heads_are_not_said_to_be_of_all(there: int, said: str) -> None:
    result = made.texts(heads=6)
    a, b = (replace(side, head=replace(side.head, heads=there)) for side in result.sides)
    result = replace(result, a=a, b=b)
    assert f"vectors of A and B, {said}" in " ".join(shown(result).split())


def test_a_special_token_is_marked_nowhere() -> None:
    text = shown(made.texts(places=(0, 2)))
    assert "“[CLS]” and “bank” in two texts" in text
    assert "A “we sat on the bank .”" in text


# blocks and picture


def blocks(result: Comparison) -> tuple[Block, ...]:
    return comparison(result, WHOLE).every


def sides(result: Comparison) -> tuple[Ranking, Ranking]:
    a, b = (each for each in blocks(result)[-2:] if isinstance(each, Ranking))
    return a, b


def test_of_a_long_text_the_strongest_keys_and_the_word_are_drawn_with_their_positions() -> None:
    result = made.texts(LONG, places=(71, 2))
    first, _ = sides(result)
    weights = result.a.weights
    assert "71 bank" in first.names
    bars = sorted((each for each in first.marks[0].at if each is not None), reverse=True)
    matter = np.sort(weights[weights >= 0.05 * weights.max()])[::-1]
    assert len(bars) <= min(len(matter), MOST_KEYS) + 1
    assert bars[: len(matter)] == pytest.approx(matter[:MOST_KEYS])
    assert first.names[-1].strip() == f"{len(weights) - len(bars)} others"
    assert first.table["weight"].values[-1] == pytest.approx(1 - sum(bars))
    assert first.marks[0].at[-1] is None, "what is added up has no bar: it would have another scale"


def test_of_a_very_long_text_what_stands_around_the_word_is_written() -> None:
    words = [*("far" for _ in range(200)), "bank", *("off" for _ in range(200))]
    for names, place, dots in ((words, 200, 2), (words[200:], 0, 1), (words[:201], 200, 1)):
        told = comparison(made.texts(names, places=(place, 2)), WHOLE).texts[0]
        assert "«bank»" in told
        assert told.count("…") == dots
        assert len(told) < 360
    assert "…" not in comparison(made.texts(), WHOLE).texts[0]


# files


def strict(text: str) -> dict:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def read(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def test_json_csv_and_npz_hold_the_same_numbers() -> None:
    result = made.models()
    document, arrays = strict(as_json(result)), read(as_npz(result))
    lines = [line for line in as_csv(result).splitlines(keepends=True) if not line.startswith("# ")]
    facts = {
        (row["fact"], row["side"], row["layer_a"], row["head"], row["key"]): float(row["value"])
        for row in csv.DictReader(lines)
    }
    for similarity in result.similarities:
        name = similarity.vector
        np.testing.assert_array_equal(document["cosine"][name]["heads"], similarity.heads)
        np.testing.assert_array_equal(arrays[f"cosine {name} heads"], similarity.heads)
        np.testing.assert_array_equal(arrays[f"cosine {name} together"], similarity.together)
        assert facts[f"cosine {name}", "", "2", "5", ""] == similarity.heads[2, 5]
        assert facts[f"cosine {name}", "", "2", "together", ""] == similarity.together[2]
    for name, fact in (("jensen_shannon", "jensen-shannon nats"), ("total_variation", "total variation")):
        values = getattr(result.divergence, name)
        np.testing.assert_array_equal(document["divergence"][name], values)
        np.testing.assert_array_equal(arrays[f"divergence {name}"], values)
        assert facts[fact, "", "1", "4", ""] == values[1, 4]
    for letter, side in zip("ab", result.sides, strict=True):
        np.testing.assert_array_equal(document[letter]["weights"], side.weights)
        np.testing.assert_array_equal(arrays[f"{letter} weights"], side.weights)
        np.testing.assert_array_equal(document[letter]["value"], side.head.v[side.position])
        assert facts["weight", letter, "3", "1", "6"] == side.weights[6]


@pytest.fixture(scope="module")
def found() -> Difference:
    return cases_difference.between()


@pytest.fixture(scope="module")
def same() -> Difference:
    return cases_difference.same()


def test_heads_are_ranked_beside_rounding(found: Difference) -> None:
    (heads, *_) = difference(found).every
    assert isinstance(heads, Ranking)
    order = found.ranking[:10]
    assert heads.names == tuple(found.name(i) for i in order)
    assert heads.table["divergence"].values == [found.divergences[i] for i in order]
    times = found.largest[order[0]] / found.rounding[order[0]]
    assert heads.table["rounding"].values[0] == f"{times:,.0f} times rounding"
    assert heads.hidden == len(found.pairs) - 10
    within = replace(found, rounding=np.ones_like(found.rounding))
    assert set(difference(within).every[0].table["rounding"].values) == {"within rounding"}  # type: ignore[union-attr]
    unknown = replace(found, rounding=np.full_like(found.rounding, math.nan))
    assert any("tolerance" in each for each in difference(unknown).notes)
    assert not any("tolerance" in each for each in difference(found).notes)


def test_the_matrix_is_what_the_second_run_gives_more(found: Difference, same: Difference) -> None:
    (matrix,) = [each for each in difference(found).every if isinstance(each, Matrix)]
    np.testing.assert_array_equal(matrix.values, found.after - found.before)
    hidden = replace(found, before=np.zeros_like(found.before), after=np.eye(*found.after.shape))
    (diagonal,) = [each for each in difference(hidden).every if isinstance(each, Matrix)]
    assert np.isfinite(diagonal.values).sum() == len(found.before)
    assert not any(isinstance(each, Matrix) for each in difference(same).every), "there is nothing to see"


def test_no_number_is_called_good_before_it_is_said_that_nothing_could_have_come_out() -> None:
    told = senses(SENSED["few texts"]()).answer
    assert told.index("too few") < told.index("cosine")
    shuffled = SENSED["parted beside shuffled labels"]()
    reached = shuffled.separation.reached  # a shuffling may meet the real labels
    assert f"{reached or 'any'} of 99 shufflings of the labels" in senses(shuffled).answer
    assert "99 times" in senses(shuffled).control


def test_the_least_p_stands_beside_any_p() -> None:
    (told,) = senses(SENSED["few texts"]()).details
    assert re.findall(r"[.]?\d+", told) == [".10", "10", ".10"]
