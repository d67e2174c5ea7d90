"""What a console shows: golden text, colours, awkward tokens, results that failed."""

import re
import subprocess
import sys
from dataclasses import replace

import made_results as made
import numpy as np
import pytest
from golden_text import assert_golden, body, drawn, header, printed
from rich.cells import cell_len
from written_numbers import number_of

from attnscope.analysis.heads.view import viewed
from attnscope.render.focus import Focus
from attnscope.render.kit import numbers
from attnscope.render.kit.cells import bar
from attnscope.render.kit.stage import SHOWS
from attnscope.render.kit.words.certificate import certificate_line, power_words
from attnscope.render.sheets import sheet_of
from attnscope.render.terminal.sheet import body as of_sheet
from attnscope.results import Special, Verdict
from attnscope.vocabulary import Standing

LONG = [f"w{i}" for i in range(70)]
GOLDEN = {
    "header": lambda width: header(made.head()),
    "shared_key_head": lambda width: body(
        made.head(causal=True, demo=True, key_heads=3, key_head=2, window=128, softcap=50.0, sink=-1.25),
        width,
    ),
    "weights": lambda width: body(made.head(), width),
    "weights_masked": lambda width: body(made.head(causal=True, empty=[0]), width),
    "weights_that_do_not_fit": lambda width: body(made.head(LONG, causal=True), width),
    "scaled": lambda width: body(made.head(causal=True), width, Focus("scaled")),
    "cross": lambda width: body(made.head(made.DOOR[:4], ["[CLS]", "日本語", "a,b"]), width),
    "queries": lambda width: body(made.head(dim=64), width, Focus("q")),
    "bars": lambda width: body(made.head(), width, Focus(queries=(3,))),
    "bars_of_many_keys": lambda width: body(made.head(LONG, causal=True), width, Focus(queries=(60,))),
    "overview": lambda width: body(
        made.overview(verdicts={(1, 2): Verdict.FAILED, (4, 5): Verdict.INCONCLUSIVE}), width
    ),
    "overview_of_few_heads": lambda width: body(made.overview(2, 3), width),
    "overview_of_many_heads": lambda width: body(made.overview(24, 40, made.DOOR[:5]), width),
}


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("name", GOLDEN)
def test_the_text_is_the_golden_text_and_no_line_is_too_wide(name: str, width: int) -> None:
    text = printed(GOLDEN[name](width), width)
    assert_golden(f"{name}.{width}", text)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text


def test_colour_adds_nothing_but_colour() -> None:
    table = body(made.head(), 80)
    coloured = printed(table, colour="truecolor")
    assert_golden("weights_in_colour.80", coloured)
    assert "\x1b[" in coloured
    assert made.plain(coloured) == printed(table)


def test_columns_stay_aligned_with_wide_combining_and_right_to_left_tokens() -> None:
    lines = printed(drawn(made.head(made.AWKWARD), 80)).splitlines()
    rows = [line for line in lines if line.lstrip()[:1].isdigit() and "." in line[20:]]
    assert len(rows) == len(made.AWKWARD)
    assert len({cell_len(row) for row in rows}) == 1
    assert {cell_len(line) for line in lines[2:4]} == {cell_len(rows[0])}


def test_markup_and_escape_sequences_in_tokens_are_only_text() -> None:
    result = made.head(made.AWKWARD)
    for renderable in (
        header(result),
        body(result, 80),
        body(result, 80, Focus(queries=(2,))),
        body(made.overview(2, 3, made.AWKWARD), 140),
        body(made.overview(2, 12, made.AWKWARD), 140),
    ):
        text = made.plain(printed(renderable, 140, "truecolor"))
        assert "\x1b" not in text
    text = printed(body(result, 80))
    assert "[/b]" in text
    assert "[red]" in text
    assert "\\x1b[31m" in text


def test_a_token_that_is_only_a_combining_mark_gets_a_circle_to_stand_on() -> None:
    assert "◌\u0301" in printed(body(made.head(made.AWKWARD), 80))


def test_right_to_left_tokens_cannot_carry_the_numbers_that_follow_them_along() -> None:
    rows = printed(body(made.head(made.AWKWARD), 80)).splitlines()
    assert next(row for row in rows if row.startswith(" 2")).startswith(" 2 سلام\u200e ")


def test_masked_cells_are_blank_and_uncoloured() -> None:
    text = printed(body(made.head(["a", "b", "c"], causal=True), 80), colour="truecolor")
    first = next(line for line in text.splitlines() if line.startswith("0 a"))
    assert made.plain(first).split() == ["0", "a", "1.0"]
    assert first.count("\x1b[") == 2
    assert "blank: masked" in text


@pytest.mark.parametrize("show", ["weights", "scores", "scaled", "output"])
def test_a_query_without_keys_says_so_in_every_stage(show: str) -> None:
    text = printed(body(made.head(causal=True, empty=[2]), 140, Focus(show)), 140)  # type: ignore[arg-type]
    row = next(line for line in text.splitlines() if line.startswith(" 2 cat"))
    assert row.endswith("no valid key")
    assert "nan" not in text


def test_bars_of_a_query_without_keys_say_so() -> None:
    assert "has no valid key" in printed(body(made.head(causal=True, empty=[2]), 80, Focus(queries=(2,))))


@pytest.mark.parametrize("show", SHOWS)
@pytest.mark.parametrize("width", [30, 80, 200])
def test_every_stage_fits_every_width(show: str, width: int) -> None:
    for result in (made.head(causal=True), made.head(made.DOOR[:3], LONG), made.head(["a"], dim=64)):
        text = printed(body(result, width, Focus(show)), width)  # type: ignore[arg-type]
        assert max(cell_len(line) for line in text.splitlines()) <= width


@pytest.mark.parametrize("exponent", [-9, -3, 0, 3, 9])
def test_numbers_of_any_size_stay_apart_from_their_neighbours(exponent: int) -> None:
    result = made.head(made.DOOR[:4])
    scaled = made.head(made.DOOR[:4], scores=result.scores * 10.0**exponent)
    rows = printed(drawn(scaled, 140, Focus("scores")), 140).splitlines()[4:8]
    for row, values in zip(rows, scaled.scores, strict=True):
        read = [number_of(word) for word in row.split()[2:]]
        np.testing.assert_allclose(read, values, atol=0.06 * np.abs(scaled.scores).max())


def test_a_bar_is_as_long_as_its_share_to_an_eighth_of_a_cell() -> None:
    assert bar(0.5, 10) == "█████"
    assert bar(0.55, 10) == "█████▌"
    assert bar(1e-9, 10) == "▏"
    assert bar(0.0, 10) == ""


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_verdict_is_told_by_word_and_glyph_and_not_by_colour_alone(verdict: Verdict) -> None:
    line = certificate_line(made.certificate(verdict), full=True)
    assert verdict.value in line.plain.lower()
    assert not line.plain[0].isalnum()
    assert "\n" not in line.plain
    assert_golden(f"certificate_{verdict.value}", printed(line))


@pytest.mark.parametrize(
    ("standing", "told"),
    [
        (Standing.OWN, " · tokens in place"),
        (Standing.MIXED, " · tokens in place, mixed with others before"),
        (Standing.OTHER, " · rows are not the tokens in their place: numbered"),
    ],
)
def test_a_certificate_says_whose_rows_they_are(standing: Standing, told: str) -> None:
    certificate = made.certificate(Verdict.CERTIFIED)
    plain = certificate_line(certificate, full=True).plain
    assert certificate_line(replace(certificate, positions=standing), full=True).plain == plain + told


def test_a_certificate_says_on_what_its_rows_were_tried_where_that_is_not_every_token() -> None:
    certificate = replace(
        made.certificate(Verdict.CERTIFIED), positions_tried="on 3 random halves of the text"
    )
    words = certificate_line(replace(certificate, positions=Standing.OWN), full=True).plain
    assert words.endswith(" · tokens in place (tried on 3 random halves of the text)")
    unknown = certificate_line(replace(certificate, positions=Standing.UNKNOWN), full=True).plain
    assert "tried on" not in unknown


def test_what_is_certified_is_said_in_a_word_and_rows_that_are_not_the_tokens_beside_it() -> None:
    certificate = made.certificate(Verdict.CERTIFIED)
    assert certificate_line(certificate).plain == "✓ certified"
    odd = replace(certificate, positions=Standing.OTHER)
    assert certificate_line(odd).plain == "✓ certified · rows are not the tokens in their place: numbered"
    mixed = certificate_line(replace(certificate, positions=Standing.MIXED)).plain
    assert mixed == "✓ certified · tokens in place, mixed with others before"
    assert certificate_line(replace(certificate, positions=Standing.OWN)).plain == "✓ certified"


@pytest.mark.parametrize("verdict", [each for each in Verdict if each.stands_out])
def test_anything_else_than_certified_is_told_in_full(verdict: Verdict) -> None:
    certificate = made.certificate(verdict)
    assert certificate_line(certificate).plain == certificate_line(certificate, full=True).plain
    assert " · " in certificate_line(certificate).plain


@pytest.mark.parametrize(
    ("power", "said"),
    [
        (0.3149, ".31 times"),
        (12.0, "12 times"),
        (999.0, "999 times"),
        (28_949.0, "29,000 times"),
        (1e6, "1,000,000 times"),
        (4.0e13, "over 1,000,000 times"),
        (np.inf, "over 1,000,000 times"),
        (np.nan, "- times"),
    ],
)
def test_a_power_is_a_number_that_people_read(power: float, said: str) -> None:
    assert power_words(power) == said


def test_a_failed_certificate_looks_failed() -> None:
    line = certificate_line(made.certificate(Verdict.FAILED))
    assert "FAILED" in line.plain
    assert "off .25 (tolerated 5.2e-7)" in line.plain
    assert "\x1b[1;31m" in printed(line, colour="standard")


def test_an_inconclusive_certificate_names_what_it_would_have_missed() -> None:
    line = certificate_line(made.certificate(Verdict.INCONCLUSIVE)).plain
    assert "not seen: key rotation left out (.31 times the tolerance)" in line


def test_the_demo_model_and_a_replaced_model_are_called_so() -> None:
    result = made.head(demo=True, provenance=made.provenance(demo=True, requested="bert-base-uncased"))
    assert "bundled demo model, asked for bert-base-uncased" in printed(header(result), 140)


def test_mass_on_special_tokens_is_told_under_the_weights() -> None:
    result = made.head(made.DOOR)
    share = result.weights[:, [0, 12]].sum(1).mean()
    assert f"special tokens get {numbers.weight(share)} of the attention" in printed(body(result, 80))


@pytest.mark.parametrize("query", [0, 5, 12])
def test_under_one_query_stands_what_that_query_gives_to_special_tokens(query: int) -> None:
    result = made.head(made.DOOR)
    share, mean = result.weights[query, [0, 12]].sum(), result.weights[:, [0, 12]].sum(1).mean()
    assert abs(share - mean) > 1e-3, "a query like the mean would tell nothing"
    told = " ".join(printed(body(result, 80, Focus(queries=(query,)))).split())
    assert f"special tokens get {numbers.weight(share)} of the attention" in told


def test_under_a_word_stands_the_mean_over_its_pieces() -> None:
    head = made.head(made.DOOR)
    result = viewed(head, special=Special.HIDE)
    share = head.weights[list(result.query_groups[3])][:, [0, 12]].sum(1).mean()
    told = " ".join(printed(body(result, 80, Focus(queries=(3,)))).split())
    assert f"special tokens get {numbers.weight(share)} of the attention" in told


def test_a_sink_is_said_to_take_the_rest_of_a_row() -> None:
    result = made.head(sink=0.5)
    assert "rows sum to less than 1" in printed(body(result, 80))


def test_heads_that_are_not_certified_are_marked_in_the_grid() -> None:
    text = printed(body(made.overview(verdicts={(1, 2): Verdict.FAILED}), 80))
    (row,) = (line for line in text.splitlines() if line.startswith("L1 ") and "✗" in line)
    assert row.split()[3].endswith("✗"), "the third of its layer"
    assert text.startswith("✗ Do not use these numbers: 1 of 144 heads")
    assert "✗ FAILED: 1 of 144 heads" in " ".join(text.split())
    assert text.count("✗") == 3
    assert "✗" not in printed(body(made.overview(), 80))


def test_an_overview_of_a_very_large_model_stays_short_and_says_what_is_missing() -> None:
    large = made.overview(31, 64, ["a", "b"])
    text = printed(of_sheet(sheet_of(large), 80))
    assert "-v has the numbers" in " ".join(text.split())
    assert len(text.splitlines()) < 64
    listed = text[text.index("most focused of its layer") :].splitlines()
    heads = [line for line in listed if re.match(r"L\d+ H\d+ .* → ", line)]
    layers = [line.split()[0] for line in heads]
    assert len(set(layers)) == len(layers) == 12
    assert "19 more layers (-v)" in text
    every = printed(of_sheet(sheet_of(large, Focus(verbose=True)), 80, Focus(verbose=True)))
    table = every[every.index("most focused of its layer") :].splitlines()
    assert len([line for line in table if re.match(r"L\d+ H\d+ .* → ", line)]) == 31


def test_the_terminal_needs_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys, attnscope.render.terminal.sheet, attnscope.render.files\n"
        "print([name for name in ('torch', 'transformers', 'sklearn', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
