"""The parts of a score on the screen, in a picture and in files, against the numbers themselves."""

import csv
import io
import json
import math
import re

import made_results as made
import numpy as np
import pytest
from golden_text import assert_golden, printed
from rich.cells import cell_len

from attnscope.render import files
from attnscope.render.figure import figure_bytes
from attnscope.render.screen import query_terms, terms
from attnscope.render.terms.figure import terms_figure
from attnscope.render.terms.plot import panels_of
from attnscope.results import HeadTerms, Influence
from attnscope.results.terms import CAP, CONTENT, MASK, SINK

LONG = [f"w{i}" for i in range(70)]


def result(
    names=made.DOOR, causal: bool = True, sink: bool = True, capped: bool = True, **changed
) -> HeadTerms:
    """A head with a cap, two terms and a sink, its sums made here in NumPy."""
    plain = made.head(names, causal=causal, **changed)
    random = np.random.default_rng(5)
    added = {name: random.normal(size=plain.scores.shape) for name in ("content to position", "alibi")}
    scaled = plain.scores * plain.scale
    cap = 4 * np.tanh(scaled / 4) if capped else scaled
    score = np.where(plain.allowed, cap + sum(added.values()), np.nan)
    sinks = np.full(len(score), 0.5) if sink else None
    totals = np.nansum(np.exp(score), axis=1) + (np.exp(0.5) if sink else 0)
    normaliser = np.where(plain.allowed.any(1), np.log(totals), np.nan)
    weights = np.where(plain.allowed, np.exp(score - normaliser[:, None]), 0.0)
    weights[~plain.allowed.any(1)] = np.nan
    fields = {**vars(plain), "scaled": score, "weights": weights, "terms": added}
    head = type(plain)(**fields | {"softcap": 4.0 if capped else None, "sink": 0.5 if sink else None})
    parts = (CONTENT, *((CAP,) if capped else ()), *added, *((MASK,) if causal else ()))
    nan = math.nan
    influences = tuple(
        Influence(name, *((nan,) * 3 if name == MASK else (0.1, -2.5, 3.25)), 0.25, 0.75)
        for name in (*parts, *((SINK,) if sink else ()))
    )
    return HeadTerms(head, scaled, cap, sinks, normaliser, influences)


GOLDEN = {
    "terms": lambda width: terms(result()),
    "terms_of_a_query": lambda width: query_terms(result(), 4, 2, width),
    "terms_of_a_query_without_extras": lambda width: query_terms(
        result(causal=False, sink=False, capped=False), 4, None, width
    ),
    "terms_of_many_keys": lambda width: query_terms(result(LONG), 65, 3, width),
    "terms_of_a_query_without_key": lambda width: query_terms(result(empty=[3]), 3, None, width),
}


@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize("name", GOLDEN)
def test_the_text_is_the_golden_text_and_no_line_is_too_wide(name: str, width: int) -> None:
    text = printed(GOLDEN[name](width), width)
    assert_golden(f"{name}.{width}", text)
    assert max(cell_len(line) for line in text.splitlines()) <= width


def test_the_numbers_of_every_row_add_up_to_its_score_as_printed() -> None:
    text = printed(query_terms(result(), 6, None, 140), 140)
    rows = [line.split() for line in text.splitlines() if re.match(r" ?\d+ \S+ +-?\d", line)]
    assert len(rows) == 13
    for row in rows[:7]:
        capped, position, alibi, mask, score = map(float, row[4:9])
        assert capped + position + alibi + mask == pytest.approx(score, abs=0.002)
    assert all(row[7:] == ["-∞", "-∞", ".000"] for row in rows[7:])


def test_the_worked_line_holds_as_printed() -> None:
    line = " ".join(printed(query_terms(result(), 4, 2, 100), 100).split("key ")[0].split())
    product, scale, scaled = map(float, re.search(r"q·k (\S+) x (\S+) = (\S+),", line).groups())
    assert product * scale == pytest.approx(scaled, abs=0.002)
    score, normaliser, weight = map(float, re.search(r"exp\((\S+) - (\S+)\) = weight (\S+),", line).groups())
    assert math.exp(score - normaliser) == pytest.approx(weight, abs=0.002)


def test_columns_that_do_not_fit_are_named_and_the_last_ones_stay() -> None:
    text = printed(query_terms(result(), 4, None, 44), 44)
    assert "left out here: q·k" in " ".join(text.split())
    assert "score  weight" in text
    assert "left out here" not in printed(query_terms(result(), 4, None, 140), 140)


def test_the_picture_has_a_panel_for_every_part_on_one_scale_and_is_always_the_same() -> None:
    shown = panels_of(result())
    assert list(shown) == [CONTENT, CAP, "content to position", "alibi", "score", "weight"]
    assert len({panel.extent for name, panel in shown.items() if name != "weight"}) == 1
    assert shown["weight"].extent == 1.0
    figure = terms_figure(result())
    assert [axes.get_title() for axes in figure.axes] == list(shown)
    drawn = [np.ma.getdata(axes.collections[0].get_array()).reshape(13, 13) for axes in figure.axes]
    total = sum(drawn[:4])
    allowed = result().head.allowed
    assert total[allowed] == pytest.approx(drawn[4][allowed])
    assert figure_bytes(figure, "svg") == figure_bytes(terms_figure(result()), "svg")


def test_a_head_with_nothing_added_has_no_panel_of_the_score_beside_its_product() -> None:
    bare = result(causal=False, sink=False, capped=False)
    head = type(bare.head)(**vars(bare.head) | {"terms": {}, "scaled": bare.scaled})
    assert list(panels_of(type(bare)(**vars(bare) | {"head": head}))) == [CONTENT, "weight"]


def test_the_document_holds_every_step_and_nulls_where_a_key_is_masked() -> None:
    of = result()
    document = json.loads(files.as_json(of))
    assert document["schema"] == "attnscope.terms/1"
    assert [part["name"] for part in document["parts"]] == [each.name for each in of.influences]
    assert document["terms"]["alibi"] == pytest.approx(of.head.terms["alibi"])
    steps = (document[name][5][3] for name in ("times_scale", "capped", "scaled"))
    assert list(steps) == pytest.approx([of.scaled[5, 3], of.capped[5, 3], of.head.scaled[5, 3]])
    assert document["scaled"][3][5] is None
    assert document["sink_weights"] == pytest.approx(of.sink_weights)


def test_the_table_as_csv_has_a_row_per_pair_and_one_per_sink() -> None:
    of = result()
    text = files.as_csv(of)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    assert len(rows) == 13 * 13 + 13
    row = rows[5 * 13 + 3]
    total = sum(float(row[name]) for name in ("capped", "content to position", "alibi", "mask"))
    assert total == pytest.approx(float(row["score"])) == pytest.approx(of.head.scaled[5, 3])
    assert float(row["q·k"]) * float(row["scale"]) == pytest.approx(float(row["scaled"]))
    assert (rows[-1]["key_token"], float(rows[-1]["score"])) == ("sink", 0.5)
    assert "# score part: alibi: mean 0.1" in text


def test_the_archive_holds_the_same_arrays() -> None:
    of = result()
    with np.load(io.BytesIO(files.as_npz(of))) as archive:
        assert np.array_equal(archive["times_scale"], of.scaled)
        assert np.array_equal(archive["terms alibi"], of.head.terms["alibi"])
        assert np.array_equal(archive["sinks"], of.sinks)
