"""What a console shows: golden text, awkward tokens, words, what failed, what of a result is looked at."""

import re
import subprocess
import sys
from dataclasses import replace

import cases_media
import made_every
import made_reports
import made_results as made
import numpy as np
import pytest
from golden_text import assert_golden, body, drawn, header, printed
from rich.cells import cell_len
from rich.console import Group
from written_numbers import number_of

from attnscope.analysis.heads.view import viewed
from attnscope.errors import InputError
from attnscope.render.figure import figure_of
from attnscope.render.kit import numbers
from attnscope.render.kit.cells import bar
from attnscope.render.kit.words import certificate_line, power_words, special_words, weights_words
from attnscope.render.sheets import WHOLE, Focus, focus_on, sheet_of
from attnscope.render.terminal.sheet import body as of_sheet
from attnscope.render.terminal.sheet import screen
from attnscope.results import HeadAttention, Result, Special, SpecialMass, Verdict
from attnscope.tokens import Token, Tokens
from attnscope.verbs.report.sheet import shares, shares_remark
from attnscope.vocabulary import Standing, Unit

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


def test_the_demo_model_and_a_replaced_model_are_called_so() -> None:
    result = made.head(demo=True, provenance=made.provenance(demo=True, requested="bert-base-uncased"))
    assert "bundled demo model, asked for bert-base-uncased" in printed(header(result), 140)


@pytest.mark.parametrize("query", [0, 5, 12])
def test_under_one_query_stands_what_that_query_gives_to_special_tokens(query: int) -> None:
    result = made.head(made.DOOR)
    share, mean = result.weights[query, [0, 12]].sum(), result.weights[:, [0, 12]].sum(1).mean()
    assert abs(share - mean) > 1e-3, "a query like the mean would tell nothing"
    told = " ".join(printed(body(result, 80, Focus(queries=(query,)))).split())
    assert f"special tokens get {numbers.weight(share)} of the attention" in told


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


def cut(**changed: object) -> HeadAttention:
    """`[CLS] un ##lock ##ing doors [SEP]`, where a word is cut into three."""
    pieces = (("un", (0, 2), 0), ("##lock", (2, 6), 0), ("##ing", (6, 9), 0), ("doors", (10, 15), 1))
    text = "unlocking doors"
    inner = tuple(Token(7, piece, text[slice(*span)], span, word) for piece, span, word in pieces)
    ends = [Token(1, name, "", None, None, special=True) for name in ("[CLS]", "[SEP]")]
    tokens = Tokens((text,), (ends[0], *inner, ends[1]))
    return replace(made.head(["a"] * 6, **changed), query_tokens=tokens, key_tokens=tokens)  # type: ignore[arg-type]


@pytest.mark.parametrize("special", Special)
def test_the_terminal_shows_words(special: Special) -> None:
    view = viewed(cut(causal=True), by=Unit.WORD, special=special)
    assert_golden(f"words_{special}.80", printed(body(view, 80), 80))


def test_the_bars_of_a_word_have_no_scores() -> None:
    view = viewed(cut(), by=Unit.WORD, special=Special.RENORMALISE)
    text = printed(body(view, 80, Focus(queries=(view.query_tokens.position("unlocking"),))), 80)
    assert_golden("words_bars.80", text)
    assert "scaled" not in text


def test_a_row_with_nothing_left_says_so_in_table_bars_and_figure() -> None:
    weights = np.zeros((6, 6))
    weights[:, 0] = 1.0
    view = viewed(replace(cut(), weights=weights), by=Unit.WORD, special=Special.RENORMALISE)
    shown = printed(body(view, 80), 80)
    assert shown.count("nothing left") == 2 + 1
    assert "2 queries have nothing left" in " ".join(shown.split())
    assert "has nothing left" in printed(body(view, 80, Focus(queries=(0,))), 80)
    drawn = figure_of(view)
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert texts.count("nothing left") == 2
    assert any("hatched: nothing left" in text.get_text() for text in drawn.texts)


@pytest.mark.parametrize(
    ("view", "told"),
    [
        (cut(), "rows sum to 1"),
        (cut(sink=0.5), "rows sum to less than 1: the sink takes the rest"),
        (viewed(cut(), by=Unit.WORD), "rows sum to 1"),
        (viewed(cut(), special=Special.HIDE), "rows sum to less than 1: special tokens get the rest"),
        (
            viewed(cut(sink=0.5), special=Special.HIDE),
            "rows sum to less than 1: special tokens and the sink get the rest",
        ),
        (viewed(cut(), special=Special.RENORMALISE), "special tokens left out, rows divided by what remains"),
        (viewed(made.head(["the", "cat"]), special=Special.HIDE), "rows sum to 1"),
    ],
)
def test_what_a_row_adds_up_to_is_said(view, told: str) -> None:
    assert weights_words(view)[0] == told


def test_the_mass_is_split_by_name_and_many_names_are_cut_to_the_largest() -> None:
    assert special_words(None) == ""
    assert special_words(SpecialMass(0.43, {"[CLS]": 0.031, "[SEP]": 0.399})) == (
        "special tokens get .43 of the attention: [CLS] .03, [SEP] .40"
    )
    assert special_words(SpecialMass(0.0001, {"</s>": 0.0001})) == (
        "special token </s> gets <.01 of the attention"
    )
    many = {f"<{i}>": i / 100 for i in range(1, 7)}
    assert special_words(SpecialMass(0.21, many)).endswith("<6> .06, <5> .05, <4> .04, <3> .03, ...")


def test_a_report_lists_words_and_leaves_out_special_tokens() -> None:
    head = cut()
    view = viewed(head, by=Unit.WORD, special=Special.RENORMALISE)
    result = made_reports.report(head, 4, view=view)
    given, weights = result.contributions, head.weights[4]
    listed = {each.name: each for each in shares(result, 9)}
    assert sorted(listed) == ["1 unlocking", "4 doors"]
    assert listed["1 unlocking"].share == pytest.approx(given[1:4].sum())
    assert listed["1 unlocking"].weight == pytest.approx(weights[1:4].sum() / weights[1:5].sum())
    left_out = f"special tokens left out: weight {weights[[0, 5]].sum():.2f}".replace("0.", ".")
    assert shares_remark(result).startswith(left_out)
    assert "divided" in shares_remark(result)


EVERY = made_every.every()


def shown(result: Result, width: int = 80, focus: Focus = WHOLE) -> str:
    return printed(Group(*screen(result, width, focus)), width)


def test_what_is_quiet_is_the_answer_and_the_proof_and_verbose_pins_the_numbers_down() -> None:
    head = made.head()
    brief, usual, full, legend = (
        shown(head, 80, Focus(**each)) for each in ({"brief": True}, {}, {"verbose": True}, {"legend": True})
    )
    assert len(brief.splitlines()) <= 6
    assert brief.splitlines()[0] == usual.splitlines()[0]
    assert "sha256" in full or "revision" in full
    assert "takeover" in full
    assert "takeover" not in usual + legend
    assert "not that attention explains its answer" in " ".join(legend.split())
    assert "not that attention explains its answer" not in " ".join(usual.split())


def test_a_focus_is_found_by_the_text_or_position_of_tokens() -> None:
    projection = made.projection()
    assert focus_on(projection, query="cat", key=-1) == Focus(queries=(2,), key=12)
    assert focus_on(made_every.terms(), query=4, key="mat") == Focus(queries=(4,), key=6)
    assert focus_on(made.head(), show="scaled") == Focus("scaled")
    assert focus_on(cases_media.picture_head()) == WHOLE


@pytest.mark.parametrize(
    ("name", "asked", "message"),
    [
        ("HeadAttention", {"query": "dog"}, "no token 'dog' in the input"),
        ("HeadAttention", {"query": "the"}, "token 'the' stands 2 times: choose one of the@1, the@5"),
        ("HeadAttention", {"query": 13}, "no token 13 in the input: positions 0-12"),
        ("HeadAttention", {"query": "cat", "show": "scores"}, "leave show scores out"),
        ("HeadAttention", {"query": "cat", "key": "mat", "show": "q"}, "leave key out"),
        ("HeadAttention", {"show": "values"}, "nothing of a head is called 'values': weights, scores"),
        ("HeadTerms", {"key": "mat"}, "name a query"),
        ("HeadView", {"show": "q"}, "words and special tokens are about weights"),
        ("HeadWeights", {"show": "v"}, "only weights of this head: leave show v out"),
        ("Overview", {"query": "cat"}, "need one head"),
        ("Overview", {"show": "q"}, "show needs one head"),
        ("Prediction", {"query": "cat"}, "need one head"),
    ],
)
def test_what_a_result_does_not_have_is_one_line(name: str, asked: dict, message: str) -> None:
    with pytest.raises(InputError) as error:
        focus_on(EVERY[name], **asked)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
