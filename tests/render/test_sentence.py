"""A text set large: every word of it, the marked token in its place, no line too long, cuts are visible."""

import made_results as made
import numpy as np
import pytest

from attnscope.render.kit.sentence import SetText, runs, set_text
from attnscope.render.kit.typesetting import drawing
from attnscope.tokens import Token, Tokens

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


def test_control_characters_are_spelled_out() -> None:
    assert spelled(one_line("a\x1b[31m\nb", (0, 1)), None) == "a\\x1b[31m↵b"


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


def test_lines_are_about_as_long_as_each_other() -> None:
    tokens = made.tokens(["door"] * 21)
    with drawing():
        text = set_text(tokens, 3, 6.8, SIZES)
        assert len(text.lines) == 2
        assert np.ptp(widths(text)) < 0.2 * max(widths(text))


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
