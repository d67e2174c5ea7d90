"""How a number, a word of a command and a text set large are written."""

import math
import shlex
import subprocess
import sys

import made_results as made
import numpy as np
import pytest
import written_numbers as cases
from hypothesis import given
from hypothesis import strategies as st
from written_numbers import number_of

from attnscope.printable import printable, word
from attnscope.render.kit import numbers
from attnscope.render.kit.numbers import alike, alike_texts, cell, chance, give_or_take, percent, signed_cell
from attnscope.render.kit.typesetting import SetText, drawing, runs, set_text
from attnscope.tokens import Token, Tokens

RULES = {
    numbers.number: cases.NUMBER,
    numbers.signed: cases.SIGNED,
    numbers.significant: cases.SIGNIFICANT,
    numbers.parameter: cases.PARAMETER,
    numbers.weight: cases.WEIGHT,
    numbers.weight_cell: cases.WEIGHT_CELL,
}


@pytest.mark.parametrize(
    ("write", "value", "digits", "text"),
    [(write, *case) for write, listed in RULES.items() for case in listed],
)
def test_a_number_is_written_by_the_rule(write: object, value: float, digits: int, text: str) -> None:
    assert write(value, digits) == text  # type: ignore[operator]


@pytest.mark.parametrize("write", [numbers.number, numbers.signed])
@pytest.mark.parametrize("decimals", [0, 1, 2, 3, 4, None])
def test_what_is_not_zero_is_not_written_as_zero_and_keeps_its_sign(
    write: object, decimals: int | None
) -> None:
    drawn = np.random.default_rng(3).normal(size=150) * 10.0 ** np.random.default_rng(4).uniform(-9, 8, 150)
    for value in map(float, drawn):
        text = write(value, decimals)  # type: ignore[operator]
        assert math.copysign(1, number_of(text)) == math.copysign(1, value)
        assert number_of(text) != 0
        assert text.lstrip("+−")[0] != "0"
        assert "-" not in text.replace("e-", "")
        step = 0.0 if decimals is None else 0.5 * 10.0**-decimals
        assert abs(number_of(text) - value) <= 1.001 * max(step, 0.05 * abs(value))


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1.0, "100 %"), (0.434, "43 %"), (0.0994, "9.9 %"), (0.0996, "10 %"), (0.0312, "3.1 %"),
        (0.0041, "0.4 %"), (0.0003, "<0.1 %"), (0.0, "0 %"),
        (0.9981, "99.8 %"), (0.9997, ">99.9 %"), (1 - 1e-7, "100 %"), (0.9889, "99 %"), (0.9904, "99.0 %"),
        (-0.0003, "above −0.1 %"), (-0.14, "−14 %"), (-0.004, "−0.4 %"), (1.87, "187 %"), (math.nan, "-"),
    ],
)  # fmt: skip
def test_a_percentage_has_two_digits_and_is_nothing_or_all_only_where_it_is(share: float, text: str) -> None:
    assert percent(share) == text
    assert numbers.per_hundred(100 * share) == text


def test_a_probability_is_a_per_cent_and_nothing_or_all_only_where_it_is() -> None:
    given = (0.6479, 0.004, 3.14e-5, 0.0, 0.99951, 0.9994, 1.0, math.nan)
    assert [chance(each) for each in given] == [
        "64.8 %", "0.4 %", "<0.1 %", "0 %", ">99.9 %", "99.9 %", "100 %", "-",
    ]  # fmt: skip
    assert [chance(each, 2) for each in given] == [
        "64.79 %", "0.40 %", "<0.01 %", "0 %", "99.95 %", "99.94 %", "100 %", "-",
    ]  # fmt: skip


def test_what_is_given_either_way_is_written_as_the_number_it_belongs_to() -> None:
    assert numbers.signed(0.0635, 4) == "+.0635"
    assert give_or_take(0.0778, 4) == "±.0778"
    assert give_or_take(-0.02) == "±.02"
    assert give_or_take(0.0031, None) == "±.0031"
    assert give_or_take(math.nan) == ""
    assert numbers.with_error(0.06352, 0.0131) == "+.064 ±.013"
    assert numbers.with_error(-12.34, 1.26) == "−12.3 ±1.3"
    assert numbers.with_error(0.06352, math.nan) == "+.064"
    assert numbers.with_error(0.0, 0.0131) == "0 ±.013"


def test_the_cells_of_a_matrix_have_the_same_decimals() -> None:
    values = np.array([[0.284, -0.0312, 0.001], [-0.001, 1.5, 0.0]])
    assert alike_texts(values, 2).tolist() == [[".28", "−.03", ".00"], [".00", "1.50", ".00"]]
    smaller = [[".003", ".000", ".000"], [".000", ".015", ".000"]]
    assert alike_texts(values / 100, 2).tolist() == smaller


@pytest.mark.parametrize(
    ("largest", "text"),
    [
        (0.5, ".50"), (0.05, ".050"), (0.005, ".0050"), (5e-4, "5.0e-4"), (512.0, "512.00"),
        (-1234.0, "−1,234"), (2.5e6, "2.5e6"), (0.0, ".00"),
    ],
)  # fmt: skip
def test_smaller_cells_have_more_decimals_and_large_ones_none(largest: float, text: str) -> None:
    assert alike(np.array([largest, largest / 3]), 2)(largest) == text


def test_a_cell_that_rounds_to_nothing_has_no_sign() -> None:
    assert [cell(each) for each in (0.004, -0.004, 0.0, -0.006)] == [".00", ".00", ".00", "−.01"]
    assert [signed_cell(each) for each in (0.004, -0.004, 0.006, math.nan)] == [".00", ".00", "+.01", "-"]


def test_thousands_are_separated_in_counts_too() -> None:
    assert numbers.counted(1024, "head") == "1,024 heads"
    assert numbers.counted(1, "query") == "1 query"


SHOWN = st.text(st.characters(codec="utf-8")).map(printable)


@given(SHOWN)
def test_a_shell_of_unix_reads_the_word_back(text: str) -> None:
    assert shlex.split(word(text)) == [text]


@pytest.mark.skipif(sys.platform == "win32", reason="no bash")
def test_what_steers_is_escaped_and_a_shell_reads_it_back() -> None:
    texts = ["a\x1b[31m\x07'\\c7", "x\ny\r", "\x9b2J", "caf\udce9 9", "\u202e9\u2066 $HOME `id`", "\x7f!"]
    words = [word(text) for text in texts]
    assert all(map(str.isprintable, words))
    read = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {' '.join(words)}"], capture_output=True, check=True
    )
    assert read.stdout.split(b"\0")[:-1] == [text.encode("utf-8", "surrogateescape") for text in texts]


def test_half_a_character_that_is_no_byte_of_a_name_is_escaped_too() -> None:
    assert word("a\ud83d") == r"$'a\355\240\275'"


@given(SHOWN)
def test_windows_own_parser_reads_the_word_back(text: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "platform", "win32")
        quoted = word(text)
        # Python's own words for a program on Windows, which quote only what has a blank in it
        assert word(f"{text} ") == subprocess.list2cmdline([f"{text} "])
    assert parsed(f"attnscope {quoted} -m demo") == ["attnscope", text, "-m", "demo"]


@pytest.mark.parametrize("text", ["a&b", "a|b", "a>b", "(a)", "a^b", "3,11", "@a", "", "it's", "a;b"])
def test_what_cmd_or_powershell_would_take_for_its_own_is_quoted(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert word(text) == f'"{text}"'


@pytest.mark.parametrize("text", ["door", "L3H11", "C:\\models\\bert", "models/bert", "--layer=3", "x.npz"])
def test_what_is_plain_is_left_plain(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert word(text) == text


def parsed(line: str) -> list[str]:
    """The words of a command line, as Microsoft's C runtime documents that it parts them."""
    words, word, quoted, begun, at = [], "", False, False, 0
    while at < len(line):
        run = len(line) - at - len(line[at:].lstrip("\\"))
        at += run
        here = line[at : at + 1]
        if here == '"':
            word, begun = word + "\\" * (run // 2), True
            if run % 2:
                word += '"'
            else:
                quoted = not quoted
        else:
            word, begun = word + "\\" * run, begun or run > 0
            if here in (" ", "\t") and not quoted:
                if begun:
                    words.append(word)
                word, begun = "", False
            elif here:
                word, begun = word + here, True
        at += 1
    return [*words, word] if begun else words


SIZES = ((20.0, 16.0), (14.0, 12.0), (11.0,))
NAMES = ["[CLS]", "I", "was", "watching", "the", "door", "when", "[SEP]"]


def one_line(text: str, *spans: tuple[int, int]) -> Tokens:
    return Tokens((text,), tuple(Token(i, text[a:b], text[a:b], (a, b), i) for i, (a, b) in enumerate(spans)))


def spelled(tokens: Tokens, chosen: int | None) -> str:
    """The runs as one text, the marked one in braces."""
    pieces = (
        (" " if run.spaced else "") + (f"{{{run.text}}}" if run.chosen else run.text)
        for run in runs(tokens, chosen)
    )
    return "".join(pieces).strip()


def lines(text: SetText) -> list[str]:
    return ["".join((" " if run.spaced else "") + run.text for _, run in line).strip() for line in text.lines]


def widths(text: SetText) -> list[float]:
    return [line[-1][0] + line[-1][1].width(text.size) for line in text.lines]


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        (None, "I was watching the door when"),
        (1, "{I} was watching the door when"),
        (5, "I was watching the {door} when"),
        (0, "{[CLS]} I was watching the door when"),
        (7, "I was watching the door when {[SEP]}"),
    ],
)
def test_the_marked_token_stands_in_its_place(chosen: int | None, text: str) -> None:
    assert spelled(made.tokens(NAMES), chosen) == text


def test_a_piece_of_a_word_is_marked_without_a_blank() -> None:
    tokens = one_line("unbelievable doors.", (0, 2), (2, 12), (12, 18), (18, 19))
    assert spelled(tokens, 1) == "un{believable} doors."
    assert spelled(tokens, 2) == "unbelievable {doors}."  # its span begins with the blank
    assert spelled(tokens, 3) == "unbelievable doors{.}"


def test_texts_of_a_pair_have_a_bar_between_them() -> None:
    items = (Token(1, "[CLS]", "", None, None, special=True), Token(2, "b", "b", (0, 1), 0, part=1))
    tokens = Tokens(("a", "b"), items)
    assert spelled(tokens, 1) == "a | {b}"
    assert spelled(tokens, 0) == "{[CLS]} a | b"


@pytest.mark.parametrize(
    ("width", "size", "count"),
    [(9.0, 20.0, 1), (3.8, 16.0, 1), (3.2, 14.0, 1), (2.4, 14.0, 2), (1.2, 11.0, 3)],
)
def test_few_lines_matter_more_than_large_letters(width: float, size: float, count: int) -> None:
    with drawing():
        text = set_text(made.tokens(NAMES), 5, width, SIZES)
        assert (text.size, len(text.lines)) == (size, count)
        assert max(widths(text)) <= width
    assert " ".join(lines(text)) == "I was watching the door when"


def test_what_has_no_room_is_cut_and_the_marked_token_stays() -> None:
    tokens = made.tokens([f"word{i}" for i in range(300)])
    for chosen in (0, 7, 150, 299):
        with drawing():
            text = set_text(tokens, chosen, 4.0, SIZES)
            assert max(widths(text)) <= 4.0
        shown = lines(text)
        assert 2 <= len(shown) <= 3
        assert f"word{chosen}" in " ".join(shown).split()
        assert shown[-1].endswith("…") == (chosen != 299)
        assert shown[0].startswith("…") == (chosen > 100)


def test_a_word_that_is_wider_than_the_line_is_broken_and_no_character_lost() -> None:
    tokens = one_line("日本語" * 12, (0, 3), (3, 6))
    with drawing():
        text = set_text(tokens, 1, 2.5, ((14.0,), (12.0,), (11.0,)))
        assert max(widths(text)) <= 2.5
    assert "".join(lines(text)) == "日本語" * 12
    assert len(text.lines) > 1
