"""Heads by several measures: grids, panels and files, each from what is said of a measure in the result."""

import csv
import io
import json
import math
import re
from dataclasses import replace

import made_reports as reports
import made_results as made
import numpy as np
import pytest
from cases_corpus import flat
from cases_corpus import measured as measured_over
from golden_text import assert_golden, body, printed
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from torch import Tensor
from typer.testing import CliRunner

from attnscope.cli.app import app
from attnscope.measures import MEASURES, Measure, Tile, parse_measures
from attnscope.measures.registry import formula, measurable
from attnscope.render.figure import figure_of
from attnscope.render.files import as_csv, as_json, as_npz
from attnscope.render.kit.numbers import number
from attnscope.render.sheet import measured
from attnscope.render.sheets import Focus
from attnscope.render.sheets.overview import sheet as overview
from attnscope.render.terminal.measures import BEGIN, measure_explained, measures_begun, measures_table
from attnscope.results import Kind, MeasureDescription, Overview, Verdict
from attnscope.results.stored.document import MeasureListed, MeasuresListing, measures_document
from attnscope.verbs.corpus.sheet import sheet as corpus
from attnscope.verbs.report.answer import statistics
from attnscope.verbs.report.sheet import facts

FAILED = {(1, 2): Verdict.FAILED}
EVERY = ("entropy", "confidence", "distance", "self", "previous", "next", "first")


def several(*names: str, **changed: object) -> Overview:
    return made.measured(made.overview(**({"verdicts": FAILED} | changed)), *names)  # type: ignore[arg-type]


def crossing(*names: str) -> Overview:
    """Cross-attention of 2 layers by 3 heads."""
    return made.measured(replace(made.overview(2, 3), kind=Kind.CROSS), *names)


def meshes(figure: Figure, heads: int = 144) -> list[QuadMesh]:
    """The grids of a picture, one after the other."""
    every = [each for axes in figure.axes for each in axes.collections if isinstance(each, QuadMesh)]
    return [each for each in every if np.size(each.get_array()) == heads]


def table(text: str) -> list[dict[str, str]]:
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("# ")]
    return list(csv.DictReader(lines))


def said_of(measure: str, **described: object) -> dict[str, str]:
    """What `heads` and `corpus` say of a measure, where they know the strongest head and where not."""
    values = np.array([[0.25, 0.5, 0.75], [0.125, 0.375, np.nan]])
    scores = made.scores(measure, values, 11)
    scores = replace(scores, description=replace(scores.description, **described))
    name, found = scores.measure, dict[str, str]()
    if name != "entropy":  # which is said in tokens there
        found["heads"] = overview(replace(made.overview(2, 3), scores={name: scores})).answer
    if name in measurable(tuple(MEASURES)):
        own, other = flat(0.1, at12=0.6, at20=0.05), flat(0.1, at00=0.7, at02=0.05)
        for case, halves in (("strongest", (own, own)), ("cannot tell", (own, other))):
            result = measured_over(name, own, *halves)
            over_texts = replace(result.main, scores=replace(scores, values=own))
            result = replace(result, measures={name: over_texts})
            assert result.case == case
            found[case] = corpus(result, Focus(in_nats=True)).answer
    return found


@pytest.mark.parametrize("name", [each for each in MEASURES if not MEASURES[each].description.classes])
def test_every_measure_is_said_in_english(name: str) -> None:
    does = r"[a-z]+s [a-z ',]*\b(most|least|farthest)\b[a-z ',]*"
    number = r"[+−]?[.\d]+( of its attention| of all tokens| tokens)?"
    forms = {
        "heads": rf"L\d H\d is the one of 5 heads that ({does}): {number} \(for the typical head: \S+\)\.",
        "strongest": rf"L\d H\d is the one of 12 heads that ({does}): {number} in 41 texts .*\.",
        "cannot tell": rf"It is not clear which of 12 heads ({does}): over one half of the 41 texts .*\.",
    }
    found = {case: re.fullmatch(forms[case], answer) for case, answer in said_of(name).items()}
    assert None not in found.values(), said_of(name)
    (phrase,) = {each[1] for each in found.values() if each}
    assert phrase.endswith(", counted by norm") == name.endswith("-norm")


def test_a_measure_of_somebody_else_is_said_by_its_label() -> None:
    told = said_of("previous", name="nearby", label="weight on keys nearby")["heads"]
    assert told.startswith("L0 H2 is the one of 5 heads that has the most weight on keys nearby: .75")
    least = said_of("evenness", name="own", label="")["heads"]
    assert least.startswith("L1 H0 is the one of 5 heads that has the least own: .12 (")


def archive(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(lambda each: hasattr(each, "get_text")))


GOLDEN = {
    "overview_of_one_measure": lambda: several("previous"),
    "overview_of_all_measures": lambda: several(*EVERY),
    "overview_of_measures_of_few_heads": lambda: several("distance", "self", "entropy", layers=2, heads=3),
    "overview_of_measures_across": lambda: crossing("self", "entropy", "next", "first"),
}


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("name", GOLDEN)
def test_the_terminal_shows(name: str, width: int) -> None:
    text = printed(body(GOLDEN[name](), width), width)
    assert max(map(len, text.splitlines())) <= width
    assert_golden(f"{name}.{width}", text)


@pytest.mark.parametrize(("name", "dark"), [("entropy", "low"), ("self", "high"), ("distance", "high")])
def test_the_strong_end_is_dark(name: str, dark: str) -> None:
    scores = several(name).main
    low, high = scores.limits
    scale = measured.scale(scores)
    assert scale.strength(low if dark == "low" else high) == 1
    assert scale.strength(high if dark == "low" else low) == 0
    (mesh, *_) = meshes(figure_of(several(name)))
    shades = [sum(mesh.to_rgba(np.array([bound]))[0][:3]) for bound in (low, high)]
    assert (shades[0] < shades[1]) == (dark == "low")


def test_what_has_no_meaning_here_has_no_grid_but_its_reason() -> None:
    result = crossing("self", "entropy", "next")
    text = printed(body(result, 80))
    assert "self, next: - (queries and keys are not the same tokens)" in text
    assert "weight on itself" not in text
    assert "weight on itself" not in words(figure_of(result))
    assert result.main.measure == "entropy"
    assert "# self: queries and keys are not the same tokens\n" in as_csv(result)
    document = json.loads(as_json(result))
    assert document["measures"]["self"]["values"] == [[None] * 3] * 2
    assert [each["absent"] != "" for each in document["measures"].values()] == [True, False, True]
    assert document["measure"] == "entropy"


# pictures


def described() -> list[MeasureDescription]:
    return [measure.description for measure in MEASURES.values()]


def with_classes() -> Overview:
    result = several("offset", layers=2, heads=3)
    told = MEASURES["pattern"].description
    values = np.array([[0.0, 2.0, 4.0], [3.0, 1.0, math.nan]])
    pattern = made.scores("pattern", values, 13)
    return replace(result, scores={"pattern": replace(pattern, description=told), **result.scores})


def test_classes_are_written_by_their_names() -> None:
    result = with_classes()
    lines = printed(body(result, 80)).splitlines()
    rows = [line.replace("✗", " ").split()[:4] for line in lines if line.startswith(("L0 ", "L1 "))]
    assert rows[:2] == [["L0", "mixed", "diag", "vert"], ["L1", "v+d", "block", "-"]]
    assert {"mixed", "diag", "vert", "v+d", "block"} <= set(words(figure_of(result)).split())
    assert [row["pattern"] for row in table(as_csv(result))] == ["mixed", "diag", "vert", "v+d", "block", ""]
    document = json.loads(as_json(result))
    assert [row["pattern"] for row in document["results"]] == ["mixed", "diag", "vert", "v+d", "block", None]
    assert document["measures"]["pattern"]["values"][0] == [0, 2, 4]
    assert result.to_pandas()["pattern"].values.tolist() == [["mixed", "diag", "vert"], ["v+d", "block", ""]]


def test_what_has_a_sign_is_written_with_it_and_coloured_around_zero() -> None:
    result = with_classes()
    offset = result.scores["offset"]
    offset.values[:] = [[-1, 0, 12], [3, -12, 1]]
    text = printed(body(result, 80))
    row = next(line for line in text.splitlines() if line.endswith("+12"))
    assert row.split() == ["L0", "−1", "0", "+12"]
    assert "−12 far before (red), +12 far behind (blue)" in text
    mesh = meshes(figure_of(result), 6)[1]
    (low, zero, high) = (mesh.to_rgba(np.array([value]))[0] for value in (-12.0, 0.0, 12.0))
    assert low[0] > low[2]  # red
    assert high[2] > high[0]  # blue
    assert min(zero[:3]) > 0.9


# files


def test_no_measure_is_called_like_another_key_of_a_file() -> None:
    plain = made.overview(2, 3)
    kept = {"entropy"}
    keys = set(archive(as_npz(plain))) | set(table(as_csv(plain))[0])
    keys |= set(json.loads(as_json(plain))["results"][0])
    assert not (keys - kept) & set(MEASURES)
    words = {"next"}  # the command, in a document alone, where no measure has a key of its own
    assert not (set(json.loads(as_json(plain))) - words) & set(MEASURES)


# a measure that is new


def test_a_measure_that_is_registered_appears_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def two_before(tile: Tile) -> Tensor:
        return (tile.weights * (tile.offsets == -2)).sum(-1)

    own = MeasureDescription(
        name="own", unit="weight", meaning="Weight on the one before the last.", paper="Nobody 2020",
        label="weight two before", strongest="head of each layer looking two back",
    )  # fmt: skip
    monkeypatch.setitem(MEASURES, "own", Measure(own, two_before, positional=True, brief=True))
    assert "own" in parse_measures("all")
    result = made.measured(made.overview(12, 12), *parse_measures("own"))
    expected = [[np.diag(w, -2).sum() / len(w) for w in row] for row in result.dense_weights]
    np.testing.assert_allclose(result.main.values, expected)
    grid = printed(body(result, 80))
    assert "own, weight two before" in grid
    assert "0 none (faint), 1.00 all of it (strong)" in grid
    assert "head of each layer looking two back" in grid
    assert number(expected[3][4]) in next(line for line in grid.splitlines() if line.startswith("L3  "))
    assert "own by head" in words(figure_of(result))
    assert float(table(as_csv(result))[7]["own"]) == result.main.values[0, 7]
    assert json.loads(as_json(result))["measures"]["own"]["values"] == result.main.values.tolist()
    assert np.array_equal(archive(as_npz(result))["own"], result.main.values)
    head = made.head()
    told = {fact.name: fact.value for fact in facts(reports.report(head, statistics=statistics(head)))}
    assert told["weight two before"] == number(np.diag(head.weights, -2).sum() / 13)
    listed = [measure.description for measure in MEASURES.values()]
    assert "Weight on the one before the last." in printed(measures_table(listed, 100), 100)
    document = measures_document(MeasuresListing((MeasureListed(listed[-1], "0 to 1", "a"),)), "one")
    assert json.loads(document)["measures"][-1]["name"] == "own"


# the table of measures


@pytest.mark.parametrize("width", [60, 100])
def test_the_table_of_measures(width: int) -> None:
    text = printed(measures_table(described(), width), width)
    assert max(map(len, text.splitlines())) <= width
    assert_golden(f"measures.{width}", text)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_what_one_needs_first_stands_in_a_few_lines(width: int) -> None:
    text = printed(measures_begun(described(), width), width)
    said, _, command = text.partition("\nNext: ")
    lines = said.splitlines()
    assert lines[0] == f"{len(MEASURES)} measures of a head. Five to begin with:"
    assert [line.split()[0] for line in lines[2:] if line[:1].strip()][:5] == list(BEGIN)
    assert len(lines) <= {60: 16, 80: 11, 140: 9}[width]
    assert max(map(len, lines)) <= width
    assert BEGIN.keys() < MEASURES.keys()
    assert command


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_is_explained_by_its_formula_range_and_paper(name: str) -> None:
    each = MEASURES[name].description
    text = printed(measure_explained(MeasureListed(each, each.range, formula(name)), 80), 80)
    assert max(map(len, text.partition("\nNext: ")[0].splitlines())) <= 80
    plain = " ".join(text.split())
    for told in (each.meaning, each.unit, each.range, each.paper, each.apart, formula(name)):
        assert " ".join(told.split()) in plain
    assert ("f(x_k) the value" in plain) == (name.endswith("-norm") or name == "moved")


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ((), "39 measures of a head. Five to begin with:"),
        (("--all",), "name                         unit              range            meaning"),
        (("previous",), "previous: Mean weight on the previous token, of the queries that may look there."),
        (("previous,next",), "name      unit    range   meaning"),
    ],
)
def test_the_command_lists_them(asked: tuple[str, ...], first: str) -> None:
    result = CliRunner().invoke(app, ["measures", *asked], env={"COLUMNS": "140", "TERM": "dumb"})
    assert result.exit_code == 0
    assert " ".join(result.stdout.splitlines()[0].split()) == " ".join(first.split())


def test_a_measure_that_there_is_not_is_told_with_the_nearest() -> None:
    result = CliRunner().invoke(app, ["measures", "entropi"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("attnscope: no measure 'entropi': the nearest are entropy, ")
    assert result.stderr.count("\n") == 1
